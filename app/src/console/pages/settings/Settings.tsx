/** What an operator changes while the hub runs: settings and rules; and every other setting, to read. */
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Check, Choice, Field } from "../../../components/parts";
import { Dialog } from "../../../components/Dialog";
import { say, useLoad } from "../../data";
import { Empty } from "../../parts/Empty";
import { PageHead, Section } from "../../parts/PageHead";
import { Confirming } from "../../parts/Presence";
import { Loaded } from "../../parts/Problem";
import { Table } from "../../parts/Table";
import { follow } from "../servers/hub";

type Shown = Record<string, hub.ShownSetting>;

export function Settings() {
  const load = useLoad<hub.ShownSettings>("/v1/settings", ["settings.changed"]);
  return (
    <>
      <PageHead title="Settings" lead="What you change here counts at once, and is written to the settings file." />
      <Loaded load={load}>
        {({ file, settings }) => (
          <>
            <Followed settings={settings} onDone={load.reload} />
            <Rules />
            <Section title="All settings" hint={file ? `The others are changed in ${file} and count from the next start.` : "No settings file."}>
              <details>
                <summary>Show them</summary>
                <All settings={settings} />
              </details>
            </Section>
          </>
        )}
      </Loaded>
    </>
  );
}

const REGISTRATION = [
  ["auto", "Open on this machine, by invitation elsewhere"],
  ["open", "Everyone"],
  ["invite", "People with an invitation"],
  ["closed", "People whom an operator invites"],
] as const;
const NEW_TOOLS = [
  ["hold", "Wait for your review"],
  ["list", "Are listed at once"],
] as const;
const AUDIT = [
  ["hash", "A fingerprint, the same for equal arguments"],
  ["record", "The arguments themselves"],
  ["none", "Nothing"],
] as const;

const worded = (options: readonly (readonly [string, string])[], value: unknown): string =>
  options.find(([it]) => it === value)?.[1] ?? String(value);
const kept = (days: number): string => (days ? `Deleted after ${days.toLocaleString()} days` : "Kept");

function Followed({ settings, onDone }: { settings: Shown; onDone: () => Promise<void> }) {
  const [open, setOpen] = useState(false);
  const of = (path: string) => settings[path]?.value;
  const records = Boolean(of("record.enabled") && of("record.folder"));
  const rows = [
    ["Who can register", worded(REGISTRATION, of("registration"))],
    ["Recording of calls", records ? `On, in ${of("record.folder")}` : "Off"],
    ["Mail", kept(Number(of("mail.keep_days")))],
    ["New tools of servers", worded(NEW_TOOLS, of("gateway.new_tools"))],
    ["Arguments in the audit log", worded(AUDIT, of("gateway.audit_arguments"))],
  ];
  return (
    <Section title="This hub" beside={<Button onClick={() => setOpen(true)}>Change…</Button>}>
      <dl class="facts">
        {rows.map(([name, value]) => (
          <div key={name}>
            <dt>{name}</dt>
            <dd>{value}</dd>
          </div>
        ))}
      </dl>
      {open && <Change {...{ of, records, onDone }} onClose={() => setOpen(false)} />}
    </Section>
  );
}

interface ChangeProps {
  of: (path: string) => unknown;
  records: boolean;
  onDone: () => Promise<void>;
  onClose: () => void;
}

function Change({ of, records, onDone, onClose }: ChangeProps) {
  const before = {
    registration: of("registration") as (typeof REGISTRATION)[number][0],
    record: records,
    keep_mail_days: Number(of("mail.keep_days")),
    new_tools: of("gateway.new_tools") as (typeof NEW_TOOLS)[number][0],
    audit_arguments: of("gateway.audit_arguments") as (typeof AUDIT)[number][0],
  };
  const [now, setNow] = useState(before);
  const set = (some: Partial<typeof before>) => setNow((was) => ({ ...was, ...some }));
  const names = Object.keys(now) as (keyof typeof before)[];
  const args = Object.fromEntries(names.filter((it) => now[it] !== before[it]).map((it) => [it, now[it]]));
  return (
    <Dialog title="Settings of this hub" onClose={onClose}>
      <Choice label="Who can register" value={now.registration} options={REGISTRATION} onChange={(registration) => set({ registration })} />
      <Check checked={now.record} onChange={(record) => set({ record })}>
        Record what is said at /mcp. No mail and no secret is on a tape.
      </Check>
      <Field
        label="Delete mail after (days)"
        hint="0 keeps it."
        value={String(now.keep_mail_days)}
        most={5}
        onInput={(text) => set({ keep_mail_days: Number(text.replace(/\D/g, "")) })}
      />
      <Choice label="New tools of servers" value={now.new_tools} options={NEW_TOOLS} onChange={(new_tools) => set({ new_tools })} />
      <Choice label="Arguments in the audit log" value={now.audit_arguments} options={AUDIT} onChange={(audit_arguments) => set({ audit_arguments })} />
      <Confirming
        verb="Save"
        operation="folkmoot/change_settings"
        args={args}
        work={async (shown) => {
          if (Object.keys(args).length) await follow("/v1/settings", { method: "PATCH", body: args, shown });
          say("Saved the settings.");
          await onDone();
          onClose();
        }}
        onClose={onClose}
      />
    </Dialog>
  );
}

