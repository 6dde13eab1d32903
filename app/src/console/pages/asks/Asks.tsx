/** Everything that waits for the reader's decision, the riskiest first; and what they decided. */
import { useEffect, useRef, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button } from "../../../components/parts";
import { usePages, withQuery } from "../../data";
import { Empty } from "../../parts/Empty";
import { Held } from "../../parts/Held";
import { PageHead } from "../../parts/PageHead";
import { Problem } from "../../parts/Problem";
import { Pager } from "../../parts/Table";
import { count, counted } from "../../parts/Time";
import { place, setQuery } from "../../router";
import { operates } from "../../session";
import { Review } from "../servers/Changed";
import { Decided } from "./Decided";
import { AskedCall } from "./AskedCall";
import { AskedProposal } from "./AskedProposal";
import { ASK_EVENTS, keeping, KINDS } from "./asks";

import "../../design/servers.css";

/** Proxies on the hub's machine tell nobody what they hold: the hub has to ask them. */
const PROXIES_MS = 10_000;
const PAGE = 50;

export function Asks() {
  const decided = place.value.query.get("show") === "decided";
  return (
    <>
      <PageHead title="Decisions" lead="Decisions waiting for you, and how past ones turned out." />
      <div class="line" role="group" aria-label="Which">
        <Button pressed={!decided} onClick={() => setQuery({ show: null })}>
          Waiting
        </Button>
        <Button pressed={decided} onClick={() => setQuery({ show: "decided", kind: null })}>
          Decided
        </Button>
      </div>
      {decided ? <Decided /> : <Waiting />}
    </>
  );
}

function Waiting() {
  const kind = place.value.query.get("kind") ?? "";
  const [counts, setCounts] = useState<hub.Counts | null>(null);
  const [complete, setComplete] = useState(true);
  const list = usePages<hub.Asks, hub.Ask>(withQuery("/v1/asks", { kind, limit: PAGE }), {
    items: (page) => {
      setCounts(page.counts);
      setComplete(page.complete);
      return page.asks;
    },
    next: (page) => page.next_cursor,
    // What is known of a tool, and so its risk, comes once its server has listed it.
    on: [...ASK_EVENTS, "tools.changed"],
  });
  const [shown, touch] = useKept(list.items);
  useEnds(list.items, list.reload);
  const total = counts ? KINDS.reduce((sum, it) => sum + counts[it.name], 0) : 0;
  return (
    <>
      {counts && several(counts) && <Kinds kind={kind} counts={counts} total={total} />}
      <p class="hidden" role="status">
        {counts && `${counted(total, "decision waits", "decisions wait")} for you.`}
      </p>
      <Problem error={list.error} onRetry={list.reload} />
      {list.items === null && !list.error && (
        <p class="soft" aria-busy="true">
          Loading…
        </p>
      )}
      {shown?.length === 0 && (
        <Empty title="Nothing to decide.">
          <p>
            {operates.value
              ? "Proposals in your rooms, what programs ask you, held messages and changed tools appear here."
              : "Proposals in your rooms that you can decide on, and what programs ask you, appear here."}{" "}
            <a href="/decisions?show=decided">See past decisions</a>
          </p>
        </Empty>
      )}
      <h2 class="hidden">Waiting for you</h2>
      <ul class="asks" role="list" aria-label="Waiting for you">
        {shown?.map((it) => (
          <li key={it.id} onClickCapture={it.proposal || it.call ? () => touch(it) : undefined}>
            {it.proposal && <AskedProposal ask={it} proposal={it.proposal} />}
            {it.held && <Held view={it.held} risk={it.risk} onDecided={list.reload} />}
            {it.call && <AskedCall risk={it.risk} call={it.call} onDecided={list.reload} />}
            {it.tool && <Review tool={it.tool} risk={it.risk} onDone={list.reload} />}
          </li>
        ))}
      </ul>
      {!complete && <p class="small soft">There are more than can be listed. These end soonest.</p>}
      <Pager list={list} />
    </>
  );
}

const OF_ALL: ReadonlySet<string> = new Set(["proposal", "call"]);
const several = (counts: hub.Counts) =>
  operates.value ? KINDS.some((it) => counts[it.name]) : Boolean(counts.proposal && counts.call);

function Kinds({ kind, counts, total }: { kind: string; counts: hub.Counts; total: number }) {
  return (
    <div class="line" role="group" aria-label="Only of one kind">
      <Button kind="plain" pressed={!kind} onClick={() => setQuery({ kind: null })}>
        All ({count(total)})
      </Button>
      {KINDS.filter(({ name }) => operates.value || OF_ALL.has(name)).map(({ name, label }) => (
        <Button key={name} kind="plain" pressed={kind === name} onClick={() => setQuery({ kind: name })}>
          {label} ({count(counts[name])})
        </Button>
      ))}
    </div>
  );
}

/** What is listed, with what the reader began to decide on in its place, so that they see what came of it. */
function useKept(items: readonly hub.Ask[] | null) {
  const touched = useRef(new Set<string>());
  const last = useRef<readonly hub.Ask[]>([]);
  const shown = items && keeping(last.current, items, touched.current);
  if (shown) last.current = shown;
  return [shown, (it: hub.Ask) => void touched.current.add(it.id)] as const;
}

/** Read the list again when the first of it ends, and from time to time what only proxies know. */
function useEnds(items: readonly hub.Ask[] | null, reload: () => Promise<void>): void {
  const latest = useRef(reload);
  latest.current = reload;
  const ends = Math.min(...(items ?? []).map((it) => (it.until ? Date.parse(it.until) : Infinity)));
  useEffect(() => {
    if (ends === Infinity) return;
    const wait = Math.min(Math.max(ends - Date.now(), 0) + 1_000, 2 ** 31 - 1);
    const timer = setTimeout(() => void latest.current(), wait);
    return () => clearTimeout(timer);
  }, [ends]);
  const asks = operates.value;
  useEffect(() => {
    if (!asks) return;
    const timer = setInterval(() => {
      if (!document.hidden) void latest.current();
    }, PROXIES_MS);
    return () => clearInterval(timer);
  }, [asks]);
}
