/** The tools of a server: what they say they do, what they take, and trying them. */
import { useEffect, useRef, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, Choice, Field, Notice } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { RiskTag } from "../../parts/Card";
import { visible } from "../../parts/compare";
import { Empty } from "../../parts/Empty";
import { Progress } from "../../parts/Progress";
import { initial, type Json, type Problem, problemsOf, read, SchemaForm } from "../../parts/SchemaForm";
import { duration } from "../../parts/Time";
import { place, setQuery } from "../../router";
import { operates, who } from "../../session";
import { AccessList, Why } from "./Access";
import { follow } from "./hub";

const MANY = 12;
const HELD: Record<string, string> = { changed: "changed, to review", new: "new, to review" };

export function Tools({ tools, namespace }: { tools: readonly hub.ServerTool[]; namespace: string }) {
  const [sought, setSought] = useState("");
  if (!tools.length) {
    return (
      <Empty title="No tools here.">
        <p>It was not reached yet, or offers none that you can call.</p>
      </Empty>
    );
  }
  const words = sought.trim().toLowerCase();
  const shown = tools.filter((it) => `${it.name} ${it.title} ${it.description}`.toLowerCase().includes(words));
  return (
    <>
      {tools.length > MANY && <Field label="Find a tool" value={sought} onInput={setSought} />}
      <ul class="server-tools">
        {shown.map((tool) => (
          <li key={tool.name}>
            <Tool tool={tool} namespace={namespace} />
          </li>
        ))}
      </ul>
      {!shown.length && <p class="soft">No tool has this in its name or description.</p>}
    </>
  );
}

function Tool({ tool, namespace }: { tool: hub.ServerTool; namespace: string }) {
  const open = place.value.query.get("tool") === tool.name;
  return (
    <details
      class="server-tool"
      open={open}
      onToggle={(event) => {
        const now = event.currentTarget.open;
        if (now !== open) setQuery({ tool: now ? tool.name : null });
      }}
    >
      <summary>
        <span class="mono name">{visible(tool.name)}</span>
        <Tags tool={tool} />
        <span class="soft small says">{oneLine(visible(tool.description), 160)}</span>
      </summary>
      {open && <Details tool={tool} namespace={namespace} />}
    </details>
  );
}

function Tags({ tool }: { tool: hub.ServerTool }) {
  return (
    <>
      {tool.held && <span class="tag urgent">{HELD[tool.held] ?? tool.held}</span>}
      {tool.findings.length > 0 && <span class="tag urgent">suspicious</span>}
      {tool.risk !== "unknown" && <RiskTag risk={tool.risk} />}
    </>
  );
}

function Details({ tool, namespace }: { tool: hub.ServerTool; namespace: string }) {
  return (
    <div class="stack details">
      {tool.title && tool.title !== tool.name && <p class="subtitle">{visible(tool.title)}</p>}
      {tool.description && (
        <p class="words" dir="auto">
          {visible(tool.description)}
        </p>
      )}
      {tool.findings.length > 0 && (
        <Notice tone="danger">Its description has suspicious content: {tool.findings.join(", ")}.</Notice>
      )}
      <p class="small soft">
        The server calls it <code>{visible(tool.own)}</code>.
      </p>
      {tool.may_call ? (
        <Try tool={tool} />
      ) : (
        <NotYours tool={tool} />
      )}
      <details>
        <summary>Schema of its arguments</summary>
        <pre class="json" tabIndex={0}>
          {visible(JSON.stringify(tool.schema, null, 2))}
        </pre>
      </details>
      {operates.value && <WhoMay namespace={namespace} tool={tool.name} />}
    </div>
  );
}

function NotYours({ tool }: { tool: hub.ServerTool }) {
  const handle = who.value?.handle;
  if (operates.value && handle) return <Why handle={handle} tool={tool.name} />;
  return <p class="soft">{tool.held ? "It can be called once it is accepted." : "You can't call it."}</p>;
}