const ACTIONS = [
  ["block", "Refuse the call"],
  ["hold", "Hold it until an operator decides"],
  ["delay", "Delay it"],
] as const;

function Rules() {
  const load = useLoad<hub.RuleList>("/v1/rules", ["settings.changed"]);
  const [adding, setAdding] = useState(false);
  const [removing, setRemoving] = useState("");
  return (
    <Section
      title="Rules"
      hint="The hub applies them to each call, in this order."
      beside={<Button onClick={() => setAdding(true)}>Add a rule…</Button>}
    >
      <Loaded load={load}>
        {({ rules }) =>
          rules.length ? (
            <ul class="access">
              {rules.map((rule) => (
                <li key={rule.name}>
                  <div class="grow">
                    <p>
                      <strong>{rule.name}</strong>: {ruleInWords(rule)}
                    </p>
                    <p class="small soft mono">{JSON.stringify(rule.when)}</p>
                  </div>
                  <Button label={`Remove ${rule.name}`} onClick={() => setRemoving(rule.name)}>
                    Remove
                  </Button>
                </li>
              ))}
            </ul>
          ) : (
            <Empty title="No rules yet." />
          )
        }
      </Loaded>
      {adding && <Add onDone={load.reload} onClose={() => setAdding(false)} />}
      {removing && (
        <Dialog title={`Remove the rule ${removing}?`} onClose={() => setRemoving("")}>
          <Confirming
            verb="Remove"
            danger
            operation="folkmoot/remove_rule"
            args={{ rule: removing }}
            work={async (shown) => {
              await follow(`/v1/rules/${encodeURIComponent(removing)}`, { method: "DELETE", shown });
              say(`Removed the rule ${removing}.`);
              await load.reload();
              setRemoving("");
            }}
            onClose={() => setRemoving("")}
          />
        </Dialog>
      )}
    </Section>
  );
}

function ruleInWords({ action, when, options }: hub.Rule): string {
  const { tool = "*", caller, group } = when as Record<string, string | undefined>;
  const doing = { block: "refuses calls of", hold: "holds calls of", delay: "delays calls of" }[action] ?? `${action}:`;
  const whose = caller ? ` by @${caller}` : group ? ` by the group ${group}` : "";
  const why = options["message"] ?? options["reason"];
  return `${doing} ${tool}${whose}${typeof why === "string" ? ` (${why})` : ""}`;
}

function Add({ onDone, onClose }: { onDone: () => Promise<void>; onClose: () => void }) {
  const [rule, setRule] = useState("");
  const [action, setAction] = useState<(typeof ACTIONS)[number][0]>("block");
  const [tool, setTool] = useState("");
  const [who, setWho] = useState("");
  const [reason, setReason] = useState("");
  const [seconds, setSeconds] = useState("1");
  const group = !who.startsWith("@") && who.trim();
  const args = {
    rule: rule.trim(),
    action,
    tool: tool.trim() || "*",
    ...(who.startsWith("@") ? { caller: who.trim() } : group ? { group } : {}),
    ...(action === "delay" ? { seconds: Number(seconds) || 0 } : reason.trim() ? { reason: reason.trim() } : {}),
  };
  return (
    <Dialog title="Add a rule" onClose={onClose}>
      <Field label="Name" value={rule} onInput={setRule} most={100} hint="Such as: No deletions" />
      <Choice label="What it does" value={action} options={ACTIONS} onChange={setAction} />
      <Field label="Which tools" value={tool} onInput={setTool} most={256} hint="files:delete_file, files:*, msg/send; empty: all of them." />
      <Field label="Whose calls" value={who} onInput={setWho} most={64} hint="@bob, or the name of a group; empty: everyone's." />
      {action === "delay" ? (
        <Field label="Seconds" value={seconds} onInput={setSeconds} most={6} />
      ) : (
        <Field label="Reason (optional)" value={reason} onInput={setReason} most={1000} hint="The caller, or the operator who decides, reads it." />
      )}
      <Confirming
        verb="Add"
        operation="folkmoot/add_rule"
        args={args}
        work={async (shown) => {
          await follow("/v1/rules", { method: "POST", body: args, shown });
          say(`Added the rule ${args.rule}.`);
          await onDone();
          onClose();
        }}
        onClose={onClose}
      />
    </Dialog>
  );
}

function All({ settings }: { settings: Shown }) {
  const rows = Object.entries(settings).map(([name, it]) => ({ name, ...it }));
  return (
    <Table
      label="All settings"
      columns={[
        { head: "Setting", cell: (it) => <span class="mono">{it.name}</span> },
        { head: "Value", cell: (it) => <span class="mono">{JSON.stringify(it.value)}</span> },
        { head: "From", cell: (it) => it.origin },
      ]}
      rows={rows}
      rowKey={(it) => it.name}
    />
  );
}
