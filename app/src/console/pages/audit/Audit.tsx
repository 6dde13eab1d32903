/** `/audit`: who did what, and what came of it. For operators. */
import { useRef, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Choice } from "../../../components/parts";
import { logTime } from "../../../text/time";
import { attempt, send, usePages, withQuery } from "../../data";
import { Empty } from "../../parts/Empty";
import { PageHead } from "../../parts/PageHead";
import { Progress } from "../../parts/Progress";
import { type Column, PagedTable } from "../../parts/Table";
import { count, counted, duration } from "../../parts/Time";
import { pathTo, place, setQuery } from "../../router";
import { SearchField } from "../people/People";

const PAGE = 100;
const EXPORTED_AT_ONCE = 500;
/** What can be filtered by, as the query of the page and of the hub name it. */
const FILTERS = ["by", "action", "server", "room", "about", "outcome", "text", "since", "until"] as const;
type Filter = (typeof FILTERS)[number];
const MORE: readonly Filter[] = ["server", "about", "since", "until"];

const HANDLE = /^[a-z0-9_]+$/;
const REQUEST = /^!?mcp\.request\.([a-z]+\/[a-z*]+):(.+)$/;
const TOOL = "tools/call";
/** What ids stand for, by how the action begins; whoever wants the id opens the line. */
const KINDS: Record<string, string> = {
  token: "a token that is gone",
  browser: "a browser",
  app: "an app",
  passkey: "a passkey that is gone",
  invite: "an invitation",
};
/** Actions that are about a person, by how they begin. */
const OF_PEOPLE = new Set(["account", "hub", "capability", "participant"]);

const COLUMNS: readonly Column<hub.AuditLine>[] = [
  {
    head: "When",
    cell: (it) => (
      <time class="small" dateTime={new Date(it.at * 1000).toISOString()}>
        {logTime(it.at)}
      </time>
    ),
  },
  { head: "By", cell: (it) => <Person handle={it.by} /> },
  { head: "Action", cell: (it) => <code class="nowrap">{it.action}</code> },
  { head: "About", cell: (it) => <About line={it} /> },
  { head: "Result", cell: (it) => <Outcome line={it} /> },
  { head: "More", cell: (it) => <More line={it} /> },
];

function Person({ handle }: { handle: string }) {
  if (!HANDLE.test(handle) || handle === "operator") return <span class="nowrap">{handle}</span>;
  return (
    <a class="nowrap" href={pathTo("people", handle)}>
      @{handle}
    </a>
  );
}

/** What it is about, in words that people know. */
export function About({ line: { about, action, name, detail, room } }: { line: hub.AuditLine }) {
  const family = action.split(".")[0]!;
  const of = detail?.["of"];
  const whose = typeof of === "string" && (
    <>
      {" "}
      of <Person handle={of} />
    </>
  );
  if (family === "proposal") {
    const kind = String(detail?.["kind"] ?? "").replace(/^mcp\.proposal\./, "");
    return (
      <span>
        {kind ? requested(kind) : "a proposal"}
        {room && (
          <>
            {" "}
            in <a href={pathTo("rooms", room)}>{room}</a>
          </>
        )}
      </span>
    );
  }
  if (family in KINDS) {
    return (
      <span>
        {name || KINDS[family]}
        {whose}
      </span>
    );
  }
  if (OF_PEOPLE.has(family) && HANDLE.test(about)) return <Person handle={about} />;
  const asked = REQUEST.exec(about);
  return <span>{asked ? requested(`${asked[1]}:${asked[2]}`) : about}</span>;
}

/** `tools/call:files:read` as the tool, and other requests with their method. */
function requested(kind: string): string {
  const at = kind.indexOf(":");
  if (at < 0) return kind;
  const [method, what] = [kind.slice(0, at), kind.slice(at + 1)];
  return method === TOOL ? what : `${method} ${what}`;
}

function Outcome({ line }: { line: hub.AuditLine }) {
  const took = line.seconds === undefined ? "" : `, ${duration(line.seconds)}`;
  if (line.outcome === undefined) return null;
  return <span class={line.outcome === "ok" ? "nowrap" : "bad-text"}>{line.outcome + took}</span>;
}

/** What else a line has: each member that is not in a column of its own. */
function More({ line }: { line: hub.AuditLine }) {
  const { about, detail, server, room, credential_id, request, id } = line;
  const members = Object.entries({ about, ...detail, server, room, credential_id, request }).filter(
    ([, value]) => value !== undefined && value !== null,
  );
  if (!members.length) return null;
  return (
    <details>
      <summary>{firstWords(detail)}</summary>
      <dl class="facts small">
        {[...members, ["line", id] as const].map(([name, value]) => (
          <>
            <dt>{name}</dt>
            <dd class="mono">{typeof value === "string" ? value : JSON.stringify(value)}</dd>
          </>
        ))}
      </dl>
    </details>
  );
}

function firstWords(detail: Record<string, unknown> | undefined): string {
  const first = detail?.["detail"];
  if (typeof first !== "string") return "Details";
  const asked = REQUEST.exec(first);
  const words = asked ? `${first.startsWith("!") ? "not " : ""}${requested(`${asked[1]}:${asked[2]}`)}` : first;
  return words.length > 60 ? `${words.slice(0, 59)}…` : words;
}

