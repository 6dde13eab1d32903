/** `/account`: one's profile, the browsers and tokens that open the account, and its end. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { sentence } from "../api/call";
import { Confirm } from "../components/Dialog";
import { Button, CopyText, Field, focused, Notice } from "../components/parts";
import { Part } from "../components/People";
import { ProfilePart } from "../components/Settings";
import type { Mailbox } from "../mail/mailbox";
import { displayName, plainHandle } from "../text/names";
import { shortTime } from "../text/time";
import { Clients } from "./Clients";
import { addPasskey, obstacle, type Passkey, passkeys, removePasskey, renamePasskey, why } from "./passkeys";
import {
  changeHandle,
  createToken,
  type Credential,
  credentials,
  deleteAccount,
  type OpenInvite,
  openInvites,
  revoke,
  withdrawInvite,
} from "./session";
import { who } from "./who";

interface Props {
  mailbox: Mailbox;
  onKeys: () => void;
  onGone: (reason: string) => void;
  onSignOut: () => void;
}

export function Account({ mailbox, onKeys, onGone, onSignOut }: Props) {
  const me = mailbox.me.value;
  const [keys, setKeys] = useState<readonly Passkey[]>([]);
  const load = () => mailbox.attempt(async () => setKeys(await passkeys()));
  useEffect(() => void load(), []);
  if (!me) return null;
  const { text, bad } = mailbox.said.value;
  return (
    <div class="app" data-view="account">
      <header class="bar">
        <h1 class="bar-title" id="page-title" tabIndex={-1}>
          Account
        </h1>
      </header>
      <main class="scroll pad" tabIndex={0} aria-label="Account">
        <div class="page-body">
          <h2 class="title">{displayName(me.display_name, me.handle)}</h2>
          <ProfilePart mailbox={mailbox} me={me} />
          <HandlePart mailbox={mailbox} />
          <Passkeys mailbox={mailbox} all={keys} onChange={load} />
          <Part title="Connect an assistant">
            <Clients />
          </Part>
          <Opened mailbox={mailbox} present={isHere(keys)} onSignOut={onSignOut} />
          <Invitations mailbox={mailbox} />
          <Part title="End-to-end encryption">
            <p class="soft">Your key is kept in this browser, and stays here when you sign out.</p>
            <div class="line">
              <Button icon="lock" onClick={onKeys}>
                Keys and backup
              </Button>
            </div>
          </Part>
          <Part title="Your data" hint="A copy of your data, as JSON.">
            <div class="line">
              <a class="button" href="/v1/me/export" download>
                Download
              </a>
            </div>
          </Part>
          <Deletion handle={me.handle} onGone={onGone} />
        </div>
      </main>
      <footer class="said small">
        <span role="status" class={bad ? "error" : "soft"}>
          {text}
        </span>
      </footer>
    </div>
  );
}

function HandlePart({ mailbox }: { mailbox: Mailbox }) {
  const [handle, setHandle] = useState("");
  const [error, setError] = useState("");
  const save = async () => {
    setError("");
    try {
      const changed = await changeHandle(plainHandle(handle));
      const me = mailbox.me.value;
      if (me) mailbox.me.value = { ...me, handle: changed.new_handle };
      if (who.value) who.value = { ...who.value, handle: changed.new_handle };
      setHandle("");
      mailbox.say(changed.message);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  return (
    <Part title="Handle" hint="Your old handle leads to the new one for 30 days.">
      <div class="inline">
        <Field
          label="New handle"
          value={handle}
          onInput={setHandle}
          onEnter={() => void save()}
          error={error}
          most={21}
        />
        <Button disabled={!handle.trim()} onClick={() => void save()}>
          Change
        </Button>
      </div>
    </Part>
  );
}

/** Whether one of the passkeys can be used on this page. */
const isHere = (all: readonly Passkey[]) => !obstacle() && all.some((it) => it.rp_id === location.hostname);

interface PasskeysProps {
  mailbox: Mailbox;
  all: readonly Passkey[];
  onChange: () => unknown;
}

/** What one signs in with. */
function Passkeys({ mailbox, all, onChange }: PasskeysProps) {
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const add = async () => {
    setBusy(true);
    setError("");
    try {
      await addPasskey();
      mailbox.say("The passkey is added.");
      await onChange();
    } catch (failure) {
      setError(why(failure));
    }
    setBusy(false);
  };
  const hindered = obstacle();
  const part = useRef<HTMLDivElement>(null);
  // Whoever has just joined comes for this alone.
  useLayoutEffect(() => {
    if (location.search === "?passkey") part.current?.querySelector("button")?.focus();
  }, []);
  return (
    <Part
      title="Passkeys"
      hint="You sign in with your fingerprint, your face or the PIN of a device. Have one on each device that you use."
    >
      {all.length === 0 && <p class="soft">None yet.</p>}
      <ul class="people">
        {all.map((it) => (
          <OnePasskey key={it.id} it={it} last={all.length === 1} mailbox={mailbox} onChange={onChange} />
        ))}
      </ul>
      {error && (
        <p class="small error" role="alert">
          {error}
        </p>
      )}
      {hindered ? (
        <p class="small soft">{hindered}</p>
      ) : (
        <div class="line" ref={part}>
          <Button icon="lock" disabled={busy} onClick={() => void add()}>
            Add a passkey
          </Button>
        </div>
      )}
    </Part>
  );
}

