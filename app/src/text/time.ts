/** Times in the reader's language and zone, which a host may say. */
import { signal } from "@preact/signals";

interface Place {
  locale?: string | undefined;
  timeZone?: string | undefined;
}

export const place = signal<Place>({});

/** Making one takes longer than a hundred uses of it. */
let formats = new Map<string, Intl.DateTimeFormat>();
place.subscribe(() => {
  formats = new Map();
});

function format(seconds: number, options: Intl.DateTimeFormatOptions): string {
  const { locale, timeZone } = place.value;
  const name = JSON.stringify(options);
  let found = formats.get(name);
  if (!found) {
    try {
      found = new Intl.DateTimeFormat(locale, { ...options, timeZone });
    } catch {
      // A host may name a language or zone that this browser does not know.
      found = new Intl.DateTimeFormat(undefined, options);
    }
    formats.set(name, found);
  }
  return found.format(new Date(seconds * 1000));
}

const DAY: Intl.DateTimeFormatOptions = { year: "numeric", month: "2-digit", day: "2-digit" };

export function sameDay(one: number, other: number): boolean {
  return format(one, DAY) === format(other, DAY);
}

/** For a list: the time of today, the weekday of this week, else the date. */
export function shortTime(seconds: number, now = Date.now() / 1000): string {
  if (sameDay(seconds, now)) return clock(seconds);
  if (seconds < now && now - seconds < 6 * 86_400) return format(seconds, { weekday: "short" });
  const sameYear = format(seconds, { year: "numeric" }) === format(now, { year: "numeric" });
  const year = sameYear ? {} : ({ year: "numeric" } as const);
  return format(seconds, { day: "numeric", month: "short", ...year });
}

export function dayTitle(seconds: number, now = Date.now() / 1000): string {
  if (sameDay(seconds, now)) return "Today";
  if (sameDay(seconds, now - 86_400)) return "Yesterday";
  return format(seconds, { weekday: "long", day: "numeric", month: "long", year: "numeric" });
}

export function clock(seconds: number): string {
  return format(seconds, { hour: "numeric", minute: "2-digit" });
}

const MINUTES_10 = 600;
const DAY_SECONDS = 86_400;

/** A time among others that are so many seconds apart: no two of them look the same. */
export function timeWithin(seconds: number, span: number): string {
  if (span > DAY_SECONDS) {
    return format(seconds, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
  }
  if (span > MINUTES_10) return clock(seconds);
  const exact = { hour: "numeric", minute: "2-digit", second: "2-digit" } as const;
  return format(seconds, span > 10 ? exact : { ...exact, fractionalSecondDigits: span > 1 ? 1 : 3 });
}

export function fullTime(seconds: number): string {
  return format(seconds, { dateStyle: "full", timeStyle: "medium" });
}

/** For a log: the date and the time, with seconds. */
export function logTime(seconds: number): string {
  return format(seconds, { dateStyle: "medium", timeStyle: "medium" });
}
