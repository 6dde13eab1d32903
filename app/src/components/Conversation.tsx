/** One conversation: both sides, by day, with what to do about it. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Message } from "../api/types";
import type { Conversation as Shown, Mailbox, Shown as ShownMessage } from "../mail/mailbox";
import { withLinks } from "../text/links";
import { bodyText, displayName, oneLine } from "../text/names";
import { clock, dayTitle, fullTime, sameDay } from "../text/time";
import { Composer } from "./Composer";
import { Confirm } from "./Dialog";
import { Button } from "./parts";
import { PeerKey } from "./PeerKey";
import { ProtectionMark } from "./Protection";

const DELETED = "[deleted]";
/** Pixels from an end of the messages that count as being there. */
const NEAR = 80;
/** Characters of a body that are shown at once. */
const LONG = 2500;
/** Messages that are drawn at the same time, and by how many that moves. */
const DRAWN = 120;
const STEP = 40;

export function Conversation({ mailbox }: { mailbox: Mailbox }) {
  const shown = mailbox.conversation.value;
  if (!shown) {
    return (
      <section class="conversation" aria-label="Conversation" aria-busy="true">
        <p class="loading soft">Loading…</p>
      </section>
    );
  }
  return <Open key={shown.thread.id} mailbox={mailbox} shown={shown} />;
}

