import { expect, test } from "vitest";

import type * as hub from "../../src/api/schema";
import { keeping, outcome, verdict } from "../../src/console/pages/asks/asks";

const ids = (...names: string[]) => names.map((id) => ({ id }));

test("what the reader began to decide on stays in its place when it waits no more", () => {
  const before = ids("a", "b", "c", "d");
  expect(keeping(before, ids("a", "c", "e"), new Set(["b"]))).toEqual(ids("a", "b", "c", "e"));
  expect(keeping(before, ids("a", "c"), new Set())).toEqual(ids("a", "c"));
  expect(keeping(before, [], new Set(["d", "a"]))).toEqual(ids("a", "d"));
  expect(keeping([], ids("a"), new Set(["x"]))).toEqual(ids("a"));
});

test("what is listed is never shown twice", () => {
  const before = ids("a", "b");
  expect(keeping(before, ids("b", "a"), new Set(["a", "b"]))).toEqual(ids("b", "a"));
});

test("what came of a decision is told in words", () => {
  const told = (decision: string, came: string) =>
    outcome({ decision, outcome: came } as unknown as hub.Decision).text;
  expect(told("approved", "waiting")).toBe("No answer yet");
  expect(told("approved", "answered")).toBe("Done");
  expect(told("approved", "failed")).toBe("It failed");
  expect(told("rejected", "open")).toBe("Still open: more must reject it");
  expect(told("rejected", "fulfilled")).toBe("Somebody else approved it");
  expect(told("dropped", "dropped")).toBe("It went no further");
  expect(verdict({ decision: "edited" } as hub.Decision)).toBe("Released, edited");
});
