/** Who may use a server or a tool of it, and why. */
import { Fragment } from "preact";

import type * as hub from "../../../api/schema";
import { usePages } from "../../data";
import { Section } from "../../parts/PageHead";
import { Problem } from "../../parts/Problem";
import { type Column, Pager, Table } from "../../parts/Table";
import { count, Time } from "../../parts/Time";
import { pathTo } from "../../router";

interface Row {
  who: string;
  account: boolean;
  access: hub.Access;
}

function rows(page: hub.ServerAccess, first: boolean): Row[] {
  const people = page.people.map(({ handle, account, access }) => ({ who: `@${handle}`, account, access }));
  return first ? [{ who: "Everyone", account: true, access: page.everyone }, ...people] : people;
}

function useAccess(namespace: string, tool: string) {
  const query = tool ? `?${new URLSearchParams({ tool })}` : "";
  return usePages<hub.ServerAccess, hub.ServerAccess>(
    `/v1/servers/${encodeURIComponent(namespace)}/access${query}`,
    { items: (page) => [page], next: (page) => page.next, cursor: "after", on: ["settings.changed", "tools.changed"] },
  );
}

export function Access({ namespace }: { namespace: string }) {
  return (
    <Section title="Who may use it" hint="Beside what everyone may, those whose rights are their own.">
      <AccessTable namespace={namespace} />
    </Section>
  );
}

export function AccessTable({ namespace, tool = "" }: { namespace: string; tool?: string }) {
  const list = useAccess(namespace, tool);
  const pages = list.items ?? [];
  const columns: readonly Column<Row>[] = [
    {
      head: "Who",
      cell: ({ who, account }) => (
        <div>
          <span class="nowrap">
            {who.startsWith("@") ? <a href={pathTo("people", who.slice(1))}>{who}</a> : who}
          </span>
          {!account && <p class="small soft">has no account yet</p>}
        </div>
      ),
    },
    { head: tool ? "May call it" : "May use", cell: ({ access }) => mayOf(access, tool !== "", pages[0]?.tools ?? 0) },
    { head: "Why", cell: ({ who, access }) => <Reasons who={who} access={access} tool={tool !== ""} /> },
  ];
  return (
    <>
      <Problem error={list.error} onRetry={list.reload} />
      {pages.length > 0 && (
        <Table
          label={tool ? `Who may call ${tool}` : "Who may use it"}
          columns={columns}
          rows={pages.flatMap((page, at) => rows(page, at === 0))}
          rowKey={(it) => it.who}
        />
      )}
      <Pager list={list} />
    </>
  );
}

function mayOf({ may, tools }: hub.Access, one: boolean, all: number): string {
  if (may === "none") return "no";
  if (one) return may === "all" ? "yes" : "with some arguments";
  return may === "all" ? "all of it" : `${count(tools)} of ${count(all)} tools`;
}

/** "@bob may call this by the grant of group team." */
function Reasons({ who, access, tool }: { who: string; access: hub.Access; tool: boolean }) {
  if (!access.reasons.length) return <span class="soft">{who === "Everyone" ? "Not everyone may." : "Not allowed."}</span>;
  return (
    <ul class="reasons">
      {grouped(access.reasons).map(([first, ...more]) => (
        <li key={`${first.why} ${first.at}`}>
          {first.denies ? `${who} is ` : `${who} may ${tool ? "call" : "use"} this `}
          {first.why}
          {first.at !== undefined && (
            <>
              , <Time at={first.at} />
            </>
          )}
          :{" "}
          {[first, ...more].map((it, at) => (
            <Fragment key={at}>
              {at > 0 && ", "}
              <code>{typeof it.capability === "string" ? it.capability : JSON.stringify(it.capability)}</code>
            </Fragment>
          ))}
        </li>
      ))}
    </ul>
  );
}

type Group = [hub.AccessReason, ...hub.AccessReason[]];

/** Capabilities that come from the same place at the same time are one reason. */
function grouped(reasons: readonly hub.AccessReason[]): Group[] {
  const groups: Group[] = [];
  for (const it of reasons) {
    const known = groups.find(([first]) => first.why === it.why && first.at === it.at);
    if (known) known.push(it);
    else groups.push([it]);
  }
  return groups;
}
