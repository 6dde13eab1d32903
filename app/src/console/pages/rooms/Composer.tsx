/** Writing to a room, with names completed. */
import { useLayoutEffect, useId, useRef, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type { AwayMember } from "../../../api/schema";
import { Button, Check } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import type { Json } from "../../parts/schema";
import { counted } from "../../parts/Time";
import { allows } from "./capabilities";
import { chatOf, type Envelope } from "./envelope";
import type { RoomStream } from "./stream";

const METHOD = "notifications/chat/message";
const KIND = `mcp.notification.${METHOD}`;
const MOST_NAMES = 8;
const MOST_MENTIONED = 64;

interface Props {
  stream: RoomStream;
  /** Members who are not here: they can be mentioned too. */
  away: readonly AwayMember[];
  about: About | null;
  onDone: () => void;
}

/** What is written about: a message that is answered, or one's own that is changed. */
export interface About {
  message: Envelope;
  how: "reply" | "edit";
}

export const sayIn = (stream: RoomStream, params: { [name: string]: Json }) =>
  stream.post({ kind: KIND, payload: { jsonrpc: "2.0", method: METHOD, params } });

export function Composer({ stream, away, about, onDone }: Props) {
  const [text, setText] = useState("");
  const [markdown, setMarkdown] = useState(true);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [typed, setTyped] = useState<string | null>(null);
  const [chosen, setChosen] = useState(0);
  const field = useRef<HTMLTextAreaElement>(null);
  const id = useId();
  /** What was being written when an edit began. */
  const draft = useRef("");
  const [answers, edits] = [about?.how === "reply" && about.message, about?.how === "edit" && about.message];
  useLayoutEffect(() => {
    if (about) field.current?.focus();
    if (!edits) return undefined;
    const said = chatOf(edits);
    draft.current = text;
    setText(said?.text ?? "");
    setMarkdown(said?.markdown ?? true);
    return () => setText(draft.current);
  }, [about]);

  const you = stream.you.value;
  if (!you) return null;
  if (you.paused !== undefined) {
    return <p class="composer notice warning">You're paused: you can answer requests, but not write.</p>;
  }
  if (!allows(stream.capabilities, KIND) && !allows(stream.capabilities, "chat.message")) {
    return <p class="composer notice">This room is read-only for you.</p>;
  }
  const known = [...stream.present.value.keys(), ...away.map((it) => it.id)].filter((name) => name !== you.id);
  const names =
    typed === null
      ? []
      : known.filter((name) => name.startsWith(typed.toLowerCase())).sort().slice(0, MOST_NAMES);

  const look = (element: HTMLTextAreaElement) => {
    const before = element.value.slice(0, element.selectionStart);
    setTyped(/(?:^|[^\w@])@([a-z0-9_-]*)$/i.exec(before)?.[1] ?? null);
    setChosen(0);
  };
  const complete = (name: string) => {
    const element = field.current;
    if (!element || typed === null) return;
    const end = element.selectionStart;
    const made = `${text.slice(0, end - typed.length)}${name} ${text.slice(end)}`;
    setText(made);
    setTyped(null);
    const place = end - typed.length + name.length + 1;
    // Once it is drawn.
    setTimeout(() => {
      element.focus();
      element.setSelectionRange(place, place);
    });
  };
  const send = async () => {
    if (busy || !text.trim()) return;
    setBusy(true);
    setError("");
    const said = [...text.matchAll(/(?:^|[^\w@])@([a-z][a-z0-9_-]{1,63})/gi)].map((found) => found[1]!.toLowerCase());
    const mentions = [...new Set(said)].filter((name) => known.includes(name)).slice(0, MOST_MENTIONED);
    const thread = !edits && ((answers && chatOf(answers)?.thread) || stream.filter.value.thread);
    const params = {
      text,
      format: markdown ? "markdown" : "plain",
      ...(edits ? { replaces: edits.id } : {}),
      ...(answers ? { reply_to: answers.id } : {}),
      ...(thread ? { thread_id: thread } : {}),
      ...(mentions.length ? { mentions } : {}),
    };
    try {
      if (!edits) stream.following = true;
      await sayIn(stream, params);
      setText("");
      setTyped(null);
      onDone();
      if (!edits && !stream.atEnd.value) await stream.toEnd();
    } catch (failure) {
      setError(sentence(failure));
    } finally {
      setBusy(false);
      field.current?.focus();
    }
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (names.length && typed !== null) {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step) setChosen((chosen + step + names.length) % names.length);
      else if (event.key === "Tab" || event.key === "Enter") complete(names[chosen]!);
      else if (event.key === "Escape") setTyped(null);
      else return;
      event.preventDefault();
    } else if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      void send();
    } else if (event.key === "Escape" && about) onDone();
  };
  const waiting = busy && stream.state.value !== "open";
  return (
    <div class="composer">
      {answers && (
        <p class="small line">
          <span class="grow">{`In reply to ${answers.from}: ${oneLine(chatOf(answers)?.text ?? "", 80)}`}</span>
          <Button kind="plain" onClick={onDone}>
            Not a reply
          </Button>
        </p>
      )}
      {edits && (
        <p class="small line">
          <span class="grow">{`Editing message #${edits.seq}`}</span>
          <Button kind="plain" onClick={onDone}>
            Cancel
          </Button>
        </p>
      )}
      {stream.filter.value.thread && <p class="small soft">{`In the thread ${oneLine(stream.filter.value.thread, 60)}`}</p>}
      <div class="composer-field">
        <label class="hidden" for={id}>
          Message to the room
        </label>
        <textarea
          id={id}
          class="input"
          rows={2}
          dir="auto"
          placeholder="Write to the room; @ mentions someone"
          value={text}
          readOnly={busy}
          ref={field}
          aria-autocomplete="list"
          aria-controls={names.length ? `${id}-names` : undefined}
          aria-activedescendant={names.length ? `${id}-${chosen}` : undefined}
          onInput={(event) => {
            setText(event.currentTarget.value);
            look(event.currentTarget);
          }}
          onBlur={() => setTimeout(() => setTyped(null), 200)}
          onKeyDown={onKeyDown}
        />
        <p class="hidden" role="status">
          {names.length ? `${counted(names.length, "name")}. Choose with the arrow keys, take with Tab.` : ""}
        </p>
        <ul id={`${id}-names`} class="names" role="listbox" aria-label="People to mention" hidden={!names.length}>
          {names.map((name, place) => (
            <li
              key={name}
              id={`${id}-${place}`}
              role="option"
              aria-selected={place === chosen}
              onMouseDown={(event) => {
                event.preventDefault();
                complete(name);
              }}
            >
              @{name}
              {!stream.present.value.has(name) && <span class="small soft"> away</span>}
            </li>
          ))}
        </ul>
      </div>
      <div class="line">
        <Button kind="primary" disabled={busy || !text.trim()} onClick={() => void send()}>
          {edits ? "Save" : "Send"}
        </Button>
        <Check checked={markdown} onChange={setMarkdown}>
          Markdown
        </Check>
        {waiting && <span class="small soft">Sends when the connection is back.</span>}
        {error && (
          <span class="small error" role="alert">
            {error}
          </span>
        )}
      </div>
    </div>
  );
}
