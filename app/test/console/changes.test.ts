import { expect, test } from "vitest";

import { changes, same } from "../../src/console/parts/changes";
import { lastSuch, type ProposalShown } from "../../src/console/parts/proposals";

test("what changed is told by path", () => {
  const before = { name: "write", arguments: { path: "a", lines: [1, 2], gone: true, "odd name": 1 } };
  const after = { name: "write", arguments: { path: "b", lines: [1, 3, 4], new: null, "odd name": 2 } };
  expect(changes(before, after)).toEqual([
    { path: "arguments.path", before: "a", after: "b" },
    { path: "arguments.lines[1]", before: 2, after: 3 },
    { path: "arguments.lines[2]", before: undefined, after: 4 },
    { path: "arguments.gone", before: true, after: undefined },
    { path: 'arguments."odd name"', before: 1, after: 2 },
    { path: "arguments.new", before: undefined, after: null },
  ]);
});

test("the order of members is no change, a type is one", () => {
  expect(changes({ a: 1, b: [{}] }, { b: [{}], a: 1 })).toEqual([]);
  expect(same(1, "1")).toBe(false);
  expect(same({ a: undefined as never }, {})).toBe(false);
  expect(same([1], { 0: 1 } as never)).toBe(false);
});

test("the last such proposal is the latest before it of the same kind and target", () => {
  const make = (seq: number, kind: string, to: string[]) => ({ seq, kind, to }) as ProposalShown;
  const all = [make(1, "a", ["x"]), make(3, "a", ["x"]), make(4, "a", ["y"]), make(5, "b", ["x"]), make(9, "a", ["x"])];
  expect(lastSuch(all, make(7, "a", ["x"]))?.seq).toBe(3);
  expect(lastSuch(all, make(1, "a", ["x"]))).toBeUndefined();
});
