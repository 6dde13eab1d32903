/** The messages of a tape as they are read: a window of them that moves both ways and follows. */
import { useEffect, useRef, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { sentence, Unreachable } from "../../../api/call";
import { send, withQuery } from "../../data";

export type Message = hub.TapeMessage;

export interface Filter {
  method: string;
  name: string;
  direction: string;
  text: string;
  errors: boolean;
}

/** Messages that are on the page at once: those furthest away make room for others. */
export const MOST_SHOWN = 600;
const PAGE = 100;
/** With a filter, an answer may find nothing in the part of the tape that it read. */
const ENOUGH = 50;
/** While a tape is recorded it is asked for what is new: soon after something came, else less often. */
const SOON_MS = 1_000;
const SELDOM_MS = 5_000;

export interface Shown {
  rows: readonly Message[];
  previous: string | null;
  next: string | null;
  /** Whether the last message that there is now is shown. */
  atEnd: boolean;
  recording: boolean;
}

/** Messages after those that are shown; the first ones make room. */
export function appended(shown: Shown, rows: readonly Message[], most = MOST_SHOWN): Shown {
  const all = [...shown.rows, ...rows];
  const kept = all.slice(Math.max(0, all.length - most));
  const previous = kept.length < all.length ? String(kept[0]!.offset) : shown.previous;
  return { ...shown, rows: kept, previous };
}

/** Messages before those that are shown; the last ones make room. */
export function prepended(shown: Shown, rows: readonly Message[], most = MOST_SHOWN): Shown {
  const all = [...rows, ...shown.rows];
  const kept = all.slice(0, most);
  const left = all[most];
  return left ? { ...shown, rows: kept, next: String(left.offset), atEnd: false } : { ...shown, rows: kept };
}

export type Start = "first" | "last" | { at: string };

export interface TimelineLoad extends Shown {
  busy: boolean;
  error: string;
  /** How much of the tape was searched, from 0 to 1; null where nothing is searched for. */
  searched: number | null;
  later: () => Promise<void>;
  earlier: () => Promise<void>;
  show: (start: Start) => Promise<void>;
}

const NOTHING: Shown = { rows: [], previous: null, next: null, atEnd: false, recording: false };

/** `path` is that of the tape's messages; a change of it or of the filter begins anew. */
export function useTimeline(path: string, filter: Filter, start: Start, follow: boolean): TimelineLoad {
  const [shown, setShown] = useState<Shown>(NOTHING);
  const [state, setState] = useState({ busy: true, error: "", searched: null as number | null });
  const run = useRef(0);
  const latest = useRef(shown);
  latest.current = shown;
  const busy = useRef(true);
  busy.current = state.busy;
  const key = `${path} ${JSON.stringify(filter)}`;
  const filtered = Object.values(filter).some(Boolean);

  /** Does something unless something else is begun meanwhile. */
  const work = async (quiet: boolean, read: (stale: () => boolean) => Promise<Shown | null>) => {
    const own = ++run.current;
    const stale = () => own !== run.current;
    if (!quiet) setState({ busy: true, error: "", searched: null });
    try {
      const found = await read(stale);
      if (stale()) return;
      if (found) setShown(found);
      setState({ busy: false, error: "", searched: null });
    } catch (error) {
      // What is only followed is asked for again; that the hub is away, the page says elsewhere.
      if (quiet && error instanceof Unreachable) return;
      if (!stale()) setState({ busy: false, error: sentence(error), searched: null });
    }
  };

  /** Reads until enough is found, or the tape is at an end. */
  const read = async (query: Record<string, unknown>, back: boolean, stale: () => boolean) => {
    const { errors, ...words } = filter;
    const given = { ...words, errors: errors || undefined, limit: PAGE };
    const rows: Message[] = [];
    let page = await send<hub.TapeTimeline>("GET", withQuery(path, { ...given, ...query }));
    let { previous_cursor: previous, next_cursor: next } = page;
    for (;;) {
      if (back) rows.unshift(...page.messages);
      else rows.push(...page.messages);
      const size = page.size ?? Infinity;
      const over = back ? page.previous_cursor === null : page.end >= size || page.end === page.begin;
      if (over || rows.length >= ENOUGH || stale() || page.next_cursor === null && !back) break;
      const done = back ? 1 - page.begin / size : page.end / size;
      setState((was) => ({ ...was, searched: page.size === null ? null : done }));
      const on = back ? { before: page.previous_cursor } : { cursor: page.next_cursor };
      page = await send<hub.TapeTimeline>("GET", withQuery(path, { ...given, ...on }));
      if (back) previous = page.previous_cursor;
      else next = page.next_cursor;
    }
    const atEnd = page.end >= (page.size ?? Infinity) || page.end === page.begin || next === null;
    return { rows, previous, next, atEnd, recording: page.recording };
  };

  const show = (from: Start) =>
    work(false, (stale) => {
      if (from === "last") return read({ last: true }, true, stale).then((it) => ({ ...it, atEnd: true }));
      return read(from === "first" ? {} : { cursor: from.at }, false, stale);
    });
  const later = (quiet = false) =>
    work(quiet, async (stale) => {
      const before = latest.current;
      if (before.next === null) return null;
      const found = await read({ cursor: before.next }, false, stale);
      return { ...appended(before, found.rows), next: found.next, atEnd: found.atEnd, recording: found.recording };
    });
  const earlier = () =>
    work(false, async (stale) => {
      const before = latest.current;
      if (before.previous === null) return null;
      const found = await read({ before: before.previous }, true, stale);
      return prepended({ ...before, previous: found.previous }, found.rows);
    });

  useEffect(() => {
    setShown(NOTHING);
    void show(start);
    return () => void ++run.current;
  }, [key]);

  const live = follow && shown.recording && shown.atEnd && !state.error;
  useEffect(() => {
    if (!live) return;
    let over = false;
    let wait = SOON_MS;
    let timer: ReturnType<typeof setTimeout>;
    const again = async () => {
      const last = latest.current.rows.at(-1)?.offset;
      if (!document.hidden && !busy.current) await later(true);
      // Another filter can have been set meanwhile: this one must not go on asking with the old one.
      if (over) return;
      const came = latest.current.rows.at(-1)?.offset !== last;
      wait = came ? SOON_MS : Math.min(SELDOM_MS, wait * 1.5);
      timer = setTimeout(() => void again(), wait);
    };
    timer = setTimeout(() => void again(), wait);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [live, key]);

  const searched = filtered ? state.searched : null;
  return { ...shown, ...state, searched, later: () => later(), earlier, show };
}