function WhoMay({ namespace, tool }: { namespace: string; tool: string }) {
  const [open, setOpen] = useState(false);
  return (
    <details onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Who can call it, and why</summary>
      {open && <AccessList namespace={namespace} tool={tool} />}
    </details>
  );
}

type Era = "stateless" | "handshake";

/** A form made of the tool's schema, and what the tool answered. */
function Try({ tool }: { tool: hub.ServerTool }) {
  const schema = read(tool.schema);
  const [value, setValue] = useState<Json | undefined>(() => initial(schema));
  const [era, setEra] = useState<Era>("stateless");
  const [problems, setProblems] = useState<readonly Problem[]>([]);
  const [busy, setBusy] = useState(false);
  const [step, setStep] = useState<hub.ToolProgress | null>(null);
  const [answer, setAnswer] = useState<hub.TriedTool | null>(null);
  const [error, setError] = useState("");
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const call = async () => {
    const wrong = problemsOf(schema, value);
    setProblems(wrong);
    if (wrong.length) return setError("Something is missing or does not fit: see above.");
    running.current = new AbortController();
    setBusy(true);
    setError("");
    setAnswer(null);
    setStep(null);
    try {
      const body = { name: tool.name, arguments: value ?? {}, era };
      setAnswer(
        await follow<hub.TriedTool, hub.ToolProgress>("/v1/tools/call", {
          body,
          onProgress: setStep,
          signal: running.current.signal,
        }),
      );
    } catch (failed) {
      setError(running.current.signal.aborted ? "Stopped. It may or may not have been done." : sentence(failed));
    } finally {
      setBusy(false);
      setStep(null);
    }
  };
  return (
    <section class="try stack" aria-label={`Try ${tool.name}`}>
      <h3 class="subtitle">Try it</h3>
      <SchemaForm schema={schema} value={value} onChange={setValue} problems={problems} />
      <div class="line">
        <Button kind="primary" disabled={busy} onClick={() => void call()}>
          Call {visible(tool.name)}
        </Button>
        {busy && <Button onClick={() => running.current?.abort()}>Stop</Button>}
        <Choice<Era>
          label="Era of MCP"
          hideLabel
          value={era}
          options={[
            ["stateless", "as a client without a session"],
            ["handshake", "as a client with a session"],
          ]}
          onChange={setEra}
        />
      </div>
      {busy && (
        <Progress
          label={oneLine(visible(step?.message ?? ""), 200) || "Waiting for the answer…"}
          value={step?.total && step.progress !== null ? step.progress : undefined}
          max={step?.total ?? 1}
        />
      )}
      {error && (
        <Notice tone="danger">
          <p role="alert">{visible(error)}</p>
        </Notice>
      )}
      {answer && <Answer answer={answer} />}
    </section>
  );
}

interface Content {
  type?: unknown;
  text?: unknown;
}

/** What a tool answered: texts as they are, everything else as JSON. */
function Answer({ answer }: { answer: hub.TriedTool }) {
  const { result, error, seconds } = answer;
  const content = Array.isArray(result?.["content"]) ? (result["content"] as Content[]) : [];
  const bad = error !== null || result?.["isError"] === true;
  const asks = result?.["resultType"] === "input_required";
  return (
    <div class="answer stack" role="status">
      <p class={`small ${bad ? "bad-text" : "good-text"}`}>
        {asks ? "It asks for more, which cannot be given here" : bad ? "Answered with an error" : "Answered"} in{" "}
        {duration(seconds)}.
      </p>
      {error && <pre class="json" tabIndex={0}>{visible(JSON.stringify(error, null, 2))}</pre>}
      {content.map((it, at) => (
        <pre key={at} class="json" tabIndex={0} dir="auto">
          {it?.type === "text" && typeof it.text === "string"
            ? visible(it.text)
            : visible(JSON.stringify(it, null, 2))}
        </pre>
      ))}
      {result && (
        <details>
          <summary>The whole result as JSON</summary>
          <pre class="json" tabIndex={0}>{visible(JSON.stringify(result, null, 2))}</pre>
        </details>
      )}
    </div>
  );
}
