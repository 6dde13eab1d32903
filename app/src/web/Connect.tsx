/** `/connect/…` and `/oauth/callback`: the reader signs in to a server behind the hub, and comes back. */
import { useEffect, useState } from "preact/hooks";

import { sentence } from "../api/call";
import type * as hub from "../api/schema";
import { Button, Notice, Ring } from "../components/parts";
import type { Reader } from "./Authorize";
import { ask } from "./rest";

const BACK = "/oauth/callback";
const CONNECTIONS = "/v1/me/connections";
/** What the reader came back with: it must stay in no history. */
const came = location.pathname === BACK ? location.search.slice(1) : "";
if (came) history.replaceState(null, "", BACK);

/** A call of the reader's, or a program, led them here: on to the server's own sign-in. */
export function Connect({ handle, onOther }: Reader) {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const go = async () => {
    setBusy(true);
    setError("");
    try {
      const ticket = location.pathname.split("/")[2] ?? "";
      location.replace((await ask<hub.ConnectionBegun>("POST", CONNECTIONS, { ticket })).url);
    } catch (failure) {
      setError(sentence(failure));
      setBusy(false);
    }
  };
  return (
    <Page title="Sign in to a server">
      <div class="card stack">
        <p>
          A server behind this hub wants you to sign in to it. You are sent to its own page, where you say what
          Folkmoot can do there as <b>@{handle}</b>.
        </p>
        <p class="small soft">Continue only if you have just used the server yourself.</p>
        {error && (
          <p class="small error" role="alert">
            {error}
          </p>
        )}
        <Button kind="primary" disabled={busy} onClick={() => void go()}>
          Continue
        </Button>
      </div>
      <Button kind="plain" onClick={onOther}>
        Not @{handle}? Sign in as someone else
      </Button>
    </Page>
  );
}

/** The reader comes back from the server's sign-in. */
export function Connected(_: Reader) {
  const [said, setSaid] = useState("");
  const [error, setError] = useState("");
  useEffect(() => {
    ask<hub.ConnectionMade>("POST", `${CONNECTIONS}/finish`, { query: came || "-" }).then(
      ({ namespace }) => setSaid(`You are signed in to ${namespace}. What waited for it goes on by itself.`),
      (failure) => setError(sentence(failure)),
    );
  }, []);
  return (
    <Page title="Sign in to a server" busy={!said && !error}>
      {!said && !error && <p class="soft">Loading…</p>}
      {(said || error) && (
        <Notice tone={error ? "danger" : "good"}>
          <p role={error ? "alert" : "status"}>{error || said}</p>
        </Notice>
      )}
      {(said || error) && (
        <p class="soft">
          You can close this page, or see <a href="/servers">your servers</a>.
        </p>
      )}
    </Page>
  );
}

function Page({ title, busy = false, children }: { title: string; busy?: boolean; children: preact.ComponentChildren }) {
  return (
    <main class="welcome" aria-busy={busy}>
      <Ring size={72} stones={17} scale={5.4} />
      <h1 class="title" id="page-title" tabIndex={-1}>
        {title}
      </h1>
      {children}
    </main>
  );
}
