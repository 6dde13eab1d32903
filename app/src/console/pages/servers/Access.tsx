/** Who can use a server or a tool of it and why, with what changes it. */
import "../../design/servers.css";

import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Field } from "../../../components/parts";
import { plainHandle } from "../../../text/names";
import { attempt, send, useLoad, usePages, withQuery } from "../../data";
import { Confirm } from "../../parts/Confirm";
import { Section } from "../../parts/PageHead";
import { Problem } from "../../parts/Problem";
import { Pager } from "../../parts/Table";
import { count, counted } from "../../parts/Time";
import { pathTo } from "../../router";
import { Allow, called, type Holder, setAccess } from "./Allow";

const ON = ["settings.changed", "tools.changed", "people.changed"] as const;

function useAccess(namespace: string, tool: string) {
  return usePages<hub.ServerAccess, hub.ServerAccess>(
    withQuery(`/v1/servers/${encodeURIComponent(namespace)}/access`, { tool }),
    { items: (page) => [page], next: (page) => page.next, cursor: "after", on: ON },
  );
}

interface Of {
  namespace: string;
  tool?: string;
}

export function Access({ namespace }: Of) {
  return (
    <Section title="Who can use it" hint="People with permissions of their own, beyond the default.">
      <AccessList namespace={namespace} />
    </Section>
  );
}

export function AccessList({ namespace, tool = "" }: Of) {
  const list = useAccess(namespace, tool);
  const [first] = list.items ?? [];
  const what = tool || namespace;
  const open = first && first.everyone.may !== "none";
  return (
    <div class="stack">
      <Problem error={list.error} onRetry={list.reload} />
      {first && (
        <p>
          {open
            ? "This server is open to everyone."
            : `Only people you allow can ${tool ? "call this tool" : "use this server"}.`}
        </p>
      )}
      <ul class="access">
        {first?.groups.map((it) => (
          <Share
            key={`group ${it.name}`}
            holder={{ kind: "groups", name: it.name }}
            who={`Group ${it.name} (${counted(it.members, "person", "people")})`}
            {...{ access: it.access, what, tools: first.tools, onDone: list.reload }}
          />
        ))}
        {list.items?.flatMap((page) =>
          page.people.map((it) => (
            <Share
              key={it.handle}
              holder={it.account ? { kind: "people", name: it.handle } : null}
              who={it.account ? <a href={pathTo("people", it.handle)}>@{it.handle}</a> : `@${it.handle} (no account yet)`}
              {...{ access: it.access, what, tools: page.tools, onDone: list.reload }}
            />
          )),
        )}
      </ul>
      <Pager list={list} />
      <div class="line">
        <Allow server={namespace} {...(tool ? { tool } : {})} onDone={list.reload} />
      </div>
      {tool && <AskWhy tool={tool} onDone={list.reload} />}
    </div>
  );
}

interface ShareProps {
  holder: Holder | null;
  who: ComponentChildren;
  /** The server or the tool. */
  what: string;
  /** How many tools the server has. */
  tools: number;
  access: hub.Access;
  onDone: () => unknown;
}

/** "@bob can call 3 of 12 tools", why, and a way to change it. */
export function Share({ holder, who, what, tools, access, onDone }: ShareProps) {
  const { names, reasons, may } = access;
  const inherited = reasons.some((it) => !it.denies && it.origin !== "granted");
  const set = async (allowed: boolean) => {
    const done = await attempt(() => setAccess(holder!, [what], allowed).then(() => true));
    await onDone();
    return Boolean(done);
  };
  return (
    <li>
      <div class="grow">
        <p>
          {who} {can(access, what, tools)}
        </p>
        {names.length > 0 && <p class="small mono">{names.join(", ")}{access.tools > names.length && " …"}</p>}
        <p class="small soft">{because(reasons)}</p>
      </div>
      {holder && may !== "none" && (
        <Confirm
          label="Remove"
          question={
            holder.kind === "people" && inherited
              ? `Deny ${called(holder)} ${what}? Others who can use it the same way keep it.`
              : `Stop ${called(holder)} from using ${what}?`
          }
          onConfirm={() => set(false)}
        />
      )}
      {holder && may === "none" && <Button onClick={() => void set(true)}>Allow</Button>}
    </li>
  );
}

function can({ may, tools }: hub.Access, what: string, all: number): string {
  const tool = what.includes(":");
  if (may === "none") return tool ? "can't call it" : "can't use it";
  if (tool) return may === "all" ? "can call it" : "can call it with some arguments";
  return may === "all" ? "can use all of it" : `can call ${count(tools)} of ${counted(all, "tool")}`;
}

/** "Allowed by an operator; denied for the group team." */
export function because(reasons: readonly hub.AccessReason[]): string {
  const told = [...new Set(reasons.map((it) => it.why))].join("; ");
  return told && `${told[0]!.toUpperCase()}${told.slice(1)}.`;
}

/** Can this person call it? Answered in a sentence, with the button that changes it. */
function AskWhy({ tool, onDone }: { tool: string; onDone: () => unknown }) {
  const id = useId();
  const [text, setText] = useState("");
  const [asked, setAsked] = useState("");
  return (
    <div class="stack">
      <div class="inline">
        <Field
          label="Can someone call it? Type their handle"
          value={text}
          onInput={setText}
          onEnter={() => setAsked(plainHandle(text))}
          most={64}
          placeholder="@bob"
        />
        <Button disabled={!text.trim()} onClick={() => setAsked(plainHandle(text))}>
          Check
        </Button>
      </div>
      {asked && <Why key={`${id} ${asked}`} handle={asked} tool={tool} onDone={onDone} />}
    </div>
  );
}

export function Why({ handle, tool, onDone }: { handle: string; tool: string; onDone?: () => unknown }) {
  const path = `/v1/people/${encodeURIComponent(handle)}/access`;
  const load = useLoad<hub.AccessOf>(withQuery(path, { tool }), ON);
  const answer = load.data?.answer;
  const act = async (work: () => Promise<unknown>) => {
    await attempt(work);
    await Promise.all([load.reload(), onDone?.()]);
  };
  const holder: Holder = { kind: "people", name: handle };
  const restore = () => send("POST", `/v1/accounts/${encodeURIComponent(handle)}/restore`, { reason: "" });
  return (
    <>
      <Problem error={load.error} />
      {answer && (
        <div class="notice line" role="status">
          <span class="grow">{answer.sentence}</span>
          {answer.change === "allow" && (
            <Button kind="primary" onClick={() => void act(() => setAccess(holder, [tool], true))}>
              Allow @{handle}
            </Button>
          )}
          {answer.change === "deny" && (
            <Button onClick={() => void act(() => setAccess(holder, [tool], false))}>Don't allow it</Button>
          )}
          {answer.change === "restore" && <Button onClick={() => void act(restore)}>Restore @{handle}</Button>}
          {answer.change === "accept" && (
            <a class="button" href={pathTo("servers", tool.split(":")[0]!)}>
              Review it
            </a>
          )}
        </div>
      )}
    </>
  );
}
