/** A tape in numbers: how many calls, how long they took, which were slow and which failed. */
import { useEffect, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Notice } from "../../../components/parts";
import { send, withQuery } from "../../data";
import { Empty } from "../../parts/Empty";
import { Section } from "../../parts/PageHead";
import { Plot } from "../../parts/Plot";
import { Problem } from "../../parts/Problem";
import { Progress } from "../../parts/Progress";
import { type Column, Table } from "../../parts/Table";
import { count, counted, duration, Time } from "../../parts/Time";
import { type Call, Calls, failed, type Group, groups, MOST_CALLS, slices, slowest, titleOf } from "./numbers";
import { pathOf } from "./Tape";
import { linkTo } from "./Tapes";

const LIVE_MS = 2_000;
const MOST_ERRORS = 50;

interface Counted {
  calls: Calls;
  /** How much of the tape was read, from 0 to 1; undefined where nobody knows. */
  done: number | undefined;
  ended: boolean;
  error: string;
}

/** The calls of a tape, read piece by piece, and on while it is recorded; of none, nothing is read. */
export function useCalls(tape: hub.TapeRow | null, compare?: "exact" | "kinds"): Counted | null {
  const [state, setState] = useState<Counted | null>(null);
  const path = tape && pathOf(tape, "calls");
  useEffect(() => {
    setState(null);
    if (!path) return;
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const calls = new Calls();
    const read = async (from: string | null) => {
      let cursor = from;
      try {
        while (!over) {
          const page = await send<hub.TapeCalls>("GET", withQuery(path, { cursor, compare }));
          if (over) return;
          calls.take(page);
          cursor = page.next_cursor;
          const ended = cursor === null || calls.full || (page.recording && page.end >= (page.size ?? 0));
          const done = ended ? 1 : page.size === null ? undefined : page.end / page.size;
          setState({ calls, done, ended, error: "" });
          if (!ended) continue;
          // Two tapes are compared as they are; numbers go on.
          if (page.recording && !calls.full && !compare) {
            timer = setTimeout(() => void read(cursor), LIVE_MS);
          }
          return;
        }
      } catch (error) {
        if (!over) setState({ calls, done: 1, ended: true, error: sentence(error) });
      }
    };
    void read(null);
    return () => {
      over = true;
      clearTimeout(timer);
    };
  }, [path, compare]);
  return state;
}

export function Counting({ label, counted: it }: { label: string; counted: Counted | null }) {
  if (it?.ended) return null;
  const text = it?.done === undefined ? "" : `${Math.round(it.done * 100)} %`;
  return <Progress label={label} value={it?.done} text={text} />;
}

const GROUPS: readonly Column<Group>[] = [
  { head: "Call", cell: (it) => <span class="mono">{it.title}</span> },
  { head: "Calls", number: true, cell: (it) => count(it.calls) },
  { head: "Errors", number: true, cell: (it) => <Errors value={it.errors} /> },
  { head: "No answer", number: true, cell: (it) => count(it.unanswered) },
  { head: "Median", number: true, cell: (it) => took(it.p50) },
  { head: "95 %", number: true, cell: (it) => took(it.p95) },
  { head: "Longest", number: true, cell: (it) => took(it.max) },
];

const took = (seconds: number | null) => (seconds === null ? "–" : duration(seconds));

function Errors({ value }: { value: number }) {
  return <span class={value ? "bad-text" : ""}>{count(value)}</span>;
}

export function Numbers({ tape }: { tape: hub.TapeRow }) {
  const found = useCalls(tape);
  const calls = found?.calls.list ?? [];
  const over = slices(calls);
  const wrong = calls.filter(failed);
  const columns: readonly Column<Call>[] = [
    { head: "Time", cell: (it) => <Time at={it.time} /> },
    {
      head: "Call",
      cell: (it) => (
        <a class="mono" href={withQuery(linkTo(tape), { at: it.offset, message: it.offset })}>
          {titleOf(it)}
        </a>
      ),
    },
    { head: "Took", number: true, cell: (it) => took(it.seconds) },
    { head: "Outcome", cell: (it) => <Outcome call={it} /> },
  ];
  return (
    <>
      <Counting label="Counting" counted={found} />
      <Problem error={found?.error ?? ""} />
      {found?.calls.full && (
        <Notice tone="warning">
          {`These are the first ${count(MOST_CALLS)} calls. 'folkmoot tape stats' counts all of them.`}
        </Notice>
      )}
      {found?.ended && calls.length === 0 && !found.error && (
        <Empty title="There are no calls on this tape." />
      )}
      {calls.length > 0 && (
        <>
          <p>
            {counted(found!.calls.messages, "message")}, {counted(calls.length, "call")},{" "}
            <span class={wrong.length ? "bad-text" : ""}>{counted(wrong.length, "error")}</span>
          </p>
          <Section title="How long answers took">
            <Plot
              title="Over the time of the tape"
              times={over.times}
              series={[
                { name: "Median", values: over.median },
                { name: "Longest", values: over.longest, tone: "soft" },
              ]}
              format={duration}
              empty="Nothing was answered."
            />
          </Section>
          <Section title="By method and tool">
            <Table label="Calls by method and tool" columns={GROUPS} rows={groups(calls).slice(0, 100)} rowKey={(it) => it.title} />
          </Section>
          <Section title="Slowest calls">
            <Table label="Slowest calls" columns={columns} rows={slowest(calls)} rowKey={(it) => it.seq} />
          </Section>
          {wrong.length > 0 && (
            <Section
              title="Errors"
              beside={
                <a class="button" href={withQuery(linkTo(tape), { errors: 1 })}>
                  All in the timeline
                </a>
              }
            >
              <Table label="Errors" columns={columns} rows={wrong.slice(0, MOST_ERRORS)} rowKey={(it) => it.seq} />
            </Section>
          )}
        </>
      )}
    </>
  );
}

function Outcome({ call }: { call: Call }) {
  const words: Record<string, string> = { result: "result", error: "error", tool_error: "the tool failed" };
  return <span class={failed(call) ? "bad-text" : ""}>{words[call.outcome] ?? call.outcome}</span>;
}
