/** `/tapes`: the tapes that the hub and its user's proxies recorded, and the messages they hold. */
import { useEffect, useRef } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { usePages, withQuery } from "../../data";
import { Empty } from "../../parts/Empty";
import { HeldMessages } from "../../parts/Held";
import { PageHead } from "../../parts/PageHead";
import { type Column, PagedTable } from "../../parts/Table";
import { bytes, count, duration, Time } from "../../parts/Time";
import { pathTo } from "../../router";

import "../../design/tapes.css";

const AGAIN_MS = 5_000;

export const seconds = (moment: string) => Date.parse(moment) / 1000;

/** How long a tape is, or was until something was written to it last. */
export function lengthOf({ started, ended, modified_at }: hub.TapeRow): number {
  return Math.max(0, (ended ? seconds(ended) : modified_at) - seconds(started));
}

export const linkTo = ({ name, place }: Pick<hub.TapeRow, "name" | "place">) =>
  withQuery(pathTo("tapes", name), { place });

export function State({ tape }: { tape: hub.TapeRow }) {
  return (
    <>
      {tape.recording && <span class="tag recording">recording</span>}
      {!tape.recording && !tape.ended && (
        <span class="tag" title="Its recorder was killed; what it wrote can be read.">
          no end
        </span>
      )}
      {tape.compressed && <span class="tag">compressed</span>}
      {!tape.redaction_key && (
        <span class="tag urgent" title="It was recorded without redaction: secrets may be on it.">
          not redacted
        </span>
      )}
    </>
  );
}

const COLUMNS: readonly Column<hub.TapeRow>[] = [
  {
    head: "Tape",
    cell: (it) => (
      <span class="line">
        <a class="mono" href={linkTo(it)}>
          {it.name}
        </a>
        <State tape={it} />
      </span>
    ),
  },
  { head: "Recorded", cell: (it) => <Time at={seconds(it.started)} /> },
  { head: "Length", number: true, cell: (it) => duration(lengthOf(it)) },
  { head: "Messages", number: true, cell: (it) => (it.messages === null ? "–" : count(it.messages)) },
  { head: "Size", number: true, cell: (it) => bytes(it.bytes) },
  { head: "Server", cell: (it) => <span class="mono">{it.server}</span> },
  {
    head: "Recorded by",
    cell: (it) => (it.place ? <span title={it.path}>a proxy</span> : <span title={it.path}>the hub</span>),
  },
];

export function useTapes() {
  return usePages<hub.TapeRows, hub.TapeRow>("/v1/tapes?limit=50", {
    items: (page) => page.tapes,
    next: (page) => page.next_cursor,
  });
}

export function Tapes() {
  const list = useTapes();
  const latest = useRef(list);
  latest.current = list;
  const recording = list.items?.some((it) => it.recording) ?? false;
  useEffect(() => {
    if (!recording) return;
    const timer = setInterval(() => {
      if (!document.hidden && !latest.current.busy) void latest.current.reload();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [recording]);
  return (
    <>
      <PageHead title="Tapes" lead="Recorded conversations between clients and servers." />
      <HeldMessages />
      <PagedTable
        label="Tapes"
        columns={COLUMNS}
        rowKey={(it) => `${it.place}/${it.name}`}
        list={list}
        empty={
          <Empty title="Nothing is recorded yet.">
            <p>
              To record what passes the hub, switch it on in the <a href="/settings">settings</a>.
            </p>
            <p>
              To record any server, run <code>folkmoot proxy --record-dir tapes -- COMMAND</code> on
              the hub's machine, as the hub's user.
            </p>
          </Empty>
        }
      />
    </>
  );
}