function Open({ mailbox, shown }: { mailbox: Mailbox; shown: Shown }) {
  const { thread, messages, earlier } = shown;
  const handle = thread.other_handle;
  const [answers, setAnswers] = useState<Message | null>(null);
  const [keyOpen, setKeyOpen] = useState(false);
  const [below, setBelow] = useState(false);
  /** The last message that is drawn; null for the newest there is. */
  const [until, setUntil] = useState<string | null>(null);
  const scroll = useRef<HTMLDivElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const text = useRef<HTMLTextAreaElement | null>(null);
  const last = useRef("");
  const atEnd = useRef(true);
  const toEnd = useRef(false);
  const fetching = useRef(false);
  const found = until === null ? -1 : messages.findIndex((each) => each.message.id === until);
  const end = found < 0 ? messages.length : found + 1;
  const begin = Math.max(0, end - DRAWN);
  const drawn = messages.slice(begin, end);
  // What the reader looks at, before anything above it changes.
  const anchor = firstVisible(scroll.current);

  useLayoutEffect(() => heading.current?.focus(), []);

  useLayoutEffect(() => {
    const box = scroll.current;
    if (!box) return;
    const newest = messages.at(-1)?.message.id ?? "";
    const isNew = newest !== last.current;
    const follows = atEnd.current || !last.current || Boolean(messages.at(-1)?.outgoing);
    last.current = newest;
    if ((isNew && follows) || toEnd.current) {
      // Where the end is not drawn yet, it is in the next round.
      toEnd.current = until !== null;
      if (until !== null) setUntil(null);
      box.scrollTop = box.scrollHeight;
    } else {
      if (isNew) setBelow(true);
      const still = anchor && document.getElementById(anchor.id);
      if (still) box.scrollTop += still.getBoundingClientRect().top - anchor.top;
    }
    atEnd.current = until === null && isAtEnd(box);
  }, [messages, until]);

  const onScroll = () => {
    const box = scroll.current;
    if (!box) return;
    const down = isAtEnd(box);
    atEnd.current = down && end === messages.length;
    if (atEnd.current) setBelow(false);
    if (box.scrollTop < 4 * NEAR && begin > 0) setUntil(messages[end - 1 - STEP]!.message.id);
    else if (down && end < messages.length) {
      setUntil(messages[end - 1 + STEP]?.message.id ?? null);
    } else if (box.scrollTop < 4 * NEAR && earlier && !fetching.current) void fetchEarlier();
  };
  const goToEnd = () => {
    toEnd.current = until !== null;
    setUntil(null);
    setBelow(false);
    if (scroll.current) scroll.current.scrollTop = scroll.current.scrollHeight;
  };
  const fetchEarlier = async () => {
    fetching.current = true;
    await mailbox.attempt(() => mailbox.fetchEarlier());
    fetching.current = false;
  };
  const answer = (message: Message | null) => {
    setAnswers(message);
    text.current?.focus();
  };
  const name = displayName(thread.other_display_name, handle);
  const present = handle !== DELETED;
  return (
    <section class="conversation" aria-label={`Conversation with ${name}`}>
      <header class="conversation-head">
        <span class="only-narrow">
          <Button
            kind="plain"
            icon="back"
            label="Back to the list"
            onClick={() => mailbox.go({ name: "inbox" })}
          />
        </span>
        <div class="grow">
          <h2 class="title" tabIndex={-1} ref={heading}>
            <bdi>{name}</bdi>
          </h2>
          <p class="small soft">{present ? `@${handle}` : "This account was deleted"}</p>
        </div>
        <div class="line actions">
          {present && (
            <Button
              kind="plain"
              icon="lock"
              label="Encryption keys"
              expanded={keyOpen}
              onClick={() => setKeyOpen(!keyOpen)}
            />
          )}
          <StateButton mailbox={mailbox} shown={shown} state="starred" />
          <StateButton mailbox={mailbox} shown={shown} state="muted" />
          <StateButton mailbox={mailbox} shown={shown} state="archived" />
          <Confirm
            icon="trash"
            iconOnly
            label="Delete"
            question="Delete this conversation from your mailbox?"
            onConfirm={() => void mailbox.deleteThread(thread)}
          />
        </div>
      </header>
      {present && <PeerKey mailbox={mailbox} handle={handle} open={keyOpen} />}
      <div
        class="scroll messages"
        ref={scroll}
        onScroll={onScroll}
        tabIndex={0}
        role="log"
        aria-label="Messages"
        aria-live="off"
      >
        {earlier && begin === 0 && (
          <p class="more">
            <Button onClick={() => void fetchEarlier()}>Show earlier messages</Button>
          </p>
        )}
        {drawn.map((each, place) => {
          const { created_at: at, id } = each.message;
          const before = messages[begin + place - 1]?.message.created_at;
          return (
            <div key={id} id={`message-${id}`}>
              {(before === undefined || !sameDay(before, at)) && (
                <h3 class="day small soft">{dayTitle(at)}</h3>
              )}
              <Letter
                mailbox={mailbox}
                shown={each}
                name={name}
                answered={
                  each.message.reply_to
                    ? messages.find((it) => it.message.id === each.message.reply_to)
                    : undefined
                }
                onAnswer={() => answer(each.message)}
              />
            </div>
          );
        })}
      </div>
      {below && (
        <button
          type="button"
          class="button primary below"
          onClick={goToEnd}
        >
          New messages
        </button>
      )}
      {present && (
        <>
          {answers && (
            <p class="answering small">
              <span class="grow">
                Answering: <bdi>{quote(messages, answers)}</bdi>
              </span>
              <Button kind="plain" onClick={() => answer(null)}>
                Do not quote
              </Button>
            </p>
          )}
          <Composer
            mailbox={mailbox}
            to={handle}
            answers={answers}
            onText={(element) => (text.current = element)}
            onSent={() => {
              setAnswers(null);
              void mailbox.afterSending(thread.id);
            }}
          />
        </>
      )}
    </section>
  );
}

function StateButton(props: {
  mailbox: Mailbox;
  shown: Shown;
  state: "starred" | "muted" | "archived";
}) {
  const { mailbox, shown, state } = props;
  const { icon, tool, label } = {
    starred: { icon: "star", tool: "msg/star", label: "Star" },
    muted: { icon: shown.thread.member_state === "muted" ? "mute" : "bell", tool: "msg/mute", label: "Mute" },
    archived: { icon: "archive", tool: "msg/archive", label: "Archive" },
  }[state] as { icon: "star"; tool: "msg/star"; label: string };
  const pressed = shown.thread.member_state === state;
  return (
    <Button
      kind="plain"
      icon={icon}
      filled={pressed && state === "starred"}
      label={label}
      pressed={pressed}
      onClick={() => void mailbox.setState(shown.thread, tool)}
    />
  );
}