interface OnePasskeyProps {
  it: Passkey;
  last: boolean;
  mailbox: Mailbox;
  onChange: () => unknown;
}

function OnePasskey({ it, last, mailbox, onChange }: OnePasskeyProps) {
  const [doing, setDoing] = useState<"" | "rename" | "remove">("");
  const [text, setText] = useState("");
  const [error, setError] = useState("");
  const begin = (what: typeof doing) => {
    setText(what === "rename" ? it.name : "");
    setError("");
    setDoing(what);
  };
  const finish = async (work: Promise<unknown>, said: string) => {
    setError("");
    try {
      await work;
    } catch (failure) {
      return setError(sentence(failure));
    }
    setDoing("");
    mailbox.say(said);
    await onChange();
  };
  const rename = () => finish(renamePasskey(it.id, text), "The passkey has a new name.");
  const remove = (otherWay = "") => finish(removePasskey(it.id, otherWay), "The passkey is removed.");
  const used = it.used_at === null ? "not used yet" : `used ${shortTime(it.used_at)}`;
  return (
    <li class="stack">
      <div class="line">
        <span class="grow">
          <span>{it.name}</span>
          <br />
          <span class="small soft">
            {used}, at {it.rp_id}
          </span>
        </span>
        {doing === "" && (
          <Button label={`Rename ${it.name}`} kind="plain" icon="write" onClick={() => begin("rename")} />
        )}
        {doing === "" && last && <Button onClick={() => begin("remove")}>Remove</Button>}
        {doing === "" && !last && (
          <Confirm
            label="Remove"
            question="It opens your account no longer. Browsers stay signed in."
            onConfirm={() => void remove()}
          />
        )}
      </div>
      {doing === "" && error && (
        <p class="small error" role="alert">
          {error}
        </p>
      )}
      {doing === "rename" && (
        <>
          <Field
            label="Name of the passkey"
            value={text}
            onInput={setText}
            onEnter={() => void rename()}
            error={error}
            most={100}
            inputRef={focused}
          />
          <div class="line">
            <Button disabled={!text.trim()} onClick={() => void rename()}>
              Save
            </Button>
            <Button kind="plain" onClick={() => begin("")}>
              Cancel
            </Button>
          </div>
        </>
      )}
      {doing === "remove" && (
        <>
          <Field
            label="One of your tokens, or your recovery code"
            secret
            value={text}
            onInput={setText}
            onEnter={() => void remove(text)}
            error={error}
            most={200}
            hint="This is your last passkey. Show that you can still sign in without it."
            inputRef={focused}
          />
          <div class="line">
            <Button kind="danger" disabled={!text.trim()} onClick={() => void remove(text)}>
              Remove it
            </Button>
            <Button kind="plain" onClick={() => begin("")}>
              Keep
            </Button>
          </div>
        </>
      )}
    </li>
  );
}

const ENDED: Record<Credential["kind"], string> = {
  browser: "That browser is signed out.",
  token: "The token is revoked.",
  app: "The app is disconnected.",
  device: "The app is disconnected.",
};

interface OpenedProps {
  mailbox: Mailbox;
  /** Whether the reader can show with a passkey that they are there. */
  present: boolean;
  onSignOut: () => void;
}

