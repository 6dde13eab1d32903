/** A message that a rule holds: what it is, and letting it go on, edited or as it is, or dropping it. */
import { useEffect, useRef, useState } from "preact/hooks";

import type * as hub from "../../api/schema";
import { Button, Field, Notice } from "../../components/parts";
import { attempt, type Load, send, useLoad, withQuery } from "../data";
import { Card, Fact, heldTitle, Moment } from "./Card";
import { Confirm } from "./Confirm";
import { Loaded } from "./Problem";
import { Time } from "./Time";

/** The hub says when its own rules hold something; what proxies hold it has to ask for. */
const PROXIES_MS = 5_000;
const MOST_REASON = 1_000;

export type HeldView = hub.Held;

/** What the hub holds, and what proxies on its machine do where the reader may see them. */
export function useHeld(): Load<hub.HeldList> {
  const load = useLoad<hub.HeldList>("/v1/held?proxies=true", ["held.changed"]);
  const latest = useRef(load);
  latest.current = load;
  const asks = typeof load.data?.proxies === "number";
  useEffect(() => {
    if (!asks) return;
    const timer = setInterval(() => {
      if (!document.hidden && !latest.current.busy) void latest.current.reload();
    }, PROXIES_MS);
    return () => clearInterval(timer);
  }, [asks]);
  return load;
}

export const heldKey = (view: HeldView) => `${view.proxy ?? "hub"}/${view.id}`;

const DIRECTIONS: Record<string, string> = {
  client_to_server: "to the server",
  server_to_client: "to the client",
};

interface Props {
  view: HeldView;
  risk?: hub.Ask["risk"];
  /** Called when it was decided about, or someone else was faster. */
  onDecided: () => unknown;
}

export function Held({ view, risk, onDecided }: Props) {
  const [shown, setShown] = useState<"" | "message" | "editor">("");
  const reason = useRef("");
  const title = heldTitle(view);
  const path = `/v1/held/${view.id}`;
  const decide = async (way: "release" | "drop", body: object, done: string) => {
    const proxy = view.proxy === null || view.proxy === undefined ? {} : { proxy: view.proxy };
    const answer = await attempt(() => send("POST", `${path}/${way}`, { ...body, ...proxy }), done);
    // Also after a refusal: someone else may have decided, or the time is over.
    await onDecided();
    return answer !== undefined;
  };
  return (
    <Card title={title} risk={risk}>
      <p class="held-preview mono">{view.preview}</p>
      <dl class="facts">
        <Fact name="Held by">
          {[view.rule, view.reason].filter(Boolean).join(": ")}
        </Fact>
        {view.who && <Fact name="From">@{view.who}</Fact>}
        <Fact name="On its way">
          {[DIRECTIONS[view.direction] ?? view.direction, view.proxy ? `through proxy ${view.proxy}` : ""].join(" ")}
        </Fact>
        {view.session && (
          <Fact name="Session">
            <span class="mono">{view.session}…</span>
          </Fact>
        )}
        <Fact name="Waiting since">
          <Time at={view.since} />
        </Fact>
        {view.until && (
          <Fact name="Dropped at">
            <Moment at={view.until} left />
          </Fact>
        )}
      </dl>
      {shown && <Message path={path} view={view} edit={shown === "editor"} onRelease={decide} />}
      <div class="line decisions">
        {shown !== "editor" && (
          <Button kind="primary" onClick={() => void decide("release", {}, `Released: ${title}.`)}>
            Release
          </Button>
        )}
        <Confirm
          label="Drop…"
          question={`Drop it? ${title}. Whoever waits for it gets an error with your reason.`}
          verb="Drop"
          onConfirm={() => decide("drop", { reason: reason.current }, `Dropped: ${title}.`)}
        >
          <Reason onChange={(text) => (reason.current = text)} />
        </Confirm>
        <Button
          expanded={shown === "message"}
          onClick={() => setShown(shown === "message" ? "" : "message")}
        >
          {shown === "message" ? "Hide the message" : "Show the message"}
        </Button>
        <Button
          expanded={shown === "editor"}
          onClick={() => setShown(shown === "editor" ? "" : "editor")}
        >
          {shown === "editor" ? "Stop editing" : "Edit"}
        </Button>
      </div>
    </Card>
  );
}

function Reason({ onChange }: { onChange: (text: string) => void }) {
  const [text, setText] = useState("");
  return (
    <Field
      label="Reason"
      value={text}
      most={MOST_REASON}
      onInput={(value) => {
        setText(value);
        onChange(value);
      }}
    />
  );
}

interface MessageProps {
  path: string;
  view: HeldView;
  edit: boolean;
  onRelease: (way: "release", body: object, done: string) => Promise<boolean>;
}

/** The whole message, which is read only when somebody wants to see it. */
function Message({ path, view, edit, onRelease }: MessageProps) {
  const load = useLoad<hub.HeldMessage>(withQuery(path, { proxy: view.proxy }));
  return (
    <Loaded load={load}>
      {({ message }) => {
        const text = JSON.stringify(message, null, 2);
        if (!edit) return <pre class="json" tabIndex={0} aria-label="The message">{text}</pre>;
        return <Editor text={text} title={heldTitle(view)} onRelease={onRelease} />;
      }}
    </Loaded>
  );
}

function Editor({ text, title, onRelease }: Pick<MessageProps, "onRelease"> & {
  text: string;
  title: string;
}) {
  const [edited, setEdited] = useState(text);
  const [busy, setBusy] = useState(false);
  const parsed = parse(edited);
  const release = async () => {
    if (!parsed.message) return;
    setBusy(true);
    await onRelease("release", { message: parsed.message }, `Released with your changes: ${title}.`);
    setBusy(false);
  };
  return (
    <div class="stack">
      <div class="json-editor">
        <Field
          label="The message, as JSON"
          value={edited}
          rows={Math.min(24, text.split("\n").length + 1)}
          error={parsed.error}
          hint="Its id and its method must stay. The rules that checked it before check it again."
          onInput={setEdited}
        />
      </div>
      <div class="line">
        <Button
          kind="primary"
          disabled={busy || !parsed.message || edited === text}
          onClick={() => void release()}
        >
          Release with my changes
        </Button>
        <Button disabled={edited === text} onClick={() => setEdited(text)}>
          Undo my changes
        </Button>
      </div>
    </div>
  );
}

/** What was typed as a message, or what is wrong with it. */
export function parse(text: string, whole = "A message"): { message?: Record<string, unknown>; error?: string } {
  try {
    const value: unknown = JSON.parse(text);
    if (value !== null && typeof value === "object" && !Array.isArray(value)) {
      return { message: value as Record<string, unknown> };
    }
    return { error: `${whole} must be a JSON object.` };
  } catch (error) {
    return { error: `This is not valid JSON: ${(error as Error).message}` };
  }
}

/** Everything that is held, the longest waiting first; nothing where nothing is. */
export function HeldMessages() {
  const load = useHeld();
  const held = load.data?.held ?? [];
  if (load.error && !load.data) return <Notice tone="danger">{load.error}</Notice>;
  if (!held.length) return null;
  return (
    <section class="stack" aria-label="Held messages">
      <h2 class="subtitle">
        Held messages <span class="badge">{held.length}</span>
      </h2>
      {held.map((view) => (
        <Held key={heldKey(view)} view={view} onDecided={load.reload} />
      ))}
    </section>
  );
}
