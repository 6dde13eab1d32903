/**
 * What pages show, read from the hub over REST and read again when it says that it changed.
 *
 *   const { data, error, reload } = useLoad<hub.HubStatus>("/v1/status");
 *   const list = usePages<hub.PersonRows, hub.PersonRow>("/v1/accounts", {
 *     items: (page) => page.people, next: (page) => page.next, cursor: "after", on: ["account.changed"] });
 *   await attempt(() => send("POST", path, body), "Suspended @bob.");
 */
import { signal } from "@preact/signals";
import { useEffect, useRef, useState } from "preact/hooks";

import { Refused, sentence, Unreachable } from "../api/call";
import type { EventName, HubEvent } from "../web/live";
import { ask, type Method } from "../web/rest";
import { streamOpened, useEvents } from "./live";
import { over } from "./session";

const GATHER_MS = 250;
/** However much happens, the same is not read again sooner. */
const LEAST_MS = 1_000;
const AGAIN_MS = 5_000;
/** Entries of a list that is followed; the oldest beyond it are read again when they are wanted. */
const MOST_FOLLOWED = 1_000;

/** One request; where it shows that the session is over, the whole page says so. */
export async function send<T>(method: Method, path: string, body?: unknown): Promise<T> {
  try {
    return await ask<T>(method, path, body);
  } catch (error) {
    if (error instanceof Refused && error.signedOut) over();
    throw error;
  }
}

/** A path with a query; what is undefined, null or empty is left out. */
export function withQuery(path: string, query: Record<string, unknown>): string {
  const given = Object.entries(query).filter(([, it]) => it !== undefined && it !== null && it !== "");
  const text = new URLSearchParams(given.map(([name, it]) => [name, String(it)])).toString();
  if (!text) return path;
  return path.includes("?") ? `${path}&${text}` : `${path}?${text}`;
}

export interface Said {
  text: string;
  bad: boolean;
}

/** What happened last, for the line that everyone can see and hear. */
export const said = signal<Said>({ text: "", bad: false });
export const say = (text: string, bad = false) => void (said.value = { text, bad });

/** Do something that changes the hub: what came of it is said, and a failure answers undefined. */
export async function attempt<T>(work: () => Promise<T>, done = ""): Promise<T | undefined> {
  say("");
  try {
    const result = await work();
    if (done) say(done);
    return result;
  } catch (error) {
    say(sentence(error), true);
    return undefined;
  }
}

export interface Load<T> {
  /** Null until the first answer. While it is read again, and where that fails, the last one stays. */
  data: T | null;
  error: string;
  /** The status that the hub refused with; 0 for none, or where it could not be reached. */
  status: number;
  busy: boolean;
  reload: () => Promise<void>;
}

interface State<T> {
  of: string | null;
  data: T | null;
  error: string;
  status: number;
  busy: boolean;
}

/**
 * Reads something again and again: at first, on each `reload`, and on events, several of which in a
 * short time are one. What cannot be reached is tried again; what is not looked at waits.
 */
