/** What to do first, until it is done or dismissed. Each is marked as done by what the hub has. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, CopyText, Field } from "../../../components/parts";
import { reachOf } from "../../../text/reach";
import { callers, Clients } from "../../../web/Clients";
import { send, useLoad } from "../../data";
import { go, pathTo } from "../../router";
import { may, operates, who } from "../../session";

interface Step {
  title: string;
  /** What the hub answered; null until it did. */
  done: boolean | null;
  body: ComponentChildren;
}

/** Dismissing is remembered in this browser: the hub works the same without it. */
const keyOf = (handle: string) => `folkmoot.begun.${handle}`;
function isDismissed(handle: string): boolean {
  try {
    return localStorage.getItem(keyOf(handle)) !== null;
  } catch {
    return false;
  }
}

export function Begin() {
  const handle = who.value?.handle ?? "";
  const [dismissed, setDismissed] = useState(() => isDismissed(handle));
  return dismissed || !handle || !may("account.read") ? null : (
    <Steps
      onDismiss={() => {
        setDismissed(true);
        try {
          localStorage.setItem(keyOf(handle), "1");
        } catch {
          // It is shown again next time.
        }
      }}
    />
  );
}

function Steps({ onDismiss }: { onDismiss: () => void }) {
  const opened = useLoad<hub.Tokens>("/v1/me/credentials", ["tokens.changed"]);
  const invites = useLoad<hub.OpenInvites>(may("contacts") ? "/v1/me/invites?limit=1" : null);
  const contacts = useLoad<hub.ContactPage>(may("contacts") ? "/v1/contacts?limit=1" : null, ["contacts.changed"]);
  const rooms = useLoad<hub.RoomPage>(may("rooms.manage") ? "/v1/rooms?limit=100" : null, ["room.membership"]);
  const servers = useLoad<{ backends: unknown[] }>(operates.value ? "/v1/servers" : null, [
    "server.changed",
    "settings.changed",
  ]);
  const steps: Step[] = [
    {
      title: "Connect an assistant",
      done: opened.data && callers(opened.data.tokens).length > 0,
      body: <Clients onConnected={opened.reload} />,
    },
  ];
  if (may("contacts")) {
    steps.push({
      title: "Invite someone",
      done: invites.data && contacts.data && invites.data.invites.length + contacts.data.contacts.length > 0,
      body: <Invite />,
    });
  }
  if (may("rooms.manage")) {
    steps.push({
      title: "Make a room",
      done: rooms.data && rooms.data.rooms.some((it) => it.role !== null),
      body: <MakeRoom />,
    });
  }
  if (operates.value) {
    steps.push({
      title: "Add a server",
      done: servers.data && servers.data.backends.length > 0,
      body: (
        <>
          <p class="soft">Paste what you would give an MCP client. Then choose who can use its tools.</p>
          <div class="line">
            <a class="button" href="/servers?add=1">
              Add a server
            </a>
          </div>
        </>
      ),
    });
  }
  if (steps.some((it) => it.done === null) || steps.every((it) => it.done)) return null;
  const first = steps.findIndex((it) => !it.done);
  return (
    <section class="section begin" aria-label="Get started">
      <div class="line">
        <h2 class="subtitle grow">Get started</h2>
        <Button kind="plain" onClick={onDismiss}>
          Dismiss
        </Button>
      </div>
      {steps.map(({ title, done, body }, index) => (
        <details key={title} open={index === first} class={done ? "is-done" : ""}>
          <summary>
            {done ? "✓ " : ""}
            {title}
            {done && <span class="hidden"> (done)</span>}
          </summary>
          <div class="stack">{body}</div>
        </details>
      ))}
    </section>
  );
}

function Invite() {
  const [words, setWords] = useState("");
  const [link, setLink] = useState("");
  const [error, setError] = useState("");
  const make = async () => {
    setError("");
    const message = words.trim();
    try {
      setLink((await send<hub.InviteMade>("POST", "/v1/invites", message ? { message } : {})).invite_url);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  return (
    <>
      <Field
        label="Message (optional)"
        value={words}
        onInput={setWords}
        onEnter={() => void make()}
        error={error}
        hint="Shown on the invitation page"
      />
      <div class="line">
        <Button onClick={() => void make()}>Make a link</Button>
      </div>
      {link && <CopyText label="Invitation link" text={link} />}
      {link && <p class="small soft">The link works for one person, once. {reachOf(link)}</p>}
    </>
  );
}

function MakeRoom() {
  const [name, setName] = useState("");
  const [error, setError] = useState("");
  const make = async () => {
    setError("");
    try {
      await send("POST", "/v1/rooms", { name: name.trim() });
      go(pathTo("rooms", name.trim()));
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  return (
    <div class="inline">
      <Field
        label="Name of the room"
        value={name}
        onInput={setName}
        onEnter={() => void make()}
        error={error}
        most={64}
        placeholder="harbour"
      />
      <Button disabled={!name.trim()} onClick={() => void make()}>
        Create
      </Button>
    </div>
  );
}
