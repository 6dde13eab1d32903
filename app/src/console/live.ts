/** One stream of events for the whole page; whoever wants to know of some asks here. */
import { signal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";

import { type EventName, type HubEvent, Live } from "../web/live";
import { start } from "./session";

type Listener = (event: HubEvent) => void;

/** Whether the hub tells this page what changes; null before the first answer. */
export const connected = signal<boolean | null>(null);

/** Whether the stream stays open while nobody sees the page, for notifications. */
export const keepOpen = signal(false);

const UNSEEN_MS = 30_000;
/** How long the first reading waits for the stream. */
const OPENING_MS = 1_000;
const listeners = new Map<EventName, Set<Listener>>();
let broken = false;
let opened = () => {};
let opening: Promise<void> = Promise.resolve();

const live = new Live(["reload"], tell, (open) => {
  // One that opens though none had failed was closed while the reader tried to sign out.
  const again = open && (broken || connected.value === true);
  broken = !open;
  connected.value = open;
  opened();
  // A stream that ended may mean that the session did.
  if (!open) void start().catch(() => {});
  if (again) everyone({ name: "reload", data: { reason: "gap" } });
});

let timer: ReturnType<typeof setTimeout> | undefined;

/** Browsers have few connections for all pages of a host, so one that nobody sees gives its own up. */
function seen(): void {
  clearTimeout(timer);
  if (document.hidden) {
    if (!keepOpen.value) timer = setTimeout(() => live.close(), UNSEEN_MS);
  } else if (!live.isOpen) {
    broken = true;
    live.open();
  }
}

/**
 * What is read once this is done is told of every change. What was read earlier could change before
 * the stream is open, and nobody would say so; where that takes long, it is read again then.
 */
export const streamOpened = (): Promise<void> => opening;

export function openLive(): void {
  opening = new Promise((resolve) => {
    const late = setTimeout(() => {
      broken = true;
      resolve();
    }, OPENING_MS);
    opened = () => {
      clearTimeout(late);
      resolve();
    };
  });
  live.open();
  document.addEventListener("visibilitychange", seen);
}

export function closeLive(): void {
  document.removeEventListener("visibilitychange", seen);
  clearTimeout(timer);
  opened();
  live.close();
  connected.value = null;
}

function tell(event: HubEvent): void {
  if (event.name === "reload") return everyone(event);
  listeners.get(event.name)?.forEach((listener) => listener(event));
}

function everyone(event: HubEvent): void {
  new Set([...listeners.values()].flatMap((each) => [...each])).forEach((it) => it(event));
}

/** Hear events by name, and `reload` when some may be missing: then read everything again. */
export function listen(names: readonly EventName[], listener: Listener): () => void {
  for (const name of names) {
    if (!listeners.has(name)) listeners.set(name, new Set());
    listeners.get(name)!.add(listener);
    live.add(name);
  }
  return () => names.forEach((name) => listeners.get(name)?.delete(listener));
}

export function useEvents(names: readonly EventName[], listener: Listener): void {
  const latest = useRef(listener);
  latest.current = listener;
  useEffect(() => listen(names, (event) => latest.current(event)), [names.join(" ")]);
}
