/** What a program asks before it does it: whose program, exactly what, why, until when, and the decision. */
import { useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, Check, Choice, Field, Notice } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { send } from "../../data";
import { asked, Card, Fact, Moment } from "../../parts/Card";
import { parse } from "../../parts/Held";
import { Confirming } from "../../parts/Presence";
import { Arguments } from "../../parts/Proposal";
import type { Json } from "../../parts/schema";
import { may, who } from "../../session";
import { follow } from "../servers/hub";

type Verdict = "approve" | "reject";
/** After how many equal approvals the reader is told that they can approve for longer. */
const MANY = 5;
const MOST_REASON = 2_000;
const HOURS = [
  ["1", "For one hour"],
  ["24", "For one day"],
  ["168", "For seven days"],
  ["720", "For 30 days"],
] as const;
type Hours = (typeof HOURS)[number][0];

export function AskedCall({ risk, call, onDecided }: {
  risk: hub.Ask["risk"];
  call: hub.AskedCall;
  onDecided: () => unknown;
}) {
  const [ended, setEnded] = useState<hub.AskedCall | null>(null);
  const title = asked("tools/call", call.tool);
  const own = call.by === who.value?.handle;
  const whose = own ? "a program of yours" : `@${call.by}${call.by_type === "agent" ? ", an agent" : ""}`;
  return (
    <Card title={title} label={`${whose} asks: ${title}`} risk={ended ? undefined : risk}>
      <dl class="facts">
        <Fact name="Asked by">{call.client ? `${whose} (${oneLine(call.client, 80)})` : whose}</Fact>
        {call.rule && <Fact name="Asked by the rule">{call.rule}</Fact>}
        {call.why && (
          <Fact name={call.rule ? "Why, by the rule" : "Why, in its words"}>{oneLine(call.why, 2000)}</Fact>
        )}
        <Fact name="Open until">
          <Moment at={Date.parse(call.expires_at) / 1000} left />
        </Fact>
      </dl>
      <Arguments value={(ended ?? call).arguments as Json} />
      {ended ? (
        <Notice tone="good">
          <span role="status">{outcome(ended, ended.id !== call.id)}</span>
        </Notice>
      ) : (
        may("decide") && <Decide call={call} onEnded={setEnded} onLate={onDecided} />
      )}
    </Card>
  );
}

function outcome(ended: hub.AskedCall, edited: boolean): string {
  if (ended.state === "rejected") return "You rejected it.";
  if (edited) {
    const rest = ended.rule ? "The hub makes the call with them." : "The program is told.";
    return `You approved other arguments. ${rest}`;
  }
  if (ended.lasts_until) return "You approved it and calls like it. The hub makes the call.";
  return ended.rule ? "You approved it. The hub makes the call." : "You approved it. The program is told.";
}