function useReading<T>(
  key: string | null,
  read: (before: T | null) => Promise<T>,
  on: readonly EventName[],
  heeds: (event: HubEvent) => boolean = () => true,
): Load<T> & { set: (data: T) => void } {
  const fresh = { of: key, data: null, error: "", status: 0, busy: key !== null };
  const [state, setState] = useState<State<T>>(fresh);
  const latest = useRef({ key, read, run: 0, at: 0, data: null as T | null, alive: true });
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  /** Whether something changed that is not read yet. */
  const behind = useRef(false);
  latest.current.key = key;
  latest.current.read = read;

  const reload = async () => {
    clearTimeout(timer.current);
    behind.current = false;
    latest.current.at = Date.now();
    const { key: of, data: before } = latest.current;
    if (of === null || !latest.current.alive) return;
    const run = ++latest.current.run;
    const stale = () => run !== latest.current.run || !latest.current.alive;
    setState((was) => (was.of === of ? { ...was, busy: true } : was));
    try {
      if (on.length) await streamOpened();
      if (stale()) return;
      const data = await latest.current.read(before);
      if (stale()) return;
      latest.current.data = data;
      setState({ of, data, error: "", status: 0, busy: false });
    } catch (error) {
      if (stale()) return;
      const status = error instanceof Refused ? error.status : 0;
      setState((was) => ({ ...was, error: sentence(error), status, busy: false }));
      if (error instanceof Unreachable) timer.current = setTimeout(() => void reload(), AGAIN_MS);
    }
  };

  const gather = () => {
    if (behind.current) return;
    behind.current = true;
    clearTimeout(timer.current);
    const wait = Math.max(GATHER_MS, latest.current.at + LEAST_MS - Date.now());
    timer.current = setTimeout(() => {
      if (!document.hidden) return void reload();
      document.addEventListener("visibilitychange", () => behind.current && void reload(), {
        once: true,
      });
    }, wait);
  };
  useEvents(on, (event) => heeds(event) && gather());
  useEffect(() => {
    latest.current.alive = true;
    latest.current.data = null;
    behind.current = false;
    setState({ of: key, data: null, error: "", status: 0, busy: key !== null });
    void reload();
    return () => {
      latest.current.alive = false;
      clearTimeout(timer.current);
    };
  }, [key]);
  const set = (data: T) => {
    latest.current.data = data;
    setState((was) => ({ ...was, data }));
  };
  // Nothing of the former key is shown under a new one, not even for a frame.
  return { ...(state.of === key ? state : fresh), reload, set };
}

/** One answer; a path of null reads nothing. Events that it does not heed change nothing. */
export function useLoad<T>(
  path: string | null,
  on: readonly EventName[] = [],
  heeds?: (event: HubEvent) => boolean,
): Load<T> {
  return useReading<T>(path, () => send<T>("GET", path!), on, heeds);
}

interface PagesOptions<A, T> {
  items: (answer: A) => readonly T[];
  next: (answer: A) => string | number | null | undefined;
  /** The name of the argument that takes what `next` answers. */
  cursor?: string;
  on?: readonly EventName[];
  /** For a list of which only the newest changes: then no more is read than what was not there.
   * `argument` takes the id of the newest item, and answers those after it, the oldest first. */
  newer?: { argument: string; id: (item: T) => number };
}

interface Pages<T> {
  items: readonly T[];
  next: string | number | null;
  count: number;
}

export interface PagedLoad<T> extends Omit<Load<Pages<T>>, "data"> {
  /** Null until the first answer. */
  items: readonly T[] | null;
  /** Whether there are more; `more` reads them. */
  hasMore: boolean;
  more: () => Promise<void>;
}

/** A list that is read page by page; when it changes, as many pages as are shown are read again. */
export function usePages<A, T>(path: string | null, options: PagesOptions<A, T>): PagedLoad<T> {
  const { cursor = "cursor", on = [] } = options;
  const [growing, setGrowing] = useState(false);
  const page = async (from: Pages<T>): Promise<Pages<T>> => {
    const answer = await send<A>("GET", withQuery(path!, { [cursor]: from.next }));
    return {
      items: [...from.items, ...options.items(answer)],
      next: options.next(answer) ?? null,
      count: from.count + 1,
    };
  };
  const since = async (before: Pages<T>): Promise<Pages<T>> => {
    const { argument, id } = options.newer!;
    let { items, next } = before;
    for (let more = true; more; ) {
      const answer = await send<A>("GET", withQuery(path!, { [argument]: id(items[0]!) }));
      items = [...options.items(answer).toReversed(), ...items];
      more = options.next(answer) !== null;
    }
    if (items.length > MOST_FOLLOWED) {
      items = items.slice(0, MOST_FOLLOWED);
      next = id(items.at(-1)!);
    }
    return { items, next, count: before.count };
  };
  const read = async (before: Pages<T> | null) => {
    if (before?.items.length && options.newer) return since(before);
    let found = await page({ items: [], next: null, count: 0 });
    while (before && found.count < before.count && found.next !== null) found = await page(found);
    return found;
  };
  const { data, set, ...rest } = useReading<Pages<T>>(path, read, on);
  const more = async () => {
    if (!data || data.next === null || growing) return;
    setGrowing(true);
    const grown = await attempt(() => page(data));
    setGrowing(false);
    if (grown) set(grown);
  };
  return {
    ...rest,
    busy: rest.busy || growing,
    items: data?.items ?? null,
    hasMore: data !== null && data.next !== null,
    more,
  };
}
