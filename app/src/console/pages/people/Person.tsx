/** `/people/HANDLE`: one account. What it is and uses, what it can do, what opens it, and its end. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Choice, Field, Notice } from "../../../components/parts";
import { displayName, plainHandle } from "../../../text/names";
import { attempt, send, useLoad, withQuery } from "../../data";
import type { PageProps } from "../../pages";
import { Confirm } from "../../parts/Confirm";
import { Empty } from "../../parts/Empty";
import { PageHead, Section } from "../../parts/PageHead";
import { Loaded, Problem } from "../../parts/Problem";
import { Progress } from "../../parts/Progress";
import { type Column, Pager, Table } from "../../parts/Table";
import { bytes, count, counted, Time } from "../../parts/Time";
import { go, pathTo } from "../../router";
import { who } from "../../session";
import { Share, Why } from "../servers/Access";
import { Allow, type Holder, useTools, WhichServer } from "../servers/Allow";
import { origin, written } from "./Rights";

const ON = ["people.changed"] as const;
const NOT_FOUND = 404;

export function Person({ params }: PageProps) {
  const handle = plainHandle(params["handle"] ?? "");
  const path = encodeURIComponent(handle);
  const load = useLoad<hub.PersonDetails>(`/v1/accounts/${path}`, ON);
  const person = load.data;
  if (load.status === NOT_FOUND || (load.error && !person)) {
    return (
      <>
        <PageHead title={`@${handle}`} />
        {load.status === NOT_FOUND ? (
          <Empty title={load.error}>
            <a href="/people">Back to everyone</a>
          </Empty>
        ) : (
          <Problem error={load.error} onRetry={load.reload} />
        )}
      </>
    );
  }
  return (
    <>
      <PageHead
        title={`@${handle}`}
        lead={person && person.display_name !== handle && displayName(person.display_name, handle)}
      >
        <a class="button" href={withQuery("/audit", { by: handle })}>
          Activity by @{handle}
        </a>
        <a class="button" href={withQuery("/audit", { about: handle })}>
          Changes to @{handle}
        </a>
        {person && person.suspended_at === null && <Suspend handle={handle} reload={load.reload} />}
      </PageHead>
      <Loaded load={load}>
        {(it) => (
          <>
            {it.suspended_at !== null && <Suspended person={it} reload={load.reload} />}
            <div class="sections">
              <Facts person={it} />
              <Use quotas={it.quotas} />
            </div>
            <RightsOf handle={it.handle} />
            <CredentialsOf handle={it.handle} />
            <Removal handle={it.handle} />
          </>
        )}
      </Loaded>
    </>
  );
}

type Reload = () => Promise<void>;

function useSuspending(handle: string, verb: "suspend" | "restore", reload: Reload) {
  const [reason, setReason] = useState("");
  const set = async () => {
    const path = `/v1/accounts/${encodeURIComponent(handle)}/${verb}`;
    const done = await attempt(
      () => send("POST", path, { reason: reason.trim() }),
      verb === "suspend" ? `Suspended @${handle}.` : `Restored @${handle}.`,
    );
    if (done !== undefined) await reload();
    return done !== undefined;
  };
  const why = <Field label="Reason, for the audit log" value={reason} onInput={setReason} most={500} />;
  return { set, why };
}

function Suspended({ person: { handle, suspended_at }, reload }: { person: hub.PersonDetails; reload: Reload }) {
  const { set, why } = useSuspending(handle, "restore", reload);
  return (
    <Notice tone="warning">
      <div class="line">
        <p class="grow">
          Suspended <Time at={suspended_at} />. Nobody can use the account; mail to it still arrives.
        </p>
        <Confirm label="Restore" danger={false} question={`Let @${handle} use the account again?`} onConfirm={set}>
          {why}
        </Confirm>
      </div>
    </Notice>
  );
}

function Suspend({ handle, reload }: { handle: string; reload: Reload }) {
  const { set, why } = useSuspending(handle, "suspend", reload);
  const own = who.value?.handle === handle;
  return (
    <Confirm
      label="Suspend"
      question={
        own
          ? "This is your own account. You will be signed out at once, here too."
          : `@${handle} is signed out everywhere at once, until you restore the account. Nothing is deleted.`
      }
      onConfirm={set}
    >
      {why}
    </Confirm>
  );
}

function Facts({ person }: { person: hub.PersonDetails }) {
  const facts: [string, ComponentChildren][] = [
    ["Account", person.account_type],
    ["Last seen", <Time at={person.seen_at} />],
    ["Since", <Time at={person.created_at} />],
    ["Rooms", count(person.rooms)],
    ["Profile", PRIVACY[person.privacy] ?? person.privacy],
    ["About", person.bio || <span class="soft">nothing</span>],
  ];
  return (
    <Section title="Account">
      <dl class="facts">
        {facts.map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd dir="auto">{value}</dd>
          </>
        ))}
      </dl>
    </Section>
  );
}

const PRIVACY: Record<string, string> = {
  public: "everyone can find it",
  contacts_only: "contacts can find it",
  private: "nobody can find it",
};
const QUOTAS: Record<string, [string, (value: number) => string]> = {
  mail: ["Mail sent", bytes],
  rooms: ["In rooms", bytes],
  tokens: ["Tokens", count],
};

function Use({ quotas }: { quotas: Record<string, hub.Use> }) {
  return (
    <Section title="Use" hint="Usage against this account's limits.">
      {Object.entries(quotas).map(([name, { used, limit }]) => {
        const [label, shown] = QUOTAS[name] ?? [name, count];
        const text = limit ? `${shown(used)} of ${shown(limit)}` : `${shown(used)}, no limit`;
        return limit ? (
          <Progress key={name} label={label} value={used} max={limit} text={text} />
        ) : (
          <p key={name}>
            {label}: {text}
          </p>
        );
      })}
    </Section>
  );
}

const CAPABILITIES: readonly Column<hub.HeldCapability>[] = [
  { head: "Pattern", cell: (it) => <code>{written(it)}</code> },
  { head: "Why", cell: origin },
  { head: "Since", cell: (it) => <Time at={it.at} never="" /> },
];

const keyOf = (it: hub.HeldCapability) => `${it.origin} ${it.name} ${written(it)}`;

function Patterns({ handle }: { handle: string }) {
  const path = `/v1/people/${encodeURIComponent(handle)}/grants`;
  const load = useLoad<hub.Person>(path, ON);
  const [pattern, setPattern] = useState("");
  const [warnings, setWarnings] = useState<string[]>([]);
  const grant = async () => {
    const patterns = pattern.split(/[\s,]+/).filter(Boolean);
    if (!patterns.length) return;
    setWarnings([]);
    const done = await attempt(
      () => send<hub.Granted>("POST", path, { patterns }),
      `Granted ${patterns.join(", ")} to @${handle}.`,
    );
    if (!done) return;
    setWarnings(done.warnings);
    setPattern("");
    await load.reload();
  };
  const revoke = async (which: string) => {
    const query = new URLSearchParams({ patterns: which });
    const gone = await attempt(() => send("DELETE", `${path}?${query}`), `Revoked ${which}.`);
    if (gone !== undefined) await load.reload();
  };
  const columns: readonly Column<hub.HeldCapability>[] = [
    ...CAPABILITIES,
    {
      head: "What to do",
      hideHead: true,
      cell: (it) =>
        it.origin === "granted" && (
          <Confirm
            label="Revoke"
            question={`Take ${written(it)} from @${handle}?`}
            onConfirm={() => revoke(written(it))}
          />
        ),
    },
  ];
  return (
    <div class="stack">
      <Loaded load={load}>
        {({ held }) => {
          const own = held.filter((it) => it.origin !== "default");
          const rest = held.length - own.length;
          return (
            <>
              {own.length ? (
                <Table label="Patterns" columns={columns} rows={own} rowKey={keyOf} />
              ) : (
                <p class="soft">Nothing beyond what every account can do.</p>
              )}
              {rest > 0 && (
                <details>
                  <summary>{counted(rest, "pattern")} that every account has</summary>
                  <Table
                    label="Patterns of every account"
                    columns={CAPABILITIES.slice(0, 1)}
                    rows={held.filter((it) => it.origin === "default")}
                    rowKey={keyOf}
                  />
                </details>
              )}
            </>
          );
        }}
      </Loaded>
      <div class="inline">
        <Field
          label="Allow a pattern; ! denies it"
          value={pattern}
          onInput={setPattern}
          onEnter={() => void grant()}
          most={1000}
          placeholder="files:read_* or !msg/send"
        />
        <Button disabled={!pattern.trim()} onClick={() => void grant()}>
          Grant
        </Button>
      </div>
      {warnings.map((it) => (
        <Notice key={it} tone="warning">
          {it}
        </Notice>
      ))}
    </div>
  );
}

/** What someone can use of the servers, in sentences; patterns are for those who want them. */
function RightsOf({ handle }: { handle: string }) {
  const load = useLoad<hub.AccessOf>(`/v1/people/${encodeURIComponent(handle)}/access`, [
    ...ON,
    "settings.changed",
    "tools.changed",
  ]);
  const [advanced, setAdvanced] = useState(false);
  const holder: Holder = { kind: "people", name: handle };
  return (
    <Section
      title={`What @${handle} can use`}
      beside={<Allow holder={holder} onDone={load.reload} />}
    >
      <Loaded load={load}>
        {({ servers }) => {
          const own = servers.filter((it) => it.access.reasons.length);
          if (!own.length) return <p class="soft">No servers yet.</p>;
          return (
            <ul class="access">
              {own.map((it) => (
                <Share
                  key={it.namespace}
                  holder={holder}
                  who={<a href={pathTo("servers", it.namespace)}>{it.namespace}:</a>}
                  what={it.namespace}
                  tools={it.tools}
                  access={it.access}
                  onDone={load.reload}
                />
              ))}
            </ul>
          );
        }}
      </Loaded>
      <AskWhich handle={handle} onDone={load.reload} />
      <details onToggle={(event) => setAdvanced(event.currentTarget.open)}>
        <summary>Advanced: patterns</summary>
        {advanced && <Patterns handle={handle} />}
      </details>
    </Section>
  );
}

