/** For someone who has just registered, or recovered their account, in this browser. */
import { useState } from "preact/hooks";

import type { SignedUp } from "../api/types";
import { Credentials } from "../components/FirstRun";
import { Button, Check, CopyText } from "../components/parts";
import type { Mailbox } from "../mail/mailbox";
import { addPasskey, obstacle, why } from "./passkeys";

/** They make a passkey and keep the recovery code; a token is for programs, and shown if asked for. */
export function Welcome({ mailbox, given }: { mailbox: Mailbox; given: SignedUp }) {
  const [made, setMade] = useState("");
  const [shown, setShown] = useState(obstacle() !== "");
  const [saved, setSaved] = useState(false);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  if (shown) return <Credentials mailbox={mailbox} given={given} />;
  const make = async () => {
    setBusy(true);
    setError("");
    try {
      setMade((await addPasskey()).name);
    } catch (failure) {
      setError(why(failure));
    }
    setBusy(false);
  };
  const ready = made !== "" && (saved || !given.recovery_code);
  return (
    <main class="welcome">
      <h1 class="title">You are @{given.handle}</h1>
      <p class="soft">
        {given.recovery_code
          ? "Two things, and you are done."
          : "Everything else that was signed in is signed out, and your old passkeys are gone."}
      </p>
      <div class="stack card">
        {made ? (
          <p role="status">✓ Your passkey is ready. You sign in with it from now on.</p>
        ) : (
          <>
            <p>
              Make a passkey to sign in with your fingerprint, your face or the PIN of this device.
            </p>
            <Button kind="primary" icon="lock" disabled={busy} onClick={() => void make()}>
              Make a passkey
            </Button>
          </>
        )}
        {error && (
          <p class="small error" role="alert">
            {error}
          </p>
        )}
      </div>
      <div class="stack card">
        {given.recovery_code && (
          <>
            <CopyText label="Recovery code" text={given.recovery_code} />
            <p class="small soft">
              Save it where only you can read it. If you lose your device, it is the way back. It is
              not shown again.
            </p>
            <Check checked={saved} onChange={setSaved}>
              I have saved the recovery code.
            </Check>
          </>
        )}
        <Button {...(made ? { kind: "primary" as const } : {})} disabled={!ready} onClick={() => void mailbox.start()}>
          Open the inbox
        </Button>
      </div>
      <Button kind="plain" onClick={() => setShown(true)}>
        Use a token instead
      </Button>
    </main>
  );
}
