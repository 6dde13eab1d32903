/** Who may do more than everyone, and what everyone may do. */
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
  { head: "In settings", number: true, cell: (it) => count(it.settings) },
  { head: "Granted", number: true, cell: (it) => count(it.granted) },
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
      title="Rights beyond the defaults"
      hint="Groups, and what the settings file says of a handle, are changed there. What was granted is changed on the page of each person."
    >
      <PagedTable
        label="Rights beyond the defaults"
        columns={COLUMNS}
        rowKey={(it) => it.handle}
        list={list}
        empty={<Empty title="Nobody may do more than everyone." />}
      />
      <details>
        <summary>What everyone may do</summary>
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
      return "as every account has it";
    case "everyone":
      return `because ${name} is for everyone`;
    case "group":
      return `by the group ${name}`;
    case "settings":
      return "by the settings file";
    case "granted":
      return "granted here";
    default:
      return from;
  }
}
