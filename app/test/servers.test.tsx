/** The pages about servers: what they make of what the hub answers. */
import { render } from "preact";
import { afterEach, describe, expect, it, vi } from "vitest";

import { Unreachable } from "../src/api/call";
import type { ShownServer } from "../src/api/schema";
import { because } from "../src/console/pages/servers/Access";
import { commandFor } from "../src/console/pages/servers/AddServer";
import { follow, milliseconds, minutes, type ServerView } from "../src/console/pages/servers/hub";
import { Health } from "../src/console/pages/servers/Server";

afterEach(() => vi.unstubAllGlobals());

/** A stream that comes in these pieces. */
function answering(pieces: string[], init: ResponseInit = {}): void {
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    start(controller) {
      for (const piece of pieces) controller.enqueue(encoder.encode(piece));
      controller.close();
    },
  });
  const headers = { "content-type": "text/event-stream", ...init.headers };
  vi.stubGlobal("fetch", vi.fn(async () => new Response(body, { ...init, headers })));
}

describe("follow", () => {
  it("tells progress as it comes, however the stream is cut, and answers the result", async () => {
    const text = 'event: progress\ndata: {"step":"reading"}\n\n:\n\nevent: result\ndata: {"ok":"é"}\n\n';
    answering([...text].map(String));
    const told: unknown[] = [];
    const found = await follow("/v1/x", { body: {}, shown: { "folkmoot-confirm": "sk_x" }, onProgress: (it) => void told.push(it) });
    expect(told).toEqual([{ step: "reading" }]);
    expect(found).toEqual({ ok: "é" });
    const [, sent] = vi.mocked(fetch).mock.calls[0]!;
    expect(sent?.headers).toMatchObject({ "folkmoot-confirm": "sk_x", "folkmoot-page": "1" });
    expect(String(sent?.body)).not.toContain("sk_x");
  });

  it("raises what the hub refuses, before the stream or in it", async () => {
    answering(['event: error\ndata: {"error":{"code":"command_invalid","message":"No."}}\n\n']);
    await expect(follow("/v1/x", {})).rejects.toMatchObject({ message: "No.", code: "command_invalid" });
    answering(['{"error":{"code":"confirmation_invalid","message":"Once more."}}'], {
      status: 403,
      headers: { "content-type": "application/json" },
    });
    await expect(follow("/v1/x", {})).rejects.toMatchObject({ status: 403, code: "confirmation_invalid" });
  });

  it("says that the hub was not reached where a stream ends too early", async () => {
    answering(['event: progress\ndata: {"step":"reading"}\n\n']);
    await expect(follow("/v1/x", {})).rejects.toBeInstanceOf(Unreachable);
  });
});

describe("words", () => {
  it("makes the command that adds what was pasted", () => {
    expect(commandFor("uvx  mcp-server-time", "time")).toBe("folkmoot backends add time -- uvx  mcp-server-time");
    expect(commandFor("https://x.example/mcp?a=1", "it's")).toBe(
      "folkmoot backends add 'it'\\''s' --url 'https://x.example/mcp?a=1'",
    );
    expect(commandFor('{"mcpServers": {}}', "")).toBe("folkmoot backends add --from server.json");
    expect(commandFor("", "")).toBe("folkmoot backends add NAME -- COMMAND");
  });

  it("says why someone may use a server", () => {
    const team = { capability: "a", why: "allowed for the group team", origin: "group" };
    const denied = { capability: "!b", why: "denied by an operator", origin: "granted", denies: true };
    expect(because([team, team])).toBe("Allowed for the group team.");
    expect(because([team, denied])).toBe("Allowed for the group team; denied by an operator.");
    expect(because([])).toBe("");
  });

  it("tells when each minute began, and how long something took", () => {
    expect(minutes({ until: 600, seconds: 60, count: 3, servers: [] })).toEqual([420, 480, 540]);
    expect([3.84, 42.4, 1_234, 12_345].map(milliseconds)).toEqual(["3.8 ms", "42 ms", "1.2 s", "12 s"]);
  });
});

describe("a server", () => {
  const counts = { tools: 1, resources: 0, templates: 0, prompts: 0, connections: 0, restarts: 0 };
  const calls = { calls: 0, errors: 0, in_flight: 0, median_ms: null, retry_after: null };
  const words = { transport: "http", target: "x", state: "up", why: "", era: "", last_error: "" };
  const view = { ...counts, ...calls, ...words, since: 0, faults: [], held: [] } as unknown as ServerView;
  const shown = { everyone: true, trusted: false } as ShownServer;
  const facts = (node: string): string => {
    document.body.innerHTML = "<main></main>";
    const main = document.querySelector("main")!;
    render(<Health view={{ ...view, node }} shown={shown} />, main);
    return main.textContent ?? "";
  };

  it("says which node links it where one does for all", () => {
    expect(facts("http://node1.internal:8420")).toContain(
      "Linked bythe node http://node1.internal:8420, which counts its calls",
    );
    expect(facts("")).not.toContain("Linked by");
  });
});
