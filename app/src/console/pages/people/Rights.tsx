/** Who can do more than everyone, and what everyone can do. */
import type * as hub from "../../../api/schema";
import { useLoad, usePages } from "../../data";
import { Empty } from "../../parts/Empty";
import { Section } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { type Column, PagedTable } from "../../parts/Table";
import { count } from "../../parts/Time";
import { pathTo } from "../../router";

const COLUMNS: readonly Column<hub.GrantRow>[] = [
  {
    head: "Person",
    cell: (it) =>
      it.state === "account" ? (
        <a href={pathTo("people", it.handle)}>@{it.handle}</a>
      ) : (
        <span>
          @{it.handle}{" "}
          <span class="soft">{it.leads_to ? `is now @${it.leads_to}` : "has no account yet"}</span>
        </span>
      ),
  },
  { head: "Groups", cell: (it) => it.groups.join(", ") || <span class="soft">none</span> },
  { head: "In the settings file", number: true, cell: (it) => count(it.settings) },
  { head: "Allowed here", number: true, cell: (it) => count(it.granted) },
];

export function Rights() {
  const list = usePages<hub.Overview, hub.GrantRow>("/v1/grants", {
    items: (page) => page.people,
    next: (page) => page.next,
    cursor: "after",
    on: ["people.changed", "settings.changed"],
  });
  const everyone = useLoad<hub.Overview>("/v1/grants", ["settings.changed"]);
  return (
    <Section
      title="Permissions beyond the default"
      hint="Change them on a person's page, or on a server's."
    >
      <PagedTable
        label="Permissions beyond the default"
        compact
        columns={COLUMNS}
        rowKey={(it) => it.handle}
        list={list}
        empty={<Empty title="No one has extra permissions." />}
      />
      <details>
        <summary>What everyone can do, as patterns</summary>
        <Loaded load={everyone}>
          {(data) =>
            data.everyone.length ? (
              <ul class="stack">
                {data.everyone.map((it) => (
                  <li key={written(it)}>
                    <code>{written(it)}</code> <span class="soft small">{origin(it)}</span>
                  </li>
                ))}
              </ul>
            ) : (
              <p class="soft">Nothing at the servers behind the hub.</p>
            )
          }
        </Loaded>
      </details>
    </Section>
  );
}

/** A capability as it was written: a pattern, or an object of several. */
export function written({ capability }: hub.HeldCapability): string {
  return typeof capability === "string" ? capability : JSON.stringify(capability);
}

/** Why someone has a capability. */
export function origin({ origin: from, name }: hub.HeldCapability): string {
  switch (from) {
    case "default":
      return "every account has it";
    case "everyone":
      return `${name} is open to everyone`;
    case "group":
      return `the group ${name}`;
    case "settings":
      return "the settings file";
    case "granted":
      return "allowed by an operator";
    default:
      return from;
  }
}
