/** The hub's own pages: everyone gets this one, and it asks who is signed in. */
import { effect, signal } from "@preact/signals";
import { render } from "preact";

import type { Surroundings } from "../api/call";
import { Refused, sentence } from "../api/call";
import type { Arrival } from "../components/FirstRun";
import { Inbox } from "../components/Inbox";
import { Button, Ring } from "../components/parts";
import { Keyring } from "../crypto/keyring";
import { browserStorage } from "../crypto/storage";
import { Mailbox, POLL_SECONDS } from "../mail/mailbox";
import type { UnreadRooms } from "../api/schema";
import { ASK_EVENTS, isNews, ROOM_EVENTS, roomNews, unread, waiting } from "../navigation/badges";
import { Navigation } from "../navigation/Navigation";
import { Account } from "./Account";
import { Authorize, Device } from "./Authorize";
import { Connect, Connected } from "./Connect";
import { keepPage } from "./install";
import { type EventName, Live } from "./live";
import { ownPath } from "./paths";
import { startOver } from "./requests";
import { ask, call } from "./rest";
import { forget, type Session, session, signOut, useCode } from "./session";
import { SignIn } from "./SignIn";
import { may, who } from "./who";

import "../design/tokens.css";
import "../design/base.css";
import "../design/inbox.css";
import "../design/conversation.css";
import "../design/views.css";

const CODE = /^#(oc_[0-9a-f]{64})$/;
const INVITE = /^#invite=([\w-]{1,128})(?:&handle=(\w{1,20}))?$/;
const SECRET = /^#([\w-]{1,200})$/;
/** While the hub tells what changes, the inbox asks by itself only so often. */
const SELDOM_SECONDS = 300;
const AGAIN_MS = 5_000;
const TITLES: Record<string, string> = {
  "/account": "Account",
  "/authorize": "Connect an app",
  "/device": "Connect a device",
  "/connect": "Sign in to a server",
  "/oauth/callback": "Sign in to a server",
};
/** Where the reader lets something use their account, or signs in to a server. */
const CONSENT: Record<string, typeof Authorize> = {
  "/authorize": Authorize,
  "/device": Device,
  "/connect": Connect,
  "/oauth/callback": Connected,
};
const ASKED = ["/authorize", "/device"];
const first = () =>
  ASKED.includes(path.peek()) ? "An app asks to use your account. Sign in first." : "Sign in to continue.";
const AGAIN = "To set up this hub, open the link again that it printed when it started.";
const COUNT_MS = 1_000;
const MAIL_EVENTS: readonly EventName[] = [
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
/** What stands behind `/connect/` is for that page alone. */
const path = signal(location.pathname.replace(/^\/connect\/.*/, "/connect"));
const registration = signal<Session["registration"]>("open");
const company = signal<Session["company"]>(null);
const reason = signal("");
/** What keeps the page from asking who is signed in. */
const trouble = signal("");
const asked = signal(false);
/** What the link brought that the reader came by: in memory alone. */
const arrival = signal<Arrival>({});

const around: Surroundings = {
  call,
  openLink: (url) => void window.open(url, "_blank", "noopener,noreferrer"),
  framed: true,
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
const COUNT_EVENTS: readonly EventName[] = [...ASK_EVENTS, ...ROOM_EVENTS, "reload"];
const live = new Live(
  [...MAIL_EVENTS, ...ASK_EVENTS, ...ROOM_EVENTS],
  (event) => {
    const { name } = event;
    if (MAIL_EVENTS.includes(name)) void mailbox.look();
    if (COUNT_EVENTS.includes(name) && isNews(event)) countSoon();
  },
  (open) => {
    mailbox.pollSeconds = open ? SELDOM_SECONDS : POLL_SECONDS;
    // Events may have been missed; and a stream that ended may mean that the session did.
    if (mailbox.phase.value === "ready") void mailbox.look();
    if (open) countSoon();
  },
);

let counting: ReturnType<typeof setTimeout> | undefined;
/** Count what waits for the reader, and what is new in rooms; much at once is counted once. */
function countSoon(): void {
  counting ??= setTimeout(() => {
    counting = undefined;
    if (may("rooms")) {
      ask<UnreadRooms>("GET", "/v1/unread").then(
        ({ rooms }) => (roomNews.value = rooms),
        () => {},
      );
    }
    if (!may("decide")) return;
    ask<{ count: number }>("GET", "/v1/asks?limit=0").then(
      ({ count }) => (waiting.value = count),
      () => {},
    );
  }, COUNT_MS);
}

function show(to: "/inbox" | "/account" | "/sign-in"): void {
  if (location.pathname !== to) history.pushState(null, "", to);
  path.value = to;
}

/** Forget everything of whoever was signed in. */
function leave(why: string): void {
  startOver();
  live.close();
  clearTimeout(counting);
  counting = undefined;
  mailbox.stop();
  mailbox = opened();
  mailbox.phase.value = "signed_out";
  current.value = mailbox;
  who.value = null;
  waiting.value = 0;
  roomNews.value = [];
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
      void learnWho();
      live.open();
      const to = new URLSearchParams(location.search).get("to");
      if (path.peek() === "/inbox" && to) followed.go({ name: "compose", to });
      if (path.peek() !== "/account" && !CONSENT[path.peek()]) show("/inbox");
    } else if (now === "signed_out" && before === "ready") {
      queueMicrotask(() => leave("You were signed out. Sign in again."));
    }
  });
}

