import { afterEach, beforeEach, expect, test, vi } from "vitest";

import { allInWords, allows, covers } from "../../src/console/pages/rooms/capabilities";
import { Connection, RoomRefusal, type State, type Welcome } from "../../src/console/pages/rooms/connection";
import { chatOf, edited, type Envelope, groupOf, isFolded, isQuiet, matches, NO_FILTER } from "../../src/console/pages/rooms/envelope";
import { foldInWords, foldOf, joined } from "../../src/console/pages/rooms/folding";
import { outcomeOf, pair, tookSeconds } from "../../src/console/pages/rooms/pairing";
import { KEEP, RoomStream } from "../../src/console/pages/rooms/stream";

let seq = 0;
const at = (millis: number) => new Date(1_700_000_000_000 + millis).toISOString();

function message(kind: string, more: Partial<Envelope> = {}): Envelope {
  seq += 1;
  return { seq, ts: at(seq * 1000), id: `i${seq}`, from: "ada", kind, payload: {}, ...more };
}

const said = (text: string, more: Partial<Envelope> = {}) => message("chat.message", { payload: { text }, ...more });

beforeEach(() => {
  seq = 0;
});

test("chat is read in both spellings", () => {
  const params = { text: "Hi", format: "markdown", thread_id: "today", reply_to: "x", mentions: ["bob", 7] };
  const long = message("mcp.notification.notifications/chat/message", {
    payload: { jsonrpc: "2.0", method: "notifications/chat/message", params },
  });
  const plain = { replaces: "", deleted: false };
  expect(chatOf(long)).toEqual({ text: "Hi", markdown: true, thread: "today", replyTo: "x", mentions: ["bob"], ...plain });
  expect(chatOf(message("chat.message.markdown", { payload: { text: "a" } }))).toMatchObject({ text: "a", markdown: true });
  expect(chatOf(message("chat.message", { payload: { text: 7 as never } }))?.text).toBe("");
  expect(chatOf(message("mcp.request.tools/call"))).toBeNull();
});

test("an edit changes the message of its sender that it names, and is folded", () => {
  const one = said("One", { id: "a", payload: { text: "One", reply_to: "x" } });
  const edit = said("Two", { seq: 7, payload: { text: "Two", replaces: "a" } });
  expect(isFolded(edit)).toBe(true);
  const changed = edited(one, edit);
  expect(chatOf(changed)).toMatchObject({ text: "Two", replyTo: "x", replaces: "" });
  expect(changed.edits).toEqual([7]);
  expect(edited({ ...one, from: "eve" }, edit)).toMatchObject({ payload: { text: "One" } });
  expect(edited({ ...one, id: "b" }, edit).edits).toBeUndefined();
  const gone = edited(changed, said("", { payload: { text: "Gone.", replaces: "a", deleted: true } }));
  expect(chatOf(gone)).toMatchObject({ text: "Gone.", deleted: true });
  expect(edited(gone, edit)).toBe(gone);
});

test("kinds have groups, and a filter takes what fits in all of it", () => {
  expect(groupOf("mcp.notification.notifications/progress")).toBe("progress");
  expect(groupOf("system.participant.paused")).toBe("rights");
  expect(groupOf("made.up")).toBe("other");
  const one = said("The BOAT leaves", { from: "bob", context: "t" });
  expect(matches({ ...NO_FILTER, text: "boat", person: "bob", group: "chat", thread: "t" }, one)).toBe(true);
  expect(matches({ ...NO_FILTER, text: "ship" }, one)).toBe(false);
  expect(matches({ ...NO_FILTER, person: "ann" }, { ...one, to: ["ann"] })).toBe(true);
  expect(matches({ ...NO_FILTER, group: "presence" }, one)).toBe(false);
});

test("a request has its progress, its answer and the time it took", () => {
  const asked = message("mcp.request.tools/call:read", { id: "r", to: ["files"] });
  const begun = message("mcpx.begin.request", { from: "files", correlation_id: ["r"] });
  const params = { progress: 1, total: 4 };
  const progress = message("mcp.notification.notifications/progress", { from: "files", correlation_id: ["r"], payload: { params } });
  expect(outcomeOf(pair([asked]).exchanges.get("r")!)).toBe("waiting");
  const running = pair([asked, begun, progress]);
  expect(outcomeOf(running.exchanges.get("r")!)).toBe("running");
  expect(running.exchanges.get("r")!.progress).toEqual({ share: 0.25, text: "1 of 4" });
  expect(running.within).toEqual(new Set([begun.id, progress.id]));
  const answer = message("mcp.response.tools/call:read", { from: "files", correlation_id: ["r"], payload: { result: {} } });
  const done = pair([asked, begun, progress, answer]).exchanges.get("r")!;
  expect(outcomeOf(done)).toBe("answered");
  expect(tookSeconds(done)).toBe(3);
  const failed = { ...answer, payload: { result: { isError: true } } };
  expect(outcomeOf(pair([asked, failed]).exchanges.get("r")!)).toBe("failed");
});