export function Audit() {
  const { query } = place.value;
  const wanted = Object.fromEntries(FILTERS.map((name) => [name, query.get(name) ?? ""]));
  const follow = query.get("follow") !== "no";
  // What is about somebody is found by a part of it, as the command does.
  const given = { ...wanted, about: wanted["about"] && `*${wanted["about"]}*` };
  const path = withQuery("/v1/audit", { ...given, limit: PAGE });
  const list = usePages<hub.AuditLines, hub.AuditLine>(path, {
    items: (page) => page.lines,
    next: ({ lines }) => (lines.length < PAGE ? null : (lines.at(-1)?.id ?? null)),
    cursor: "before",
    newer: { argument: "after", id: (line) => line.id },
    on: follow ? ["audit.changed"] : [],
  });
  const filtered = FILTERS.some((name) => wanted[name]);
  const clear = () => setQuery(Object.fromEntries(FILTERS.map((name) => [name, null])));
  return (
    <>
      <PageHead title="Audit log" lead="Who did what on this hub, the newest first.">
        <Check checked={follow} onChange={(on) => setQuery({ follow: on ? null : "no" })}>
          Follow
        </Check>
        <Export path={withQuery("/v1/audit", given)} />
      </PageHead>
      <Filters wanted={wanted as Record<Filter, string>} />
      {filtered && (
        <div class="line">
          <Button onClick={clear}>Clear the filters</Button>
        </div>
      )}
      <PagedTable
        label="Audit log"
        columns={COLUMNS}
        rowKey={(it) => it.id}
        list={list}
        empty={
          filtered ? (
            <Empty title="No matching lines.">Change the filters, or clear them.</Empty>
          ) : (
            <Empty title="Nothing here yet.">
              What people and operators do is listed here.
            </Empty>
          )
        }
      />
    </>
  );
}

function Filters({ wanted }: { wanted: Record<Filter, string> }) {
  const field = (name: Filter, label: string, placeholder = "") => (
    <SearchField
      label={label}
      value={wanted[name]}
      placeholder={placeholder}
      onSearch={(it) => setQuery({ [name]: name === "by" ? it.replace(/^@/, "") : it })}
    />
  );
  return (
    <div class="filters" role="search" aria-label="Audit log">
      {field("by", "Who", "ada, or operator")}
      {field("action", "Action", "account.*")}
      {field("text", "Text")}
      <Choice
        label="Result"
        value={wanted.outcome}
        options={[
          ["", "Any"],
          ["ok", "ok"],
          ["error", "Failed or refused"],
          ...(["", "ok", "error"].includes(wanted.outcome)
            ? []
            : [[wanted.outcome, wanted.outcome] as const]),
        ]}
        onChange={(it) => setQuery({ outcome: it })}
      />
      <details class="more-filters" open={MORE.some((name) => wanted[name])}>
        <summary>More filters</summary>
        <div class="filters">
          {field("server", "Server")}
          {field("about", "About")}
          <Moment label="From" value={wanted.since} onChange={(it) => setQuery({ since: it })} />
          <Moment label="Until" value={wanted.until} onChange={(it) => setQuery({ until: it })} />
        </div>
      </details>
    </div>
  );
}

/** A time of the reader's zone, in the address as seconds since 1970. */
function Moment({ label, value, onChange }: {
  label: string;
  value: string;
  onChange: (value: string) => void;
}) {
  const seconds = Number(value);
  const shown = value && Number.isFinite(seconds) ? local(seconds) : "";
  return (
    <label class="field">
      <span class="label">{label}</span>
      <input
        class="input"
        type="datetime-local"
        value={shown}
        onChange={({ currentTarget: { value: typed } }) => {
          const at = new Date(typed).getTime() / 1000;
          onChange(typed && Number.isFinite(at) ? String(Math.floor(at)) : "");
        }}
      />
    </label>
  );
}

function local(seconds: number): string {
  const there = new Date(seconds * 1000);
  if (Number.isNaN(there.getTime())) return "";
  const here = new Date(there.getTime() - there.getTimezoneOffset() * 60_000);
  return here.toISOString().slice(0, 16);
}

/** Every line that fits, read page by page and saved as JSON lines, as `folkmoot audit --export` does. */
function Export({ path }: { path: string }) {
  const [read, setRead] = useState<number | null>(null);
  const stopped = useRef(false);
  const run = async () => {
    stopped.current = false;
    setRead(0);
    await attempt(async () => {
      const lines: hub.AuditLine[] = [];
      for (let before: number | undefined, more = true; more && !stopped.current; ) {
        const page = await send<hub.AuditLines>(
          "GET",
          withQuery(path, { limit: EXPORTED_AT_ONCE, before }),
        );
        lines.push(...page.lines);
        setRead(lines.length);
        before = page.lines.at(-1)?.id;
        more = page.lines.length === EXPORTED_AT_ONCE;
      }
      if (!stopped.current) save(lines);
    });
    setRead(null);
  };
  if (read === null) return <Button onClick={() => void run()}>Download</Button>;
  return (
    <div class="line">
      <Progress label="Reading" text={counted(read, "line")} />
      <Button onClick={() => (stopped.current = true)}>Stop</Button>
    </div>
  );
}

function save(lines: readonly hub.AuditLine[]): void {
  const text = [...lines].reverse().map((it) => `${JSON.stringify(it)}\n`);
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(text, { type: "application/x-ndjson" }));
  link.download = `audit-${new Date().toISOString().slice(0, 10)}-${count(lines.length)}.jsonl`;
  link.click();
  URL.revokeObjectURL(link.href);
}
