/** Groups of people: who is in them, and what they can use. */
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Field } from "../../../components/parts";
import { attempt, send, useLoad } from "../../data";
import { Confirm } from "../../parts/Confirm";
import { Dialog } from "../../../components/Dialog";
import { Empty } from "../../parts/Empty";
import { Section } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { counted } from "../../parts/Time";
import { pathTo } from "../../router";
import { Share } from "../servers/Access";
import { Allow, type Holder, Who } from "../servers/Allow";

const pathOf = (name: string) => `/v1/groups/${encodeURIComponent(name)}`;

export function Groups() {
  const load = useLoad<hub.Groups>("/v1/groups", ["settings.changed", "tools.changed"]);
  const [open, setOpen] = useState(false);
  return (
    <Section
      title="Groups"
      hint="What you allow a group, everyone in it can use."
      beside={<Button onClick={() => setOpen(true)}>New group…</Button>}
    >
      {open && <Edit onDone={load.reload} onClose={() => setOpen(false)} />}
      <Loaded load={load}>
        {({ groups }) =>
          groups.length ? (
            <ul class="stack">
              {groups.map((it) => (
                <Group key={it.name} group={it} onDone={load.reload} />
              ))}
            </ul>
          ) : (
            <Empty title="No groups yet." />
          )
        }
      </Loaded>
    </Section>
  );
}

function Group({ group, onDone }: { group: hub.Group; onDone: () => Promise<void> }) {
  const [editing, setEditing] = useState(false);
  const { name, members, from_company, servers } = group;
  const holder: Holder = { kind: "groups", name };
  const remove = async () => {
    const done = await attempt(() => send("DELETE", pathOf(name)).then(() => true), `Removed the group ${name}.`);
    await onDone();
    return Boolean(done);
  };
  return (
    <li class="stack" aria-label={name}>
      <div class="line">
        <h3 class="subtitle grow">{name}</h3>
        <Allow holder={holder} onDone={onDone} />
        <Button onClick={() => setEditing(true)}>Members…</Button>
        <Confirm
          label="Remove"
          question={`Remove the group ${name}? ${counted(members.length, "person", "people")} lose what only it allows them.`}
          onConfirm={remove}
        />
      </div>
      <p>
        {members.length
          ? members.map((it, at) => (
              <>
                {at > 0 && ", "}
                <a href={pathTo("people", it)}>@{it}</a>
              </>
            ))
          : "No members."}
        {from_company.length > 0 && (
          <span class="soft"> By your company's sign-in: {from_company.map((it) => `@${it}`).join(", ")}.</span>
        )}
      </p>
      <ul class="access">
        {servers.map((it) => (
          <Share
            key={it.namespace}
            holder={holder}
            who={<a href={pathTo("servers", it.namespace)}>{it.namespace}:</a>}
            what={it.namespace}
            tools={it.tools}
            access={it.access}
            onDone={onDone}
          />
        ))}
      </ul>
      {editing && <Edit group={group} onDone={onDone} onClose={() => setEditing(false)} />}
    </li>
  );
}

/** Names a group, or changes who is in it. */
function Edit({ group, onDone, onClose }: { group?: hub.Group; onDone: () => Promise<void>; onClose: () => void }) {
  const [name, setName] = useState(group?.name ?? "");
  const [chosen, setChosen] = useState<readonly Holder[]>(
    (group?.members ?? []).map((it) => ({ kind: "people", name: it })),
  );
  const [busy, setBusy] = useState(false);
  const save = async () => {
    setBusy(true);
    const members = chosen.map((it) => it.name);
    const done = await attempt(() => send("PUT", pathOf(name.trim()), { members }), `Saved the group ${name.trim()}.`);
    setBusy(false);
    await onDone();
    if (done) onClose();
  };
  return (
    <Dialog title={group ? `Members of ${group.name}` : "New group"} onClose={onClose}>
      {!group && (
        <Field label="Name" value={name} onInput={setName} most={32} hint="Lowercase letters, digits, - and _." />
      )}
      <Who chosen={chosen} onChange={setChosen} groups={false} />
      <div class="line">
        <Button kind="primary" disabled={busy || !name.trim()} onClick={() => void save()}>
          Save
        </Button>
        <Button disabled={busy} onClick={onClose}>
          Cancel
        </Button>
      </div>
    </Dialog>
  );
}
