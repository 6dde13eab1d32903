/** What the pages about servers ask of the hub. */
import { Refused, Unreachable } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { requests } from "../../../web/requests";
import { over } from "../../session";

/** A server as the list of servers has it. */
export interface ServerView {
  namespace: string;
  transport: string;
  target: string;
  state: string;
  why: string;
  since: number;
  server: string;
  version: string;
  era: string;
  tools: number;
  resources: number;
  templates: number;
  prompts: number;
  faults: readonly string[];
  advice: string;
  held: readonly string[];
  findings: Record<string, Record<string, readonly string[]>>;
  connections: number;
  in_flight: number;
  calls: number;
  errors: number;
  restarts: number;
  last_error: string;
  median_ms: number | null;
  /** The address of the node that links it, if one does for all. */
  node: string;
  retry_after: number | null;
}

export const viewOf = (shown: Record<string, unknown>) => shown as unknown as ServerView;

/** Events after which a server may not be as it was shown. */
export const SERVER_EVENTS = ["server.changed", "pins.changed", "tools.changed", "settings.changed"] as const;

interface Followed<P> {
  method?: "POST" | "PATCH" | "DELETE";
  body?: unknown;
  /** What shows that the reader is there (parts/Presence.tsx): in headers, which nobody logs. */
  shown?: Record<string, string>;
  onProgress?: (progress: P) => void;
  signal?: AbortSignal;
}

/** A request that may take long: what it says on its way is told, and what comes of it answered. */
export async function follow<T, P = never>(path: string, options: Followed<P>): Promise<T> {
  const headers: Record<string, string> = { accept: "text/event-stream", "folkmoot-page": "1", ...options.shown };
  if (options.body !== undefined) headers["content-type"] = "application/json";
  let response: Response;
  try {
    response = await requests().change(() =>
      fetch(path, {
        method: options.method ?? "POST",
        headers,
        body: options.body === undefined ? null : JSON.stringify(options.body),
        credentials: "same-origin",
        cache: "no-store",
        redirect: "error",
        signal: options.signal ?? null,
      }),
    );
  } catch (error) {
    throw options.signal?.aborted ? error : new Unreachable();
  }
  if (!(response.headers.get("content-type") ?? "").startsWith("text/event-stream")) {
    const answer = (await response.json().catch(() => ({}))) as T & { error?: Told };
    if (response.ok) return answer;
    const refused = refusal(answer.error, response.status);
    if (refused.signedOut) over();
    throw refused;
  }
  for await (const { name, data } of events(response.body!)) {
    if (name === "progress") options.onProgress?.(data as P);
    else if (name === "result") return data as T;
    else if (name === "error") throw refusal((data as { error?: Told }).error, 0);
  }
  throw new Unreachable();
}

interface Told {
  code?: string;
  message?: string;
}

function refusal(told: Told | undefined, status: number): Refused {
  const said = told?.message ?? "The hub refused without a reason.";
  return new Refused(said, status === 401, status, told?.code ?? "");
}

async function* events(body: ReadableStream<Uint8Array>) {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let text = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    text += value;
    for (let end = text.indexOf("\n\n"); end >= 0; end = text.indexOf("\n\n")) {
      const lines = text.slice(0, end).split("\n");
      text = text.slice(end + 2);
      const of = (key: string) => lines.find((it) => it.startsWith(`${key}: `))?.slice(key.length + 2);
      const data = of("data");
      if (data !== undefined) yield { name: of("event") ?? "", data: JSON.parse(data) as unknown };
    }
  }
}

/** The moment that each of the latest minutes began at. */
export function minutes({ until, seconds, count }: hub.Histories): number[] {
  return Array.from({ length: count }, (_, at) => until - seconds * (count - at));
}

export const sum = (values: readonly number[]) => values.reduce((one, other) => one + other, 0);

/** A duration in milliseconds. */
export function milliseconds(value: number): string {
  if (value >= 10_000) return `${Math.round(value / 1000)} s`;
  if (value >= 1_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value < 10 ? Math.round(value * 10) / 10 : Math.round(value)} ms`;
}
