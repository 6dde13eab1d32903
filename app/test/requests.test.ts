import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { requests, startOver } from "../src/web/requests";
import { ask } from "../src/web/rest";
import { signOut } from "../src/web/session";
import { Live } from "../src/web/live";

/** What was asked for, and what answers it; a request that is cut off fails as in a browser. */
const asked: { what: string; answer: (status?: number) => void; signal: AbortSignal }[] = [];
const streams: FakeSource[] = [];

class FakeSource extends EventTarget {
  open = true;

  constructor() {
    super();
    streams.push(this);
  }

  close() {
    this.open = false;
  }
}

const whats = () => asked.map(({ what }) => what);
const settle = () => vi.advanceTimersByTimeAsync(1);

beforeEach(() => {
  vi.useFakeTimers();
  asked.length = streams.length = 0;
  vi.stubGlobal("EventSource", FakeSource);
  vi.stubGlobal("fetch", (path: string, { method, signal }: { method: string; signal: AbortSignal }) =>
    new Promise((resolve, reject) => {
      const answer = (status = 200) => resolve(Response.json({ n: asked.length }, { status }));
      asked.push({ what: `${method} ${path}`, answer, signal });
      signal.addEventListener("abort", () => reject(signal.reason));
    }),
  );
});

afterEach(() => {
  startOver();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

test("nothing is asked while a session ends, nor afterwards", async () => {
  const live = new Live([], () => {}, () => {});
  live.open();
  const told = vi.fn();
  ask("GET", "/v1/unread").finally(told);
  await settle();
  const leaving = signOut();
  ask("GET", "/v1/asks").finally(told);
  ask("PUT", "/v1/threads/1/read").finally(told);
  live.open();
  await settle();
  expect(asked[0]!.signal.aborted).toBe(true);
  expect(whats()).toEqual(["GET /v1/unread", "DELETE /v1/session"]);
  expect(streams.map(({ open }) => open)).toEqual([false]);
  asked[1]!.answer();
  await leaving;
  await vi.advanceTimersByTimeAsync(60_000);
  expect(asked).toHaveLength(2);
  expect(streams).toHaveLength(1);
  expect(told).not.toHaveBeenCalled();
  startOver();
  void ask("GET", "/v1/me");
  await settle();
  expect(whats().slice(2)).toEqual(["GET /v1/me"]);
});

test("where it does not end, all goes on as if nothing had been", async () => {
  const live = new Live([], () => {}, () => {});
  live.open();
  const read = ask<{ n: number }>("GET", "/v1/unread");
  await settle();
  const leaving = expect(signOut()).rejects.toThrow("The hub refused");
  const changed = ask("POST", "/v1/messages");
  await settle();
  asked[1]!.answer(500);
  await leaving;
  await settle();
  expect(whats().slice(0, 2)).toEqual(["GET /v1/unread", "DELETE /v1/session"]);
  expect(whats().slice(2).toSorted()).toEqual(["GET /v1/unread", "POST /v1/messages"]);
  expect(streams.map(({ open }) => open)).toEqual([false, true]);
  asked.slice(2).forEach(({ answer }) => answer());
  await Promise.all([read, changed]);
  live.close();
});

test("what is being saved is waited for, but not for long", async () => {
  const saving = ask("POST", "/v1/messages");
  await settle();
  void signOut();
  await settle();
  expect(whats()).toEqual(["POST /v1/messages"]);
  asked[0]!.answer();
  await saving;
  await settle();
  expect(whats()).toEqual(["POST /v1/messages", "DELETE /v1/session"]);
  startOver();
  void ask("POST", "/v1/rooms/a/proposals/1/approve");
  await settle();
  void signOut();
  await vi.advanceTimersByTimeAsync(2_100);
  expect(whats().slice(2)).toEqual(["POST /v1/rooms/a/proposals/1/approve", "DELETE /v1/session"]);
  expect(requests().signal.aborted).toBe(true);
});
