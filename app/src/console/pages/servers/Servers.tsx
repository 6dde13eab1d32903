/** The servers behind the hub: all of them for operators, those one can use for everyone else. */
import "../../design/servers.css";

import { useEffect, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Field } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { useLoad } from "../../data";
import { visible } from "../../parts/compare";
import { Empty } from "../../parts/Empty";
import { PageHead } from "../../parts/PageHead";
import { Sparkline } from "../../parts/Plot";
import { Loaded } from "../../parts/Problem";
import { type Column, Table } from "../../parts/Table";
import { count } from "../../parts/Time";
import { pathTo, place, setQuery } from "../../router";
import { operates } from "../../session";
import { because } from "./Access";
import { AddServer } from "./AddServer";
import { milliseconds, SERVER_EVENTS, type ServerView, sum, viewOf } from "./hub";
import { useSignIns } from "./SignIn";
import { State, Why } from "./State";

/** How often numbers are read again that nothing tells of. */
export const AGAIN_MS = 15_000;
/** From so many on, one looks for a server by its name. */
const MANY = 8;

export function Servers() {
  return operates.value ? <All /> : <Mine />;
}

/** What came of calls in the latest hour, read again from time to time. */
export function useHistory(namespace = "") {
  const query = namespace ? `?${new URLSearchParams({ namespace })}` : "";
  const load = useLoad<hub.Histories>(`/v1/server-history${query}`, ["server.changed"]);
  useEffect(() => {
    const timer = setInterval(() => {
      if (!document.hidden) void load.reload();
    }, AGAIN_MS);
    return () => clearInterval(timer);
  }, [namespace]);
  return load;
}

function All() {
  const load = useLoad<hub.Servers>("/v1/servers", SERVER_EVENTS);
  const history = useHistory();
  const adding = place.value.query.has("add");
  return (
    <>
      <PageHead title="Servers" lead="The MCP servers behind this hub.">
        {!adding && load.data && (
          <Button kind="primary" onClick={() => setQuery({ add: "1" }, false)}>
            Add a server
          </Button>
        )}
      </PageHead>
      {adding && load.data && (
        <AddServer editable={load.data.editable} onClose={() => setQuery({ add: null })} />
      )}
      <Loaded load={load}>
        {(data) => <AllTable views={data.backends.map(viewOf)} history={history.data} adding={adding} />}
      </Loaded>
    </>
  );
}

interface AllTableProps {
  views: readonly ServerView[];
  history: hub.Histories | null;
  adding: boolean;
}

function AllTable({ views, history, adding }: AllTableProps) {
  const [sought, setSought] = useState("");
  const signIn = useSignIns();
  if (!views.length) {
    return adding ? null : (
      <Empty title="No servers yet.">
        <p>Add one. The people you allow can then use its tools through this hub.</p>
      </Empty>
    );
  }
  const of = new Map(history?.servers.map((it) => [it.namespace, it]));
  const words = sought.trim().toLowerCase();
  const rows = views.filter((it) => `${it.namespace} ${it.server}`.toLowerCase().includes(words));
  const columns: readonly Column<ServerView>[] = [
    { head: "Server", cell: (it) => <Name view={it} /> },
    {
      head: "State",
      cell: (it) => (
        <div>
          <State state={it.state} />
          {it.state !== "up" && <Why why={it.why} retryAfter={it.retry_after} />}
          {signIn(it.namespace)}
        </div>
      ),
    },
    { head: "Tools", cell: (it) => <ToolCount view={it} /> },
    { head: "Calls, last hour", number: true, cell: (it) => count(sum(of.get(it.namespace)?.calls ?? [])) },
    { head: "Without answer", number: true, cell: (it) => <Errors of={of.get(it.namespace)} /> },
    { head: "Latency", cell: (it) => <Latency of={of.get(it.namespace)} view={it} /> },
  ];
  return (
    <>
      {views.length > MANY && <Field label="Find a server" value={sought} onInput={setSought} />}
      {rows.length ? (
        <Table label="Servers" compact columns={columns} rows={rows} rowKey={(it) => it.namespace} />
      ) : (
        <Empty title="No server has this in its name." />
      )}
    </>
  );
}

function Name({ view }: { view: ServerView }) {
  const told = oneLine(visible([view.server, view.version].filter(Boolean).join(" ")), 60);
  return (
    <div>
      <a href={pathTo("servers", view.namespace)}>
        <strong>{view.namespace}</strong>
      </a>
      {told && <p class="small soft">{told}</p>}
    </div>
  );
}

function ToolCount({ view }: { view: ServerView }) {
  const suspicious = Object.values(view.findings).reduce((many, it) => many + Object.keys(it).length, 0);
  return (
    <div class="nowrap">
      {count(view.tools)}
      {view.held.length > 0 && <p class="small bad-text">{count(view.held.length)} to review</p>}
      {suspicious > 0 && <p class="small bad-text">{count(suspicious)} suspicious</p>}
    </div>
  );
}

function Errors({ of }: { of: hub.ServerHistory | undefined }) {
  const many = sum(of?.errors ?? []);
  return many ? <span class="bad-text">{count(many)}</span> : <>0</>;
}

function Latency({ of, view }: { of: hub.ServerHistory | undefined; view: ServerView }) {
  if (view.median_ms === null) return <span class="soft">no calls yet</span>;
  const told = `median ${milliseconds(view.median_ms)}`;
  return (
    <div class="latency">
      <Sparkline values={of?.mean_ms ?? []} label={`Latency of ${view.namespace} in the last hour, ${told}`} />
      <span class="small soft">{told}</span>
    </div>
  );
}

function Mine() {
  const load = useLoad<hub.MyServers>("/v1/me/servers", ["tools.changed"]);
  const signIn = useSignIns();
  const columns: readonly Column<hub.MyServer>[] = [
    {
      head: "Server",
      cell: (it) => (
        <a href={pathTo("servers", it.namespace)}>
          <strong>{it.namespace}</strong>
        </a>
      ),
    },
    {
      head: "State",
      cell: (it) => (
        <div>
          <State state={it.state} />
          <Why why={it.why} />
          {signIn(it.namespace)}
        </div>
      ),
    },
    { head: "Tools", number: true, cell: (it) => count(it.tools) },
    { head: "Why you can use it", cell: (it) => because(it.reasons) },
  ];
  return (
    <>
      <PageHead title="Servers" lead="The MCP servers that you can use through this hub." />
      <Loaded load={load}>
        {({ servers }) =>
          servers.length ? (
            <Table label="Servers" compact columns={columns} rows={servers} rowKey={(it) => it.namespace} />
          ) : (
            <Empty title="No servers yet.">
              <p>An operator of this hub can allow you some.</p>
            </Empty>
          )
        }
      </Loaded>
    </>
  );
}
