/** One proposal as a card: exactly what would be done, by whom, for whom, until when, and what changed. */
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { sentence } from "../../api/call";
import type * as hub from "../../api/schema";
import { Button, Choice, Field, Notice } from "../../components/parts";
import { oneLine } from "../../text/names";
import { clock, fullTime } from "../../text/time";
import { asked, Card, Fact, Moment } from "./Card";
import { changes } from "./changes";
import { approve, lastSuch, type ProposalShown, reject, TooLate } from "./proposals";
import { Result } from "./Result";
import { isMembers, type Json } from "./schema";

interface ProposalProps {
  proposal: ProposalShown;
  /** Other proposals of the room, among which the last such one is looked for; null if unknown. */
  others: readonly ProposalShown[] | null;
  mayApprove: boolean;
  mayReject: boolean;
  /** Who could be asked to do it, where the proposal names nobody. */
  candidates?: readonly string[];
  /** The handle of the reader: nobody decides on their own. */
  me: string;
  /** Whether to name the room and lead there. */
  showRoom?: boolean;
  onWithdraw?: (() => void) | undefined;
  onDecided?: (outcome: hub.Outcome) => void;
  /** What came of it. */
  children?: preact.ComponentChildren;
}

/** How many characters of a value are shown at once. */
const LONG = 400;

export function Proposal(props: ProposalProps) {
  const { proposal, me } = props;
  const { proposer, to, reason, room } = proposal;
  const own = proposer === me;
  // Kept here: the buttons are gone as soon as the proposal is known to be closed.
  const [outcome, setOutcome] = useState<hub.Outcome | null>(null);
  const [late, setLate] = useState<ProposalShown | null>(null);
  return (
    <Card
      title={inWords(proposal)}
      label={`Proposal of ${proposer}: ${inWords(proposal)}`}
      risk={proposal.state === "open" ? proposal.risk : undefined}
      kind={`proposal ${proposal.state}`}
      beside={proposal.state !== "open" && <span class={`tag state-${proposal.state}`}>{STATES[proposal.state]}</span>}
    >
      <dl class="facts">
        <Fact name="Proposed by">{own ? `${proposer} (you)` : proposer}</Fact>
        <Fact name="To be done by">{to.length ? to.join(", ") : "whoever is chosen"}</Fact>
        {props.showRoom && (
          <Fact name="Room">
            <a href={`/rooms/${encodeURIComponent(room)}#m-${proposal.seq}`}>{room}</a>
          </Fact>
        )}
        {reason && <Fact name="Reason">{oneLine(reason, 1000)}</Fact>}
        <Fact name={proposal.state === "open" ? "Open until" : "Was open until"}>
          <Moment at={Date.parse(proposal.expires_at) / 1000} left={proposal.state === "open"} />
        </Fact>
        {proposal.rejections > 0 && proposal.state === "open" && (
          <Fact name="Rejected by">{`${proposal.rejections} so far`}</Fact>
        )}
      </dl>
      <What proposal={proposal} />
      {proposal.params !== undefined && props.others && <Since proposal={proposal} others={props.others} />}
      {outcome && (
        <Notice tone={failed(outcome) ? "danger" : "good"}>
          <span role="status">{told(outcome)}</span>
        </Notice>
      )}
      {/* In its room the answer stands below. */}
      {outcome && props.showRoom && <Result value={outcome.result as Json | undefined} />}
      {late && <Closed proposal={late} me={me} late />}
      {!late && proposal.state !== "open" && <Closed proposal={proposal} me={me} />}
      {props.children}
      {!late && !outcome && proposal.state === "open" && (
        <Decide {...props} own={own} onSaid={setOutcome} onLate={setLate} />
      )}
    </Card>
  );
}

const STATES: Record<ProposalShown["state"], string> = {
  open: "Open",
  fulfilled: "Approved",
  rejected: "Rejected",
  withdrawn: "Withdrawn",
  expired: "Expired",
};

