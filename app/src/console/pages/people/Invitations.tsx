/** Invitations to the hub that nobody has used yet. */
import { useEffect } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { attempt, send, usePages } from "../../data";
import { Confirm } from "../../parts/Confirm";
import { Empty } from "../../parts/Empty";
import { type Column, PagedTable } from "../../parts/Table";
import { Time } from "../../parts/Time";
import { pathTo } from "../../router";

const PATH = "/v1/invites";

export function Invitations({ made }: { made: number }) {
  const list = usePages<hub.OpenInvites, hub.OpenInvite>(PATH, {
    items: (page) => page.invites,
    next: (page) => page.next_cursor,
    on: ["people.changed"],
  });
  useEffect(() => void (made && list.reload()), [made]);
  const withdraw = async (it: hub.OpenInvite) => {
    const path = `${PATH}/${encodeURIComponent(it.id)}`;
    const done = await attempt(() => send("DELETE", path).then(() => true), "The invitation is withdrawn.");
    await list.reload();
    return Boolean(done);
  };
  const columns: readonly Column<hub.OpenInvite>[] = [
    { head: "For", cell: (it) => (it.handle ? `@${it.handle}` : "anyone who has the link") },
    {
      head: "Invited by",
      cell: (it) => (it.invited_by ? <a href={pathTo("people", it.invited_by)}>@{it.invited_by}</a> : "an operator"),
    },
    { head: "Made", cell: (it) => <Time at={it.created_at} /> },
    { head: "Works until", cell: (it) => (it.until === null ? "it is used" : <Time at={it.until} />) },
    {
      head: "Withdraw",
      hideHead: true,
      cell: (it) => (
        <Confirm
          label="Withdraw"
          verb="Withdraw"
          question="Its link stops working at once."
          onConfirm={() => withdraw(it)}
        />
      ),
    },
  ];
  return (
    <section class="section" aria-label="Open invitations">
      <h2 class="subtitle">Open invitations</h2>
      <PagedTable
        label="Open invitations"
        compact
        columns={columns}
        rowKey={(it) => it.id}
        list={list}
        empty={<Empty title="No open invitations." />}
      />
    </section>
  );
}
