/** For someone who is not signed in in this browser: a token, a recovery code, or a new account. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { sentence } from "../api/call";
import type { SignedUp } from "../api/types";
import { Credentials, Recover, Register } from "../components/FirstRun";
import { Button, Field, Notice, Ring } from "../components/parts";
import type { Mailbox } from "../mail/mailbox";
import { type Session, signIn } from "./session";

type Way = "token" | "recover" | "register";

const TITLES: Record<Way, string> = {
  token: "Sign in",
  recover: "Use your recovery code",
  register: "Create an account",
};
const REGISTRATION: Record<Session["registration"], string> = {
  open: "Others write to you under this name. You can change it later.",
  invite: "You need an invitation from someone who has an account.",
  closed: "Only the operator of this hub can invite people.",
};

interface Props {
  mailbox: Mailbox;
  registration: Session["registration"];
  /** Why the reader has to sign in, if that needs words. */
  reason: string;
}

export function SignIn({ mailbox, registration, reason }: Props) {
  const [way, setWay] = useState<Way>("token");
  const [done, setDone] = useState<SignedUp | null>(null);
  const page = useRef<HTMLElement>(null);
  useLayoutEffect(() => page.current?.querySelector("input")?.focus(), [way]);
  if (done) {
    return (
      <div class="app">
        <Credentials mailbox={mailbox} given={done} />
      </div>
    );
  }
  return (
    <div class="app">
      <main class="welcome" ref={page}>
        <Ring size={72} stones={17} scale={5.4} />
        <h1 class="title">{TITLES[way]}</h1>
        {reason && way === "token" && <Notice tone="info">{reason}</Notice>}
        {way === "token" && <Token mailbox={mailbox} />}
        {way === "recover" && <Recover mailbox={mailbox} onDone={setDone} />}
        {way === "register" && (
          <>
            <p class="soft">{REGISTRATION[registration]}</p>
            <Register mailbox={mailbox} onDone={setDone} />
          </>
        )}
        <div class="line">
          {way !== "token" && (
            <Button kind="plain" onClick={() => setWay("token")}>
              Sign in with a token
            </Button>
          )}
          {way !== "recover" && (
            <Button kind="plain" onClick={() => setWay("recover")}>
              I lost my token
            </Button>
          )}
          {way !== "register" && (
            <Button kind="plain" onClick={() => setWay("register")}>
              I am new here
            </Button>
          )}
        </div>
      </main>
    </div>
  );
}

function Token({ mailbox }: { mailbox: Mailbox }) {
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
    <div class="stack card">
      <Field
        label="Token"
        value={token}
        onInput={setToken}
        onEnter={() => void submit()}
        error={error}
        secret
        placeholder="sk_…"
        hint="You were given it when you registered. Your other clients have it in their settings."
      />
      <Button kind="primary" disabled={busy} onClick={() => void submit()}>
        Sign in
      </Button>
      <p class="small soft">
        On a computer where you use the <code>folkmoot</code> command, <code>folkmoot open</code>{" "}
        signs you in without a token.
      </p>
    </div>
  );
}
