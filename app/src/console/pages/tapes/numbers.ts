/** What the calls of a tape come to: how many, how long they took, which failed; and two tapes compared. */
import type * as hub from "../../../api/schema";

export interface Call {
  seq: number;
  offset: number;
  time: number;
  method: string;
  name: string;
  asked: string;
  /** Null until an answer came. */
  seconds: number | null;
  outcome: string;
  said: string;
}

export const NO_ANSWER = "no answer";
/** What a page keeps; a longer tape is counted by the command. */
export const MOST_CALLS = 200_000;

/** Puts requests and answers together as they come, page by page: an answer may come pages later. */
export class Calls {
  readonly list: Call[] = [];
  messages = 0;
  private readonly open = new Map<number, Call>();

  take(page: Pick<hub.TapeCalls, "calls" | "answers" | "messages">): void {
    this.messages += page.messages;
    for (const { seq, offset, time, method, name, asked } of page.calls) {
      if (this.list.length >= MOST_CALLS) break;
      const call: Call = {
        seq, offset, time, method, name, asked: asked ?? "", seconds: null, outcome: NO_ANSWER, said: "",
      };
      this.list.push(call);
      this.open.set(seq, call);
    }
    for (const { request, seconds, outcome, said } of page.answers) {
      const call = this.open.get(request);
      if (!call) continue;
      this.open.delete(request);
      Object.assign(call, { seconds, outcome, said: said ?? "" });
    }
  }

  get full(): boolean {
    return this.list.length >= MOST_CALLS;
  }
}

export const failed = (call: Call) => call.outcome === "error" || call.outcome === "tool_error";
export const titleOf = (call: Pick<Call, "method" | "name">) =>
  call.name ? `${call.method} ${call.name}` : call.method;

/** The value that a share of them does not exceed; each is one that was measured. */
export function percentile(ranked: readonly number[], share: number): number {
  return ranked[Math.max(0, Math.ceil(share * ranked.length) - 1)] ?? 0;
}

export interface Group {
  title: string;
  calls: number;
  errors: number;
  unanswered: number;
  p50: number | null;
  p95: number | null;
  max: number | null;
}

/** The calls by what is called, the most often called first. */
export function groups(calls: readonly Call[]): Group[] {
  const by = new Map<string, Call[]>();
  for (const call of calls) {
    const title = titleOf(call);
    const known = by.get(title);
    if (known) known.push(call);
    else by.set(title, [call]);
  }
  return [...by.entries()]
    .map(([title, own]) => {
      const took = own.flatMap((it) => (it.seconds === null ? [] : [it.seconds])).sort((a, b) => a - b);
      const at = (share: number) => (took.length ? percentile(took, share) : null);
      return {
        title,
        calls: own.length,
        errors: own.filter(failed).length,
        unanswered: own.filter((it) => it.seconds === null).length,
        p50: at(0.5),
        p95: at(0.95),
        max: at(1),
      };
    })
    .sort((a, b) => b.calls - a.calls);
}

export function slowest(calls: readonly Call[], most = 10): Call[] {
  return calls
    .filter((it) => it.seconds !== null)
    .sort((a, b) => b.seconds! - a.seconds!)
    .slice(0, most);
}

export interface Slices {
  times: number[];
  median: (number | null)[];
  longest: (number | null)[];
}

/** How long answers took over the time of the tape, in slices of equal length. */
export function slices(calls: readonly Call[], most = 60): Slices {
  const answered = calls.filter((it) => it.seconds !== null);
  const count = Math.min(most, Math.max(2, Math.ceil(answered.length / 4)));
  if (!answered.length) return { times: [], median: [], longest: [] };
  let [first, last] = [Infinity, -Infinity];
  for (const { time } of answered) {
    first = Math.min(first, time);
    last = Math.max(last, time);
  }
  const width = (last - first) / count || 1;
  const sorted: number[][] = Array.from({ length: count }, () => []);
  for (const { time, seconds } of answered) {
    sorted[Math.min(count - 1, Math.floor((time - first) / width))]!.push(seconds!);
  }
  sorted.forEach((each) => each.sort((a, b) => a - b));
  return {
    times: sorted.map((_, at) => first + at * width),
    median: sorted.map((each) => (each.length ? percentile(each, 0.5) : null)),
    longest: sorted.map((each) => each.at(-1) ?? null),
  };
}

export type Difference = "same" | "arguments" | "outcome" | "answer" | "only_a" | "only_b";

export interface Pair {
  difference: Difference;
  a: Call | null;
  b: Call | null;
}

/**
 * The calls of two tapes in pairs. Equal calls belong together in their order; what is left of a
 * method and tool then does too, with other arguments. Its cost grows with the calls, no faster.
 */
export function pairs(a: readonly Call[], b: readonly Call[]): Pair[] {
  const partner = new Map<Call, Call>();
  const taken = new Set<Call>();
  for (const keyOf of [(it: Call) => `${titleOf(it)}\n${it.asked}`, titleOf]) {
    const waiting = new Map<string, Call[]>();
    for (const call of b) {
      if (taken.has(call)) continue;
      const known = waiting.get(keyOf(call));
      if (known) known.push(call);
      else waiting.set(keyOf(call), [call]);
    }
    waiting.forEach((each) => each.reverse());
    for (const call of a) {
      if (partner.has(call)) continue;
      const like = waiting.get(keyOf(call))?.pop();
      if (!like) continue;
      partner.set(call, like);
      taken.add(like);
    }
  }
  const left = b.filter((it) => !taken.has(it));
  return [
    ...a.map((call): Pair => {
      const like = partner.get(call) ?? null;
      return { a: call, b: like, difference: like ? differ(call, like) : "only_a" };
    }),
    ...left.map((call): Pair => ({ a: null, b: call, difference: "only_b" })),
  ];
}

function differ(a: Call, b: Call): Difference {
  if (a.asked !== b.asked) return "arguments";
  if (a.outcome !== b.outcome) return "outcome";
  return a.said === b.said ? "same" : "answer";
}

/** A text as one word of a shell command. */
export function quoted(text: string): string {
  return /^[A-Za-z0-9_@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
