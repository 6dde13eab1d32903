/** What is to be decided, in one frame and in the same words wherever it is shown. */
import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";

import type * as hub from "../../api/schema";
import { oneLine } from "../../text/names";
import { clock, fullTime } from "../../text/time";

type Risk = hub.Ask["risk"];

const RISKS: Record<Risk, readonly [label: string, meaning: string]> = {
  destroys: ["Can destroy", "It says that it can delete or overwrite something."],
  unknown: ["Unknown risk", "It does not say what it does, so it can do anything."],
  acts: ["Acts", "It does something that others can notice."],
  changes: ["Changes", "It adds or changes something, and deletes nothing."],
  reads: ["Reads only", "It says that it changes nothing."],
};

/** What something can do, by its tool's own hints. */
export function RiskTag({ risk }: { risk: Risk }) {
  const [label, meaning] = RISKS[risk];
  return (
    <span class={`tag risk-${risk}`} title={meaning}>
      {label}
    </span>
  );
}

/** What a request would do: the tool it calls, or else its method. */
export function asked(method: string | undefined, tool: string | null | undefined): string {
  if (method === "tools/call" && tool) return `Call the tool ${oneLine(tool, 120)}`;
  return oneLine([method, tool].filter(Boolean).join(" "), 160);
}

/** What waits, in words. */
export function askTitle({ what, proposal, held, tool, call }: hub.Ask): string {
  if (call) return asked("tools/call", call.tool);
  if (tool) return `${tool.new ? "New tool" : "Changed tool"} ${oneLine(tool.canonical, 120)}`;
  if (held) return heldTitle(held);
  const [method, name] = proposal ? what.split(" ", 2) : [what];
  return asked(method, name);
}

export function heldTitle({ type, method, tool }: hub.Held): string {
  const words = asked(method, tool) || (type ?? "");
  return type === "response" ? `Answer to: ${words}` : words;
}

interface Props {
  title: string;
  /** Its name for those who do not see it, if that is another. */
  label?: string;
  risk?: Risk | undefined;
  /** What it is, and how it stands. */
  kind?: string;
  beside?: ComponentChildren;
  children: ComponentChildren;
}

export function Card({ title, label, risk, kind = "open", beside, children }: Props) {
  return (
    <article class={`decision ${kind}`} aria-label={label ?? title} tabIndex={-1}>
      <p class="line">
        <strong class="decision-title">{title}</strong>
        {risk && <RiskTag risk={risk} />}
        {beside}
      </p>
      {children}
    </article>
  );
}

export function Fact({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    <div>
      <dt class="soft small">{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

/** Minutes pass while a card is looked at. */
const now = signal(Date.now() / 1000);
setInterval(() => (now.value = Date.now() / 1000), 10_000);

/** A time, in seconds, and with `left` how long it is until then. */
export function Moment({ at, left }: { at: number; left: boolean }) {
  const rest = at - now.value;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={fullTime(at)}>
      {clock(at)}
      {left && rest > 0 && ` (${lasting(rest)} left)`}
    </time>
  );
}

function lasting(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 5400) return `${Math.round(seconds / 60)} min`;
  return seconds < 129_600 ? `${Math.round(seconds / 3600)} h` : `${Math.round(seconds / 86_400)} days`;
}
