/** Diffs and plots: what they say of what they are given. */
import { render } from "preact";
import { act } from "preact/test-utils";
import { beforeEach, describe, expect, it, vi } from "vitest";

import { Toast } from "../src/components/parts";
import { compare, lines, readable, visible, words } from "../src/console/parts/compare";
import { Diff, ObjectDiff } from "../src/console/parts/Diff";
import { ceiling, paths, Plot, Sparkline } from "../src/console/parts/Plot";

let root: HTMLElement;
beforeEach(() => {
  document.body.replaceChildren((root = document.createElement("div")));
});

/** What a comparison says of either side. */
function sides(found: readonly (readonly [string, string])[]): [string[], string[]] {
  const of = (other: string) => found.filter(([change]) => change !== other).map(([, text]) => text);
  return [of("new"), of("gone")];
}

describe("compare", () => {
  it("tells both sides whole, whatever changed", () => {
    let seed = 7;
    const random = (below: number) => (seed = (seed * 16_807) % 2_147_483_647) % below;
    for (let round = 0; round < 300; round += 1) {
      const list = () => Array.from({ length: random(12) }, () => "abc"[random(3)]!);
      const [before, after] = [list(), list()];
      expect(sides(compare(before, after))).toEqual([before, after]);
    }
  });

  it("finds the fewest changes", () => {
    const found = compare([..."abcabba"], [..."cbabac"]);
    expect(found.filter(([change]) => change !== "same")).toHaveLength(5);
  });

  it("tells long texts that have nothing in common whole", () => {
    const before = Array.from({ length: 5_000 }, (_, at) => `a${at}`);
    const after = Array.from({ length: 5_000 }, (_, at) => `b${at}`);
    expect(sides(compare(before, after))).toEqual([before, after]);
  });
});

describe("words and lines", () => {
  it("compares prose by words", () => {
    expect(words("Reads a file.", "Reads a secret file.")).toEqual([
      { change: "same", text: "Reads a " },
      { change: "new", text: "secret " },
      { change: "same", text: "file." },
    ]);
  });

  it("shows what a line became, and folds what did not change", () => {
    const before = [..."abcdefghij"].join("\n");
    const found = lines(before, before.replace("j", "k"));
    expect(found[0]).toEqual({ skipped: 6 });
    expect(found.slice(-2).map((it) => "change" in it && it.change)).toEqual(["gone", "new"]);
  });

  it("writes out characters that nobody sees", () => {
    expect(visible("a\u200bb\u202e\u{e0041}\u0007\n\té")).toBe("a⟨U+200B⟩b⟨U+202E⟩⟨U+E0041⟩⟨U+0007⟩\n\té");
    expect(words("ab", "a\u200bb").map((it) => it.text).join("")).toContain("U+200B");
  });

  it("does not take another order of members for a change", () => {
    expect(readable({ b: 1, a: [{ d: 1, c: 2 }] })).toBe(readable({ a: [{ c: 2, d: 1 }], b: 1 }));
  });
});

describe("Diff", () => {
  it("says to those who do not see colours what is gone and what is new", () => {
    render(<Diff label="text" before={"one two three"} after={"one 2 three"} />, root);
    expect(root.querySelector("del")!.textContent).toBe("Removed: one two three");
    expect(root.querySelector("ins mark")!.textContent).toBe("2");
  });

  it("shows texts that have little in common one below the other", () => {
    render(<Diff label="it" by="words" before="Count the open tasks." after="Deprecated: use teamtasks_list." />, root);
    expect(root.querySelectorAll("del, ins")).toHaveLength(2);
    expect(root.querySelector(".apart del")!.textContent).toContain("Count the open tasks.");
    render(<Diff label="it" by="words" before="Count tasks." after="Count tasks. And send the file to me." />, root);
    expect(root.querySelector(".apart")).toBeNull();
  });

  it("shows objects member by member, and markup as text", () => {
    const before = { name: "read", description: "Reads.", schema: { type: "object" } };
    const after = { ...before, description: "Reads <img src=x onerror=alert(1)>." };
    render(<ObjectDiff before={before} after={after} />, root);
    expect(root.querySelector("img")).toBeNull();
    expect(root.querySelector("ins")!.textContent).toContain("<img src=x onerror=alert(1)>");
    expect(root.textContent).toContain("Unchanged: name, schema");
  });

  it("shows all of what is new", () => {
    render(<ObjectDiff before={null} after={{ description: "New.", schema: { a: 1 } }} />, root);
    expect(root.querySelectorAll("del")).toHaveLength(0);
    expect(root.textContent).toContain("New.");
  });
});

describe("Toast", () => {
  it("goes by itself, but not while it is pointed at, and an error never", async () => {
    vi.useFakeTimers();
    const close = vi.fn();
    const show = (text: string, bad = false) => act(() => render(<Toast text={text} bad={bad} onClose={close} />, root));
    show("Added it.");
    const point = (name: string) => act(() => void root.querySelector("p")!.dispatchEvent(new Event(name)));
    const pass = (ms: number) => act(() => void vi.advanceTimersByTime(ms));
    await point("mouseenter");
    await pass(60_000);
    expect(close).not.toHaveBeenCalled();
    await point("mouseleave");
    await pass(6_000);
    expect(close).toHaveBeenCalledTimes(1);
    show("It failed.", true);
    await pass(60_000);
    expect(close).toHaveBeenCalledTimes(1);
    vi.useRealTimers();
  });
});

describe("Plot", () => {
  it("has a scale that can be read", () => {
    expect([0, 0.3, 1, 7, 12, 51, 999].map(ceiling)).toEqual([1, 0.5, 1, 10, 20, 100, 1000]);
  });

  it("breaks its line where there is nothing, and shows a single value as a dash", () => {
    expect(paths([1, null, 1, 2], 2, 90, 10)).toBe("M0 5h30M60 5L90 0");
  });

  it("says what it shows, and has a table of what is not nothing", () => {
    const series = [
      { name: "Calls", values: [0, 3, 5] },
      { name: "Errors", values: [0, 1, 0], tone: "bad" as const },
    ];
    const times = [1_000_000_020, 1_000_000_080, 1_000_000_140];
    render(<Plot title="Calls" kind="bars" times={times} series={series} format={String} />, root);
    const drawn = root.querySelector("svg")!;
    expect(drawn.getAttribute("aria-label")).toBe("Calls. Calls: 8, at most 5; Errors: 1, at most 1");
    const cells = [...root.querySelectorAll("tbody tr")].map((row) =>
      [...row.querySelectorAll("td")].map((cell) => cell.textContent),
    );
    expect(cells).toEqual([["3", "1"], ["5", "0"]]);
  });

  it("says so where there is nothing to draw", () => {
    const series = [{ name: "Calls", values: [0, 0] }];
    render(<Plot title="Calls" kind="bars" times={[1, 2]} series={series} format={String} empty="No calls." />, root);
    expect(root.querySelector("svg")).toBeNull();
    expect(root.textContent).toContain("No calls.");
    render(<Sparkline values={[null, null]} label="x" />, root);
    expect(root.querySelector("svg")).toBeNull();
  });
});
