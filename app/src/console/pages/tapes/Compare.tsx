/** Two tapes side by side: which calls got another answer, and which stand on one of them only. */
import { useMemo, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Choice } from "../../../components/parts";
import { useLoad } from "../../data";
import { Diff } from "../../parts/Diff";
import { Empty } from "../../parts/Empty";
import { Loaded, Problem } from "../../parts/Problem";
import { counted, duration } from "../../parts/Time";
import { place, setQuery } from "../../router";
import { type Call, type Difference, type Pair, pairs, titleOf } from "./numbers";
import { Counting, useCalls } from "./Numbers";
import { pretty } from "./Pair";
import { pathOf } from "./Tape";
import { useTapes } from "./Tapes";

const PAGE = 100;
const WORDS: Record<Difference, string> = {
  same: "the same",
  arguments: "different arguments",
  outcome: "different outcome",
  answer: "different answer",
  only_a: "only in this tape",
  only_b: "only in the other tape",
};

const keyOf = ({ place, name }: hub.TapeRow) => `${place}/${name}`;

export function Compare({ tape }: { tape: hub.TapeRow }) {
  const list = useTapes();
  const others = (list.items ?? []).filter((it) => keyOf(it) !== keyOf(tape));
  const chosen = place.value.query.get("with") ?? "";
  const other = others.find((it) => keyOf(it) === chosen) ?? null;
  return (
    <>
      <Problem error={list.error} onRetry={list.reload} />
      {list.items !== null && others.length === 0 && (
        <Empty title="There is no other tape to compare with.">
          Record the same session again, perhaps with another version of the server.
        </Empty>
      )}
      {others.length > 0 && (
        <div class="line">
          <div class="grow">
            <Choice
              label="Compare with"
              value={other ? chosen : ""}
              options={[["", "Choose a tape"], ...others.map((it) => [keyOf(it), it.name] as const)]}
              onChange={(value) => setQuery({ with: value })}
            />
          </div>
          {list.hasMore && (
            <Button disabled={list.busy} onClick={() => void list.more()}>
              More tapes
            </Button>
          )}
        </div>
      )}
      {other && <Compared key={chosen} a={tape} b={other} />}
    </>
  );
}

function Compared({ a, b }: { a: hub.TapeRow; b: hub.TapeRow }) {
  // Secrets that were replaced with another key differ although they may be the same.
  const by = a.redaction_key === b.redaction_key ? "exact" : "kinds";
  const [one, two] = [useCalls(a, by), useCalls(b, by)];
  const [all, setAll] = useState(false);
  const [shown, setShown] = useState(PAGE);
  const ready = one?.ended && two?.ended;
  const found = useMemo(() => (ready ? pairs(one.calls.list, two.calls.list) : []), [ready]);
  const wanted = all ? found : found.filter((it) => it.difference !== "same");
  const error = one?.error || two?.error || "";
  return (
    <>
      <Counting label={`Reading ${a.name}`} counted={one} />
      <Counting label={`Reading ${b.name}`} counted={two} />
      <Problem error={error} />
      {ready && !error && (
        <>
          <p>
            {counted(found.length, "call")}:{" "}
            {(Object.keys(WORDS) as Difference[])
              .map((it) => [it, found.filter((pair) => pair.difference === it).length] as const)
              .filter(([, number]) => number)
              .map(([it, number]) => `${number.toLocaleString()} ${WORDS[it]}`)
              .join(" · ") || "none"}
          </p>
          <Check checked={all} onChange={setAll}>
            Show equal calls too
          </Check>
          {found.length > 0 && wanted.length === 0 && <Empty title="Every call is the same on both tapes." />}
          <ol class="pairs" role="list" aria-label="Calls">
            {wanted.slice(0, shown).map((pair) => (
              <li key={`${pair.a?.seq ?? ""}/${pair.b?.seq ?? ""}`}>
                <PairRow pair={pair} a={a} b={b} />
              </li>
            ))}
          </ol>
          {wanted.length > shown && (
            <div class="line">
              <Button onClick={() => setShown(shown + PAGE)}>Show more</Button>
              <span class="soft small">{`${shown} of ${wanted.length.toLocaleString()} shown`}</span>
            </div>
          )}
        </>
      )}
    </>
  );
}

function PairRow({ pair, a, b }: { pair: Pair; a: hub.TapeRow; b: hub.TapeRow }) {
  const [open, setOpen] = useState(false);
  const call = (pair.a ?? pair.b)!;
  const numbers = [pair.a, pair.b].map((it) => (it ? `#${it.seq}` : "–")).join(" / ");
  return (
    <>
      <button type="button" class="moment" aria-expanded={open} onClick={() => setOpen(!open)}>
        <span class="seq soft">{numbers}</span>
        <span class="what">
          <span class="mono method">{titleOf(call)}</span>
          <span class={`tag${pair.difference === "same" ? "" : " changed"}`}>{WORDS[pair.difference]}</span>
          <span class="took">{[pair.a, pair.b].map(took).join(" / ")}</span>
        </span>
      </button>
      {open && <Both pair={pair} a={a} b={b} />}
    </>
  );
}

const took = (call: Call | null) =>
  call === null ? "–" : call.seconds === null ? call.outcome : duration(call.seconds);

function Both({ pair, a, b }: { pair: Pair; a: hub.TapeRow; b: hub.TapeRow }) {
  const of = (tape: hub.TapeRow, call: Call | null) => call && pathOf(tape, `messages/${call.offset}`);
  const one = useLoad<hub.TapePair>(of(a, pair.a));
  const two = useLoad<hub.TapePair>(of(b, pair.b));
  const there = (load: typeof one, call: Call | null) => call === null || load.data !== null;
  const [loadA, loadB] = [one, two];
  if (!there(loadA, pair.a) || !there(loadB, pair.b)) {
    return <Loaded load={there(loadA, pair.a) ? loadB : loadA}>{() => null}</Loaded>;
  }
  return (
    <div class="section">
      {(["line", "other"] as const).map((half) => {
        const [before, after] = [said(loadA.data, half), said(loadB.data, half)];
        const title = half === "line" ? "Request" : "Answer";
        return (
          <div key={half} class="stack">
            <h3 class="small">{title}</h3>
            {before === after ? (
              <pre class="json" tabIndex={0} aria-label={`${title}, the same`}>
                {before}
              </pre>
            ) : (
              <Diff label={title} before={before} after={after} />
            )}
          </div>
        );
      })}
    </div>
  );
}

/** What is compared of a message: ids and tokens of progress are others each time. */
function said(pair: hub.TapePair | null, half: "line" | "other"): string {
  const line = pair?.[half] as { message?: Record<string, unknown>; type?: string } | null | undefined;
  if (!line) return "";
  const { jsonrpc: _, id: __, ...rest } = line.message ?? {};
  return pretty(line.type === "too_long" ? line : rest);
}
