/** Capabilities: what one may be offered, and the same in words. The hub judges; this only foresees. */
import { isMembers } from "../../parts/schema";

/** A pattern, or one with a constraint on payload or target. */
export type Capability = string | { kind: string; payload?: unknown; to?: unknown };

const patternOf = (held: Capability): string => (typeof held === "string" ? held : held.kind);

/** Whether a kind is allowed: some pattern covers it, and no deny does. */
export function allows(held: readonly Capability[], kind: string, to?: string): boolean {
  let allowed = false;
  for (const each of held) {
    const pattern = patternOf(each);
    const denies = pattern.startsWith("!");
    if (!covers(denies ? pattern.slice(1) : pattern, kind)) continue;
    const narrowed = typeof each !== "string" && (each.payload !== undefined || each.to !== undefined);
    // What a constraint makes of it depends on the message: a deny may not hold, and the hub says.
    if (denies && !narrowed) return false;
    if (!denies && aimedAt(each, to)) allowed = true;
  }
  return allowed;
}

function aimedAt(held: Capability, to: string | undefined): boolean {
  if (typeof held === "string" || held.to === undefined || to === undefined) return true;
  const targets = Array.isArray(held.to) ? held.to : [held.to];
  return targets.some((each) => globs(String(each), to));
}

/** Read part by part; a part that is left out stands for anything. */
export function covers(pattern: string, kind: string): boolean {
  if (kind.startsWith("system.")) return false;
  const wanted = split(pattern);
  const given = split(kind);
  return wanted.every((part, place) => part === "" || globs(part, given[place] ?? ""));
}

function split(kind: string): string[] {
  const colon = kind.indexOf(":");
  const head = colon < 0 ? kind : kind.slice(0, colon);
  const [protocol = "", operation = "", ...method] = head.split(".");
  return [protocol, operation, method.join("."), colon < 0 ? "" : kind.slice(colon + 1)];
}

/** `*` stands for any run of characters; linear in the text for every star. */
function globs(pattern: string, text: string): boolean {
  const pieces = pattern.split("*");
  if (pieces.length === 1) return pattern === text;
  const first = pieces[0]!;
  const last = pieces.at(-1)!;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length) return false;
  let at = first.length;
  for (const piece of pieces.slice(1, -1)) {
    const found = text.indexOf(piece, at);
    if (found < 0 || found + piece.length > text.length - last.length) return false;
    at = found + piece.length;
  }
  return true;
}

const WORDS: readonly (readonly [string, string])[] = [
  ["*", "do everything"],
  ["mcp.*", "ask, propose and notify"],
  ["mcp.request.*", "ask anyone for anything"],
  ["mcp.request", "ask anyone for anything"],
  ["mcp.request.tools/*", "list and call tools"],
  ["mcp.request.tools/call", "call any tool"],
  ["mcp.request.tools/list", "list tools"],
  ["mcp.proposal.*", "propose anything"],
  ["mcp.proposal", "propose anything"],
  ["mcpx.reject.proposal", "reject proposals"],
  ["mcpx.withdraw.proposal", "withdraw your own proposals"],
  ["chat.*", "chat"],
  ["chat.message", "chat"],
  ["mcp.notification.notifications/chat/*", "chat"],
  ["reasoning.*", "share your reasoning"],
  ["participant.*", "pause and direct participants"],
  ["participant.status", "set your status"],
  ["participant.compact-done", "report that your memory was compacted"],
  ["participant.pause", "pause others"],
  ["participant.resume", "end pauses"],
  ["capability.*", "grant and revoke rights"],
  ["capability.grant", "grant rights you hold"],
  ["capability.revoke", "revoke rights"],
  ["room.*", "invite and remove people"],
  ["room.invite", "invite people"],
  ["room.kick", "remove people"],
];
const KNOWN = new Map(WORDS);

/** One capability in words: what one can do, or can't. */
export function inWords(held: Capability): string {
  const pattern = patternOf(held);
  const denies = pattern.startsWith("!");
  const bare = denies ? pattern.slice(1) : pattern;
  const words = KNOWN.get(bare) ?? composed(bare);
  return `${denies ? "not: " : ""}${words}${typeof held === "string" ? "" : narrowed(held)}`;
}

function composed(pattern: string): string {
  const [protocol, operation, method, context] = split(pattern);
  const name = context ? ` ${context}` : "";
  if (protocol === "mcp" && operation === "request") {
    return method === "tools/call" ? `call the tool${name}` : `ask for ${method}${name}`;
  }
  if (protocol === "mcp" && operation === "proposal") {
    return method === "tools/call" ? `propose calling the tool${name}` : `propose ${method}${name}`;
  }
  return `send ${pattern}`;
}

function narrowed(held: Exclude<Capability, string>): string {
  const to = held.to === undefined ? "" : ` of ${[held.to].flat().join(" or ")}`;
  const payload = isMembers(held.payload) ? `, only with ${JSON.stringify(held.payload)}` : "";
  return `${to}${payload}`;
}

/** All in words, each said once. */
export function allInWords(held: readonly Capability[]): string[] {
  return [...new Set(held.map(inWords))];
}