test("an answer of someone else is no answer, and one without its request stands alone", () => {
  const asked = message("mcp.request.tools/list", { id: "r", to: ["files"] });
  const forged = message("mcp.response.tools/list", { from: "eve", correlation_id: ["r"], payload: { result: {} } });
  expect(pair([asked, forged]).exchanges.get("r")!.answer).toBeUndefined();
  const lone = pair([message("mcp.notification.notifications/progress", { from: "files", correlation_id: ["gone"] })]);
  expect(lone.within.size).toBe(0);
  const timeout = message("mcp.response.tools/list", { from: "gateway", correlation_id: ["r"], payload: { error: {} } });
  expect(outcomeOf(pair([asked, timeout]).exchanges.get("r")!)).toBe("failed");
});

test("thoughts belong to the thinking of the same participant", () => {
  const start = message("reasoning.start", { id: "s", context: "c" });
  const mine = message("reasoning.thought", { correlation_id: ["s"] });
  const byContext = message("reasoning.thought", { context: "c" });
  const other = message("reasoning.thought", { from: "eve", correlation_id: ["s"] });
  const end = message("reasoning.conclusion", { context: "c" });
  const late = message("reasoning.thought", { context: "c" });
  const { thinking, within } = pair([start, mine, byContext, other, end, late]);
  expect(thinking.get("s")).toMatchObject({ thoughts: [mine, byContext], end });
  expect(within).toEqual(new Set([mine.id, byContext.id, end.id]));
});

test("capabilities are foreseen as the hub judges them, and said in words", () => {
  expect(covers("mcp.request.tools/call", "mcp.request.tools/call:read_file")).toBe(true);
  expect(covers("mcp.request.tools/*", "mcp.request.tools/call:a:b")).toBe(true);
  expect(covers("mcp.request.tools/call:read_*", "mcp.request.tools/call:write")).toBe(false);
  expect(covers("chat.message.*", "chat.message")).toBe(true);
  expect(covers("*", "system.welcome")).toBe(false);
  expect(covers("*", "room.kick")).toBe(true);
  expect(covers("mcp.request.tools/call:a*b*c", "mcp.request.tools/call:aXbYc")).toBe(true);
  expect(covers("mcp.request.tools/call:ab*b", "mcp.request.tools/call:ab")).toBe(false);
  expect(allows(["*", "!room.kick"], "room.kick")).toBe(false);
  expect(allows(["chat.*"], "mcp.request.tools/call:x")).toBe(false);
  const aimed = { kind: "mcp.request.*", to: "files" };
  expect(allows([aimed], "mcp.request.tools/list", "files")).toBe(true);
  expect(allows([aimed], "mcp.request.tools/list", "other")).toBe(false);
  expect(allInWords(["chat.*", "chat.message", "mcp.request.tools/call:read", "!room.kick", "odd.kind", aimed])).toEqual([
    "chat", "call the tool read", "not: remove people", "send odd.kind", "ask anyone for anything of files",
  ]);
});

class FakeSocket {
  static all: FakeSocket[] = [];
  sent: { id: string; kind: string }[] = [];
  onopen: unknown = null;
  onmessage: unknown = null;
  onclose: unknown = null;
  constructor(readonly url: string) {
    FakeSocket.all.push(this);
  }
  send(text: string): void {
    this.sent.push(JSON.parse(text));
  }
  close(): void {}
  say(given: object): void {
    (this.onmessage as (event: { data: string }) => void)({ data: JSON.stringify(given) });
  }
  break(code: number, reason = ""): void {
    (this.onclose as (event: object) => void)({ code, reason });
  }
  welcome(more: Partial<Welcome> = {}): void {
    const payload = {
      you: { id: "ada", type: "person", role: "owner", capabilities: ["*"] }, participants: [], participants_total: 0,
      epoch: "e1", history: { enabled: true, first_seq: 1, last_seq: 10 }, ...more,
    };
    this.say({ id: "w", from: "gateway", kind: "system.welcome", payload });
  }
}

