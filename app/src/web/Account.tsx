/** `/account`: one's profile, the browsers and tokens that open the account, and its end. */
import { useEffect, useState } from "preact/hooks";

import { sentence } from "../api/call";
import { Button, Confirm, CopyText, Field, Notice } from "../components/parts";
import { Part } from "../components/People";
import { ProfilePart } from "../components/Settings";
import type { Mailbox } from "../mail/mailbox";
import { displayName, plainHandle } from "../text/names";
import { shortTime } from "../text/time";
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
}

export function Account({ mailbox, onKeys, onGone }: Props) {
  const me = mailbox.me.value;
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
          <Opened mailbox={mailbox} onGone={onGone} />
          <Invitations mailbox={mailbox} />
          <Part title="End-to-end encryption">
            <p class="soft">Your key is kept in this browser, and stays here when you sign out.</p>
            <div class="line">
              <Button icon="lock" onClick={onKeys}>
                Keys and backup
              </Button>
            </div>
          </Part>
          <Part title="Your data" hint="Everything that the hub keeps of you, as a JSON file.">
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

/** The browsers and tokens that open the account. */
function Opened({ mailbox, onGone }: { mailbox: Mailbox; onGone: (reason: string) => void }) {
  const [all, setAll] = useState<Credential[] | null>(null);
  const [label, setLabel] = useState("");
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  const [made, setMade] = useState("");
  const load = () => mailbox.attempt(async () => setAll(await credentials()));
  useEffect(() => void load(), []);
  const end = (it: Credential) =>
    mailbox.attempt(async () => {
      await revoke(it.id);
      if (it.current) return onGone("This browser is signed out.");
      mailbox.say(it.kind === "browser" ? "That browser is signed out." : "The token is revoked.");
      await load();
    });
  const create = async () => {
    setError("");
    try {
      setMade((await createToken(label.trim(), token.trim())).token);
    } catch (failure) {
      return setError(sentence(failure));
    }
    setLabel("");
    setToken("");
    await load();
  };
  const browsers = all?.filter((it) => it.kind === "browser") ?? [];
  const tokens = all?.filter((it) => it.kind !== "browser") ?? [];
  return (
    <>
      <Part title="Browsers" hint="Where you are signed in. Signing one out ends it at once.">
        <ul class="people">
          {browsers.map((it) => (
            <Entry key={it.id} it={it} verb="Sign out" question="Sign out there?" onEnd={end} />
          ))}
        </ul>
      </Part>
      <Part
        title="Tokens"
        hint="Your assistants and programs use them. Give each its own, so that you can revoke one."
      >
        <ul class="people">
          {tokens.map((it) => (
            <Entry
              key={it.id}
              it={it}
              verb="Revoke"
              question="Whatever uses it is signed out, and browsers that signed in with it."
              onEnd={end}
            />
          ))}
        </ul>
        <Field
          label="New token: what is it for?"
          value={label}
          onInput={setLabel}
          most={100}
          placeholder="laptop"
        />
        <div class="inline">
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
          <Button disabled={!token.trim()} onClick={() => void create()}>
            Create
          </Button>
        </div>
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
