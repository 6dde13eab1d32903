/** The list of conversations, with search and filters. */
import type { Thread } from "../api/types";
import { type Filter, FILTERS, type Mailbox } from "../mail/mailbox";
import { step } from "../navigation/keys";
import { displayName, oneLine } from "../text/names";
import { fullTime, shortTime } from "../text/time";
import { Button, Icon, Ring } from "./parts";

const NAMES: Record<Filter, string> = {
  inbox: "Inbox",
  unread: "Unread",
  starred: "Starred",
  muted: "Muted",
  archived: "Archive",
};

const EMPTY: Record<Filter, string> = {
  inbox: "No conversations yet. Write to someone, or invite them.",
  unread: "You have read everything.",
  starred: "No starred conversations.",
  muted: "No muted conversations.",
  archived: "The archive is empty.",
};

/** Give the focus to the next conversation, or the one before. */
export function moveInList(by: 1 | -1): void {
  const rows = [...document.querySelectorAll<HTMLElement>(".row")].filter((it) => it.offsetParent !== null);
  const here = rows.find((it) => it === document.activeElement) ?? rows.find((it) => it.ariaCurrent === "true");
  step(rows, by, here ?? null);
}

export function Threads({ mailbox }: { mailbox: Mailbox }) {
  const listed = mailbox.listed.value;
  const query = mailbox.query.value;
  const view = mailbox.view.value;
  return (
    <section class="threads" aria-label="Conversations">
      <div class="tools">
        <div class="search">
          <Icon name="search" />
          <input
            id="search"
            class="input"
            type="search"
            aria-label="Search conversations"
            placeholder="Search"
            autocomplete="off"
            value={query}
            onInput={(event) => void mailbox.search(event.currentTarget.value)}
            onKeyDown={(event) => {
              if (event.key !== "ArrowDown") return;
              event.preventDefault();
              moveInList(1);
            }}
          />
        </div>
        <div class="filters" role="group" aria-label="Filter conversations">
          {FILTERS.map((filter) => (
            <button
              key={filter}
              type="button"
              class="filter"
              aria-pressed={!query && mailbox.filter.value === filter}
              onClick={() => {
                mailbox.query.value = "";
                mailbox.filter.value = filter;
              }}
            >
              {NAMES[filter]}
            </button>
          ))}
        </div>
      </div>
      {listed.length ? (
        <ul class="scroll rows">
          {listed.map((thread) => (
            <li key={thread.id}>
              <Row
                mailbox={mailbox}
                thread={thread}
                current={view.name === "thread" && view.id === thread.id}
              />
            </li>
          ))}
          {mailbox.moreThreads.value !== null && !query && (
            <li class="more">
              <Button onClick={() => void mailbox.attempt(() => mailbox.fetchMoreThreads())}>
                Show more
              </Button>
            </li>
          )}
        </ul>
      ) : (
        <div class="empty">
          <Ring size={64} stones={17} scale={5.4} />
          <p class="soft">{query ? "Nothing found." : EMPTY[mailbox.filter.value]}</p>
        </div>
      )}
    </section>
  );
}

interface RowProps {
  mailbox: Mailbox;
  thread: Thread;
  current: boolean;
}

function Row({ mailbox, thread, current }: RowProps) {
  const { unread_count: unread, member_state: state, last_message_own: own } = thread;
  const name = displayName(thread.other_display_name, thread.other_handle);
  const preview = mailbox.preview(thread);
  return (
    <button
      type="button"
      class={`row${unread ? " unread" : ""}`}
      aria-current={current ? "true" : undefined}
      onClick={() => void mailbox.openThread(thread.id)}
    >
      <span class="row-top">
        <bdi class="row-name">{name}</bdi>
        <span class="row-handle soft small">
          {name === `@${thread.other_handle}` ? "" : `@${thread.other_handle}`}
        </span>
        <time class="small soft" title={fullTime(thread.last_message_at)}>
          {shortTime(thread.last_message_at)}
        </time>
      </span>
      <span class="row-bottom">
        {state === "starred" && (
          <span class="mark star">
            <Icon name="star" filled />
            <span class="hidden">Starred.</span>
          </span>
        )}
        {state === "muted" && (
          <span class="mark">
            <Icon name="mute" />
            <span class="hidden">Muted.</span>
          </span>
        )}
        {preview ? (
          <span class={`row-preview${own ? " own" : ""}`}>
            {own && "You: "}
            <bdi>{oneLine(preview)}</bdi>
          </span>
        ) : (
          <span class="row-preview sealed">
            <Icon name="lock" /> End-to-end encrypted
          </span>
        )}
        {unread > 0 && (
          <span class="badge">
            {unread > 99 ? "99+" : unread}
            <span class="hidden"> unread</span>
          </span>
        )}
      </span>
    </button>
  );
}