function connected(after = 10) {
  FakeSocket.all = [];
  const heard: number[] = [];
  const states: State[] = [];
  const connection = new Connection(
    "square", after, "e1",
    {
      onWelcome: () => {}, onMessage: (each) => heard.push(each.seq), onDirect: () => {},
      onState: (state) => states.push(state),
    },
    (url) => new FakeSocket(url) as never,
  );
  connection.open();
  return { connection, heard, states, socket: () => FakeSocket.all.at(-1)! };
}

const complete = (after: number) => ({ resume: { after, complete: true, reason: null } });

afterEach(() => {
  vi.useRealTimers();
  vi.unstubAllGlobals();
});

test("a connection that broke comes back after the last message, and hears each once", () => {
  vi.useFakeTimers();
  const { connection, heard, states, socket } = connected();
  socket().welcome(complete(10));
  socket().say(message("chat.message", { seq: 11 }));
  socket().say(message("chat.message", { seq: 12 }));
  socket().break(1012);
  expect(states.at(-1)).toBe("waiting");
  vi.advanceTimersByTime(400);
  expect(socket().url).toContain("after=12");
  expect(socket().url).toContain("epoch=e1");
  expect(new URL(FakeSocket.all[0]!.url).searchParams.get("conn")).toBe(new URL(socket().url).searchParams.get("conn"));
  socket().welcome(complete(12));
  for (const each of [12, 13, 13, 14]) socket().say(message("chat.message", { seq: each }));
  expect(heard).toEqual([11, 12, 13, 14]);
  connection.close();
});

test("it waits longer each time, and not after a final code", () => {
  vi.useFakeTimers();
  const { states, socket } = connected();
  for (let tries = 0; tries < 8; tries++) {
    socket().break(1006);
    vi.advanceTimersByTime(8_000);
  }
  expect(FakeSocket.all).toHaveLength(9);
  socket().break(4404, "The room was removed.");
  vi.advanceTimersByTime(60_000);
  expect(FakeSocket.all).toHaveLength(9);
  expect(states.at(-1)).toBe("closed");
});

test("what was not acknowledged is sent again under its id, and counts once", async () => {
  vi.useFakeTimers();
  const { connection, socket } = connected();
  socket().welcome(complete(10));
  const first = connection.send({ kind: "chat.message" });
  const second = connection.send({ kind: "chat.message" });
  const [one, two] = socket().sent;
  socket().break(1006);
  vi.advanceTimersByTime(400);
  expect(socket().sent).toEqual([]);
  socket().welcome(complete(10));
  expect(socket().sent.map((each) => each.id)).toEqual([one!.id, two!.id]);
  socket().say({ ...message("chat.message", { seq: 11 }), id: two!.id });
  const refusal = { error: "id_used", message: "used", seq: 9 };
  socket().say({ id: "e", from: "gateway", kind: "system.error", correlation_id: [one!.id], payload: refusal });
  expect(await first).toBeNull();
  expect((await second)?.seq).toBe(11);
  const third = connection.send({ kind: "room.kick" });
  const denied = { error: "capability_denied", message: "You may not." };
  socket().say({ id: "e", from: "gateway", kind: "system.error", correlation_id: [socket().sent.at(-1)!.id], payload: denied });
  await expect(third).rejects.toEqual(new RoomRefusal("capability_denied", "You may not."));
  const fourth = connection.send({ kind: "chat.message" });
  connection.close();
  await expect(fourth).rejects.toThrow("left the room");
});

test("after a gap it goes on from where the room is", () => {
  const { connection, heard, socket } = connected(10);
  socket().welcome({ epoch: "e2", history: { enabled: true, first_seq: 1, last_seq: 3 }, resume: { after: 10, complete: false, reason: "epoch_changed" } });
  socket().say(message("chat.message", { seq: 4 }));
  expect(heard).toEqual([4]);
  expect(connection.epoch).toBe("e2");
  connection.close();
});

