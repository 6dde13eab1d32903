/** The hub's operations over REST, as a page of the hub itself asks for them: with its cookie. */
import { type Call, Refused, Unreachable } from "../api/call";
import type { OperationName, Operations } from "../api/types";
import { isLoopback } from "../text/reach";
import { requests } from "./requests";

type ThreadPage = Operations["msg/thread"][1];
type Args = Record<string, unknown>;
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE";

/** Where each operation is; what is in braces is an argument. */
const ROUTES: Record<Exclude<OperationName, "msg/open_inbox">, `${Method} ${string}`> = {
  "msg/register": "POST /v1/accounts",
  "msg/recover": "POST /v1/accounts/recover",
  "msg/whoami": "GET /v1/me",
  "msg/set_profile": "PATCH /v1/me",
  "msg/send": "POST /v1/messages",
  "msg/reply": "POST /v1/messages/{message_id}/replies",
  "msg/threads": "GET /v1/threads",
  "msg/thread": "GET /v1/threads/{thread_id}",
  "msg/digest": "GET /v1/digest",
  "msg/delete_message": "DELETE /v1/messages/{message_id}",
  "msg/delete_thread": "DELETE /v1/threads/{thread_id}",
  "msg/mark_read": "PUT /v1/threads/{thread_id}/read",
  "msg/archive": "PUT /v1/threads/{thread_id}/archive",
  "msg/star": "PUT /v1/threads/{thread_id}/star",
  "msg/mute": "PUT /v1/threads/{thread_id}/mute",
  "msg/contacts": "GET /v1/contacts",
  "msg/add_contact": "PUT /v1/contacts/{handle}",
  "msg/remove_contact": "DELETE /v1/contacts/{handle}",
  "msg/lookup": "GET /v1/people/{handle}",
  "msg/search_users": "GET /v1/people",
  "msg/block": "PUT /v1/blocks/{handle}",
  "msg/blocks": "GET /v1/blocks",
  "msg/invite": "POST /v1/invites",
};
/** Arguments that the method and the path say already. */
const SAID: Record<string, readonly string[]> = {
  "msg/thread": ["peek"],
  "msg/delete_thread": ["confirm"],
  "msg/archive": ["undo"],
  "msg/star": ["undo"],
  "msg/mute": ["undo"],
  "msg/block": ["action"],
};
/** Where an account is made or recovered: that works also where the browser cannot be signed in. */
const SIGNS_UP = new Set(["/v1/accounts", "/v1/accounts/recover", "/v1/set-up"]);
/** Whether the hub gives this browser a cookie: only over https, or on its own machine. */
export const staysSignedIn = () => location.protocol === "https:" || isLoopback(location.hostname);
const UNAUTHORISED = 401;
const CALL_MS = 30_000;

/** One request of this page; `confirm` is a token that is given once more. */
export function ask<T>(method: Method, path: string, body?: unknown, confirm = ""): Promise<T> {
  if (method !== "GET") return requests().change(() => request<T>(method, path, body, confirm));
  return requests().read((signal) => request<T>(method, path, body, confirm, signal));
}

/**
 * A request that is made whether or not the page may still ask for anything. Changes carry a header
 * that no other page can send.
 */
export async function request<T>(
  method: Method,
  path: string,
  body?: unknown,
  confirm = "",
  signal?: AbortSignal,
): Promise<T> {
  const headers: Record<string, string> = {};
  if (method !== "GET" && (staysSignedIn() || !SIGNS_UP.has(path))) headers["folkmoot-page"] = "1";
  if (body !== undefined) headers["content-type"] = "application/json";
  if (confirm) headers["folkmoot-confirm"] = confirm;
  const late = AbortSignal.timeout(CALL_MS);
  let response: Response;
  let text: string;
  try {
    response = await fetch(path, {
      method,
      headers,
      body: body === undefined ? null : JSON.stringify(body),
      credentials: "same-origin",
      cache: "no-store",
      redirect: "error",
      signal: signal ? AbortSignal.any([signal, late]) : late,
    });
    text = await response.text();
  } catch {
    throw new Unreachable();
  }
  const answer = parsed(text) as T & { error?: { code?: string; message?: string } };
  if (response.ok) return answer;
  if (response.status >= 502) throw new Unreachable();
  const said = answer.error?.message ?? "The hub refused without a reason.";
  const signedOut = response.status === UNAUTHORISED && path !== "/v1/session";
  throw new Refused(said, signedOut, response.status, answer.error?.code ?? "");
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return {};
  }
}

export const call = (async (name: OperationName, args: Args) => {
  if (name === "msg/open_inbox") return { hub: location.origin };
  const undo = args["undo"] === true || args["action"] === "unblock";
  const [method, template] = ROUTES[name].split(" ") as [Method, string];
  const left = { ...args };
  for (const said of SAID[name] ?? []) delete left[said];
  const path = template.replace(/\{(\w+)\}/g, (_, field: string) => {
    const value = String(left[field]);
    delete left[field];
    return encodeURIComponent(value);
  });
  const answer = await send(undo ? "DELETE" : method, path, left);
  if (name === "msg/thread" && args["peek"] !== true) await markRead(path, answer as ThreadPage);
  return answer;
}) as Call;

/** `GET` marks nothing as read: what the reader sees now is marked, and nothing that came since. */
async function markRead(path: string, page: ThreadPage): Promise<void> {
  const unread = page.messages.filter((it) => it.unread).map((it) => it.id);
  if (unread.length) await send("PUT", `${path}/read`, { message_ids: unread });
}

function send(method: Method, path: string, left: Args): Promise<unknown> {
  if (method !== "GET" && method !== "DELETE") return ask(method, path, bodyOf(path, left));
  const query = new URLSearchParams();
  for (const [name, value] of Object.entries(left)) {
    if (value !== undefined) query.append(name, String(value));
  }
  return ask(method, query.size ? `${path}?${query}` : path);
}

/** A state of a thread, and whether someone is blocked, are said by the path alone. */
function bodyOf(path: string, left: Args): Args | undefined {
  return /\/(archive|star|mute)$|^\/v1\/blocks\//.test(path) ? undefined : left;
}
