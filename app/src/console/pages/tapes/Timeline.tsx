/** The messages of a tape in their order, live while it is recorded, and one of them in full. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Choice, Field } from "../../../components/parts";
import { fullTime } from "../../../text/time";
import { Empty } from "../../parts/Empty";
import { Problem } from "../../parts/Problem";
import { Progress } from "../../parts/Progress";
import { count, duration } from "../../parts/Time";
import { place, setQuery } from "../../router";
import { Pair } from "./Pair";
import { pathOf } from "./Tape";
import { type Filter, type Message, type Start, useTimeline } from "./timeline";

const DIRECTIONS = [
  ["", "Both"],
  ["client_to_server", "From the client"],
  ["server_to_client", "From the server"],
] as const;
const NAMES = ["method", "name", "direction", "text", "errors"] as const;
const PAUSE_MS = 300;

const clock = new Intl.DateTimeFormat(undefined, {
  hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3,
});

interface ViewProps {
  tape: hub.TapeRow;
  /** Called when the tape is not recorded any more. */
  onEnded: () => unknown;
}

export function TimelineView({ tape, onEnded }: ViewProps) {
  const { query } = place.value;
  const [follow, setFollow] = useState(true);
  const at = query.get("at");
  const chosen = query.get("message");
  const [start] = useState<Start>(at ? { at } : tape.recording ? "last" : "first");
  const filter: Filter = {
    method: query.get("method") ?? "",
    name: query.get("name") ?? "",
    direction: query.get("direction") ?? "",
    text: query.get("text") ?? "",
    errors: query.has("errors"),
  };
  const load = useTimeline(pathOf(tape, "messages"), filter, start, follow);
  const over = tape.recording && !load.recording && !load.busy && !load.error;
  useEffect(() => {
    if (over) void onEnded();
  }, [over]);
  const filtered = NAMES.some((name) => query.has(name));
  const close = () => {
    const row = document.querySelector<HTMLElement>(".timeline [aria-pressed=true]");
    setQuery({ message: null });
    row?.focus();
  };
  return (
    <>
      <Filters filter={filter} />
      <div class="line">
        <Button disabled={load.busy} onClick={() => void load.show("first")}>
          Beginning
        </Button>
        <Button disabled={load.busy || load.previous === null} onClick={() => void load.earlier()}>
          Earlier
        </Button>
        <Button disabled={load.busy || load.next === null} onClick={() => void load.later()}>
          Later
        </Button>
        <Button disabled={load.busy} onClick={() => void load.show("last")}>
          End
        </Button>
        {load.recording && (
          <Check checked={follow} onChange={setFollow}>
            Follow
          </Check>
        )}
        <span class="soft small" role="status">
          {load.recording && follow && load.atEnd ? "Live. " : ""}
          {`${count(load.rows.length)} shown`}
        </span>
      </div>
      {load.busy && load.searched !== null && (
        <Progress
          label="Searching"
          value={load.searched}
          text={`${Math.round(load.searched * 100)} % of the tape`}
        />
      )}
      <Problem error={load.error} onRetry={() => load.show("first")} />
      <div class={`tape-view${chosen ? " with-pair" : ""}`}>
        {load.rows.length > 0 ? (
          <Rows rows={load.rows} chosen={chosen} stick={follow && load.recording} />
        ) : (
          !load.error && (
            <Empty title={load.busy ? "Loading…" : filtered ? "No message matches." : "No messages yet."}>
              {filtered && !load.busy && (
                <Button onClick={() => setQuery(Object.fromEntries(NAMES.map((it) => [it, null])))}>
                  Show all messages
                </Button>
              )}
            </Empty>
          )
        )}
        {chosen && (
          <Pair
            key={chosen}
            path={pathOf(tape, `messages/${encodeURIComponent(chosen)}`)}
            onClose={close}
          />
        )}
      </div>
    </>
  );
}

