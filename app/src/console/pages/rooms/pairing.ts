/** Which messages belong to which: answers and progress to requests, thoughts to their thinking. */
import { isMembers } from "../../parts/schema";
import { type Envelope, groupOf, isBeginning, isBelow, isCancellation, seconds } from "./envelope";

export interface Progress {
  /** From 0 to 1; undefined where the total is not known. */
  share: number | undefined;
  text: string;
}

/** A request and what came of it so far. */
export interface Exchange {
  request: Envelope;
  begun?: Envelope;
  progress?: Progress;
  answer?: Envelope;
  cancelled?: Envelope;
  /** Whether the answer is shown below the request, and not where it came. */
  below?: boolean;
}

export interface Thinking {
  start: Envelope;
  thoughts: Envelope[];
  end?: Envelope;
}

export interface Pairs {
  /** By the id of the request. */
  exchanges: Map<string, Exchange>;
  /** By the id of the message that began it. */
  thinking: Map<string, Thinking>;
  /** By the id of the proposal that was approved. */
  fulfilments: Map<string, Exchange>;
  /** Messages that are shown as part of another: by id. */
  within: Set<string>;
}

/** Pairs the messages that are here; what belongs to one that is not stands alone. */
export function pair(messages: readonly Envelope[]): Pairs {
  const exchanges = new Map<string, Exchange>();
  const thinking = new Map<string, Thinking>();
  const fulfilments = new Map<string, Exchange>();
  const within = new Set<string>();
  // The last message that was no request and no answer: what came since is one piece of work.
  let talk = 0;
  const proposals = new Map<string, number>();
  const contexts = new Map<string, Thinking>();
  for (const message of messages) {
    const { kind, id } = message;
    if (isBelow(kind, "mcp.request")) {
      const exchange: Exchange = { request: message };
      exchanges.set(id, exchange);
      for (const about of message.correlation_id ?? []) {
        fulfilments.set(about, exchange);
        if (proposals.get(about) === talk) within.add(id);
      }
      continue;
    }
    if (isBelow(kind, "mcp.proposal")) proposals.set(id, message.seq);
    if (isBelow(kind, "reasoning")) {
      const open = contexts.get(`${message.from} ${message.context ?? ""}`);
      const about = message.correlation_id?.[0];
      const its = (about !== undefined && thinking.get(about)) || (about === undefined ? open : undefined);
      if (isBelow(kind, "reasoning.start")) {
        const begun = { start: message, thoughts: [] };
        thinking.set(id, begun);
        contexts.set(`${message.from} ${message.context ?? ""}`, begun);
      } else if (its && its.start.from === message.from) {
        within.add(id);
        if (isBelow(kind, "reasoning.thought")) its.thoughts.push(message);
        else {
          its.end = message;
          contexts.delete(`${message.from} ${message.context ?? ""}`);
        }
      }
    } else if (message.correlation_id?.length) partOf(message, exchanges, within, talk);
    if (!within.has(id) && !isBelow(kind, "mcp.response")) talk = message.seq;
  }
  return { exchanges, thinking, fulfilments, within };
}

function partOf(message: Envelope, exchanges: Map<string, Exchange>, within: Set<string>, talk: number): void {
  const its = message.correlation_id!.map((id) => exchanges.get(id)).find(Boolean);
  if (!its) return;
  const asked = its.request.to?.[0];
  if (groupOf(message.kind) === "response" && (message.from === asked || message.from === "gateway")) {
    its.answer ??= message;
    // Below its request, unless someone spoke since: then it is news.
    if (its.request.seq > talk) {
      its.below = true;
      within.add(message.id);
    }
  } else if (groupOf(message.kind) === "progress" && message.from === asked) {
    its.progress = progressOf(message);
    within.add(message.id);
  } else if (isBeginning(message) && message.from === asked) {
    its.begun = message;
    within.add(message.id);
  } else if (isCancellation(message) && message.from === its.request.from) {
    its.cancelled = message;
    within.add(message.id);
  }
}

function progressOf(message: Envelope): Progress {
  const params = message.payload?.["params"];
  const { progress, total, message: words } = (isMembers(params) ? params : {}) as Record<string, unknown>;
  const at = typeof progress === "number" ? progress : 0;
  const known = typeof total === "number" && total > 0;
  const counted = known ? `${at} of ${String(total)}` : String(at);
  return {
    share: known ? Math.min(1, Math.max(0, at / (total as number))) : undefined,
    text: typeof words === "string" && words ? words : counted,
  };
}

/** Seconds that an answer took; undefined while there is none. */
export function tookSeconds({ request, answer, cancelled }: Exchange): number | undefined {
  const end = answer ?? cancelled;
  return end && Math.max(0, seconds(end.ts) - seconds(request.ts));
}

export type Outcome = "waiting" | "running" | "answered" | "failed" | "cancelled";

export function outcomeOf(exchange: Exchange): Outcome {
  const { answer, cancelled, begun, progress } = exchange;
  if (answer) {
    const payload = answer.payload ?? {};
    const result = payload["result"];
    return "error" in payload || (isMembers(result) && result["isError"] === true) ? "failed" : "answered";
  }
  if (cancelled) return "cancelled";
  return begun || progress ? "running" : "waiting";
}
