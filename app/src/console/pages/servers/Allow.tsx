/** Allows people and groups servers or tools, by picking them. */
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Choice, Field } from "../../../components/parts";
import { attempt, send, useLoad, usePages, withQuery } from "../../data";
import { visible } from "../../parts/compare";
import { Dialog } from "../../../components/Dialog";
import { Problem } from "../../parts/Problem";
import { Pager } from "../../parts/Table";
import { counted } from "../../parts/Time";
import { type ServerView, viewOf } from "./hub";

/** A person by their handle, or a group by its name. */
export interface Holder {
  kind: "people" | "groups";
  name: string;
}

export const called = ({ kind, name }: Holder) => (kind === "people" ? `@${name}` : `the group ${name}`);

/** Allow someone tools or whole servers, or take them away. */
export const setAccess = ({ kind, name }: Holder, tools: readonly string[], allowed: boolean) =>
  send("PUT", `/v1/${kind}/${encodeURIComponent(name)}/access`, { tools, allowed });

interface Props {
  /** Fixed, or to be picked. */
  holder?: Holder;
  server?: string;
  tool?: string;
  onDone: () => unknown;
}

export function Allow(props: Props) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>{props.holder ? "Allow a server or tool…" : "Allow someone…"}</Button>
      {open && <Picking {...props} onClose={() => setOpen(false)} />}
    </>
  );
}

function Picking({ holder, tool, onDone, onClose, ...given }: Props & { onClose: () => void }) {
  const [who, setWho] = useState<readonly Holder[]>(holder ? [holder] : []);
  const [server, setServer] = useState(given.server ?? "");
  const [tools, setTools] = useState<readonly string[] | null>(tool ? [tool] : null);
  const [busy, setBusy] = useState(false);
  const what = tools ?? (server ? [server] : []);
  const allow = async () => {
    setBusy(true);
    const names = who.map(called).join(", ");
    const done = await attempt(async () => {
      for (const each of who) await setAccess(each, what, true);
      return true;
    }, `${names} can use ${what.length > 1 ? counted(what.length, "tool") : what[0]}.`);
    setBusy(false);
    await onDone();
    if (done) onClose();
  };
  const title = holder ? `Allow ${called(holder)}` : `Allow someone to use ${tool ?? server}`;
  return (
    <Dialog title={title} onClose={onClose}>
      {!holder && <Who chosen={who} onChange={setWho} />}
      {!given.server && <WhichServer server={server} onChange={(it) => (setServer(it), setTools(null))} />}
      {!tool && server && <WhichTools key={server} server={server} chosen={tools} onChange={setTools} />}
      <div class="line">
        <Button kind="primary" disabled={busy || !who.length || !what.length} onClick={() => void allow()}>
          Allow
        </Button>
        <Button disabled={busy} onClick={onClose}>
          Cancel
        </Button>
      </div>
    </Dialog>
  );
}

const toggled = <T,>(all: readonly T[], one: T, same: (it: T) => boolean) =>
  all.some(same) ? all.filter((it) => !same(it)) : [...all, one];

interface WhoProps {
  chosen: readonly Holder[];
  onChange: (chosen: readonly Holder[]) => void;
  /** Whether groups are offered beside people. */
  groups?: boolean;
}

export function Who({ chosen, onChange, groups: withGroups = true }: WhoProps) {
  const [text, setText] = useState("");
  const groups = useLoad<hub.Groups>(withGroups ? "/v1/groups" : null, ["settings.changed"]);
  const people = usePages<hub.PersonRows, hub.PersonRow>(withQuery("/v1/accounts", { text: text.trim() }), {
    items: (page) => page.people,
    next: (page) => page.next,
    cursor: "after",
  });
  const words = text.trim().replace(/^@/, "").toLowerCase();
  const offered = [
    ...(groups.data?.groups ?? [])
      .filter(({ name }) => name.includes(words))
      .map((it) => ({ kind: "groups" as const, name: it.name, more: counted(it.members.length, "person", "people") })),
    ...(people.items ?? []).map((it) => ({ kind: "people" as const, name: it.handle, more: it.display_name })),
  ];
  const isSame = (one: Holder) => (it: Holder) => it.kind === one.kind && it.name === one.name;
  const hidden = chosen.filter((it) => !offered.some(isSame(it))).map((it) => ({ ...it, more: "" }));
  return (
    <>
      <Field label={withGroups ? "Find a person or group" : "Find a person"} value={text} onInput={setText} most={100} />
      <Problem error={people.error} onRetry={people.reload} />
      <div class="picks" role="group" aria-label="Who">
        {[...hidden, ...offered].map(({ more, ...it }) => (
          <Check
            key={`${it.kind} ${it.name}`}
            checked={chosen.some(isSame(it))}
            onChange={() => onChange(toggled(chosen, it, isSame(it)))}
          >
            {it.kind === "groups" ? `Group ${it.name}` : `@${it.name}`}
            {more && more !== it.name && <span class="soft"> {visible(more)}</span>}
          </Check>
        ))}
        {!offered.length && people.items && <p class="soft">Nobody has this in their name.</p>}
        <Pager list={people} />
      </div>
    </>
  );
}

export function WhichServer({ server, onChange }: { server: string; onChange: (server: string) => void }) {
  const { data } = useLoad<hub.Servers>("/v1/servers", ["settings.changed"]);
  const names = (data?.backends ?? []).map((it) => (viewOf(it) as ServerView).namespace);
  return (
    <Choice
      label="Server"
      value={server}
      options={[["", "Choose one"], ...names.map((it) => [it, it] as const)]}
      onChange={onChange}
    />
  );
}

/** The tools of a server, page by page. */
export function useTools(server: string) {
  return usePages<hub.ShownServer, hub.ServerTool>(server ? `/v1/servers/${encodeURIComponent(server)}` : null, {
    items: (page) => page.tools,
    next: (page) => page.next,
    cursor: "after",
    on: ["tools.changed"],
  });
}

/** The whole server, which `null` stands for, or some of its tools. */
function WhichTools({ server, chosen, onChange }: {
  server: string;
  chosen: readonly string[] | null;
  onChange: (chosen: readonly string[] | null) => void;
}) {
  const [text, setText] = useState("");
  const list = useTools(server);
  const words = text.trim().toLowerCase();
  const shown = (list.items ?? []).filter((it) => `${it.name} ${it.title}`.toLowerCase().includes(words));
  return (
    <>
      <Choice
        label="What"
        value={chosen ? "some" : "all"}
        options={[
          ["all", "The whole server, also tools it adds later"],
          ["some", "Only some tools"],
        ]}
        onChange={(it) => onChange(it === "all" ? null : [])}
      />
      {chosen && (
        <>
          <Problem error={list.error} onRetry={list.reload} />
          {(list.items?.length ?? 0) > 12 && <Field label="Find a tool" value={text} onInput={setText} />}
          <div class="picks" role="group" aria-label="Tools">
            {shown.map(({ name }) => (
              <Check
                key={name}
                checked={chosen.includes(name)}
                onChange={() => onChange(toggled(chosen, name, (it) => it === name))}
              >
                <span class="mono">{visible(name)}</span>
              </Check>
            ))}
            {list.items?.length === 0 && <p class="soft">It lists no tools now.</p>}
            <Pager list={list} />
          </div>
        </>
      )}
    </>
  );
}