/** What is looked for is in the address, so that it can be linked to. */
function Filters({ filter }: { filter: Filter }) {
  const [words, setWords] = useState(filter);
  const timer = useRef<ReturnType<typeof setTimeout> | undefined>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const given = JSON.stringify(filter);
  // The fields wait until somebody wants them: the room is for the messages.
  const [open] = useState(() => Object.values(filter).some(Boolean));
  useEffect(() => setWords(filter), [given]);
  const set = (changed: Partial<Filter>, now = false) => {
    const next = { ...words, ...changed };
    setWords(next);
    clearTimeout(timer.current);
    const apply = () => setQuery({ ...next, errors: next.errors ? "1" : null, at: null, message: null });
    if (now) apply();
    else timer.current = setTimeout(apply, PAUSE_MS);
  };
  return (
    <details open={open}>
      <summary>Filter</summary>
      <div class="filters" role="search" aria-label="Messages">
        <Field label="Method" value={words.method} most={128} placeholder="tools/*" onInput={(method) => set({ method })} />
        <Field label="Tool, prompt or resource" value={words.name} most={128} onInput={(name) => set({ name })} />
        <Field label="Text" value={words.text} most={200} onInput={(text) => set({ text })} />
        <Choice
          label="Direction"
          value={words.direction as (typeof DIRECTIONS)[number][0]}
          options={DIRECTIONS}
          onChange={(direction) => set({ direction }, true)}
        />
        <Check checked={words.errors} onChange={(errors) => set({ errors }, true)}>
          Errors only
        </Check>
      </div>
    </details>
  );
}

interface RowsProps {
  rows: readonly Message[];
  chosen: string | null;
  stick: boolean;
}

/** Show a message in full, or no longer. */
function choose({ offset }: Message): void {
  const chosen = place.value.query.get("message") === String(offset);
  setQuery({ message: chosen ? null : String(offset) });
}

function Rows({ rows, chosen, stick }: RowsProps) {
  const list = useRef<HTMLOListElement>(null);
  const atBottom = useRef(true);
  const last = rows.at(-1)?.offset;
  useEffect(() => {
    const here = list.current;
    if (here && stick && atBottom.current) here.scrollTop = here.scrollHeight;
  }, [last, stick]);
  const move = (event: KeyboardEvent) => {
    if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
    const item = (event.target as Element).closest("li");
    const other = event.key === "ArrowDown" ? item?.nextElementSibling : item?.previousElementSibling;
    if (!other) return;
    event.preventDefault();
    other.querySelector("button")?.focus();
  };
  return (
    <ol
      class="timeline"
      role="list"
      aria-label="Timeline"
      ref={list}
      onKeyDown={move}
      onScroll={({ currentTarget: it }) => {
        atBottom.current = it.scrollHeight - it.scrollTop - it.clientHeight < 40;
      }}
    >
      {rows.map((row) => (
        <li key={row.offset}>
          <Row row={row} pressed={chosen === String(row.offset)} />
        </li>
      ))}
    </ol>
  );
}

/** Drawn once: hundreds of others stay as they are when one more comes. */
function Row({ row, pressed }: { row: Message; pressed: boolean }) {
  return useMemo(() => <Moment row={row} pressed={pressed} />, [row, pressed]);
}

function Moment({ row, pressed }: { row: Message; pressed: boolean }) {
  const fromClient = row.direction === "client_to_server";
  const from = fromClient ? "from the client" : row.direction === "server_to_client" ? "from the server" : "";
  return (
    <button type="button" class={`moment${row.failed ? " bad" : ""}`} aria-pressed={pressed} onClick={() => choose(row)}>
      <span class="seq soft">{row.seq === null ? "" : count(row.seq)}</span>
      <span class="at soft" title={row.time === null ? "" : fullTime(row.time)}>
        {row.time === null ? "" : clock.format(row.time * 1000)}
      </span>
      <span class={`arrow ${fromClient ? "out" : "in"}`}>
        <span aria-hidden="true">{from ? (fromClient ? "→" : "←") : "·"}</span>
        <span class="hidden">{from}</span>
      </span>
      <span class="mono method">
        {row.shape === "too_long" ? "A line that is too long to show" : row.method || row.shape}
        {row.name && ` ${row.name}`}
      </span>
      <span class="took">{row.seconds !== null && duration(row.seconds)}</span>
      <span class="says soft">
        {row.failed && <span class="tag urgent">error</span>}
        {row.verdict && <span class="tag">{row.by ? `${row.verdict} by ${row.by}` : row.verdict}</span>}
        {row.redacted > 0 && <span class="tag">{count(row.redacted)} redacted</span>} {row.summary}
      </span>
    </button>
  );
}