/** A hub with so many messages, as `fetch` sees it. */
function history(count: number, made = (n: number) => said(`${n + 1}`, { from: n % 100 ? "bob" : "ann" })) {
  const all = Array.from({ length: count }, (_, n) => made(n));
  const asked: string[] = [];
  vi.stubGlobal("fetch", (path: string) => {
    asked.push(path);
    const url = new URL(path, "http://hub.example");
    const number = (name: string) => Number(url.searchParams.get(name));
    let answer: object = { proposals: [], requests: [], more: false, next_cursor: null };
    if (url.pathname.endsWith("/messages")) {
      const { after, before, limit } = { after: number("after"), before: number("before"), limit: number("limit") };
      const found = url.searchParams.has("after")
        ? all.filter((it) => it.seq > after).slice(0, limit)
        : all.filter((it) => !before || it.seq < before).slice(-limit);
      answer = { messages: found, first_seq: 1, last_seq: count };
      if (url.searchParams.has("sender") || url.searchParams.has("search")) {
        const sought = { ...NO_FILTER, person: url.searchParams.get("sender") ?? "", text: url.searchParams.get("search") ?? "" };
        const looked = all.filter((it) => !before || it.seq < before).slice(-1_000);
        const fitting = looked.filter((it) => matches(sought, it)).slice(-limit);
        answer = { ...answer, messages: fitting, from_seq: looked[0]?.seq ?? 1, through_seq: looked.at(-1)?.seq ?? count };
      }
      if (url.searchParams.has("fold")) {
        const within = all.filter((it) => it.seq > after && (!before || it.seq < before));
        const loud = within.filter((it) => !isQuiet(it.kind));
        const shown = url.searchParams.has("after") ? loud.slice(0, limit) : loud.slice(-limit);
        const whole = shown.length === loud.length;
        const from_seq = whole || url.searchParams.has("after") ? after + 1 : shown[0]!.seq;
        const through_seq = whole || !url.searchParams.has("after") ? within.at(-1)?.seq : shown.at(-1)!.seq;
        const quiet = within.filter((it) => isQuiet(it.kind) && it.seq >= from_seq && it.seq <= through_seq!);
        answer = { ...answer, messages: shown, from_seq, through_seq, folded: joined(quiet.map(foldOf), shown) };
      }
    }
    return Promise.resolve(new Response(JSON.stringify(answer), { headers: { "content-type": "application/json" } }));
  });
  vi.stubGlobal("WebSocket", FakeSocket);
  FakeSocket.all = [];
  return { all, asked };
}

async function opened(count: number, jump?: number, made?: (n: number) => Envelope) {
  const { all, asked } = history(count, made);
  const stream = new RoomStream("square");
  await stream.start({ epoch: "e1" } as never, jump ? { seq: jump } : undefined);
  const socket = FakeSocket.all.at(-1)!;
  socket.welcome({ history: { enabled: true, first_seq: 1, last_seq: count }, ...complete(count) });
  const shown = () => stream.messages.value.map((each) => each.seq);
  return { stream, socket, shown, all, asked };
}

const drawn = () => new Promise((done) => setTimeout(done, 80));

test("only the last page is read, and the page never keeps more than it may", async () => {
  const { stream, shown, asked } = await opened(10_000);
  expect(asked.filter((path) => path.includes("/messages"))).toHaveLength(1);
  expect(shown().at(-1)).toBe(10_000);
  expect(shown()).toHaveLength(60);
  for (let times = 0; times < 10; times++) await stream.older();
  expect(shown()).toHaveLength(KEEP);
  expect(shown()[0]).toBe(10_000 - 11 * 60 + 1);
  expect(stream.atEnd.value).toBe(false);
  for (let times = 0; times < 12; times++) await stream.newer();
  expect(shown().at(-1)).toBe(10_000);
  expect(shown()).toHaveLength(KEEP);
  expect(stream.atEnd.value).toBe(true);
  stream.stop();
});

test("a busy stream is followed without growing, and leaves a reader above it alone", async () => {
  const { stream, socket, shown } = await opened(100);
  for (let next = 101; next <= 1_000; next++) socket.say(said(`${next}`, { seq: next }));
  await drawn();
  expect(shown().length).toBeLessThanOrEqual(KEEP);
  expect(shown().at(-1)).toBe(1_000);
  stream.following = false;
  const before = shown();
  for (let next = 1_001; next <= 1_500; next++) socket.say(said(`${next}`, { seq: next }));
  await drawn();
  expect(shown()).toEqual(before);
  expect(stream.missed.value).toBeGreaterThan(0);
  expect(stream.atEnd.value).toBe(false);
  stream.stop();
});