effect(() => {
  const box = current.value;
  const count = box.phase.value === "ready" ? box.unread.value : 0;
  unread.value = count;
  const name = box.phase.value === "signed_out" ? "Sign in" : (TITLES[path.value] ?? "Inbox");
  document.title = `${count ? `(${count}) ` : ""}${name} · Folkmoot`;
});

/** The navigation offers what this session may do, which whoever signs in decides. */
async function learnWho(): Promise<void> {
  const box = mailbox;
  const found = await session().catch(() => who.value);
  if (box !== mailbox) return;
  who.value = found;
  countSoon();
}

async function start(): Promise<void> {
  const code = CODE.exec(location.hash)?.[1];
  const [, invite, handle] = INVITE.exec(location.hash) ?? [];
  const secret = location.pathname === "/set-up" ? SECRET.exec(location.hash)?.[1] : undefined;
  if (secret) arrival.value = { secret };
  else if (invite) arrival.value = { invite, ...(handle ? { handle } : {}) };
  // Before anything else: a code must stay in no history.
  if (location.hash) history.replaceState(null, "", location.pathname + location.search);
  try {
    if (code) await useCode(code);
  } catch (error) {
    if (!(error instanceof Refused)) return again(error);
    reason.value = sentence(error);
  }
  try {
    const found = await session();
    registration.value = found.registration;
    company.value = found.company;
    trouble.value = "";
    asked.value = true;
    if (found.handle === null) {
      mailbox.phase.value = "signed_out";
      if (next !== null || CONSENT[path.peek()]) reason.value ||= first();
      if (path.peek() === "/set-up" && !arrival.peek().secret) reason.value ||= AGAIN;
      return;
    }
    who.value = found;
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

async function out(why = "You are signed out."): Promise<void> {
  if ((await mailbox.attempt(() => signOut())) !== undefined) leave(why);
}

function App() {
  const box = current.value;
  if (!asked.value) {
    return (
      <div class={trouble.value ? "framed" : ""}>
        {trouble.value && <Navigation path={path.value} onSignOut={() => void out()} />}
        <main class="empty" aria-busy="true">
          <Ring size={64} stones={17} scale={5.4} />
          {trouble.value ? <p role="alert">{trouble.value}</p> : <p class="soft">Loading…</p>}
          {trouble.value && <Button onClick={() => void start()}>Try again</Button>}
        </main>
      </div>
    );
  }
  if (box.phase.value === "signed_out") {
    const going = path.value === "/sign-in" ? (next ?? "") : location.pathname + location.search;
    return (
      <SignIn
        mailbox={box}
        registration={registration.value}
        company={company.value}
        next={going}
        reason={reason.value}
        arrival={arrival.value}
        onDone={() => (CONSENT[path.peek()] ? void box.start() : location.assign(next ?? "/"))}
      />
    );
  }
  const Consent = CONSENT[path.value];
  if (Consent) {
    return (
      <div class="app">
        {who.value?.handle && <Consent handle={who.value.handle} onOther={() => void out(first())} />}
      </div>
    );
  }
  return (
    <div class="framed">
      <Navigation path={path.value} onSignOut={() => void out()} />
      {path.value === "/account" && box.me.value ? (
        <Account
          mailbox={box}
          onKeys={() => {
            box.go({ name: "keys" });
            show("/inbox");
          }}
          onGone={(why) => {
            // The cookie is of no use any more.
            void forget().catch(() => {});
            leave(why);
          }}
          onSignOut={() => void out("This browser is signed out.")}
        />
      ) : (
        <Inbox mailbox={box} />
      )}
    </div>
  );
}

/** Between the mail and the account the page stays; every other link is the browser's. */
document.addEventListener("click", (event) => {
  if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
  const to = (event.target as Element).closest?.(".place")?.getAttribute("href");
  if (to !== "/inbox" && to !== "/account") return;
  event.preventDefault();
  if (to === "/inbox") mailbox.go({ name: "inbox" });
  show(to);
});
addEventListener("popstate", () => (path.value = location.pathname));
follow();
render(<App />, document.getElementById("inbox")!);
void start();
keepPage();
