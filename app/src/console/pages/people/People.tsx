/** `/people`: everyone who has an account, and ways to let others in. For operators. */
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Choice, Field, Notice } from "../../../components/parts";
import { displayName, plainHandle } from "../../../text/names";
import { attempt, send, usePages, withQuery } from "../../data";
import { Copy } from "../../parts/Copy";
import { Empty } from "../../parts/Empty";
import { PageHead } from "../../parts/PageHead";
import { type Column, PagedTable } from "../../parts/Table";
import { bytes, count, Time } from "../../parts/Time";
import { pathTo, place, setQuery } from "../../router";
import { Groups } from "./Groups";
import { Invitations } from "./Invitations";
import { Rights } from "./Rights";

const COLUMNS: readonly Column<hub.PersonRow>[] = [
  {
    head: "Person",
    cell: (it) => (
      <span>
        <a href={pathTo("people", it.handle)}>@{it.handle}</a>
        {it.display_name && it.display_name !== it.handle && (
          <span class="soft"> {displayName(it.display_name, it.handle)}</span>
        )}
        {it.account_type !== "person" && <> <span class="tag">{it.account_type}</span></>}
        {it.operator_since !== null && <> <span class="tag">operator</span></>}
        {it.suspended_at !== null && <> <span class="tag urgent">suspended</span></>}
      </span>
    ),
  },
  { head: "Last seen", cell: (it) => <Time at={it.seen_at} /> },
  { head: "Rooms", number: true, cell: (it) => count(it.rooms) },
  { head: "Stored", number: true, cell: (it) => bytes(it.mail_bytes + it.room_bytes) },
];

export function People() {
  const { query } = place.value;
  const text = query.get("text") ?? "";
  const suspended = query.get("state") === "suspended";
  const path = withQuery("/v1/accounts", { text, suspended: suspended || null });
  const list = usePages<hub.PersonRows, hub.PersonRow>(path, {
    items: (page) => page.people,
    next: (page) => page.next,
    cursor: "after",
    on: ["people.changed"],
  });
  const [open, setOpen] = useState<"" | "add" | "invite">("");
  /** Counts the invitations made here, which the list below shows. */
  const [invited, setInvited] = useState(0);
  const toggle = (which: "add" | "invite") => setOpen(open === which ? "" : which);
  return (
    <>
      <PageHead title="People" lead="Everyone who has an account on this hub.">
        <Button expanded={open === "invite"} onClick={() => toggle("invite")}>
          Invite
        </Button>
        <Button expanded={open === "add"} onClick={() => toggle("add")}>
          Add
        </Button>
      </PageHead>
      {open === "invite" && <Invite onDone={() => setInvited(invited + 1)} />}
      {open === "add" && <Add onDone={list.reload} />}
      <div class="filters" role="search" aria-label="People">
        <SearchField label="Handle or name" value={text} onSearch={(it) => setQuery({ text: it })} />
        <Choice
          label="State"
          value={suspended ? "suspended" : ""}
          options={[
            ["", "All"],
            ["suspended", "Suspended"],
          ]}
          onChange={(it) => setQuery({ state: it })}
        />
      </div>
      <PagedTable
        label="People"
        compact
        columns={COLUMNS}
        rowKey={(it) => it.handle}
        list={list}
        empty={
          text || suspended ? (
            <Empty title="No one matches.">
              <Button onClick={() => setQuery({ text: null, state: null })}>Show everyone</Button>
            </Empty>
          ) : (
            <Empty title="No accounts yet.">Invite someone, or add an account.</Empty>
          )
        }
      />
      <Invitations made={invited} />
      <Groups />
      <Rights />
    </>
  );
}

/** A field that is searched for once its text is complete: by Enter, or on leaving it. */
export function SearchField({ label, value, onSearch, placeholder }: {
  label: string;
  value: string;
  onSearch: (value: string) => void;
  placeholder?: string;
}) {
  const [typed, setTyped] = useState(value);
  const [of, setOf] = useState(value);
  if (of !== value) {
    // The address changed, as by going back.
    setOf(value);
    setTyped(value);
  }
  const done = () => typed.trim() !== value && onSearch(typed.trim());
  return (
    <div onFocusOut={done}>
      <Field
        label={label}
        value={typed}
        onInput={setTyped}
        onEnter={done}
        most={100}
        {...(placeholder ? { placeholder } : {})}
      />
    </div>
  );
}

function Invite({ onDone }: { onDone: () => void }) {
  const [handle, setHandle] = useState("");
  const [days, setDays] = useState("7");
  const [made, setMade] = useState<hub.InvitedHandle | null>(null);
  const create = async () => {
    const path = `/v1/people/${encodeURIComponent(plainHandle(handle))}/invite`;
    const done = await attempt(() => send<hub.InvitedHandle>("POST", path, { days: Number(days) }));
    if (!done) return;
    setMade(done);
    setHandle("");
    onDone();
  };
  return (
    <section class="section" aria-label="Invite">
      <p class="soft">
        The link opens an account under this handle, once, even where registration is closed. An
        earlier one for the same handle stops working.
      </p>
      <div class="filters">
        <Field
          label="Handle"
          value={handle}
          onInput={setHandle}
          onEnter={() => void create()}
          most={21}
        />
        <Choice
          label="Valid for"
          value={days}
          options={[
            ["1", "1 day"],
            ["7", "7 days"],
            ["30", "30 days"],
            ["365", "1 year"],
          ]}
          onChange={setDays}
        />
        <Button kind="primary" disabled={!handle.trim()} onClick={() => void create()}>
          Create the link
        </Button>
      </div>
      {made && (
        <Notice tone="good">
          <div class="stack">
            <p>
              Send this link to whoever will be @{made.handle}. It is not shown again, and works until{" "}
              <Time at={made.until} />.
            </p>
            <Copy label={`Invitation for @${made.handle}`} text={made.invite_url} />
          </div>
        </Notice>
      )}
    </section>
  );
}

function Add({ onDone }: { onDone: () => Promise<void> }) {
  const [handle, setHandle] = useState("");
  const [agent, setAgent] = useState(false);
  const [made, setMade] = useState<hub.AddedPerson | null>(null);
  const add = async () => {
    const path = `/v1/accounts/${encodeURIComponent(plainHandle(handle))}`;
    const body = { account_type: agent ? "agent" : "person" };
    const done = await attempt(() => send<hub.AddedPerson>("PUT", path, body));
    if (!done) return;
    setMade(done);
    setHandle("");
    await onDone();
  };
  return (
    <section class="section" aria-label="Add an account">
      <p class="soft">
        Creates an account whose secrets you are shown, such as an agent's. A person who should have
        their own is better invited.
      </p>
      <div class="filters">
        <Field
          label="Handle"
          value={handle}
          onInput={setHandle}
          onEnter={() => void add()}
          most={21}
        />
        <Check checked={agent} onChange={setAgent}>
          A program uses it
        </Check>
        <Button kind="primary" disabled={!handle.trim()} onClick={() => void add()}>
          Add the account
        </Button>
      </div>
      {made && (
        <Notice tone="warning">
          <div class="stack">
            <p>
              @{made.handle} is there. Copy both secrets now: they are not shown again.
            </p>
            <Copy label="Token" text={made.token} />
            <Copy label="Recovery code" text={made.recovery_code} />
            <div class="line">
              <Button onClick={() => setMade(null)}>I have saved them</Button>
            </div>
          </div>
        </Notice>
      )}
    </section>
  );
}