/** Can they call this tool? */
function AskWhich({ handle, onDone }: { handle: string; onDone: () => unknown }) {
  const [server, setServer] = useState("");
  const [tool, setTool] = useState("");
  const tools = useTools(server);
  return (
    <details>
      <summary>Can @{handle} call a tool?</summary>
      <div class="stack">
        <div class="filters">
          <WhichServer server={server} onChange={(it) => (setServer(it), setTool(""))} />
          {server && (
            <Choice
              label="Tool"
              value={tool}
              options={[["", "Choose one"], ...(tools.items ?? []).map(({ name }) => [name, name] as const)]}
              onChange={setTool}
            />
          )}
        </div>
        {server && <Pager list={tools} />}
        {tool && <Why key={tool} handle={handle} tool={tool} onDone={onDone} />}
      </div>
    </details>
  );
}

function CredentialsOf({ handle }: { handle: string }) {
  const path = `/v1/people/${encodeURIComponent(handle)}/credentials`;
  const load = useLoad<hub.Tokens>(path, ON);
  const revoke = async (it: hub.Credential) => {
    const said = it.kind === "browser" ? "That browser is signed out." : "The token is revoked.";
    const gone = await attempt(() => send("DELETE", `${path}/${encodeURIComponent(it.id)}`), said);
    if (gone !== undefined) await load.reload();
  };
  const columns: readonly Column<hub.Credential>[] = [
    {
      head: "What",
      cell: (it) => (
        <span>
          {it.kind === "browser" ? "Browser" : "Token"}
          {it.label && <span class="soft"> {it.label}</span>}
          {it.current && (
            <>
              {" "}
              <span class="tag">this browser</span>
            </>
          )}
        </span>
      ),
    },
    { head: "Scope", cell: (it) => (it.scope === "*" ? "everything" : <code>{it.scope}</code>) },
    { head: "Created", cell: (it) => <Time at={it.created_at} /> },
    { head: "Used", cell: (it) => <Time at={it.used_at} never="not yet" /> },
    { head: "Expires", cell: (it) => <Time at={it.expires_at} /> },
    {
      head: "What to do",
      hideHead: true,
      cell: (it) => (
        <Confirm
          label={it.kind === "browser" ? "Sign out" : "Revoke"}
          question="Whatever is open with it ends at once."
          onConfirm={() => revoke(it)}
        />
      ),
    },
  ];
  return (
    <Section title="Tokens and browsers" hint="Tokens and signed-in browsers. Secrets are never shown.">
      <Loaded load={load}>
        {({ tokens }) =>
          tokens.length ? (
            <>
              <Table label="Tokens and browsers" columns={columns} rows={tokens} rowKey={(it) => it.id} />
              <p class="soft small">{counted(tokens.length, "entry", "entries")}</p>
            </>
          ) : (
            <Empty title="Nothing opens the account.">
              Its owner can use the recovery code, or you create a token with{" "}
              <code>folkmoot tokens create --for {handle}</code>.
            </Empty>
          )
        }
      </Loaded>
    </Section>
  );
}

function Removal({ handle }: { handle: string }) {
  const [typed, setTyped] = useState("");
  const [reason, setReason] = useState("");
  const remove = async () => {
    const path = withQuery(`/v1/accounts/${encodeURIComponent(handle)}`, { reason: reason.trim() });
    const done = await attempt(() => send("DELETE", path), `Removed @${handle}.`);
    if (done === undefined) return false;
    go("/people", true);
    return true;
  };
  return (
    <Section
      title="Remove the account"
      hint="Deletes the account and all its mail for good. Messages in rooms stay, and older backups still have the mail."
    >
      <div>
        <Confirm
          label="Remove"
          question={`Delete @${handle} and all their mail? This cannot be undone.`}
          ready={plainHandle(typed) === handle}
          onConfirm={remove}
        >
          <Field label={`Type ${handle} to confirm`} value={typed} onInput={setTyped} most={21} />
          <Field label="Reason, for the audit log" value={reason} onInput={setReason} most={500} />
        </Confirm>
      </div>
    </Section>
  );
}