function Decide({ call, onEnded, onLate }: {
  call: hub.AskedCall;
  onEnded: (call: hub.AskedCall) => void;
  onLate: () => unknown;
}) {
  const [verdict, setVerdict] = useState<Verdict | "longer" | "edit" | "">("");
  const before = JSON.stringify(call.arguments, null, 2);
  const [text, setText] = useState(before);
  const { message: others, error: fault } = parse(text, "This");
  const names = Object.keys(call.arguments as Record<string, Json>);
  const [hours, setHours] = useState<Hours>("24");
  const [same, setSame] = useState<readonly string[]>(names);
  const [reason, setReason] = useState("");
  const longer = { seconds: Number(hours) * 3600, same };
  const [busy, setBusy] = useState(false);
  const [wrong, setWrong] = useState("");
  const path = `/v1/asks/${call.id}`;
  // What the hub calls with other arguments it calls in the name of whoever asked.
  const inPerson = call.person || !!call.rule;
  const end = async (way: Verdict | "edit", body: object) => {
    if (busy) return;
    setBusy(true);
    setWrong("");
    try {
      onEnded(await send<hub.AskedCall>("POST", `${path}/${way}`, body));
    } catch (error) {
      setWrong(sentence(error));
      // Someone may have been faster.
      await onLate();
    }
    setBusy(false);
  };
  const choose = (way: Verdict) => (call.person || way === "reject" ? setVerdict(way) : void end(way, { reason }));
  return (
    <div class="stack decide">
      {!verdict && call.approved_before >= MANY && (
        <p class="small">You approved this very call {call.approved_before} times before. You can approve it for longer.</p>
      )}
      {verdict === "reject" && (
        <Field label="Why not? The program reads it." value={reason} most={MOST_REASON} onInput={setReason} />
      )}
      {verdict === "edit" && (
        <>
          <div class="json-editor">
            <Field
              label="All arguments, as JSON"
              value={text}
              rows={Math.min(24, before.split("\n").length + 1)}
              error={fault}
              hint={`@${call.by} reads what you changed.`}
              onInput={setText}
            />
          </div>
          <Field label="Why? The program reads it." value={reason} most={MOST_REASON} onInput={setReason} />
        </>
      )}
      {verdict === "longer" && (
        <>
          <Choice label="For how long?" value={hours} options={HOURS} onChange={setHours} />
          {names.length > 0 && (
            <fieldset class="stack same">
              <legend>Only calls with the same</legend>
              {names.map((name) => (
                <Check
                  key={name}
                  checked={same.includes(name)}
                  onChange={(on) => setSame(names.filter((it) => (it === name ? on : same.includes(it))))}
                >
                  <span class="mono">{oneLine(name, 80)}</span>
                </Check>
              ))}
            </fieldset>
          )}
          <p class="small soft">
            {same.length === names.length
              ? `@${call.by} can make this very call again.`
              : `@${call.by} can call ${call.tool} with ${same.length ? "other values of the rest" : "any arguments"}.`}{" "}
            It ends with the time, when you end it under Decided, or when the rules or the tool change.
          </p>
        </>
      )}
      {verdict === "longer" ? (
        <Confirming
          verb="Approve"
          operation="ask/approve_longer"
          args={{ ask: call.id, ...longer }}
          work={async (shown) => onEnded(await follow(`${path}/approve-longer`, { body: longer, shown }))}
          onClose={() => setVerdict("")}
        />
      ) : verdict === "edit" && inPerson ? (
        <Confirming
          verb="Approve as edited"
          ready={!!others && text !== before}
          operation="ask/edit"
          args={{ ask: call.id, arguments: others, reason }}
          work={async (shown) => onEnded(await follow(`${path}/edit`, { body: { arguments: others, reason }, shown }))}
          onClose={() => setVerdict("")}
        />
      ) : verdict && call.person && verdict !== "edit" ? (
        <Confirming
          verb={verdict === "approve" ? "Approve" : "Reject"}
          danger={verdict === "reject"}
          operation="ask/decide"
          args={{ ask: call.id, verdict, reason }}
          work={async (shown) => onEnded(await follow(`${path}/${verdict}`, { body: { reason }, shown }))}
          onClose={() => setVerdict("")}
        />
      ) : (
        <div class="line decisions">
          {!verdict && (
            <>
              <Button kind="primary" disabled={busy} onClick={() => choose("approve")}>
                {call.person ? "Approve…" : "Approve"}
              </Button>
              <Button kind="danger" disabled={busy} onClick={() => choose("reject")}>
                Reject…
              </Button>
              <Button kind="plain" disabled={busy} onClick={() => setVerdict("edit")}>
                Edit…
              </Button>
              {call.rule && (
                <Button kind="plain" disabled={busy} onClick={() => setVerdict("longer")}>
                  Approve for longer…
                </Button>
              )}
            </>
          )}
          {verdict === "edit" && (
            <>
              <Button
                kind="primary"
                disabled={busy || !others || text === before}
                onClick={() => void end("edit", { arguments: others, reason })}
              >
                Approve as edited
              </Button>
              <Button disabled={busy} onClick={() => setVerdict("")}>
                Back
              </Button>
            </>
          )}
          {verdict === "reject" && (
            <>
              <Button kind="danger" disabled={busy} onClick={() => void end("reject", { reason })}>
                Reject
              </Button>
              <Button disabled={busy} onClick={() => setVerdict("")}>
                Back
              </Button>
            </>
          )}
        </div>
      )}
      {wrong && (
        <p class="error small" role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
}