/** The tool, or else the method. */
export function inWords({ method, params, kind }: ProposalShown): string {
  const name = isMembers(params) ? params["name"] : undefined;
  if (!method) return oneLine(kind.replace(/^mcp\.proposal\./, ""), 160);
  return asked(method, typeof name === "string" ? name : "");
}

/** Every argument in full: whoever approves must be able to see all of it. */
function What({ proposal }: { proposal: ProposalShown }) {
  const { method, params } = proposal;
  if (params === undefined && method === undefined) {
    return <p class="soft">The room no longer keeps what was proposed.</p>;
  }
  return <Arguments value={method === "tools/call" && isMembers(params) ? params["arguments"] : params} />;
}

export function Arguments({ value: given }: { value: unknown }) {
  const entries = isMembers(given) ? Object.entries(given) : [];
  if (given !== undefined && !isMembers(given)) return <Said value={given as Json} />;
  if (!entries.length) return <p class="soft small">Without arguments.</p>;
  return (
    <table class="arguments">
      <caption class="hidden">Arguments</caption>
      <tbody>
        {entries.map(([name, value]) => (
          <tr key={name}>
            <th scope="row" class="mono">
              {name}
            </th>
            <td>
              <Said value={value as Json} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Said({ value }: { value: Json | undefined }) {
  const [whole, setWhole] = useState(false);
  const text = typeof value === "string" ? value : value === undefined ? "nothing" : JSON.stringify(value, null, 1);
  const cut = text.length > LONG && !whole;
  return (
    <span class="value mono">
      {cut ? text.slice(0, LONG) : text}
      {cut && (
        <Button kind="plain" onClick={() => setWhole(true)}>{`Show all ${text.length} characters`}</Button>
      )}
    </span>
  );
}

function Since({ proposal, others }: { proposal: ProposalShown; others: readonly ProposalShown[] }) {
  const last = lastSuch(others, proposal);
  if (!last || last.params === undefined) return <p class="small soft">The first of its kind here.</p>;
  const what = `the last one (#${last.seq}, ${STATES[last.state].toLowerCase()})`;
  const found = changes(last.params, proposal.params);
  if (!found.length) return <p class="small soft">The same as {what}.</p>;
  return (
    <details class="since" open={found.length <= 4}>
      <summary class="small">{`Changed since ${what}: ${found.length}`}</summary>
      <ul>
        {found.map((each) => (
          <li key={each.path}>
            <span class="mono">{each.path}</span>: <del>
              <Said value={each.before} />
            </del>{" "}
            <ins>
              <Said value={each.after} />
            </ins>
          </li>
        ))}
      </ul>
    </details>
  );
}

interface DecideProps extends ProposalProps {
  own: boolean;
  onSaid: (outcome: hub.Outcome) => void;
  onLate: (proposal: ProposalShown) => void;
}

function Decide(props: DecideProps) {
  const { proposal, candidates, mayApprove, mayReject, own, onWithdraw } = props;
  const [to, setTo] = useState(proposal.to[0] ?? "");
  const [reason, setReason] = useState("");
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState("");
  const [wrong, setWrong] = useState("");
  // A second press must not decide twice: the first one counts until it is answered.
  const box = useRef<HTMLDivElement>(null);
  const was = useRef(false);
  // The button that was pressed is gone, so the focus goes to what came in its place, and back.
  useLayoutEffect(() => {
    if (asking) box.current?.querySelector("input")?.focus();
    else if (was.current) box.current?.querySelector<HTMLElement>(".danger")?.focus();
    was.current = asking;
  }, [asking]);
  const decide = async (word: string, deciding: () => Promise<hub.Outcome>) => {
    if (busy) return;
    setBusy(word);
    setWrong("");
    try {
      const outcome = await deciding();
      props.onSaid(outcome);
      props.onDecided?.(outcome);
    } catch (error) {
      if (error instanceof TooLate) props.onLate(error.proposal);
      else setWrong(sentence(error));
    } finally {
      setBusy("");
    }
  };
  if (own) {
    return onWithdraw ? (
      <div class="line">
        <Button onClick={onWithdraw}>Withdraw</Button>
      </div>
    ) : null;
  }
  if (!mayApprove && !mayReject) return <p class="small soft">You can't decide on this.</p>;
  const choose = proposal.to.length !== 1;
  const names = proposal.to.length ? proposal.to : (candidates ?? []);
  const approving = () => decide("approve", () => approve(proposal.room, proposal.id, choose ? to : undefined));
  return (
    <div
      class="stack decide"
      ref={box}
      onKeyDown={(event) => {
        if (event.key === "Escape" && asking && !busy) setAsking(false);
      }}
    >
      {choose && mayApprove && (
        <Choice
          label="Who should do it"
          value={to}
          options={[["", "Choose…"], ...names.map((name) => [name, name] as const)]}
          onChange={setTo}
        />
      )}
      {asking && (
        <Field label="Why not? Everyone in the room reads it." value={reason} most={1000} onInput={setReason} />
      )}
      <div class="line decisions">
        {mayApprove && !asking && (
          <Button kind="primary" disabled={Boolean(busy) || (choose && !to)} onClick={() => void approving()}>
            {busy ? "Approving…" : "Approve"}
          </Button>
        )}
        {mayReject && !asking && (
          <Button kind="danger" disabled={Boolean(busy)} onClick={() => setAsking(true)}>
            Reject…
          </Button>
        )}
        {asking && (
          <>
            <Button
              kind="danger"
              disabled={Boolean(busy) || !reason.trim()}
              onClick={() => void decide("reject", () => reject(proposal.room, proposal.id, reason.trim()))}
            >
              {busy ? "Rejecting…" : "Reject"}
            </Button>
            <Button disabled={Boolean(busy)} onClick={() => setAsking(false)}>
              Back
            </Button>
          </>
        )}
      </div>
      {wrong && (
        <p class="error small" role="alert">
          {wrong}
        </p>
      )}
    </div>
  );
}

const failed = ({ error, result }: hub.Outcome) =>
  error !== undefined || (isMembers(result) && result["isError"] === true);

function told(outcome: hub.Outcome): string {
  if (outcome.state === "open") return "Your rejection was counted. More people must reject it to close it.";
  if (outcome.state === "rejected") return "You rejected it.";
  const who = outcome.to ?? "They";
  if (outcome.error !== undefined) return `You approved it. ${who} could not do it: ${errorText(outcome.error)}`;
  const { result } = outcome;
  if (isMembers(result) && result["isError"] === true) return `You approved it. ${who} tried, and it failed.`;
  if (result !== undefined) return `You approved it, and ${who} did it.`;
  return `You approved it. ${who} has not answered yet; the answer appears in the room.`;
}

function errorText(error: unknown): string {
  const said = isMembers(error) ? error["message"] : undefined;
  return typeof said === "string" ? oneLine(said, 300) : "no reason was given.";
}

function Closed({ proposal, me, late = false }: { proposal: ProposalShown; me: string; late?: boolean }) {
  const { state, closed_by: by, closed_at: at } = proposal;
  const who = by === me ? "you" : (by ?? "");
  const seconds = at ? Date.parse(at) / 1000 : 0;
  const words = {
    open: "",
    fulfilled: who ? `Approved by ${who}` : "Approved",
    rejected: who ? `Rejected by ${who}` : "Rejected",
    withdrawn: "Withdrawn",
    expired: "Nobody decided in time",
  }[state];
  return (
    <p class={late ? "notice warning" : "small soft"} role={late ? "alert" : undefined}>
      {late && `${who || "Someone"} was faster. `}
      {words}
      {at && (
        <>
          , <time dateTime={at} title={fullTime(seconds)}>{clock(seconds)}</time>
        </>
      )}
      .
    </p>
  );
}
