/** Contacts, blocked people and invitations. */
import type { ComponentChildren } from "preact";
import { useEffect, useState } from "preact/hooks";

import type { Contact } from "../api/types";
import type { Mailbox } from "../mail/mailbox";
import { displayName, plainHandle } from "../text/names";
import { reachOf } from "../text/reach";
import { Page } from "./Page";
import { Confirm } from "./Dialog";
import { Button, CopyText, Field } from "./parts";

export function People({ mailbox }: { mailbox: Mailbox }) {
  const [contacts, setContacts] = useState<Contact[] | null>(null);
  const [blocked, setBlocked] = useState<string[] | null>(null);
  const { call } = mailbox.around;
  const load = async () => {
    setContacts(await all((cursor) => call("msg/contacts", cursor), (page) => page.contacts));
    setBlocked(await all((cursor) => call("msg/blocks", cursor), (page) => page.blocked));
  };
  useEffect(() => void mailbox.attempt(load), []);
  const change = async (work: () => Promise<unknown>, said: string) => {
    const done = await mailbox.attempt(async () => {
      await work();
      await load();
      return true;
    });
    if (done) mailbox.say(said);
    return Boolean(done);
  };
  return (
    <Page mailbox={mailbox} title="People">
      <Part title="Contacts" hint="Contacts can write to you whatever your privacy setting is.">
        {contacts?.length === 0 && <p class="soft">No contacts yet.</p>}
        <ul class="people">
          {contacts?.map((contact) => (
            <li key={contact.handle} class="line">
              <span class="grow">
                <bdi>{displayName(contact.nickname || contact.display_name, contact.handle)}</bdi>{" "}
                <span class="soft small">@{contact.handle}</span>
              </span>
              <Button
                icon="write"
                label={`Write to @${contact.handle}`}
                onClick={() => mailbox.go({ name: "compose", to: contact.handle })}
              />
              <Confirm
                icon="trash"
                iconOnly
                label="Remove"
                question={`Remove @${contact.handle} from your contacts?`}
                onConfirm={() =>
                  void change(
                    () => call("msg/remove_contact", { handle: contact.handle }),
                    `@${contact.handle} is no longer a contact.`,
                  )
                }
              />
            </li>
          ))}
        </ul>
        <AddContact
          onAdd={(handle, nickname) =>
            change(
              () => call("msg/add_contact", { handle, ...(nickname ? { nickname } : {}) }),
              `@${handle} is a contact now.`,
            )
          }
        />
      </Part>
      <Invite mailbox={mailbox} />
      <Part title="Blocked" hint="Blocked people cannot write to you. They are not told.">
        {blocked?.length === 0 && <p class="soft">Nobody is blocked.</p>}
        <ul class="people">
          {blocked?.map((handle) => (
            <li key={handle} class="line">
              <span class="grow">@{handle}</span>
              <Button
                onClick={() =>
                  void change(
                    () => call("msg/block", { handle, action: "unblock" }),
                    `@${handle} is not blocked any more.`,
                  )
                }
              >
                Unblock
              </Button>
            </li>
          ))}
        </ul>
        <AddBlock
          onAdd={(handle) =>
            change(() => call("msg/block", { handle, action: "block" }), `@${handle} is blocked.`)
          }
        />
      </Part>
    </Page>
  );
}

export function Part(props: { title: string; hint?: string; children: ComponentChildren }) {
  return (
    <section class="part stack" aria-label={props.title}>
      <div>
        <h3 class="subtitle">{props.title}</h3>
        {props.hint && <p class="small soft">{props.hint}</p>}
      </div>
      {props.children}
    </section>
  );
}

function AddContact({ onAdd }: { onAdd: (handle: string, nickname: string) => Promise<boolean> }) {
  const [handle, setHandle] = useState("");
  const [nickname, setNickname] = useState("");
  const add = async () => {
    if (plainHandle(handle) && (await onAdd(plainHandle(handle), nickname.trim()))) {
      setHandle("");
      setNickname("");
    }
  };
  return (
    <div class="inline">
      <Field label="Handle" value={handle} onInput={setHandle} onEnter={() => void add()} most={21} />
      <Field
        label="Nickname (optional)"
        value={nickname}
        onInput={setNickname}
        onEnter={() => void add()}
        most={100}
      />
      <Button onClick={() => void add()}>Add contact</Button>
    </div>
  );
}

function AddBlock({ onAdd }: { onAdd: (handle: string) => Promise<boolean> }) {
  const [handle, setHandle] = useState("");
  const add = async () => {
    if (plainHandle(handle) && (await onAdd(plainHandle(handle)))) setHandle("");
  };
  return (
    <div class="inline">
      <Field
        label="Handle to block"
        value={handle}
        onInput={setHandle}
        onEnter={() => void add()}
        most={21}
      />
      <Button onClick={() => void add()}>Block</Button>
    </div>
  );
}

function Invite({ mailbox }: { mailbox: Mailbox }) {
  const [words, setWords] = useState("");
  const [link, setLink] = useState("");
  const make = async () => {
    const message = words.trim();
    const answer = await mailbox.attempt(() =>
      mailbox.around.call("msg/invite", message ? { message } : {}),
    );
    if (answer) setLink(answer.invite_url);
  };
  return (
    <Part title="Invite someone" hint="A link works for one person, once.">
      <Field
        label="Message (optional)"
        rows={2}
        value={words}
        onInput={setWords}
        hint="Shown on the invitation page"
      />
      <div class="line">
        <Button icon="mail" onClick={() => void make()}>
          Make a link
        </Button>
      </div>
      {link && <CopyText label="Invitation link" text={link} />}
      {link && <p class="small soft">{reachOf(link)}</p>}
    </Part>
  );
}

type Paged = { next_cursor: string | null };

async function all<P extends Paged, T>(
  ask: (page: { limit: number; cursor?: string }) => Promise<P>,
  of: (page: P) => T[],
): Promise<T[]> {
  const found: T[] = [];
  let cursor: string | null = null;
  do {
    const page: P = await ask({ limit: 100, ...(cursor ? { cursor } : {}) });
    found.push(...of(page));
    cursor = page.next_cursor;
  } while (cursor);
  return found;
}
