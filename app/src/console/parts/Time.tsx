/** Times in the reader's zone; the exact one is on hover. Spans of time and sizes, with units. */
import { fullTime, shortTime } from "../../text/time";

export function Time({ at, never = "never" }: { at: number | null | undefined; never?: string }) {
  if (at === null || at === undefined) return <span class="soft">{never}</span>;
  return (
    <time dateTime={new Date(at * 1000).toISOString()} title={fullTime(at)}>
      {shortTime(at)}
    </time>
  );
}

const STEPS = [
  [86_400, "d"],
  [3_600, "h"],
  [60, "min"],
] as const;

/** A duration in seconds with its unit: `340 ms`, `2.5 s`, `3 h 20 min`. */
export function duration(seconds: number): string {
  if (seconds < 1) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`;
  for (const [at, [size, unit]] of STEPS.entries()) {
    if (seconds < size) continue;
    const [small, smallUnit] = STEPS[at + 1] ?? [1, "s"];
    const rest = Math.floor((seconds % size) / small);
    return `${Math.floor(seconds / size)} ${unit}${rest ? ` ${rest} ${smallUnit}` : ""}`;
  }
  return "";
}

/** A number of bytes with its unit. */
export function bytes(count: number): string {
  const units = ["bytes", "KiB", "MiB", "GiB", "TiB"];
  let at = 0;
  let left = count;
  while (left >= 1024 && at < units.length - 1) {
    left /= 1024;
    at += 1;
  }
  return `${at === 0 || left >= 10 ? Math.round(left) : left.toFixed(1)} ${units[at]}`;
}

/** A whole number as it is written where the reader lives. */
export const count = (value: number) => value.toLocaleString();

/** `1 message`, `2 messages`. */
export const counted = (value: number, one: string, many = `${one}s`) =>
  `${count(value)} ${value === 1 ? one : many}`;
