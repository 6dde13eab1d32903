/** Adds a server: what describes it is pasted, tested and saved; or the command that does it. */
import { useEffect, useRef, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, Check, Field, Notice } from "../../../components/parts";
import { say } from "../../data";
import { visible } from "../../parts/compare";
import { Copy } from "../../parts/Copy";
import { Section } from "../../parts/PageHead";
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
  return (
    <div class="stack">
      <Notice>
        A server runs programs on the hub's machine, so it is added there. Paste what describes it,
        and run the command. To allow it on this page, set <code>edit_from_web = true</code> under{" "}
        <code>[gateway]</code> in the settings file.
      </Notice>
      <Described text={text} name={name} onText={setText} onName={setName} />
      <Copy label="Run this on the hub's machine" text={commandFor(text, name)} />
    </div>
  );
}

/** The command that adds what was pasted. */
export function commandFor(text: string, name: string): string {
  const what = text.trim().replace(/\s*\n\s*/g, " ");
  const called = quoted(name.trim() || "NAME");
  if (/^[{["]/.test(what)) return "folkmoot backends add --from FILE.json";
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
  const isJson = /^\s*[{["]/.test(text);
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
        label={isJson ? "Name, if it should have another" : "Name"}
        value={name}
        onInput={onName}
        most={64}
        hint="Its tools are called by it: 3 to 20 lower-case letters and digits."
      />
    </>
  );
}

function Form() {
  const [text, setText] = useState("");
  const [name, setName] = useState("");
  const [everyone, setEveryone] = useState(false);
  const [token, setToken] = useState("");
  const [busy, setBusy] = useState<"" | "test" | "save">("");
  const [step, setStep] = useState<hub.Testing | null>(null);
  const [error, setError] = useState("");
  const [tested, setTested] = useState<{ of: string; found: hub.TestedServer } | null>(null);
  const running = useRef<AbortController | null>(null);
  useEffect(() => () => running.current?.abort(), []);

  const of = `${name}\n${text}`;
  const fits = tested?.of === of && tested.found.tried.ok;
  const ready = text.trim() !== "" && token.trim() !== "" && !busy;

  const ask = async <T,>(path: string, body: unknown): Promise<T | undefined> => {
    running.current = new AbortController();
    setError("");
    setStep(null);
    try {
      return await follow<T, hub.Testing>(path, {
        body,
        confirm: token.trim(),
        onProgress: setStep,
        signal: running.current.signal,
      });
    } catch (failed) {
      if (!running.current.signal.aborted) setError(sentence(failed));
      return undefined;
    } finally {
      setBusy("");
      setStep(null);
    }
  };
  const test = async () => {
    setBusy("test");
    setTested(null);
    const found = await ask<hub.TestedServer>("/v1/server-tests", { text, name: name.trim() });
    if (found) setTested({ of, found });
  };
  const save = async () => {
    setBusy("save");
    const added = await ask<hub.AddedServer>("/v1/servers", { text, name: name.trim(), everyone });
    if (!added) return;
    say(`Added ${added.namespace}.`);
    go(pathTo("servers", added.namespace));
  };
  return (
    <div class="stack">
      <Described text={text} name={name} onText={setText} onName={setName} />
      <Check checked={everyone} onChange={setEveryone}>
        Let every account use it. Otherwise you allow people one by one, or in groups.
      </Check>
      <Field
        label="Your token, once more"
        secret
        value={token}
        onInput={setToken}
        most={200}
        hint="A server runs programs on the hub's machine, so the hub asks who you are again."
      />
      <div class="line">
        <Button disabled={!ready} onClick={() => void test()}>
          Test
        </Button>
        <Button kind="primary" disabled={!ready || !fits} onClick={() => void save()}>
          Save
        </Button>
        {busy && <Button onClick={() => running.current?.abort()}>Stop</Button>}
        {!fits && !busy && <span class="small soft">Test it first; then it can be saved.</span>}
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
      {tested && <Tested {...tested.found} />}
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
