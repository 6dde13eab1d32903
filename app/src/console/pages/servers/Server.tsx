/** One server: how it is, what waits to be reviewed, its calls, its tools and who can use them. */
import "../../design/servers.css";

import { type ComponentChildren, Fragment } from "preact";
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Notice } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { attempt, say, send, useLoad, usePages } from "../../data";
import type { PageProps } from "../../pages";
import { visible } from "../../parts/compare";
import { Copy } from "../../parts/Copy";
import { Dialog } from "../../../components/Dialog";
import { PageHead, Section } from "../../parts/PageHead";
import { Plot } from "../../parts/Plot";
import { Confirming } from "../../parts/Presence";
import { Problem } from "../../parts/Problem";
import { Pager } from "../../parts/Table";
import { count, counted, Time } from "../../parts/Time";
import { go } from "../../router";
import { operates } from "../../session";
import { Access, because } from "./Access";
import { Changed } from "./Changed";
import { follow, milliseconds, minutes, SERVER_EVENTS, type ServerView, viewOf } from "./hub";
import { useHistory } from "./Servers";
import { State, Why } from "./State";
import { Tools } from "./Tools";

export function Server({ params }: PageProps) {
  const namespace = params["name"] ?? "";
  return operates.value ? <Operated namespace={namespace} /> : <Mine namespace={namespace} />;
}

const Back = () => <a href="/servers">All servers</a>;

function Loading({ namespace, error, onRetry }: { namespace: string; error: string; onRetry: () => unknown }) {
  return (
    <>
      <PageHead title={namespace} lead={<Back />} />
      <Problem error={error} onRetry={onRetry} />
      {!error && (
        <p class="soft" role="status" aria-busy="true">
          Loading…
        </p>
      )}
    </>
  );
}

function Operated({ namespace }: { namespace: string }) {
  const path = `/v1/servers/${encodeURIComponent(namespace)}`;
  const list = usePages<hub.ShownServer, hub.ShownServer>(path, {
    items: (page) => [page],
    next: (page) => page.next,
    cursor: "after",
    on: SERVER_EVENTS,
  });
  const servers = useLoad<hub.Servers>("/v1/servers", ["settings.changed"]);
  const shown = list.items?.[0];
  if (!shown) return <Loading namespace={namespace} error={list.error} onRetry={list.reload} />;
  const view = viewOf(shown.server);
  const named = oneLine(visible([view.server, view.version].filter(Boolean).join(" ")), 80);
  return (
    <>
      <PageHead
        title={view.namespace}
        lead={
          <>
            {named && named !== namespace && `${named} · `}
            <Back />
          </>
        }
      >
        <Button
          onClick={() => void attempt(() => send("POST", `${path}/restart`), `Restarting ${namespace}.`)}
        >
          Restart
        </Button>
        {servers.data?.editable && <Settings shown={shown} onDone={list.reload} />}
        <Remove namespace={namespace} tools={view.tools} editable={servers.data?.editable ?? false} />
      </PageHead>
      <Problem error={list.error} onRetry={list.reload} />
      <Health view={view} shown={shown} />
      {view.held.length > 0 && <Changed namespace={namespace} />}
      <Calls namespace={namespace} />
      <Section title="Tools" hint={<Faults view={view} />}>
        <Tools tools={list.items?.flatMap((page) => page.tools) ?? []} namespace={namespace} />
        <Pager list={list} />
      </Section>
      <Access namespace={namespace} />
      {shown.instructions && (
        <Section title="Instructions" hint="What the server tells models about its use.">
          <p class="words" dir="auto">
            {visible(shown.instructions)}
          </p>
        </Section>
      )}
    </>
  );
}

export function Health({ view, shown }: { view: ServerView; shown: hub.ShownServer }) {
  const facts: [string, ComponentChildren][] = [
    ["State", <StateFact view={view} />],
    ["Since", <Time at={view.since} />],
    [view.transport === "stdio" ? "Program" : "Address", <span class="mono">{visible(view.target)}</span>],
    ["Protocol", [view.transport, view.era && `${view.era} era`].filter(Boolean).join(", ")],
    ["Offers", offers(view)],
    ["Calls", `${count(view.calls)}, ${count(view.errors)} without an answer, ${count(view.in_flight)} open`],
    ["Connections", `${count(view.connections)}, lost ${counted(view.restarts, "time")}`],
    ["Open to", shown.everyone ? "everyone" : "people you allow"],
    ["New tools", shown.trusted ? "listed without review: the server is trusted" : "reviewed first"],
  ];
  // One node links such a server for all.
  if (view.node) facts.push(["Linked by", `the node ${visible(view.node)}, which counts its calls`]);
  if (view.advice) facts.push(["Advice", view.advice]);
  if (view.last_error) facts.push(["Last error", visible(view.last_error)]);
  return (
    <Section title="Health">
      <dl class="facts">
        {facts.map(([name, value]) => (
          <Fragment key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </Fragment>
        ))}
      </dl>
    </Section>
  );
}

const offers = ({ tools, resources, templates, prompts }: ServerView) =>
  [counted(tools, "tool"), counted(resources + templates, "resource"), counted(prompts, "prompt")].join(", ");

function StateFact({ view }: { view: ServerView }) {
  return (
    <>
      <State state={view.state} />
      {view.state !== "up" && <Why why={view.why} retryAfter={view.retry_after} />}
    </>
  );
}

