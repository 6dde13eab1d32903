/** What the reader decided, and what came of it, the latest first. */
import { useEffect, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { send, useLoad, usePages } from "../../data";
import { Empty } from "../../parts/Empty";
import { Problem } from "../../parts/Problem";
import { type Column, PagedTable } from "../../parts/Table";
import { Time } from "../../parts/Time";
import { may } from "../../session";
import { outcome, verdict } from "./asks";

const at = (text: string) => Date.parse(text) / 1000;

const COLUMNS: readonly Column<hub.Decision>[] = [
  { head: "When", cell: (it) => <Time at={at(it.at)} /> },
  { head: "Decision", cell: (it) => <strong>{verdict(it)}</strong> },
  { head: "What", cell: (it) => <span class="mono">{oneLine(it.what.replace(":", " "), 200)}</span> },
  { head: "Asked by", cell: (it) => it.by ?? <span class="soft">–</span> },
  { head: "Where", cell: (it) => <Where decision={it} /> },
  { head: "Result", cell: (it) => <Came decision={it} /> },
  { head: "Your reason", cell: (it) => (it.reason ? oneLine(it.reason, 300) : <span class="soft">–</span>) },
];

function Where({ decision: { room, seq, server } }: { decision: hub.Decision }) {
  if (room !== null) {
    return <a href={`/rooms/${encodeURIComponent(room)}${seq === null ? "" : `#m-${seq}`}`}>{room}</a>;
  }
  return server === null ? <span class="soft">this hub</span> : <>{server}</>;
}

function Came({ decision }: { decision: hub.Decision }) {
  const { text, tone } = outcome(decision);
  return (
    <span class={tone === "good" ? "good-text" : tone === "bad" ? "bad-text" : ""}>
      {text}
      {decision.ended_at !== null && (
        <>
          {" "}
          <Time at={at(decision.ended_at)} />
        </>
      )}
    </span>
  );
}

export function Decided() {
  // Only while an answer is awaited is it worth reading again with every message.
  const [open, setOpen] = useState(false);
  const list = usePages<hub.Decisions, hub.Decision>("/v1/decisions?limit=50", {
    items: (page) => page.decisions,
    next: (page) => page.next_cursor,
    on: open ? ["room.proposal", "room.message"] : ["room.proposal"],
  });
  const waits = !!list.items?.some((it) => it.outcome === "waiting");
  useEffect(() => setOpen(waits), [waits]);
  return (
    <>
      <Lasting />
      <PagedTable
        label="What you decided"
        columns={COLUMNS}
        rowKey={(it) => it.id}
        list={list}
        empty={
          <Empty title="You have not decided anything yet.">
            <p>What you approve, reject, release, drop or accept is listed here for 90 days.</p>
          </Empty>
        }
      />
    </>
  );
}

/** What the reader approved for longer, each of which they can end. */
function Lasting() {
  const { data, error, reload } = useLoad<hub.LastingAsks>("/v1/lasting-asks", ["ask.changed"]);
  const [wrong, setWrong] = useState("");
  if (error) return <Problem error={error} onRetry={reload} />;
  if (!data?.asks.length) return null;
  const stop = async (id: string) => {
    setWrong("");
    try {
      await send("DELETE", `/v1/asks/${id}/lasting`);
    } catch (error) {
      setWrong(sentence(error));
    }
    await reload();
  };
  return (
    <section class="stack" aria-labelledby="lasting">
      <h2 id="lasting">Approved for longer</h2>
      <ul class="stack" role="list">
        {data.asks.map((it) => (
          <li key={it.id} class="line">
            <span>
              <span class="mono">{oneLine(it.tool, 200)}</span> for @{it.by},{" "}
              {it.same.length ? `with the same ${it.same.map((name) => oneLine(name, 80)).join(", ")}` : "with any arguments"},
              until <Time at={at(it.lasts_until ?? "")} />
            </span>
            {may("decide") && (
              <Button onClick={() => void stop(it.id)}>
                End
              </Button>
            )}
          </li>
        ))}
      </ul>
      {wrong && (
        <p class="error small" role="alert">
          {wrong}
        </p>
      )}
    </section>
  );
}
