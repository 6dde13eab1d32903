/** For someone who is not signed in: a new account, or one to recover. */
import { useState } from "preact/hooks";

import { sentence } from "../api/call";
import type { SignedUp } from "../api/types";
import type { Mailbox } from "../mail/mailbox";
import { plainHandle } from "../text/names";
import { Button, Check, CopyText, Field, Notice, Ring } from "./parts";

const HANDLE = /^[a-z][a-z0-9_]{2,19}$/;
const INVITE = /(?:\/invite\/)?([A-Za-z0-9_-]{16,})\/?$/;

export function FirstRun({ mailbox }: { mailbox: Mailbox }) {
  const [way, setWay] = useState<"register" | "recover">("register");
  const [done, setDone] = useState<SignedUp | null>(null);
  if (done) return <Credentials mailbox={mailbox} given={done} />;
  return (
    <main class="welcome">
      <Ring size={72} stones={17} scale={5.4} />
      <h1 class="title">{way === "register" ? "Choose your handle" : "Recover your account"}</h1>
      <p class="soft">
        {way === "register"
          ? "You need an account to send and receive mail here."
          : "Use the recovery code that you were given when you registered."}
      </p>
      {way === "register" ? (
        <Register mailbox={mailbox} onDone={setDone} />
      ) : (
        <Recover mailbox={mailbox} onDone={setDone} />
      )}
      <div class="line">
        <Button
          kind="plain"
          onClick={() => setWay(way === "register" ? "recover" : "register")}
        >
          {way === "register" ? "I have an account" : "I am new here"}
        </Button>
        <Button kind="plain" onClick={() => void mailbox.start()}>
          I've signed in. Try again
        </Button>
      </div>
    </main>
  );
}

interface WayProps {
  mailbox: Mailbox;
  onDone: (given: SignedUp) => void;
}

/** What somebody brings who comes to register by a link. */
export interface Arrival {
  /** The code of an invitation, and the handle that it is for alone. */
  invite?: string;
  handle?: string;
  /** What sets up a hub that has no account yet. */
  secret?: string;
}

interface RegisterProps extends WayProps {
  arrival?: Arrival;
  /** How the account is made, where that is not the usual way. */
  make?: (handle: string) => Promise<SignedUp>;
}

export function Register({ mailbox, onDone, arrival = {}, make }: RegisterProps) {
  const [handle, setHandle] = useState(arrival.handle ?? "");
  const [invite, setInvite] = useState(arrival.invite ?? "");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    const name = plainHandle(handle);
    if (!HANDLE.test(name)) {
      setError("Use 3 to 20 letters, digits and underscores, beginning with a letter.");
      return;
    }
    setBusy(true);
    setError("");
    const code = INVITE.exec(invite.trim())?.[1] ?? invite.trim();
    try {
      const args = { handle: name, ...(code ? { invite_code: code } : {}) };
      onDone(await (make ? make(name) : mailbox.around.call("msg/register", args)));
    } catch (failure) {
      setError(sentence(failure));
    }
    setBusy(false);
  };
  return (
    <div class="stack card">
      <Field
        label="Handle"
        value={handle}
        onInput={setHandle}
        onEnter={() => void submit()}
        error={error}
        most={21}
        placeholder="ada"
        hint="Others write to you under this name. You can change it later."
      />
      {!arrival.invite && !make && (
        <Field
          label="Invitation (if you have one)"
          value={invite}
          onInput={setInvite}
          onEnter={() => void submit()}
          hint="The code, or the whole link."
        />
      )}
      <Button kind="primary" disabled={busy} onClick={() => void submit()}>
        Create account
      </Button>
    </div>
  );
}

export function Recover({ mailbox, onDone }: WayProps) {
  const [handle, setHandle] = useState("");
  const [code, setCode] = useState("");
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const submit = async () => {
    setBusy(true);
    setError("");
    try {
      const args = { handle: plainHandle(handle), recovery_code: code.trim() };
      onDone(await mailbox.around.call("msg/recover", args));
      setCode("");
    } catch (failure) {
      setError(sentence(failure));
    }
    setBusy(false);
  };
  return (
    <div class="stack card">
      <Notice tone="warning">
        Recovering signs out every other client and browser, and removes your passkeys.
      </Notice>
      <Field label="Handle" value={handle} onInput={setHandle} most={21} placeholder="ada" />
      <Field
        label="Recovery code"
        value={code}
        onInput={setCode}
        onEnter={() => void submit()}
        error={error}
        placeholder="XXXX-XXXX-XXXX"
      />
      <Button kind="primary" disabled={busy} onClick={() => void submit()}>
        Recover
      </Button>
    </div>
  );
}

export function Credentials({ mailbox, given }: { mailbox: Mailbox; given: SignedUp }) {
  const [saved, setSaved] = useState(false);
  const [waiting, setWaiting] = useState(false);
  const go = async () => {
    await mailbox.start();
    setWaiting(mailbox.phase.value === "signed_out");
  };
  return (
    <main class="welcome">
      <h1 class="title">You are @{given.handle}</h1>
      <p class="soft">
        Save this now, where only you can read it. It is not shown again.
      </p>
      <div class="stack card">
        <CopyText label="Token" text={given.token} />
        {given.recovery_code && <CopyText label="Recovery code" text={given.recovery_code} />}
        <CopyText
          label="Settings for your assistant"
          text={JSON.stringify(given.settings, null, 2)}
          rows={9}
        />
        <p class="small soft">
          Put the settings into your assistant in place of its entry for this hub, and restart it.
          From then on it is signed in as you.
        </p>
        <Check checked={saved} onChange={setSaved}>
          I have saved {given.recovery_code ? "the token and the recovery code" : "the token"}.
        </Check>
        {waiting && (
          <Notice tone="warning">
            This client does not send the token yet. Put the settings into it and restart it, then
            open the inbox again.
          </Notice>
        )}
        <Button kind="primary" disabled={!saved} onClick={() => void go()}>
          Open the inbox
        </Button>
      </div>
    </main>
  );
}
