/** The whole inbox: the bar, the list beside the view that is open, and what happened last. */
import { useEffect } from "preact/hooks";

import type { Mailbox } from "../mail/mailbox";
import { isFree } from "../navigation/keys";
import { Compose } from "./Compose";
import { Conversation } from "./Conversation";
import { FirstRun } from "./FirstRun";
import { Keys } from "./Keys";
import { Button, Ring, Toast } from "./parts";
import { People } from "./People";
import { Settings } from "./Settings";
import { moveInList, Threads } from "./Threads";

export function Inbox({ mailbox }: { mailbox: Mailbox }) {
  useEffect(() => {
    const onKey = (event: KeyboardEvent) => shortcut(mailbox, event);
    const onSeen = () => {
      if (document.hidden) return;
      void mailbox.seen();
    };
    document.addEventListener("keydown", onKey);
    document.addEventListener("visibilitychange", onSeen);
    return () => {
      document.removeEventListener("keydown", onKey);
      document.removeEventListener("visibilitychange", onSeen);
    };
  }, [mailbox]);
  const phase = mailbox.phase.value;
  return (
    <div class="app" data-view={mailbox.view.value.name}>
      {phase === "signed_out" ? (
        <FirstRun mailbox={mailbox} />
      ) : (
        <>
          <Bar mailbox={mailbox} />
          {phase === "loading" && !mailbox.threads.value.length ? (
            <main class="empty" aria-busy="true">
              <Ring size={64} stones={17} scale={5.4} />
              <p class="soft">Loading…</p>
            </main>
          ) : (
            <main class="panes">
              <Threads mailbox={mailbox} />
              <Pane mailbox={mailbox} />
            </main>
          )}
        </>
      )}
      <Said mailbox={mailbox} />
    </div>
  );
}

function Bar({ mailbox }: { mailbox: Mailbox }) {
  const unread = mailbox.unread.value;
  const view = mailbox.view.value.name;
  const me = mailbox.me.value;
  return (
    <header class="bar">
      {!mailbox.around.framed && <Ring size={26} />}
      <h1 class="bar-title" id="page-title" tabIndex={-1}>
        <button type="button" class="home" onClick={() => mailbox.go({ name: "inbox" })}>
          Inbox
        </button>
        {unread > 0 && (
          <span class="badge">
            {unread > 999 ? "999+" : unread}
            <span class="hidden"> unread</span>
          </span>
        )}
      </h1>
      <span class="bar-me soft small grow">{me && !mailbox.around.framed && `@${me.handle}`}</span>
      <nav class="line" aria-label="Inbox">
        <Button
          kind="primary"
          icon="write"
          onClick={() => mailbox.go({ name: "compose", to: "" })}
        >
          Write
        </Button>
        <Button
          kind="plain"
          icon="people"
          label="People"
          current={view === "people"}
          onClick={() => mailbox.go({ name: "people" })}
        />
        <Button
          kind="plain"
          icon="settings"
          label="Settings"
          current={view === "settings" || view === "keys"}
          onClick={() => mailbox.go({ name: "settings" })}
        />
      </nav>
    </header>
  );
}

function Pane({ mailbox }: { mailbox: Mailbox }) {
  const view = mailbox.view.value;
  switch (view.name) {
    case "thread":
      return <Conversation mailbox={mailbox} />;
    case "compose":
      return <Compose key={view.to} mailbox={mailbox} to={view.to} />;
    case "people":
      return <People mailbox={mailbox} />;
    case "settings":
      return <Settings mailbox={mailbox} />;
    case "keys":
      return <Keys mailbox={mailbox} />;
    case "inbox":
      return (
        <section class="empty only-wide" aria-label="Conversation">
          <Ring size={96} stones={17} scale={5.4} />
          <p class="soft">Choose a conversation.</p>
        </section>
      );
  }
}

function Said({ mailbox }: { mailbox: Mailbox }) {
  const { text, bad } = mailbox.said.value;
  const trouble = mailbox.trouble.value;
  return (
    <footer class="said">
      {trouble && (
        <p role="alert" class="notice warning">
          {trouble}
        </p>
      )}
      <Toast text={text} bad={bad} onClose={() => mailbox.say("")} />
    </footer>
  );
}

function shortcut(mailbox: Mailbox, event: KeyboardEvent): void {
  if (document.querySelector("dialog[open]")) return;
  if (event.key === "Escape" && mailbox.view.value.name !== "inbox") {
    mailbox.go({ name: "inbox" });
    return;
  }
  if (!isFree(event)) return;
  if (mailbox.phase.value !== "ready") return;
  const thread = mailbox.conversation.value?.thread;
  const actions: Record<string, () => void> = {
    c: () => mailbox.go({ name: "compose", to: "" }),
    "/": () => document.getElementById("search")?.focus(),
    j: () => moveInList(1),
    k: () => moveInList(-1),
    // Where something scrolls or has keys of its own, arrows are for that.
    ...(!(event.target as Element).closest(".scroll:not(.rows), [role]") && {
      ArrowDown: () => moveInList(1),
      ArrowUp: () => moveInList(-1),
    }),
    ...(thread && {
      r: () => document.querySelector<HTMLElement>(".composer textarea")?.focus(),
      s: () => void mailbox.setState(thread, "msg/star"),
      e: () => void mailbox.setState(thread, "msg/archive"),
      m: () => void mailbox.setState(thread, "msg/mute"),
    }),
  };
  const action = actions[event.key];
  if (action) {
    event.preventDefault();
    action();
  }
}
