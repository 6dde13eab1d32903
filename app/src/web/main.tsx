/** The hub's own pages: everyone gets this one, and it asks who is signed in. */
import { effect, signal } from "@preact/signals";
import { render } from "preact";

import type { Surroundings } from "../api/call";
import { Refused, sentence } from "../api/call";
import { Inbox } from "../components/Inbox";
import { Button, Ring } from "../components/parts";
import { Keyring } from "../crypto/keyring";
import { browserStorage } from "../crypto/storage";
import { Mailbox, POLL_SECONDS } from "../mail/mailbox";
import { Account } from "./Account";
import { keepPage } from "./install";
import { type EventName, Live } from "./live";
import { ownPath } from "./paths";
import { call } from "./rest";
import { type Session, session, signOut, useCode } from "./session";
import { SignIn } from "./SignIn";

import "../design/tokens.css";
import "../design/base.css";
import "../design/inbox.css";

const CODE = /^#(oc_[0-9a-f]{64})$/;
/** While the hub tells what changes, the inbox asks by itself only so often. */
const SELDOM_SECONDS = 300;
const AGAIN_MS = 5_000;
const HEARD: readonly EventName[] = [
  "mail.received",
  "mail.sent",
  "mail.changed",
  "contacts.changed",
  "account.changed",
  "tokens.changed",
  "reload",
];

/** Where the reader wanted to go when they were asked to sign in. */
const next = location.pathname === "/sign-in" ? ownPath(new URLSearchParams(location.search).get("next")) : null;
const path = signal(location.pathname);
const registration = signal<Session["registration"]>("open");
const reason = signal("");
/** What keeps the page from asking who is signed in. */
const trouble = signal("");
const asked = signal(false);

const around: Surroundings = {
  call,
  openLink: (url) => void window.open(url, "_blank", "noopener,noreferrer"),
  home: "/",
  openAccount: () => show("/account"),
  saveFile: async (name, text) => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = name;
    link.click();
    URL.revokeObjectURL(link.href);
  },
};

const storage = browserStorage();
const opened = () => new Mailbox(around, new Keyring(storage), storage);

let mailbox = opened();
const current = signal(mailbox);
const live = new Live(
  HEARD,
  () => void mailbox.look(),
  (open) => {
    mailbox.pollSeconds = open ? SELDOM_SECONDS : POLL_SECONDS;
    // Events may have been missed; and a stream that ended may mean that the session did.
    if (mailbox.phase.value === "ready") void mailbox.look();
  },
);

function show(to: "/inbox" | "/account" | "/sign-in"): void {
  if (location.pathname !== to) history.pushState(null, "", to);
  path.value = to;
}

/** Forget everything of whoever was signed in. */
function leave(why: string): void {
  live.close();
  mailbox.stop();
  mailbox = opened();
  mailbox.phase.value = "signed_out";
  current.value = mailbox;
  reason.value = why;
  follow();
}

let unfollow = () => {};
/** What the page does when somebody is signed in, or no longer. */
function follow(): void {
  unfollow();
  const followed = mailbox;
  let was = followed.phase.peek();
  unfollow = effect(() => {
    const now = followed.phase.value;
    if (now === was) return;
    const before = was;
    was = now;
    if (now === "ready") {
      if (next !== null && path.peek() === "/sign-in") return location.replace(next);
      live.open();
      if (path.peek() !== "/account") show("/inbox");
    } else if (now === "signed_out" && before === "ready") {
      queueMicrotask(() => leave("You were signed out. Sign in again."));
    }
  });
}

effect(() => {
  const box = current.value;
  const unread = box.phase.value === "ready" ? box.unread.value : 0;
  const name = box.phase.value === "signed_out" ? "Sign in" : path.value === "/account" ? "Account" : "Inbox";
  document.title = `${unread ? `(${unread}) ` : ""}${name} · Folkmoot`;
});

async function start(): Promise<void> {
  const code = CODE.exec(location.hash)?.[1];
  // Before anything else: a code must stay in no history.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  try {
    if (code) await useCode(code);
  } catch (error) {
    if (!(error instanceof Refused)) return again(error);
    reason.value = sentence(error);
  }
  try {
    const who = await session();
    registration.value = who.registration;
    trouble.value = "";
    asked.value = true;
    if (who.handle === null) {
      mailbox.phase.value = "signed_out";
      if (next !== null && !reason.value) reason.value = "Sign in to continue.";
      return;
    }
    mailbox.hub = location.origin;
    await mailbox.start();
  } catch (error) {
    again(error);
  }
}

function again(error: unknown): void {
  trouble.value = sentence(error);
  setTimeout(() => void start(), AGAIN_MS);
}

async function out(): Promise<void> {
  const done = await mailbox.attempt(() => signOut());
  if (done !== undefined) leave("You are signed out.");
}

function App() {
  const box = current.value;
  if (!asked.value) {
    return (
      <main class="empty" aria-busy="true">
        <Ring size={64} stones={17} scale={5.4} />
        {trouble.value ? <p role="alert">{trouble.value}</p> : <p class="soft">Loading…</p>}
        {trouble.value && <Button onClick={() => void start()}>Try again</Button>}
      </main>
    );
  }
  if (box.phase.value === "signed_out") {
    return <SignIn mailbox={box} registration={registration.value} reason={reason.value} />;
  }
  if (path.value === "/account" && box.me.value) {
    return (
      <Account
        mailbox={box}
        onInbox={(view) => {
          box.go({ name: view });
          show("/inbox");
        }}
        onSignOut={() => void out()}
        onGone={(why) => {
          // The cookie is of no use any more.
          void signOut().catch(() => {});
          leave(why);
        }}
      />
    );
  }
  return <Inbox mailbox={box} />;
}

addEventListener("popstate", () => (path.value = location.pathname));
follow();
render(<App />, document.getElementById("inbox")!);
void start();
keepPage();