/** What is wrong with what it lists. */
function Faults({ view }: { view: ServerView }) {
  if (!view.faults.length) return null;
  return (
    <details>
      <summary>
        {view.faults.length === 1 ? "1 problem" : `${count(view.faults.length)} problems`} with what it lists
      </summary>
      <ul class="faults">
        {view.faults.map((it, at) => (
          <li key={at}>{visible(it)}</li>
        ))}
      </ul>
    </details>
  );
}

function Calls({ namespace }: { namespace: string }) {
  const { data, error, reload } = useHistory(namespace);
  const history = data?.servers[0];
  if (!data || !history) return <Problem error={error} onRetry={reload} />;
  const times = minutes(data);
  const answers = [
    { name: "Calls", values: history.calls, tone: "main" as const },
    { name: "Answered with an error", values: history.refused, tone: "soft" as const },
    { name: "Without an answer", values: history.errors, tone: "bad" as const },
  ];
  const took = [
    { name: "Mean", values: history.mean_ms, tone: "main" as const },
    { name: "Slowest", values: history.slowest_ms, tone: "soft" as const },
  ];
  return (
    <Section title="The last hour" hint="Minute by minute, the hub's own requests included.">
      <div class="plots">
        <Plot title="Calls a minute" kind="bars" times={times} series={answers} format={count} empty="No calls." />
        <Plot title="Time to answer" times={times} series={took} format={milliseconds} empty="No answers." />
      </div>
    </Section>
  );
}

/** Removes a server, or says how to. */
function Remove({ namespace, tools, editable }: { namespace: string; tools: number; editable: boolean }) {
  const [open, setOpen] = useState(false);
  const close = () => setOpen(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Remove</Button>
      {open && (
        <Dialog title={`Remove ${namespace}?`} onClose={close}>
          {editable ? (
            <Removing namespace={namespace} tools={tools} onClose={close} />
          ) : (
            <>
              <p>Removing servers here is switched off. Run this on the hub's machine.</p>
              <Copy label="Command" text={`folkmoot backends remove ${namespace}`} />
              <div class="line">
                <Button onClick={close}>Close</Button>
              </div>
            </>
          )}
        </Dialog>
      )}
    </>
  );
}

/** What can be changed of a server while the hub runs. */
function Settings({ shown, onDone }: { shown: hub.ShownServer; onDone: () => unknown }) {
  const [open, setOpen] = useState(false);
  return (
    <>
      <Button onClick={() => setOpen(true)}>Settings…</Button>
      {open && <Setting shown={shown} onDone={onDone} onClose={() => setOpen(false)} />}
    </>
  );
}

function Setting({ shown, onDone, onClose }: { shown: hub.ShownServer; onDone: () => unknown; onClose: () => void }) {
  const { namespace, state } = viewOf(shown.server);
  const [everyone, setEveryone] = useState(shown.everyone);
  const [trusted, setTrusted] = useState(shown.trusted);
  const [enabled, setEnabled] = useState(state !== "off");
  const args = { namespace, everyone, trusted, enabled };
  return (
    <Dialog title={`Settings of ${namespace}`} onClose={onClose}>
      <Check checked={enabled} onChange={setEnabled}>
        Switched on
      </Check>
      <Check checked={everyone} onChange={setEveryone}>
        Open to everyone. Otherwise only the people and groups you allow can use it.
      </Check>
      <Check checked={trusted} onChange={setTrusted}>
        Trusted: new and changed tools are listed without your review.
      </Check>
      <Confirming
        verb="Save"
        operation="folkmoot/server_set"
        args={args}
        work={async (headers) => {
          const { namespace: _, ...body } = args;
          await follow(`/v1/servers/${encodeURIComponent(namespace)}`, { method: "PATCH", body, shown: headers });
          say(`Saved the settings of ${namespace}.`);
          await onDone();
          onClose();
        }}
        onClose={onClose}
      />
    </Dialog>
  );
}

function Removing({ namespace, tools, onClose }: { namespace: string; tools: number; onClose: () => void }) {
  return (
    <>
      <p>
        {tools ? `Its ${counted(tools, "tool")}` : "It"} can no longer be called by anyone, and calls that are open
        end. It leaves the settings file. What you allowed people stays, for when you add it again.
      </p>
      <Confirming
        verb={`Remove ${namespace}`}
        danger
        operation="folkmoot/server_remove"
        args={{ namespace }}
        work={async (shown) => {
          await follow(`/v1/servers/${encodeURIComponent(namespace)}`, { method: "DELETE", shown });
          say(`Removed ${namespace}.`);
          go("/servers");
        }}
        onClose={onClose}
      />
    </>
  );
}

function Mine({ namespace }: { namespace: string }) {
  const list = usePages<hub.MyTools, hub.MyTools>(`/v1/me/servers/${encodeURIComponent(namespace)}`, {
    items: (page) => [page],
    next: (page) => page.next,
    cursor: "after",
    on: ["tools.changed"],
  });
  const shown = list.items?.[0];
  if (!shown) return <Loading namespace={namespace} error={list.error} onRetry={list.reload} />;
  const { server } = shown;
  return (
    <>
      <PageHead
        title={server.namespace}
        lead={
          <>
            {because(server.reasons)} <Back />
          </>
        }
      />
      <Problem error={list.error} onRetry={list.reload} />
      {server.state !== "up" && (
        <Notice tone="warning">
          <State state={server.state} />
          <Why why={server.why} />
        </Notice>
      )}
      <Section title="Tools">
        <Tools tools={list.items?.flatMap((page) => page.tools) ?? []} namespace={namespace} />
        <Pager list={list} />
      </Section>
    </>
  );
}
