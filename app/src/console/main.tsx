/** The console: one page for everything but mail and one's account, for whoever is signed in. */
import { effect, signal } from "@preact/signals";
import { render } from "preact";

import { sentence } from "../api/call";
import { Button, Notice, Ring } from "../components/parts";
import { Navigation } from "../navigation/Navigation";
import { keepPage } from "../web/install";
import { signInPath } from "../web/paths";
import { requests } from "../web/requests";
import { closeLive, openLive } from "./live";
import { Invited } from "./Invited";
import { PAGES } from "./pages";
import { followLinks } from "./router";
import { guestOf, invitation, leave, lost, start, takeInvitation, who } from "./session";
import { Shell } from "./Shell";

import "../design/tokens.css";
import "../design/base.css";
import "./design/console.css";
import "./design/table.css";
import "./design/markdown.css";
import "./design/proposal.css";
import "./design/messages.css";
import "./design/rooms.css";

const AGAIN_MS = 5_000;
const trouble = signal("");

async function begin(): Promise<void> {
  try {
    if (await start()) openLive();
    trouble.value = "";
  } catch (error) {
    trouble.value = sentence(error);
    setTimeout(() => void begin(), AGAIN_MS);
  }
}

function App() {
  if (lost.value) return <Ended />;
  if (invitation.value) return <Invited onEnter={begin} />;
  if (who.value) return <Shell />;
  return (
    <div class={trouble.value ? "framed" : ""}>
      {trouble.value && <Navigation path={location.pathname} onSignOut={() => void leave().catch(() => {})} />}
      <main class="alone" aria-busy={!trouble.value}>
        <Ring size={64} stones={17} scale={5.4} />
        {trouble.value ? <p role="alert">{trouble.value}</p> : <p class="soft">Loading…</p>}
        {trouble.value && <Button onClick={() => void begin()}>Try again</Button>}
      </main>
    </div>
  );
}

function Ended() {
  return (
    <main class="alone">
      <Ring size={64} stones={17} scale={5.4} />
      <h1 class="title">{guestOf.value ? "You have left" : "Signed out"}</h1>
      <Notice tone="info">{lost.value}</Notice>
      {!guestOf.value && (
        <a class="button primary" href={signInPath(location.pathname + location.search)}>
          Sign in again
        </a>
      )}
    </main>
  );
}

effect(() => {
  if (!lost.value) return;
  closeLive();
  document.title = "Signed out · Folkmoot";
});
// A page that the browser kept while another was shown may be of somebody who signed out since.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  if (requests().signal.aborted) location.reload();
  else void start().catch(() => {});
});
takeInvitation();
addEventListener("hashchange", takeInvitation);
followLinks(PAGES);
render(<App />, document.getElementById("console")!);
void begin();
keepPage();
