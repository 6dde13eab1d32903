/** Adds a server: what describes it is pasted, tested and saved; or the command that does it. */
import { useEffect, useRef, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Field, Notice } from "../../../components/parts";
import { why } from "../../../web/passkeys";
import { say } from "../../data";
import { visible } from "../../parts/compare";
import { Copy } from "../../parts/Copy";
import { Section } from "../../parts/PageHead";
import { usePresence } from "../../parts/Presence";
import { Progress } from "../../parts/Progress";
import { counted, duration } from "../../parts/Time";
import { go, pathTo } from "../../router";
import { follow } from "./hub";

const STEPS: Record<hub.Testing["step"], string> = {
  connecting: "Starting the server and connecting to it…",
  reading: "Reading what it offers…",
};
const MOST_NAMES = 30;

export function AddServer({ editable, onClose }: { editable: boolean; onClose: () => void }) {
  return (
    <Section title="Add a server" beside={<Button onClick={onClose}>Close</Button>}>
      {editable ? <Form /> : <Command />}
    </Section>
  );
}

/** What to do on the hub's machine, where the settings do not let anyone do it here. */
function Command() {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const isJson = JSON_BEGINS.test(text);
  return (
    <div class="stack">
      <Notice>
        Adding servers here is switched off (<code>gateway.edit_from_web</code>). Paste what describes the server,
        and run the command on the hub's machine.
      </Notice>
      <Described text={text} name={name} onText={setText} onName={setName} />
      {isJson && <p>Save the JSON as <code>server.json</code> there first.</p>}
      <Copy label="Run this on the hub's machine" text={commandFor(text, name)} />
    </div>
  );
}

const JSON_BEGINS = /^\s*[{["]/;

/** The command that adds what was pasted. */
export function commandFor(text: string, name: string): string {
  const what = text.trim().replace(/\s*\n\s*/g, " ");
  const called = quoted(name.trim() || "NAME");
  if (JSON_BEGINS.test(what)) return "folkmoot backends add --from server.json";
  if (/^https?:\/\/\S+$/i.test(what)) return `folkmoot backends add ${called} --url ${quoted(what)}`;
  return `folkmoot backends add ${called} -- ${what || "COMMAND"}`;
}

const quoted = (word: string) => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

interface DescribedProps {
  text: string;
  name: string;
  onText: (text: string) => void;
  onName: (name: string) => void;
}

function Described({ text, name, onText, onName }: DescribedProps) {
  const isJson = JSON_BEGINS.test(text);
  return (
    <>
      <Field
        label="mcpServers JSON, a command line or a URL"
        value={text}
        onInput={onText}
        rows={5}
        hint="As you would give it to an MCP client, such as uvx mcp-server-time"
      />
      <Field
        label={isJson ? "Name (optional)" : "Name"}
        value={name}
        onInput={onName}
        most={64}
        hint="Used as the prefix of its tools. 3–20 lowercase letters and digits."
      />
    </>
  );
}

function Form() {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [everyone, setEveryone] = useState(false);
  const presence = usePresence();
  const [busy, setBusy] = useState<"" | "test" | "save">("");
  const [step, setStep] = useState<hub.Testing | null>(null);
  const [error, setError] = useState("");
  const [tested, setTested] = useState<hub.TestedServer | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const ready = text.trim() !== "" && presence.ready && !busy;

  const ask = async <T,>(operation: string, path: string, body: object): Promise<T | undefined> => {
    running.current = new AbortController();
    setError("");
    setStep(null);
    try {
      return await follow<T, hub.Testing>(path, {
        body,
        shown: await presence.show(operation, body),
        onProgress: setStep,
        signal: running.current.signal,
      });
    } catch (failed) {
      if (!running.current.signal.aborted) setError(why(failed));
      return undefined;
    } finally {
      setBusy("");
      setStep(null);
    }
  };
  const test = async () => {
    setBusy("test");
    setTested(null);
    const body = { text, name: name.trim() };
    const found = await ask<hub.TestedServer>("folkmoot/server_test", "/v1/server-tests", body);
    if (found) setTested(found);
  };
  const save = async () => {
    setBusy("save");
    const body = { text, name: name.trim(), everyone, per_user: false };
    const added = await ask<hub.AddedServer>("folkmoot/server_add", "/v1/servers", body);
    if (!added) return;
    say(`Added ${added.namespace}.`);
    go(pathTo("servers", added.namespace));
  };
  return (
    <div class="stack">
      <Described text={text} name={name} onText={setText} onName={setName} />
      <Check checked={everyone} onChange={setEveryone}>
        Open it to everyone. Otherwise you allow people one by one, or in groups.
      </Check>
      {presence.field}
      <div class="line">
        <Button kind="primary" disabled={!ready} onClick={() => void save()}>
          Add
        </Button>
        <Button disabled={!ready} onClick={() => void test()}>
          Test only
        </Button>
        {busy && <Button onClick={() => running.current?.abort()}>Stop</Button>}
        {!busy && <span class="small soft">It is tested first, and added only if it works.</span>}
      </div>
      {busy && (
        <Progress
          label={step ? STEPS[step.step] : "Asking the hub…"}
          {...(step ? { text: `at most ${duration(step.seconds)}` } : {})}
        />
      )}
      {error && (
        <Notice tone="danger">
          <p role="alert">{visible(error)}</p>
        </Notice>
      )}
      {tested && <Tested {...tested} />}
    </div>
  );
}

/** What came of a test. */
function Tested({ tried, notes }: hub.TestedServer) {
  if (!tried.ok) {
    return (
      <Notice tone="danger">
        <p role="alert">{visible(tried.why)}</p>
        <p class="small">Nothing was saved. Correct it above, and test again.</p>
      </Notice>
    );
  }
  const server = visible([tried.server, tried.version].filter(Boolean).join(" ")) || tried.namespace;
  const suspicious = tried.tools.filter((it) => it.findings.length);
  return (
    <Notice tone={suspicious.length ? "warning" : "good"}>
      <p role="status">
        Reached {server} in {duration(tried.seconds)}: {counted(tried.tools.length, "tool")},{" "}
        {counted(tried.resources.length + tried.templates.length, "resource")},{" "}
        {counted(tried.prompts.length, "prompt")}.
      </p>
      {tried.tools.length > 0 && (
        <p class="small mono">
          {tried.tools.slice(0, MOST_NAMES).map((it) => visible(it.name)).join(", ")}
          {tried.tools.length > MOST_NAMES && ` and ${tried.tools.length - MOST_NAMES} more`}
        </p>
      )}
      {suspicious.map((it) => (
        <p key={it.name} class="bad-text small">
          The description of {visible(it.name)} has suspicious content: {it.findings.join(", ")}.
        </p>
      ))}
      {[...notes, ...tried.faults, ...(tried.advice ? [tried.advice] : [])].map((it) => (
        <p key={it} class="small">
          {visible(it)}
        </p>
      ))}
    </Notice>
  );
}
