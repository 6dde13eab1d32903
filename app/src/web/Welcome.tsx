/** For someone who has just registered, or recovered their account, in this browser. */
import { useState } from "preact/hooks";

import type { SignedUp } from "../api/types";
import { Button, Check, CopyText } from "../components/parts";
import { Clients } from "./Clients";
import { addPasskey, obstacle, why } from "./passkeys";
import { staysSignedIn } from "./rest";

/** They make a passkey and keep the recovery code; a token is for programs, and shown if asked for. */
export function Welcome({ given, onDone }: { given: SignedUp; onDone: () => void }) {
  const [made, setMade] = useState("");
  const [token, setToken] = useState(obstacle() !== "");
  const [saved, setSaved] = useState(false);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
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
  const code = given.recovery_code;
  const secrets = [token && "the token", code && "the recovery code"].filter(Boolean).join(" and ");
  const ready = (made !== "" || token) && (saved || !secrets);
  return (
    <main class="welcome">
      <h1 class="title">You are @{given.handle}</h1>
      <p class="soft">
        {code
          ? "Two things, and you are done."
          : "Everything else that was signed in is signed out, and your old passkeys are gone."}
      </p>
      <div class="stack card">
        {token ? (
          <>
            <CopyText label="Token" text={given.token} />
            <p class="small soft">
              {obstacle()}{" "}
              {staysSignedIn()
                ? "Sign in with this token next time."
                : "A browser can be signed in only over https, so use the token in your assistant."}{" "}
              Anyone who has it can use your account.
            </p>
          </>
        ) : made ? (
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
        {code && (
          <>
            <CopyText label="Recovery code" text={code} />
            <p class="small soft">
              Save it where only you can read it. If you lose your device, it is the way back. It is
              not shown again.
            </p>
          </>
        )}
        {secrets && (
          <Check checked={saved} onChange={setSaved}>
            I have saved {secrets}.
          </Check>
        )}
        <Button {...(made || token ? { kind: "primary" as const } : {})} disabled={!ready} onClick={onDone}>
          Continue
        </Button>
      </div>
      {given.recovery_code && staysSignedIn() && (
        <details class="card">
          <summary>Connect your assistant</summary>
          <Clients token={given.token} />
        </details>
      )}
      {!token && !made && (
        <Button kind="plain" onClick={() => setToken(true)}>
          Use a token instead
        </Button>
      )}
    </main>
  );
}
