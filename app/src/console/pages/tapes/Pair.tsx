/** A request and its answer side by side, each in full. */
import { useEffect, useRef } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button } from "../../../components/parts";
import { useLoad } from "../../data";
import { Diff } from "../../parts/Diff";
import { Loaded } from "../../parts/Problem";
import { bytes, duration, Time } from "../../parts/Time";

type Json = Record<string, unknown>;

/** What the API knows of a line; the tape's own format is in docs/reference/tape-format.md. */
interface Line extends Json {
  type?: string;
  seq?: number;
  message?: Json;
  at_server?: Json;
  bytes?: number;
  timing?: { system_time?: number };
  transport?: { type?: string };
  session?: { id?: string };
  verdict?: string;
  by?: string;
}

/** Deeper than this, a text within a text stays one. */
const MOST_NESTED = 4;
/** A text that is an object or a list in JSON is one of those, so that it can be read. */
export function opened(value: unknown, nested = 0): unknown {
  if (Array.isArray(value)) return value.map((it) => opened(it, nested));
  if (value !== null && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([name, it]) => [name, opened(it, nested)]));
  }
  if (typeof value !== "string" || nested >= MOST_NESTED || !/^\s*[[{]/.test(value)) return value;
  try {
    return opened(JSON.parse(value), nested + 1);
  } catch {
    return value;
  }
}

export const pretty = (value: unknown) => JSON.stringify(value, null, 2) ?? "";

const REDACTED = "[redacted:";

const isRequest = (line: Line) => typeof line.message?.["method"] === "string";

export function Pair({ path, onClose }: { path: string; onClose: () => void }) {
  const load = useLoad<hub.TapePair>(path);
  const section = useRef<HTMLElement>(null);
  useEffect(() => {
    // Where the message is below the list, it is brought into view.
    section.current?.scrollIntoView({ block: "nearest" });
  }, [load.data]);
  return (
    <section
      class="pair section"
      aria-label="Message"
      ref={section}
      onKeyDown={(event) => {
        if (event.key === "Escape") onClose();
      }}
    >
      <h2 class="hidden">Message</h2>
      <span class="pair-close">
        <Button kind="plain" icon="close" label="Close" onClick={onClose} />
      </span>
      <Loaded load={load}>
        {({ line, other, outcome, seconds, complete }) => {
          const [one, two] = [line as Line, other as Line | null];
          const request = isRequest(one) ? one : two;
          const answer = isRequest(one) ? two : one;
          const notice = isRequest(one) && !("id" in (one.message ?? {}));
          return (
            <>
              {seconds !== null && (
                <p class="soft">
                  {outcome === "result" ? "Answered" : outcome === "tool_error" ? "The tool failed" : "Failed"} after{" "}
                  {duration(seconds)}
                </p>
              )}
              {!complete && (
                <p class="soft">
                  The other half is too far away to be shown here. Download the tape to find it.
                </p>
              )}
              <div class="halves">
                {request && <Half title={notice ? "Notification" : "Request"} line={request} />}
                {answer && <Half title="Answer" line={answer} />}
                {!answer && !notice && complete && <p class="soft">No answer is on the tape.</p>}
              </div>
            </>
          );
        }}
      </Loaded>
    </section>
  );
}

function Half({ title, line }: { title: string; line: Line }) {
  if (line.type === "too_long") {
    return <p class="soft">{`${title}: ${bytes(line.bytes ?? 0)}, too long to show. Download the tape.`}</p>;
  }
  const message = pretty(line.message);
  const shown = pretty(opened(line.message));
  const session = line.session?.id;
  return (
    <div class="stack half">
      <h3 class="small">
        {title} <span class="soft">{`#${line.seq} · ${line.transport?.type ?? "unknown"} · `}</span>
        <Time at={line.timing?.system_time} />
      </h3>
      {session && <p class="small soft">Session {session.startsWith(REDACTED) ? "redacted" : <span class="mono">{session}</span>}</p>}
      <pre class="json" tabIndex={0} aria-label={title}>
        {shown}
      </pre>
      {shown !== message && <p class="small soft">Text that is JSON is shown as JSON. The raw line has it as it was sent.</p>}
      {shown.includes(REDACTED) && (
        <p class="small soft">
          <code>{`${REDACTED}…]`}</code> stands for a secret that was not recorded. The same secret has the same letters.
        </p>
      )}
      {line.at_server && (
        <>
          <p class="small">
            {line.by ? `Changed by ${line.by}. ` : ""}
            {title === "Answer" ? "From what the server sent:" : "To what the server got:"}
          </p>
          <Diff
            label={title}
            before={title === "Answer" ? pretty(line.at_server) : message}
            after={title === "Answer" ? message : pretty(line.at_server)}
          />
        </>
      )}
      <details class="small">
        <summary>Raw line</summary>
        <pre class="json" tabIndex={0} aria-label={`${title}, raw`}>
          {pretty(line)}
        </pre>
      </details>
    </div>
  );
}
