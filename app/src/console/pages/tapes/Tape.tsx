/** `/tapes/NAME`: one tape, as a timeline, in numbers, or beside another one. */
import type * as hub from "../../../api/schema";
import { Notice } from "../../../components/parts";
import { useLoad, withQuery } from "../../data";
import type { PageProps } from "../../pages";
import { Copy } from "../../parts/Copy";
import { Empty } from "../../parts/Empty";
import { PageHead } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { bytes, counted, duration, Time } from "../../parts/Time";
import { place } from "../../router";
import { Compare } from "./Compare";
import { Numbers } from "./Numbers";
import { quoted } from "./numbers";
import { lengthOf, linkTo, seconds, State } from "./Tapes";
import { TimelineView } from "./Timeline";

import "../../design/tapes.css";

const NOT_FOUND = 404;
const VIEWS = [
  ["", "Timeline"],
  ["numbers", "Numbers"],
  ["compare", "Compare"],
  ["use", "Use it"],
] as const;

/** Where something of a tape is at the hub. */
export function pathOf({ name, place }: Pick<hub.TapeRow, "name" | "place">, what: string): string {
  return withQuery(`/v1/tapes/${encodeURIComponent(name)}/${what}`, { place });
}

export function Tape({ params }: PageProps) {
  const { query } = place.value;
  const which = { name: params["name"] ?? "", place: query.get("place") ?? "" };
  const load = useLoad<hub.TapeRow>(pathOf(which, "about"));
  const view = query.get("view") ?? "";
  return (
    <>
      <PageHead
        title={
          <>
            <a href="/tapes">Tapes</a> / <span class="mono">{which.name}</span>
          </>
        }
        lead={load.data && <Facts tape={load.data} />}
      >
        {load.data && <State tape={load.data} />}
        {load.data && <Views tape={load.data} view={view} />}
        {load.data && (
          <a class="button" href={pathOf(which, "file")} download={which.name}>
            Download
          </a>
        )}
      </PageHead>
      {load.status === NOT_FOUND ? <Missing /> : <Loaded load={load}>
        {(tape) => (
          <>
            {!tape.redaction_key && (
              <Notice tone="warning">
                This tape was recorded without redaction: there may be secrets on it. To make a copy
                without them, run <code>folkmoot tape redact</code>.
              </Notice>
            )}
            {view === "numbers" && <Numbers tape={tape} />}
            {view === "compare" && <Compare tape={tape} />}
            {view === "use" && <Use tape={tape} />}
            {!VIEWS.some(([name]) => name && name === view) && <TimelineView tape={tape} onEnded={load.reload} />}
          </>
        )}
      </Loaded>}
    </>
  );
}

function Facts({ tape }: { tape: hub.TapeRow }) {
  return (
    <span class="small">
      <Time at={seconds(tape.started)} /> · {duration(lengthOf(tape))}
      {tape.messages !== null && ` · ${counted(tape.messages, "message")}`} ·{" "}
      {bytes(tape.bytes)} · <span class="mono">{tape.client}</span> →{" "}
      <span class="mono">{tape.server}</span>
    </span>
  );
}

function Views({ tape, view }: { tape: hub.TapeRow; view: string }) {
  return (
    <nav aria-label="Views" class="line">
      {VIEWS.map(([name, title]) => (
        <a
          key={name}
          class="button"
          href={withQuery(linkTo(tape), { view: name })}
          aria-current={view === name ? "page" : undefined}
        >
          {title}
        </a>
      ))}
    </nav>
  );
}

function Missing() {
  return (
    <Empty title="There is no such tape.">
      It may have been removed, or it is one that can be seen only on the hub's machine.
    </Empty>
  );
}

/** What a tape is good for, as commands for the hub's machine. */
function Use({ tape }: { tape: hub.TapeRow }) {
  const path = quoted(tape.path);
  return (
    <section class="section" aria-label="Use it">
      <p>On the hub's machine, or with a downloaded copy:</p>
      <Copy label="Serve this tape: clients talk to it as to the server" text={`folkmoot tape serve ${path}`} />
      <Copy label="Play its client's side against a live server" text={`folkmoot tape play ${path} -- COMMAND`} />
      <Copy label="Make a transcript for a bug report" text={`folkmoot tape export ${path} --format markdown`} />
    </section>
  );
}
