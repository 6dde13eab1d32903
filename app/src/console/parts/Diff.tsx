/** What changed between two texts or two objects, for people to read before they decide. */
import "../design/parts.css";

import { isAlike, lines, type Piece, readable, visible, words } from "./compare";

interface Props {
  /** What it is that changed. */
  label: string;
  before: string;
  after: string;
  /** Prose is compared word by word, everything else line by line. */
  by?: "words" | "lines";
}

export function Diff({ label, before, after, by = "lines" }: Props) {
  if (by === "words") {
    const pieces = words(before, after);
    const shown = isAlike(pieces)
      ? pieces
      : [{ change: "gone" as const, text: visible(before) }, { change: "new" as const, text: visible(after) }];
    return (
      <p class={`diff prose${shown === pieces ? "" : " apart"}`} dir="auto" role="group" aria-label={`Changes of ${label}`}>
        <Pieces pieces={shown} />
      </p>
    );
  }
  return (
    <ol class="diff" role="list" tabIndex={0} aria-label={`Changes of ${label}`}>
      {lines(before, after).map((line, at) =>
        "skipped" in line ? (
          <li key={at} class="skipped">
            {line.skipped === 1 ? "1 unchanged line" : `${line.skipped} unchanged lines`}
          </li>
        ) : (
          <li key={at} class={line.change}>
            <span class="sign" aria-hidden="true">
              {line.change === "gone" ? "−" : line.change === "new" ? "+" : " "}
            </span>
            {line.change === "same" ? (
              <span>{line.pieces.map((it) => it.text).join("")}</span>
            ) : (
              <Side change={line.change} pieces={line.pieces} />
            )}
          </li>
        ),
      )}
    </ol>
  );
}

/** One line that is gone or new; the words that make the difference stand out. */
function Side({ change, pieces }: { change: "gone" | "new"; pieces: readonly Piece[] }) {
  const Line = change === "gone" ? "del" : "ins";
  const partly = pieces.some((it) => it.change === "same");
  return (
    <Line>
      <span class="hidden">{change === "gone" ? "Removed: " : "Added: "}</span>
      {pieces.map((it, at) =>
        partly && it.change !== "same" ? <mark key={at}>{it.text}</mark> : <span key={at}>{it.text}</span>,
      )}
    </Line>
  );
}

function Pieces({ pieces }: { pieces: readonly Piece[] }) {
  return (
    <>
      {pieces.map((it, at) => {
        if (it.change === "same") return <span key={at}>{it.text}</span>;
        const gone = it.change === "gone";
        const Part = gone ? "del" : "ins";
        return (
          <Part key={at}>
            <span class="hidden">{gone ? "[removed: " : "[added: "}</span>
            {it.text}
            <span class="hidden">]</span>
          </Part>
        );
      })}
    </>
  );
}

type Members = Record<string, unknown>;

/** Two objects, member by member: texts by words, the rest as lines of JSON. */
export function ObjectDiff({ before, after }: { before: Members | null; after: Members }) {
  const names = [...new Set([...Object.keys(before ?? {}), ...Object.keys(after)])];
  const text = (value: unknown) => (value === undefined ? "" : readable(value));
  const changed = names.filter((name) => text(before?.[name]) !== text(after[name]));
  const same = names.filter((name) => !changed.includes(name));
  return (
    <div class="stack">
      {changed.map((name) => {
        const [one, other] = [before?.[name], after[name]];
        const prose = typeof (one ?? other) === "string" && typeof (other ?? one) === "string";
        return (
          <div key={name}>
            <p class="small soft mono">{name}</p>
            {prose ? (
              <Diff label={name} by="words" before={String(one ?? "")} after={String(other ?? "")} />
            ) : (
              <Diff label={name} before={text(one)} after={text(other)} />
            )}
          </div>
        );
      })}
      {same.length > 0 && (
        <p class="small soft">
          Unchanged: <span class="mono">{same.join(", ")}</span>
        </p>
      )}
    </div>
  );
}
