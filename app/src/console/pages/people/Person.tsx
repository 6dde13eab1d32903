/** `/people/HANDLE`: one account. What it is, uses and may do, what opens it, and its end. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Field, Notice } from "../../../components/parts";
import { displayName, plainHandle } from "../../../text/names";
import { attempt, send, useLoad, withQuery } from "../../data";
import type { PageProps } from "../../pages";
import { Confirm } from "../../parts/Confirm";
import { Empty } from "../../parts/Empty";
import { PageHead, Section } from "../../parts/PageHead";
import { Loaded, Problem } from "../../parts/Problem";
import { Progress } from "../../parts/Progress";
import { type Column, Table } from "../../parts/Table";
import { bytes, count, counted, Time } from "../../parts/Time";
import { go } from "../../router";
import { who } from "../../session";
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
          What they did
        </a>
        <a class="button" href={withQuery("/audit", { about: handle })}>
          What was done about them
        </a>
      </PageHead>
      <Loaded load={load}>
        {(it) => (
          <>
            <State person={it} reload={load.reload} />
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

function State({ person, reload }: { person: hub.PersonDetails; reload: () => Promise<void> }) {
  const [reason, setReason] = useState("");
  const { handle, suspended_at } = person;
  const own = who.value?.handle === handle;
  const set = async (verb: "suspend" | "restore") => {
    const path = `/v1/accounts/${encodeURIComponent(handle)}/${verb}`;
    const done = await attempt(
      () => send("POST", path, { reason: reason.trim() }),
      verb === "suspend" ? `Suspended @${handle}.` : `Restored @${handle}.`,
    );
    if (done === undefined) return false;
    setReason("");
    await reload();
    return true;
  };
  const why = <Field label="Reason, for the audit log" value={reason} onInput={setReason} most={500} />;
  if (suspended_at !== null) {
    return (
      <Notice tone="warning">
        <div class="stack">
          <p>
            Suspended <Time at={suspended_at} />. Nobody can use the account; mail to it still
            arrives.
          </p>
          <Confirm
            label="Restore"
            danger={false}
            question={`Let @${handle} use the account again?`}
            onConfirm={() => set("restore")}
          >
            {why}
          </Confirm>
        </div>
      </Notice>
    );
  }
  return (
    <div>
      <Confirm
        label="Suspend"
        question={
          own
            ? "This is your own account: you will be signed out at once, here too."
            : `@${handle} is signed out everywhere at once, until the account is restored. Nothing is deleted.`
        }
        onConfirm={() => set("suspend")}
      >
        {why}
      </Confirm>
    </div>
  );
}

function Facts({ person }: { person: hub.PersonDetails }) {
  const facts: [string, ComponentChildren][] = [
    ["Account", person.account_type],
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
    <Section title="Use" hint="Of the account's quotas, which the settings file sets for everyone.">
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
  { head: "Capability", cell: (it) => <code>{written(it)}</code> },
  { head: "Why", cell: origin },
  { head: "Since", cell: (it) => <Time at={it.at} never="" /> },
];

const keyOf = (it: hub.HeldCapability) => `${it.origin} ${it.name} ${written(it)}`;

function RightsOf({ handle }: { handle: string }) {
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
    <Section
      title="Rights"
      hint="What the account may do at the hub and its servers, and why. Rights of a group are changed in the settings file."
    >
      <Loaded load={load}>
        {({ held }) => {
          const own = held.filter((it) => it.origin !== "default");
          const rest = held.length - own.length;
          return (
            <>
              {own.length ? (
                <Table label="Rights" columns={columns} rows={own} rowKey={keyOf} />
              ) : (
                <Empty title="Nothing beyond what every account may do." />
              )}
              {rest > 0 && (
                <details>
                  <summary>{counted(rest, "right")} that every account has</summary>
                  <Table
                    label="Rights of every account"
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
          label="Grant a server, some of its tools, or !msg/send to deny something"
          value={pattern}
          onInput={setPattern}
          onEnter={() => void grant()}
          most={1000}
          placeholder="files:read_*"
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
    </Section>
  );
}

function CredentialsOf({ handle }: { handle: string }) {
  const path = `/v1/people/${encodeURIComponent(handle)}/credentials`;
  const load = useLoad<hub.Credentials>(path, ON);
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
    <Section title="Tokens and browsers" hint="What opens the account. The secrets are shown to nobody.">
      <Loaded load={load}>
        {({ credentials }) =>
          credentials.length ? (
            <>
              <Table label="Tokens and browsers" columns={columns} rows={credentials} rowKey={(it) => it.id} />
              <p class="soft small">{counted(credentials.length, "entry", "entries")}</p>
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
      <Confirm
        label="Remove"
        question={`Delete @${handle} and all their mail? This cannot be undone.`}
        ready={plainHandle(typed) === handle}
        onConfirm={remove}
      >
        <Field label={`Type ${handle} to confirm`} value={typed} onInput={setTyped} most={21} />
        <Field label="Reason, for the audit log" value={reason} onInput={setReason} most={500} />
      </Confirm>
    </Section>
  );
}
