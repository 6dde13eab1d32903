import { expect, it } from "vitest";

import { opened } from "../../src/console/pages/tapes/Pair";
import { parse } from "../../src/console/parts/Held";
import {
  type Call,
  Calls,
  groups,
  NO_ANSWER,
  pairs,
  percentile,
  quoted,
  slices,
  slowest,
} from "../../src/console/pages/tapes/numbers";
import { appended, type Message, prepended, type Shown } from "../../src/console/pages/tapes/timeline";

let last = 0;
function call(name: string, more: Partial<Call> = {}): Call {
  last += 1;
  return {
    seq: last, offset: last * 100, time: 1_000 + last, method: "tools/call", name, asked: "x",
    seconds: 0.1, outcome: "result", said: "y", ...more,
  };
}

it("puts an answer to its request, also when it comes pages later or never", () => {
  const calls = new Calls();
  const asked = (seq: number) => ({
    seq, offset: seq, time: seq, from_client: true, method: "ping", name: "", asked: "",
  });
  calls.take({ calls: [asked(1), asked(2), asked(3)], answers: [], messages: 3 });
  const late = { request: 2, seconds: 2, outcome: "error", said: "" };
  calls.take({ calls: [], answers: [late, { ...late, request: 99 }], messages: 1 });
  expect(calls.list.map((it) => [it.seq, it.seconds, it.outcome])).toEqual([
    [1, null, NO_ANSWER],
    [2, 2, "error"],
    [3, null, NO_ANSWER],
  ]);
  expect(calls.messages).toBe(4);
  const [group] = groups(calls.list);
  expect(group).toMatchObject({ title: "ping", calls: 3, errors: 1, unanswered: 2, p50: 2, max: 2 });
});

it("pairs calls by order and what is called: equal ones first, then changed, then those of one tape", () => {
  const a = [call("echo", { asked: "1" }), call("echo", { asked: "2" }), call("add"), call("gone")];
  const b = [
    call("echo", { asked: "3" }),
    call("echo", { asked: "1", said: "z" }),
    call("add", { outcome: "error" }),
    call("new"),
  ];
  expect(pairs(a, b).map((it) => [it.difference, it.a?.seq, it.b?.seq])).toEqual([
    ["answer", a[0]!.seq, b[1]!.seq],
    ["arguments", a[1]!.seq, b[0]!.seq],
    ["outcome", a[2]!.seq, b[2]!.seq],
    ["only_a", a[3]!.seq, undefined],
    ["only_b", undefined, b[3]!.seq],
  ]);
  expect(pairs(a, a).every((it) => it.difference === "same" && it.a === it.b)).toBe(true);
  expect(pairs([], [])).toEqual([]);
});

it("pairs long tapes in a moment", () => {
  const long = Array.from({ length: 50_000 }, (_, at) => call("echo", { asked: String(at % 7) }));
  const other = long.map((it) => ({ ...it }));
  const found = pairs(long, other);
  expect(found.length).toBe(50_000);
  expect(found.every((it) => it.difference === "same")).toBe(true);
});

it("finds the slowest calls, and how long answers took over time", () => {
  const calls = [call("a", { seconds: 1, time: 0 }), call("b", { seconds: 3, time: 5 }),
    call("c", { seconds: 2, time: 10 }), call("d", { seconds: null, time: 20 })];
  expect(slowest(calls, 2).map((it) => it.name)).toEqual(["b", "c"]);
  const found = slices(calls, 2);
  expect(found).toEqual({ times: [0, 5], median: [1, 2], longest: [1, 3] });
  expect(slices([])).toEqual({ times: [], median: [], longest: [] });
  expect(percentile([1, 2, 3, 4], 0.5)).toBe(2);
});

it("keeps so many messages on the page, and knows where to read those that made room", () => {
  const rows = (...offsets: number[]) => offsets.map((offset) => ({ offset }) as Message);
  const shown: Shown = { rows: rows(10, 20), previous: "10", next: "30", atEnd: true, recording: true };
  const later = appended(shown, rows(30, 40), 3);
  expect([later.rows.map((it) => it.offset), later.previous]).toEqual([[20, 30, 40], "20"]);
  const earlier = prepended({ ...shown, previous: null }, rows(0, 5), 3);
  expect([earlier.rows.map((it) => it.offset), earlier.next, earlier.atEnd]).toEqual([[0, 5, 10], "20", false]);
  expect(appended(shown, rows(30)).previous).toBe("10");
  expect(prepended(shown, rows(5)).atEnd).toBe(true);
});

it("writes a path as one word of a shell", () => {
  expect(quoted("/tapes/a.jsonl")).toBe("/tapes/a.jsonl");
  expect(quoted("/it's here; rm -rf $HOME")).toBe("'/it'\\''s here; rm -rf $HOME'");
});

it("takes a JSON object for a message, and says what is wrong with anything else", () => {
  expect(parse('{"id": 1}')).toEqual({ message: { id: 1 } });
  expect(parse("[1]").error).toContain("JSON object");
  expect(parse("null").error).toContain("JSON object");
  expect(parse("{").error).toContain("not valid JSON");
});

it("text that is JSON is opened, as deep as one reads, and other text stays", () => {
  expect(opened({ text: '{"a":"[1]"}', plain: "{not json", list: ['"x"', "[]"] })).toEqual({
    text: { a: [1] },
    plain: "{not json",
    list: ['"x"', []],
  });
  let deep = "[]";
  for (let depth = 0; depth < 9; depth += 1) deep = JSON.stringify([deep]);
  expect(JSON.stringify(opened(deep))).toContain('\\"');
});
