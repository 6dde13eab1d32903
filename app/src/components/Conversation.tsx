/** One conversation: both sides, by day, with what to do about it. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Message } from "../api/types";
import type { Conversation as Shown, Mailbox, Shown as ShownMessage } from "../mail/mailbox";
import { withLinks } from "../text/links";
import { bodyText, displayName, oneLine } from "../text/names";
import { clock, dayTitle, fullTime, sameDay } from "../text/time";
import { Composer } from "./Composer";
import { Button, Confirm } from "./parts";
import { PeerKey } from "./PeerKey";
import { ProtectionMark } from "./Protection";

const DELETED = "[deleted]";
const NEAR = 80;
const LONG = 2500;

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
  const scroll = useRef<HTMLDivElement>(null);
  const heading = useRef<HTMLHeadingElement>(null);
  const text = useRef<HTMLTextAreaElement | null>(null);
  const drawn = useRef({ first: "", last: "", height: 0, atEnd: true });
  const fetching = useRef(false);

  useEffect(() => heading.current?.focus(), []);

  useLayoutEffect(() => {
    const box = scroll.current;
    if (!box) return;
    const before = drawn.current;
    const first = messages[0]?.message.id ?? "";
    const last = messages.at(-1)?.message.id ?? "";
    const lastIsMine = Boolean(messages.at(-1)?.outgoing);
    if (before.last !== last && (before.atEnd || !before.last || lastIsMine)) {
      box.scrollTop = box.scrollHeight;
    } else if (before.first !== first && before.last === last) {
      // Earlier messages came in above: stay where the reader was.
      box.scrollTop += box.scrollHeight - before.height;
    } else if (before.last !== last) {
      setBelow(true);
    }
    drawn.current = { first, last, height: box.scrollHeight, atEnd: isAtEnd(box) };
  }, [messages]);

  const onScroll = () => {
    const box = scroll.current;
    if (!box) return;
    drawn.current.atEnd = isAtEnd(box);
    if (drawn.current.atEnd) setBelow(false);
    if (box.scrollTop < NEAR && earlier && !fetching.current) void fetchEarlier();
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
        {earlier && (
          <p class="more">
            <Button onClick={() => void fetchEarlier()}>Show earlier messages</Button>
          </p>
        )}
        {messages.map((each, place) => {
          const { created_at: at, id } = each.message;
          const before = messages[place - 1]?.message.created_at;
          return (
            <div key={id}>
              {(before === undefined || !sameDay(before, at)) && (
                <h3 class="day small soft">{dayTitle(at)}</h3>
              )}
              <Letter
                mailbox={mailbox}
                shown={each}
                name={name}
                answered={messages.find((it) => it.message.id === each.message.reply_to)}
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
          onClick={() => {
            scroll.current?.scrollTo({ top: scroll.current.scrollHeight });
            setBelow(false);
          }}
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
    muted: { icon: "mute", tool: "msg/mute", label: "Mute" },
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

function isAtEnd(box: HTMLElement): boolean {
  return box.scrollHeight - box.scrollTop - box.clientHeight < NEAR;
}
