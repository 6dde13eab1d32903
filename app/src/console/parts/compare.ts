/** What changed between two texts: by lines, and within them by words. */

export type Change = "same" | "gone" | "new";

export interface Piece {
  change: Change;
  text: string;
}

export interface DiffLine {
  change: Change;
  pieces: readonly Piece[];
}

/** A run of unchanged lines that is not shown. */
export interface Skipped {
  skipped: number;
}

/** Steps after which two texts are taken to be altogether different: to compare them any further
 *  takes longer than to read both. */
const MOST_STEPS = 1_500;
/** Unchanged lines that are shown around a change. */
const AROUND = 3;
const HIDDEN =
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\u3164\ufeff\uffa0\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;
const WORDS = /\s+|[\p{L}\p{N}_]+|[^\s\p{L}\p{N}_]/gu;

/** A text in which characters that a reader would not see are written out. */
export function visible(text: string): string {
  return text.replace(HIDDEN, (it) => {
    const code = it.codePointAt(0)!.toString(16).toUpperCase().padStart(4, "0");
    return `⟨U+${code}⟩`;
  });
}

/** How one list becomes another with few changes (Myers); equal parts are joined. */
export function compare(before: readonly string[], after: readonly string[]): [Change, string][] {
  let start = 0;
  while (start < before.length && start < after.length && before[start] === after[start]) start += 1;
  let end = 0;
  while (
    end < before.length - start &&
    end < after.length - start &&
    before[before.length - 1 - end] === after[after.length - 1 - end]
  ) {
    end += 1;
  }
  const a = before.slice(start, before.length - end);
  const b = after.slice(start, after.length - end);
  const same = (it: string): [Change, string] => ["same", it];
  return [
    ...before.slice(0, start).map(same),
    ...middle(a, b),
    ...(end ? before.slice(-end).map(same) : []),
  ];
}

function middle(a: readonly string[], b: readonly string[]): [Change, string][] {
  const all = (): [Change, string][] => [
    ...a.map((it): [Change, string] => ["gone", it]),
    ...b.map((it): [Change, string] => ["new", it]),
  ];
  if (!a.length || !b.length) return all();
  const most = Math.min(a.length + b.length, MOST_STEPS);
  const trace: Map<number, number>[] = [];
  let reach = new Map<number, number>([[1, 0]]);
  for (let step = 0; step <= most; step += 1) {
    trace.push(reach);
    const next = new Map(reach);
    for (let k = -step; k <= step; k += 2) {
      const down = k === -step || (k !== step && (next.get(k - 1) ?? -1) < (next.get(k + 1) ?? -1));
      let x = down ? (next.get(k + 1) ?? 0) : (next.get(k - 1) ?? 0) + 1;
      while (x < a.length && x - k < b.length && a[x] === b[x - k]) x += 1;
      next.set(k, x);
      if (x >= a.length && x - k >= b.length) return back(a, b, trace, step, k);
    }
    reach = next;
    // The maps of all steps are kept: what grows with their square has to end early.
    if (step * step > 400_000) return all();
  }
  return all();
}

function back(
  a: readonly string[],
  b: readonly string[],
  trace: readonly Map<number, number>[],
  steps: number,
  last: number,
): [Change, string][] {
  const found: [Change, string][] = [];
  let x = a.length;
  let y = b.length;
  let k = last;
  for (let step = steps; step > 0; step -= 1) {
    const reach = trace[step]!;
    const down = k === -step || (k !== step && (reach.get(k - 1) ?? -1) < (reach.get(k + 1) ?? -1));
    const from = down ? k + 1 : k - 1;
    const fromX = reach.get(from) ?? 0;
    const fromY = fromX - from;
    while (x > fromX && y > fromY && x > 0 && y > 0 && a[x - 1] === b[y - 1]) {
      found.push(["same", a[(x -= 1)]!]);
      y -= 1;
    }
    if (down) found.push(["new", b[(y -= 1)]!]);
    else found.push(["gone", a[(x -= 1)]!]);
    k = from;
  }
  while (x > 0 && y > 0) {
    found.push(["same", a[(x -= 1)]!]);
    y -= 1;
  }
  return found.reverse();
}

/** Two texts, word by word. */
export function words(before: string, after: string): Piece[] {
  const split = (text: string) => visible(text).match(WORDS) ?? [];
  return joined(compare(split(before), split(after)));
}

/** Whether two texts have so much in common that their words are worth comparing. */
export function isAlike(pieces: readonly Piece[]): boolean {
  const length = (change: Change) =>
    pieces.filter((it) => it.change === change).reduce((sum, it) => sum + it.text.replace(/\s/g, "").length, 0);
  const less = Math.min(length("gone"), length("new"));
  return less <= length("same");
}

function joined(found: readonly [Change, string][]): Piece[] {
  const pieces: Piece[] = [];
  for (const [change, text] of found) {
    const last = pieces.at(-1);
    if (last?.change === change) last.text += text;
    else pieces.push({ change, text });
  }
  return pieces;
}

/** Two texts, line by line; lines that took each other's place are compared by words as well. */
export function lines(before: string, after: string): (DiffLine | Skipped)[] {
  const split = (text: string) => (text ? visible(text).split("\n") : []);
  const found = compare(split(before), split(after));
  const all: DiffLine[] = [];
  for (let at = 0; at < found.length; ) {
    const gone = run(found, at, "gone");
    const added = run(found, at + gone.length, "new");
    if (!gone.length && !added.length) {
      all.push({ change: "same", pieces: [{ change: "same", text: found[at]![1] }] });
      at += 1;
      continue;
    }
    at += gone.length + added.length;
    const pairs = gone.map((text, place) => {
      const other = added[place];
      return other === undefined ? null : words(text, other);
    });
    gone.forEach((text, place) => all.push(side("gone", text, pairs[place] ?? null)));
    added.forEach((text, place) => all.push(side("new", text, pairs[place] ?? null)));
  }
  return folded(all);
}

function run(found: readonly [Change, string][], from: number, change: Change): string[] {
  const texts: string[] = [];
  for (let at = from; found[at]?.[0] === change; at += 1) texts.push(found[at]![1]);
  return texts;
}

/** One line of a pair; lines that have little in common are shown whole. */
function side(change: Change, text: string, pair: readonly Piece[] | null): DiffLine {
  const kept = pair?.filter((it) => it.change === "same").reduce((sum, it) => sum + it.text.trim().length, 0);
  if (!pair || !kept || kept * 3 < text.length) return { change, pieces: [{ change, text }] };
  return { change, pieces: pair.filter((it) => it.change === "same" || it.change === change) };
}

function folded(all: readonly DiffLine[]): (DiffLine | Skipped)[] {
  const near = all.map((_, at) =>
    all.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((it) => it.change !== "same"),
  );
  const shown: (DiffLine | Skipped)[] = [];
  all.forEach((line, at) => {
    const last = shown.at(-1);
    if (near[at]) shown.push(line);
    else if (last && "skipped" in last) last.skipped += 1;
    else shown.push({ skipped: 1 });
  });
  return shown;
}

/** A value as lines of JSON, whose members are in one order however they were sent. */
export function readable(value: unknown): string {
  return JSON.stringify(sorted(value), null, 2) ?? "";
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (value === null || typeof value !== "object") return value;
  const members = Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1));
  return Object.fromEntries(members.map(([name, it]) => [name, sorted(it)]));
}
