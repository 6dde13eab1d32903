/** For someone who is not signed in in this browser: by their company, a passkey, a token or a recovery code, or new. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { sentence } from "../api/call";
import type { SignedUp } from "../api/types";
import { type Arrival, Recover, Register } from "../components/FirstRun";
import { Button, Field, Notice, Ring } from "../components/parts";
import type { Mailbox } from "../mail/mailbox";
import { byName, obstacle, signInWithPasskey, why } from "./passkeys";
import { type Session, setUp, signIn } from "./session";
import { Welcome } from "./Welcome";

type Way = "token" | "recover" | "register";

const TITLES: Record<Way, string> = {
  token: "Sign in",
  recover: "Use your recovery code",
  register: "Create an account",
};
const WAYS: Record<Way, string> = {
  token: "I have an account",
  recover: "Use my recovery code",
  register: "I am new here",
};
const REGISTRATION: Record<Session["registration"], string> = {
  open: "Choose the name that others know you by.",
  invite: "You need an invitation from someone who has an account.",
  closed: "Only the operator of this hub can invite people.",
};

const FIRST = "Create the first account. It runs this hub: people, servers and backups.";

interface Props {
  mailbox: Mailbox;
  registration: Session["registration"];
  /** What people of a company sign in with, if they can. */
  company: Session["company"];
  /** Where the reader was going. */
  next: string;
  /** Why the reader has to sign in, if that needs words. */
  reason: string;
  /** What the link brought that they came by. */
  arrival: Arrival;
  /** Go on, with an account that was just made or recovered. */
  onDone: () => void;
}

export function SignIn({ mailbox, registration, company, next, reason, arrival, onDone }: Props) {
  const { invite, secret } = arrival;
  const [way, setWay] = useState<Way>(invite || secret ? "register" : "token");
  const [done, setDone] = useState<SignedUp | null>(null);
  const page = useRef<HTMLElement>(null);
  useLayoutEffect(() => page.current?.querySelector<HTMLElement>(".primary, input")?.focus(), [way]);
  if (done) {
    return (
      <div class="app">
        <Welcome given={done} onDone={onDone} />
      </div>
    );
  }
  return (
    <div class="app">
      <main class="welcome" ref={page}>
        <Ring size={72} stones={17} scale={5.4} />
        <h1 class="title">{secret ? "Set up this hub" : TITLES[way]}</h1>
        {reason && way === "token" && <Notice tone="info">{reason}</Notice>}
        {way === "token" && (
          <div class="stack card">
            {company && (
              <Button onClick={() => location.assign(`/sign-in/oidc?${new URLSearchParams({ next })}`)}>
                Sign in with {company}
              </Button>
            )}
            {obstacle() ? <NoPasskeys /> : <Passkey mailbox={mailbox} />}
            <Token mailbox={mailbox} primary={obstacle() !== ""} />
          </div>
        )}
        {way === "recover" && <Recover mailbox={mailbox} onDone={setDone} />}
        {way === "register" && (
          <>
            <p class="soft">
              {secret ? FIRST : invite ? "Your invitation is ready to use." : REGISTRATION[registration]}
            </p>
            <Register
              mailbox={mailbox}
              onDone={setDone}
              arrival={arrival}
              {...(secret ? { make: (handle: string) => setUp(secret, handle) } : {})}
            />
          </>
        )}
        {!secret && (
          <div class="line">
            {(Object.keys(WAYS) as Way[]).map(
              (it) =>
                it !== way && (
                  <Button key={it} kind="plain" onClick={() => setWay(it)}>
                    {WAYS[it]}
                  </Button>
                ),
            )}
          </div>
        )}
      </main>
    </div>
  );
}

function Passkey({ mailbox }: { mailbox: Mailbox }) {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError("");
    try {
      await signInWithPasskey();
      await mailbox.start();
    } catch (failure) {
      setError(why(failure));
    }
    setBusy(false);
  };
  return (
    <>
      <Button kind="primary" icon="lock" disabled={busy} onClick={() => void submit()}>
        Sign in with a passkey
      </Button>
      {error && (
        <p class="small error" role="alert">
          {error}
        </p>
      )}
      <p class="or small soft">or</p>
    </>
  );
}

/** Why there are no passkeys here, and what to do instead. */
function NoPasskeys() {
  const link = byName();
  return (
    <Notice tone="info">
      {obstacle()} {link ? <a href={link}>Open this page at localhost</a> : "Sign in with a link or a token"}
      {link ? ", or use a token." : "."}
    </Notice>
  );
}

function Token({ mailbox, primary }: { mailbox: Mailbox; primary: boolean }) {
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    const given = token.trim();
    // Nothing keeps the token once it is on its way.
    setToken("");
    setError("");
    if (!given) return;
    setBusy(true);
    try {
      await signIn(given);
      await mailbox.start();
    } catch (failure) {
      setError(sentence(failure).replace(/^Authentication required\. /, ""));
    }
    setBusy(false);
  };
  return (
    <>
      <Field
        label="Token"
        value={token}
        onInput={setToken}
        onEnter={() => void submit()}
        error={error}
        secret
        placeholder="sk_…"
        hint="Your other clients have it in their settings."
      />
      <Button {...(primary ? { kind: "primary" as const } : {})} disabled={busy} onClick={() => void submit()}>
        Sign in
      </Button>
      <p class="small soft">
        On a computer where you use the <code>folkmoot</code> command, <code>folkmoot open</code>{" "}
        signs you in without a token.
      </p>
    </>
  );
}
