/** For someone with the link of an invitation: enter one room as a guest, without an account. */
import { useState } from "preact/hooks";

import { sentence } from "../api/call";
import { Button, Notice, Ring } from "../components/parts";
import { signInPath } from "../web/paths";
import { pathTo } from "./router";
import { enterAsGuest, invitation, who } from "./session";

export function Invited({ onEnter }: { onEnter: () => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const room = invitation.value?.room ?? "";
  const me = who.value;
  const enter = async () => {
    setBusy(true);
    setError("");
    try {
      await enterAsGuest();
      await onEnter();
    } catch (failure) {
      setError(sentence(failure).replace(/^Authentication required\. /, ""));
      setBusy(false);
    }
  };
  return (
    <main class="alone">
      <Ring size={64} stones={17} scale={5.4} />
      <h1 class="title">{`You are invited to ${room}`}</h1>
      {me ? (
        <>
          <Notice tone="info">
            {me.guest
              ? `This browser is a guest of ${me.room} already. Open the link in a private window.`
              : `You are signed in as @${me.handle}. The invitation is for someone without an account: open the link in a private window, or ask to be invited by your handle.`}
          </Notice>
          <Button onClick={() => (invitation.value = null)}>Go on without it</Button>
        </>
      ) : (
        <>
          <p class="soft">
            You enter as a guest, under the name that your host chose. Everyone in the room sees that you
            enter and what you write. The link works once, and only in this browser from then on.
          </p>
          {error && (
            <Notice tone="danger">
              <span role="alert">{error}</span>
            </Notice>
          )}
          <Button kind="primary" disabled={busy} onClick={() => void enter()}>
            Enter as a guest
          </Button>
          <a href={signInPath(pathTo("rooms", room))}>I have an account</a>
        </>
      )}
    </main>
  );
}