/** The browsers, apps and tokens that open the account. */
function Opened({ mailbox, present, onSignOut }: OpenedProps) {
  const [all, setAll] = useState<Credential[] | null>(null);
  const [label, setLabel] = useState("");
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  const [made, setMade] = useState("");
  const load = () => mailbox.attempt(async () => setAll(await credentials()));
  useEffect(() => void load(), []);
  const end = (it: Credential) =>
    mailbox.attempt(async () => {
      if (it.current) return onSignOut();
      await revoke(it.id);
      mailbox.say(ENDED[it.kind]);
      await load();
    });
  const create = async () => {
    setError("");
    try {
      setMade((await createToken(label.trim(), token.trim())).token);
    } catch (failure) {
      return setError(why(failure));
    }
    setLabel("");
    setToken("");
    await load();
  };
  const of = (...kinds: Credential["kind"][]) => all?.filter((it) => kinds.includes(it.kind)) ?? [];
  const apps = of("app", "device");
  const what = (
    <Field
      label="New token: what is it for?"
      value={label}
      onInput={setLabel}
      {...(present ? { onEnter: () => void create(), error } : {})}
      most={100}
      placeholder="laptop"
    />
  );
  return (
    <>
      <Part title="Browsers" hint="Where you are signed in. Signing one out ends it at once.">
        <ul class="people">
          {of("browser").map((it) => (
            <Entry key={it.id} it={it} verb="Sign out" question="Sign out there?" onEnd={end} />
          ))}
        </ul>
      </Part>
      <Part title="Connected apps" hint="Assistants and programs that you let use your account.">
        {apps.length === 0 && <p class="soft">None. Give an assistant the address of this hub, and it asks you.</p>}
        <ul class="people">
          {apps.map((it) => (
            <Entry key={it.id} it={it} verb="Disconnect" question="It is signed out at once." onEnd={end} />
          ))}
        </ul>
      </Part>
      <Part
        title="Tokens"
        hint="Your assistants and programs use them. Give each its own, so that you can revoke one."
      >
        <ul class="people">
          {of("token").map((it) => (
            <Entry
              key={it.id}
              it={it}
              verb="Revoke"
              question="Whatever uses it is signed out, and browsers that signed in with it."
              onEnd={end}
            />
          ))}
        </ul>
        {!present && what}
        <div class="inline">
          {present ? (
            what
          ) : (
            <Field
              label="One of your tokens, once more"
              secret
              value={token}
              onInput={setToken}
              onEnter={() => void create()}
              most={200}
              hint="So that nobody can make a token in a browser that you left open."
              error={error}
            />
          )}
          <Button disabled={!present && !token.trim()} onClick={() => void create()}>
            Create
          </Button>
        </div>
        {present && <p class="small soft">Your passkey shows that it is you.</p>}
        {made && (
          <Notice tone="warning">
            <div class="stack">
              <p>Copy the token now. It is not shown again.</p>
              <CopyText label="Token" text={made} />
              <div class="line">
                <Button onClick={() => setMade("")}>I have saved it</Button>
              </div>
            </div>
          </Notice>
        )}
      </Part>
    </>
  );
}

/** The invitations to the hub that one made and nobody has used yet. */
function Invitations({ mailbox }: { mailbox: Mailbox }) {
  const [all, setAll] = useState<readonly OpenInvite[]>([]);
  const [next, setNext] = useState<string | null>(null);
  const load = (cursor?: string) =>
    mailbox.attempt(async () => {
      const page = await openInvites(cursor);
      setAll((before) => (cursor ? [...before, ...page.invites] : page.invites));
      setNext(page.next_cursor);
    });
  useEffect(() => void load(), []);
  const withdraw = (it: OpenInvite) =>
    mailbox.attempt(async () => {
      await withdrawInvite(it.id);
      mailbox.say("The invitation is withdrawn.");
      await load();
    });
  return (
    <Part title="Open invitations" hint="Links that you made and nobody has used yet. They are not shown again.">
      {all.length === 0 && <p class="soft">None. You invite people from the inbox, under People.</p>}
      <ul class="people">
        {all.map((it) => (
          <li key={it.id} class="line">
            <span class="grow">
              Made {shortTime(it.created_at)}
              {it.has_message && <span class="small soft">, with a message</span>}
            </span>
            <Confirm label="Withdraw" question="Its link stops working at once." onConfirm={() => withdraw(it)} />
          </li>
        ))}
      </ul>
      {next && (
        <div class="line">
          <Button onClick={() => void load(next)}>Show more</Button>
        </div>
      )}
    </Part>
  );
}

/** What a credential may do, where that is not simply everything that the account may do. */
function reach(scope: string): string {
  if (scope === "*") return "";
  return scope === "* operate" ? ", also runs the hub" : `, only ${scope}`;
}

interface EntryProps {
  it: Credential;
  verb: string;
  question: string;
  onEnd: (it: Credential) => void;
}

function Entry({ it, verb, question, onEnd }: EntryProps) {
  const used = it.used_at === null ? "not used yet" : `used ${shortTime(it.used_at)}`;
  const until = it.expires_at === null ? "" : `, ends ${shortTime(it.expires_at)}`;
  return (
    <li class="line">
      <span class="grow">
        <span>{it.label || (it.kind === "browser" ? "Browser" : "Token")}</span>{" "}
        {it.current && <span class="tag">this browser</span>}
        <br />
        <span class="small soft">
          {used}
          {until}
          {reach(it.scope)}
        </span>
      </span>
      <Confirm label={verb} question={question} onConfirm={() => onEnd(it)} />
    </li>
  );
}

function Deletion({ handle, onGone }: { handle: string; onGone: (reason: string) => void }) {
  const [typed, setTyped] = useState("");
  const [error, setError] = useState("");
  const end = async () => {
    setError("");
    try {
      onGone((await deleteAccount(handle)).message);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  return (
    <Part
      title="Delete the account"
      hint="Your profile, every message you sent, your threads, contacts and blocks are removed. This cannot be undone."
    >
      <div class="inline">
        <Field
          label={`Type ${handle} to confirm`}
          value={typed}
          onInput={setTyped}
          error={error}
          most={21}
        />
        <Button kind="danger" disabled={plainHandle(typed) !== handle} onClick={() => void end()}>
          Delete
        </Button>
      </div>
    </Part>
  );
}