interface LetterProps {
  mailbox: Mailbox;
  shown: ShownMessage;
  name: string;
  answered: ShownMessage | undefined;
  onAnswer: () => void;
}

const PRIORITY: Partial<Record<Message["priority"], string>> = {
  urgent: "Urgent",
  low: "Low priority",
  fyi: "For information",
};

function Letter({ mailbox, shown, name, answered, onAnswer }: LetterProps) {
  const { message, outgoing, body, protection, verified, note } = shown;
  const [sharing, setSharing] = useState(false);
  const priority = PRIORITY[message.priority];
  const canAsk = Boolean(mailbox.around.askAssistant) && !outgoing && body !== null;
  const ask = () => {
    // The assistant's provider reads what it is given: for end-to-end mail the reader says so.
    if (protection === "end_to_end" && !sharing) setSharing(true);
    else {
      setSharing(false);
      void mailbox.draftReply(shown);
    }
  };
  return (
    <article
      class={`letter${outgoing ? " own" : ""}${message.priority === "urgent" ? " urgent" : ""}`}
      aria-label={`${outgoing ? "You" : name}, ${fullTime(message.created_at)}`}
    >
      {priority && <p class={`tag ${message.priority}`}>{priority}</p>}
      {answered && (
        <p class="quoted small soft">
          <bdi>{oneLine(answered.body ?? "An encrypted message", 120)}</bdi>
        </p>
      )}
      {body === null ? <p class="soft unreadable">{note}</p> : <Body mailbox={mailbox} text={body} />}
      <footer class="small">
        <time class="soft" title={fullTime(message.created_at)}>
          {clock(message.created_at)}
        </time>
        <ProtectionMark protection={protection} verified={verified} />
        <span class="letter-actions">
          <Button kind="plain" icon="reply" label="Answer this message" onClick={onAnswer} />
          {canAsk && (
            <Button
              kind="plain"
              icon="spark"
              label="Draft a reply with my assistant"
              onClick={ask}
            />
          )}
          <Confirm
            icon="trash"
            iconOnly
            label="Delete"
            question="Delete your copy?"
            onConfirm={() => void mailbox.deleteMessage(message)}
          />
        </span>
      </footer>
      {body !== null && note && <p class="small soft">{note}</p>}
      {sharing && (
        <div class="notice warning line" role="group" aria-label="Share with your assistant">
          <span class="grow">This shares the decrypted text with your assistant.</span>
          <Button onClick={ask}>Share and draft</Button>
          <Button onClick={() => setSharing(false)}>Keep private</Button>
        </div>
      )}
    </article>
  );
}

function Body({ mailbox, text }: { mailbox: Mailbox; text: string }) {
  const [whole, setWhole] = useState(false);
  const cut = text.length > LONG + 500 && !whole;
  const shown = bodyText(cut ? text.slice(0, LONG) : text);
  return (
    <div class="body" dir="auto">
      {withLinks(shown).map((piece, place) =>
        piece.href ? (
          <a
            key={place}
            href={piece.href}
            rel="noopener noreferrer nofollow"
            target="_blank"
            onClick={(event) => {
              event.preventDefault();
              mailbox.around.openLink(piece.href!);
            }}
          >
            {piece.text}
          </a>
        ) : (
          piece.text
        ),
      )}
      {cut && (
        <>
          …{" "}
          <button type="button" class="button plain" onClick={() => setWhole(true)}>
            Show all {text.length.toLocaleString()} characters
          </button>
        </>
      )}
    </div>
  );
}

function quote(messages: ShownMessage[], message: Message): string {
  const found = messages.find((each) => each.message.id === message.id);
  return oneLine(found?.body ?? "an encrypted message", 80);
}

/** The topmost message in view, and where it is. */
function firstVisible(box: HTMLElement | null): { id: string; top: number } | null {
  if (!box) return null;
  const edge = box.getBoundingClientRect().top;
  for (const each of box.children) {
    const { bottom, top } = each.getBoundingClientRect();
    if (each.id && bottom > edge) return { id: each.id, top };
  }
  return null;
}

function isAtEnd(box: HTMLElement): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
}
