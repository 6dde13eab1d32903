/** Messages of a room as the hub sends them, and what they are about. */
import { isMembers, type Json } from "../../parts/schema";

export interface Envelope {
  seq: number;
  ts: string;
  id: string;
  from: string;
  kind: string;
  to?: string[];
  correlation_id?: string[];
  context?: string;
  payload?: { [name: string]: Json };
  /** The numbers of the messages that edited or deleted it. */
  edits?: number[];
}

/** What the hub sends to one connection alone has no `seq`. */
export interface Direct extends Omit<Envelope, "seq"> {
  seq?: undefined;
}

/** Groups of kinds in one word, and how the kinds in each begin; the rest is "other". */
export const GROUPS = {
  chat: ["chat.message", "mcp.notification.notifications/chat/message"],
  proposal: ["mcp.proposal", "mcpx.withdraw", "mcpx.reject", "system.proposal"],
  request: ["mcp.request", "mcpx.begin"],
  response: ["mcp.response"],
  presence: ["system.presence"],
  reasoning: ["reasoning"],
  rights: ["capability", "room", "participant", "system.participant"],
} as const satisfies Record<string, readonly string[]>;

export type Group = keyof typeof GROUPS | "progress" | "other";

const PROGRESS = "mcp.notification.notifications/progress";
const CANCELLED = "mcp.notification.notifications/cancelled";

export const isBelow = (kind: string, beginning: string): boolean =>
  kind === beginning || kind.startsWith(`${beginning}.`);

export function groupOf(kind: string): Group {
  if (kind === PROGRESS) return "progress";
  for (const [name, beginnings] of Object.entries(GROUPS)) {
    if (beginnings.some((it) => isBelow(kind, it))) return name as Group;
  }
  return "other";
}

/** Methods whose requests and answers nobody reads; as `rooms/folding.py` has them. */
const QUIET_METHODS = new Set(
  (
    "initialize ping server/discover subscriptions/listen tools/list prompts/list resources/list " +
    "resources/templates/list resources/subscribe resources/unsubscribe roots/list completion/complete logging/setLevel"
  ).split(" "),
);
const QUIET_ROOTS = new Set(
  (
    "system.presence mcpx.begin capability.grant-ack chat.acknowledge chat.cancel participant.status " +
    "participant.request-status participant.compact participant.compact-done"
  ).split(" "),
);

/** Whether a message is folded. An edit is read where the message is that it changes. */
export const isFolded = (message: Envelope): boolean => isQuiet(message.kind) || Boolean(chatOf(message)?.replaces);

/** Whether a message is presence or protocol, rather than something people read. */
export function isQuiet(kind: string): boolean {
  const [protocol = "", operation = "", ...rest] = kind.split(":")[0]!.split(".");
  const method = rest.join(".");
  if (protocol !== "mcp") return QUIET_ROOTS.has(`${protocol}.${operation}`);
  if (operation === "notification") return kind !== CANCELLED && kind !== GROUPS.chat[1];
  return operation !== "proposal" && QUIET_METHODS.has(method);
}

export const isCancellation = (message: Envelope): boolean => message.kind === CANCELLED;
export const isBeginning = (message: Envelope): boolean => isBelow(message.kind, "mcpx.begin");

export interface Chat {
  text: string;
  markdown: boolean;
  thread: string;
  replyTo: string;
  mentions: string[];
  /** The id of the message of the same sender that this one takes the place of. */
  replaces: string;
  deleted: boolean;
}

const text = (value: unknown): string => (typeof value === "string" ? value : "");

/** What was said, in either spelling of chat. */
export function chatOf(message: Envelope): Chat | null {
  if (groupOf(message.kind) !== "chat") return null;
  const payload = message.payload ?? {};
  const said = isMembers(payload["params"]) && "jsonrpc" in payload ? payload["params"] : payload;
  const format = text(said["format"]) || message.kind.split(".")[2];
  return {
    text: text(said["text"]),
    markdown: format === "markdown",
    thread: text(said["thread_id"]) || text(message.context),
    replyTo: text(said["reply_to"]),
    mentions: Array.isArray(said["mentions"]) ? said["mentions"].map(text).filter(Boolean) : [],
    replaces: text(said["replaces"]),
    deleted: said["deleted"] === true,
  };
}

/** A message as an edit of its sender leaves it; as the hub keeps it. */
export function edited(message: Envelope, edit: Envelope): Envelope {
  const [was, now] = [chatOf(message), chatOf(edit)];
  if (!was || !now || was.deleted || now.replaces !== message.id || edit.from !== message.from) return message;
  const { text, markdown, mentions, deleted } = now;
  const payload = {
    text,
    format: markdown ? "markdown" : "plain",
    mentions,
    ...(deleted ? { deleted } : {}),
    ...(was.thread ? { thread_id: was.thread } : {}),
    ...(was.replyTo ? { reply_to: was.replyTo } : {}),
  };
  return { ...message, kind: "chat.message", payload, edits: [...(message.edits ?? []), edit.seq] };
}

/** Everything of a message that is searched. */
export function searchable(message: Envelope): string {
  const chat = chatOf(message);
  const words = chat ? chat.text : JSON.stringify(message.payload ?? {});
  return `${message.from} ${message.kind} ${words}`.toLowerCase();
}

export interface Filter {
  group: Group | "";
  person: string;
  text: string;
  thread: string;
}

export const NO_FILTER: Filter = { group: "", person: "", text: "", thread: "" };

export const isFiltering = (filter: Filter): boolean => Object.values(filter).some(Boolean);

/** As the hub groups messages, with less detail. */
function filterGroup(kind: string): Group {
  const group = groupOf(kind);
  return group === "rights" || group === "progress" ? "other" : group;
}

export function matches(filter: Filter, message: Envelope): boolean {
  if (filter.group && filterGroup(message.kind) !== filter.group) return false;
  if (filter.person && message.from !== filter.person && !message.to?.includes(filter.person)) return false;
  if (filter.thread && chatOf(message)?.thread !== filter.thread) return false;
  return !filter.text || searchable(message).includes(filter.text.toLowerCase());
}

/** The method and context of a kind: `tools/call` and `read_file`. */
export function partsOf(kind: string): { method: string; context: string } {
  const colon = kind.indexOf(":");
  const head = colon < 0 ? kind : kind.slice(0, colon);
  return { method: head.split(".").slice(2).join("."), context: colon < 0 ? "" : kind.slice(colon + 1) };
}

/** What a request or proposal asks for, in a few words. */
export function askedFor(message: Envelope): string {
  const { method, context } = partsOf(message.kind);
  const params = message.payload?.["params"];
  const name = isMembers(params) ? text(params["name"]) || text(params["uri"]) : "";
  return name || context || method || message.kind;
}

export const seconds = (ts: string): number => Date.parse(ts) / 1000;
