/** The tools of those who are here, and calling one: it is sent if one may, and proposed if not. */
import { useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, Field, Notice } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { send } from "../../data";
import { Empty } from "../../parts/Empty";
import { initial, type Json, type Problem, problemsOf, read, SchemaForm } from "../../parts/SchemaForm";
import { pathTo } from "../../router";
import { allows } from "./capabilities";
import { RoomRefusal } from "./connection";
import type { Envelope } from "./envelope";
import type { RoomStream } from "./stream";

export interface Tool {
  by: string;
  name: string;
  title: string;
  description: string;
  schema: unknown;
}

const MOST_TOOLS = 500;
const LIST_SECONDS = 10;
/** Listed at first; more are found by their names. */
const SHOWN = 50;

export function Tools({ stream }: { stream: RoomStream }) {
  const [tools, setTools] = useState<readonly Tool[] | null>(null);
  const [silent, setSilent] = useState<readonly string[]>([]);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const [sought, setSought] = useState("");
  const [chosen, setChosen] = useState<Tool | null>(null);
  const mayList = allows(stream.capabilities, "mcp.request.tools/list");
  const list = async () => {
    setBusy(true);
    setError("");
    try {
      const found = await listTools(stream);
      setTools(found.tools);
      setSilent(found.silent);
    } catch (failure) {
      setError(sentence(failure));
    }
    setBusy(false);
  };
  if (chosen) return <Call key={`${chosen.by} ${chosen.name}`} stream={stream} tool={chosen} onBack={() => setChosen(null)} />;
  const words = sought.toLowerCase();
  const found = (tools ?? []).filter((each) => `${each.by} ${each.name} ${each.title}`.toLowerCase().includes(words));
  return (
    <div class="stack">
      <h2 class="subtitle">Tools</h2>
      {!mayList && <Notice>You can't list the tools of this room.</Notice>}
      {mayList && (
        <div class="line">
          <Button kind={tools ? "plain" : "primary"} disabled={busy} onClick={() => void list()}>
            {busy ? "Listing…" : tools ? "Refresh" : "List the tools"}
          </Button>
          {!tools && <span class="small soft">From the agents and servers in this room.</span>}
        </div>
      )}
      {error && (
        <Notice tone="danger">
          <span role="alert">{error}</span>
        </Notice>
      )}
      {silent.length > 0 && <p class="small soft">{`No answer from ${silent.join(", ")}.`}</p>}
      {tools?.length === 0 && <Empty title="Nobody here offers tools.">An agent that does can join, or an owner can add a server to the room.</Empty>}
      {tools && tools.length > 8 && <Field label="Find a tool" value={sought} onInput={setSought} />}
      <ul class="tool-list">
        {found.slice(0, SHOWN).map((each) => (
          <li key={`${each.by} ${each.name}`}>
            <button type="button" class="tool" onClick={() => setChosen(each)}>
              <span class="mono">{oneLine(each.name, 120)}</span>
              <span class="small soft"> of {each.by}</span>
              {each.description && <span class="small soft tool-about">{oneLine(each.description, 160)}</span>}
            </button>
          </li>
        ))}
      </ul>
      {found.length > SHOWN && <p class="small soft">{`${found.length - SHOWN} more; find them by name.`}</p>}
    </div>
  );
}

/** What the hub learns from everyone who offers tools; the room sees nothing of it. */
async function listTools(stream: RoomStream): Promise<{ tools: Tool[]; silent: string[] }> {
  const path = `/v1${pathTo("rooms", stream.name)}/tools?wait=${LIST_SECONDS}`;
  const { tools, unanswered = [] } = await send<hub.OfferedTools>("GET", path);
  const found = tools.filter((each) => typeof each["name"] === "string" && typeof each["to"] === "string");
  const listed = found.map((each) => {
    const text = (name: string) => (typeof each[name] === "string" ? each[name] : "");
    return {
      by: text("to"),
      name: text("name"),
      title: text("title"),
      description: text("description"),
      schema: each["inputSchema"],
    };
  });
  return { tools: listed.slice(0, MOST_TOOLS), silent: unanswered };
}

function Call({ stream, tool, onBack }: { stream: RoomStream; tool: Tool; onBack: () => void }) {
  const schema = read(tool.schema);
  const [value, setValue] = useState<Json | undefined>(() => initial(schema));
  const [tried, setTried] = useState(false);
  const [reason, setReason] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [sent, setSent] = useState<{ message: Envelope; proposed: boolean } | null>(null);
  const held = stream.capabilities;
  const mayCall = allows(held, `mcp.request.tools/call:${tool.name}`, tool.by);
  const mayPropose = allows(held, `mcp.proposal.tools/call:${tool.name}`, tool.by);
  const [refused, setRefused] = useState(false);
  const proposes = !mayCall || refused;
  const problems: Problem[] = tried ? problemsOf(schema, value) : [];
  const go = async () => {
    setTried(true);
    if (problemsOf(schema, value).length) return;
    setBusy(true);
    setError("");
    const params = { name: tool.name, arguments: value ?? {} };
    try {
      const message = await (proposes ? propose(stream, tool, params, reason) : call(stream, tool, params));
      if (message) setSent({ message, proposed: proposes });
    } catch (failure) {
      if (failure instanceof RoomRefusal && failure.code === "proposal_required") {
        setRefused(true);
        setError("You can't call it with these arguments. You can propose it instead.");
      } else setError(sentence(failure));
    }
    setBusy(false);
  };
  return (
    <div class="stack">
      <div>
        <Button icon="back" kind="plain" onClick={onBack}>
          All tools
        </Button>
      </div>
      <h2 class="subtitle">
        <span class="mono">{oneLine(tool.name, 120)}</span> <span class="soft">of {tool.by}</span>
      </h2>
      {tool.description && <p class="small plain-text">{tool.description.slice(0, 4000)}</p>}
      <SchemaForm schema={schema} value={value} onChange={setValue} problems={problems} />
      {proposes && mayPropose && (
        <Field
          label="Why should it be done? (optional)"
          value={reason}
          most={1000}
          onInput={setReason}
          hint="You can't call this tool yourself. Someone who can will decide on your proposal."
        />
      )}
      {proposes && !mayPropose ? (
        <Notice>You can neither call this tool nor propose it.</Notice>
      ) : (
        <div class="line">
          <Button kind="primary" disabled={busy} onClick={() => void go()}>
            {proposes ? "Propose" : "Call"}
          </Button>
        </div>
      )}
      {tried && problems.length > 0 && (
        <p class="small error" role="alert">
          Not sent: see the fields above.
        </p>
      )}
      {error && (
        <p class="small error" role="alert">
          {error}
        </p>
      )}
      {sent && <Sent stream={stream} {...sent} />}
    </div>
  );
}

const call = (stream: RoomStream, tool: Tool, params: { [name: string]: Json }) => {
  const id = crypto.getRandomValues(new Uint32Array(4)).join("-");
  return stream.post({
    id,
    kind: `mcp.request.tools/call:${tool.name}`,
    to: [tool.by],
    payload: { jsonrpc: "2.0", id, method: "tools/call", params },
  });
};

const propose = (stream: RoomStream, tool: Tool, params: { [name: string]: Json }, reason: string) =>
  stream.post({
    kind: `mcp.proposal.tools/call:${tool.name}`,
    to: [tool.by],
    payload: { method: "tools/call", params, ...(reason.trim() ? { reason: reason.trim() } : {}) },
  });

function Sent({ stream, message, proposed }: { stream: RoomStream; message: Envelope; proposed: boolean }) {
  const answer = stream.pairs.value.exchanges.get(message.id)?.answer;
  const state = stream.proposals.value.get(message.id)?.state ?? "open";
  const words = proposed
    ? state === "open"
      ? "Proposed. Someone who can approve it will decide."
      : `Your proposal is ${state}.`
    : answer
      ? "Answered."
      : "Sent. Waiting for the answer…";
  return (
    <Notice tone="good">
      <p role="status">
        {words} <a href={`#m-${answer?.seq ?? message.seq}`}>See it in the room</a>
      </p>
    </Notice>
  );
}