test("one can jump to a number and to a time", async () => {
  const { stream, shown, asked, all } = await opened(10_000);
  await stream.jump(5_000);
  expect(shown()).toContain(5_000);
  expect(stream.target.value).toBe(5_000);
  asked.length = 0;
  await stream.jumpToTime(Date.parse(all[2_499]!.ts) / 1000 - 0.5);
  expect(stream.target.value).toBe(2_500);
  expect(asked.length).toBeLessThan(20);
  await stream.toEnd();
  expect(shown().at(-1)).toBe(10_000);
  stream.stop();
});

test("a filter looks through the history in steps, and is asked to go on", async () => {
  const { stream, shown, asked } = await opened(10_000);
  asked.length = 0;
  await stream.setFilter({ ...NO_FILTER, person: "ann" });
  expect(asked.length).toBe(1);
  expect(shown()).toHaveLength(10);
  expect(stream.hasOlder.value).toBe(true);
  expect(stream.lookedFrom.value).toBe(9_001);
  await stream.older();
  expect(shown()).toHaveLength(20);
  // Where nothing is found, it looks further by itself, so far and no further.
  asked.length = 0;
  await stream.setFilter({ ...NO_FILTER, text: "nowhere" });
  expect(asked.length).toBe(8);
  expect(stream.hasOlder.value).toBe(true);
  await stream.setFilter({ ...NO_FILTER, text: "9999" });
  expect(shown()).toEqual([9_999]);
  stream.stop();
});

const came = (event: "join" | "leave", id: string) => message(`system.presence.${event}`, { from: "gateway", payload: { participant: { id } } });

test("presence and protocol are quiet, and what people say, ask and decide is not", () => {
  const quiet = ["system.presence.join", "mcpx.begin.request", "mcp.request.tools/list", "mcp.response.tools/list", "participant.status", "capability.grant-ack", "mcp.notification.notifications/progress"];
  const loud = ["chat.message", "chat.message.markdown", "mcp.notification.notifications/chat/message", "mcp.request.tools/call:a.b", "mcp.response.tools/call", "mcp.request.elicitation/create", "mcp.proposal.tools/list", "mcpx.reject.proposal", "reasoning.start", "capability.grant", "room.kick", "participant.pause", "made.up"];
  expect(quiet.filter(isQuiet)).toEqual(quiet);
  expect(loud.filter(isQuiet)).toEqual([]);
});

test("what nobody reads is one line between what is said", () => {
  const run = [came("join", "ada"), came("leave", "ada"), came("join", "ada"), message("participant.status"), came("join", "bob")];
  const [fold] = joined(run.map(foldOf), []);
  expect(foldInWords(fold!)).toBe("ada came and went 2 times · bob entered · 1 protocol message");
  const word = said("Hello");
  expect(joined([...run, came("leave", "bob")].map(foldOf), [word])).toHaveLength(2);
});

test("protocol that comes and goes is folded, in what is read and in what comes", async () => {
  const { stream, socket, shown } = await opened(1_020, undefined, (n) => (n % 51 ? message("participant.status") : said(`${n}`)));
  expect(shown()).toHaveLength(20);
  expect(stream.folds.value).toHaveLength(20);
  expect(stream.folds.value[0]).toMatchObject({ first: 2, last: 51, protocol: 50 });
  expect(stream.hasOlder.value).toBe(false);
  socket.say({ ...came("join", "eve"), seq: 1_021 });
  socket.say({ ...said("New"), seq: 1_022 });
  socket.say({ ...message("mcp.request.tools/list"), seq: 1_023 });
  await drawn();
  expect(shown().at(-1)).toBe(1_022);
  expect(stream.missed.value).toBe(0);
  expect(stream.folds.value.slice(-2)).toMatchObject([{ last: 1_021, protocol: 50, presence: { eve: { came: 1 } } }, { first: 1_023 }]);
  stream.stop();
});

test("an answer is below its request unless someone spoke since, and on the card of its proposal", () => {
  const proposed = message("mcp.proposal.tools/call:read", { id: "p" });
  const asked = message("mcp.request.tools/call:read", { id: "r", to: ["files"], correlation_id: ["p"] });
  const answer = message("mcp.response.tools/call:read", { from: "files", correlation_id: ["r"], payload: { result: {} } });
  const near = pair([proposed, asked, answer]);
  expect(near.within).toEqual(new Set(["r", answer.id]));
  expect(near.fulfilments.get("p")!.answer).toBe(answer);
  const word = said("Meanwhile", { seq: asked.seq + 0.5 });
  const far = pair([proposed, asked, word, answer]);
  expect(far.within.has(answer.id)).toBe(false);
  expect(far.fulfilments.get("p")!.answer).toBe(answer);
});
