/** One message: in words, with what belongs to it, and as it is. */
import { Component } from "preact";
import { useEffect, useState } from "preact/hooks";

import { Button } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { clock, fullTime } from "../../../text/time";
import { Markdown, type Mentioned } from "../../parts/Markdown";
import { Folded, Long, Raw, Result } from "../../parts/Result";
import { isMembers, type Json } from "../../parts/schema";
import { Progress } from "../../parts/Progress";
import { duration } from "../../parts/Time";
import { attempt } from "../../data";
import { may } from "../../session";
import { Confirm } from "../../../components/Dialog";
import { AnswerForm } from "./Answer";
import { allInWords, allows, type Capability } from "./capabilities";
import { type About, sayIn } from "./Composer";
import { askedFor, type Chat, chatOf, type Envelope, groupOf, isBelow, seconds } from "./envelope";
import { type Exchange, outcomeOf, type Thinking, tookSeconds } from "./pairing";
import { Proposal } from "../../parts/Proposal";
import type { RoomStream } from "./stream";

export interface RowProps {
  stream: RoomStream;
  message: Envelope;
  me: string;
  /** The day, where it begins with this message. */
  day: string;
  marked: boolean;
  exchange: Exchange | undefined;
  thinking: Thinking | undefined;
  onWrite: (about: About) => void;
  onThread: (thread: string) => void;
}

/** Draws again only where something of its own changed: a busy room draws many. */
export class Row extends Component<RowProps> {
  override shouldComponentUpdate(next: Readonly<RowProps>): boolean {
    const { message, me, day, marked, exchange, thinking } = this.props;
    return (
      message !== next.message ||
      me !== next.me ||
      day !== next.day ||
      marked !== next.marked ||
      exchange?.answer !== next.exchange?.answer ||
      exchange?.begun !== next.exchange?.begun ||
      exchange?.cancelled !== next.exchange?.cancelled ||
      exchange?.progress?.text !== next.exchange?.progress?.text ||
      thinking?.thoughts.length !== next.thinking?.thoughts.length ||
      thinking?.end !== next.thinking?.end
    );
  }

  override render(props: RowProps) {
    const { message, me, day, marked } = props;
    const chat = chatOf(message);
    const group = groupOf(message.kind);
    const own = message.from === me;
    const forMe = !own && chat !== null && mentions(chat, me);
    const classes = ["message", `about-${group}`, own && "own", forMe && "for-me", marked && "marked", isLine(message) && "line-only"];
    const at = seconds(message.ts);
    return (
      <li class={classes.filter(Boolean).join(" ")} id={`m-${message.seq}`} tabIndex={-1}>
        {day && <p class="day small soft">{day}</p>}
        <div class="message-head small">
          {(message.from !== "gateway" || !isLine(message)) && <strong class="author">{message.from}</strong>}
          {forMe && <span class="tag urgent">mentions you</span>}
          {chat?.thread && (
            <button type="button" class="thread tag" onClick={() => props.onThread(chat.thread)}>
              <span class="hidden">Show the thread </span>
              {oneLine(chat.thread, 40)}
            </button>
          )}
          {message.edits && !chat?.deleted && <span class="soft">edited</span>}
          <time class="soft" dateTime={message.ts} title={fullTime(at)}>
            {clock(at)}
          </time>
          <a class="soft number" href={`#m-${message.seq}`} title={`Message ${message.seq}`}>
            #{message.seq}
          </a>
        </div>
        <div class="message-body">
          <Content {...props} chat={chat} />
        </div>
        <Actions {...props} chat={chat} />
      </li>
    );
  }
}

const mentions = (chat: Chat, me: string): boolean =>
  chat.mentions.includes(me) || new RegExp(`(^|[^\\w@])@${me.replace(/[^\w]/g, "\\$&")}(?![\\w])`, "i").test(chat.text);

/** What is said in one quiet line. */
function isLine({ kind }: Envelope): boolean {
  return ["system", "capability", "room", "participant", "mcpx"].some((each) => kind.startsWith(`${each}.`));
}

function Content(props: RowProps & { chat: Chat | null }) {
  const { message, chat, stream, me } = props;
  if (chat) return <Said stream={stream} chat={chat} me={me} />;
  if (isBelow(message.kind, "mcp.proposal")) return <Proposed {...props} />;
  if (isBelow(message.kind, "mcp.request")) return <Asked {...props} />;
  if (isBelow(message.kind, "mcp.response")) return <Answered message={message} stream={stream} />;
  if (isBelow(message.kind, "reasoning")) return <Thoughts message={message} thinking={props.thinking} />;
  return <p class="told">{inWords(message)}</p>;
}

function Said({ stream, chat, me }: { stream: RoomStream; chat: Chat; me: string }) {
  const known: Mentioned = (name) =>
    name === me ? "me" : stream.present.value.has(name) || chat.mentions.includes(name) ? "other" : null;
  const answered = chat.replyTo && stream.messages.value.find((each) => each.id === chat.replyTo);
  return (
    <>
      {chat.replyTo && (
        <p class="quote small soft">
          {answered ? (
            <a href={`#m-${answered.seq}`}>
              {`In reply to ${answered.from}: ${oneLine(chatOf(answered)?.text ?? askedFor(answered), 80)}`}
            </a>
          ) : (
            "In reply to an earlier message"
          )}
        </p>
      )}
      {chat.deleted ? (
        <p class="soft">This message was deleted.</p>
      ) : chat.markdown ? <Markdown text={chat.text} mentioned={known} /> : <Long text={chat.text} mentioned={known} />}
    </>
  );
}

function Proposed({ stream, message, me, exchange: done }: RowProps) {
  const known = stream.proposals.value.get(message.id);
  useEffect(() => {
    if (!known) void stream.wantProposal(message.id);
  }, [message.id]);
  useEffect(() => {
    if (known?.state === "fulfilled" && !done) void stream.wantAnswer(message);
  }, [known?.state]);
  const answer = done?.answer ?? stream.answers.value.get(message.id);
  if (!known) return <p class="told">{`Proposed: ${askedFor(message)}`}</p>;
  const payload = message.payload ?? {};
  const method = message.kind.slice("mcp.proposal.".length).split(":")[0]!;
  const kind = `mcp.request.${method}:${askedFor(message)}`;
  const decides = may("decide", stream.name);
  const held = stream.capabilities;
  const others = [...stream.present.value.keys()].filter((each) => each !== me);
  return (
    <Proposal
      proposal={{ ...known, params: known.params ?? payload["params"] }}
      others={[...stream.proposals.value.values()]}
      mayApprove={decides && allows(held, kind, known.to[0])}
      mayReject={decides && allows(held, "mcpx.reject.proposal")}
      candidates={others}
      me={me}
      onWithdraw={() =>
        void attempt(() => stream.post({ kind: "mcpx.withdraw.proposal", correlation_id: [message.id], payload: {} }))
      }
      onDecided={() => void stream.refreshProposals().catch(() => {})}
    >
      {answer && (
        <div class="proposal-answer">
          <p class="small soft">
            {`${answer.from} answered`}
            {done?.answer && ` in ${duration(tookSeconds(done) ?? 0)}`}
          </p>
          <Answer message={answer} />
        </div>
      )}
    </Proposal>
  );
}

const OUTCOMES = {
  waiting: "Waiting",
  running: "Running",
  answered: "Answered",
  failed: "Failed",
  cancelled: "Cancelled",
} as const;

function Asked({ message, exchange, stream, me }: RowProps) {
  const outcome = exchange ? outcomeOf(exchange) : "waiting";
  const took = exchange && tookSeconds(exchange);
  const open = outcome === "waiting" || outcome === "running";
  const about = message.correlation_id?.map((id) => stream.proposals.value.get(id)).find(Boolean);
  const below = exchange?.below ? exchange.answer : undefined;
  const forMe = open && message.to?.[0] === me && stream.asked.value.some((each) => each.id === message.id);
  return (
    <div class="exchange">
      <p class="line">
        <span>
          asks <strong>{message.to?.join(", ")}</strong>: <span class="mono">{askedFor(message)}</span>
        </span>
        <span class={`tag outcome-${outcome}`}>
          {OUTCOMES[outcome]}
          {took !== undefined && ` in ${duration(took)}`}
        </span>
        {open && <Elapsed since={seconds(message.ts)} />}
        {exchange?.answer && !below && (
          <a class="small" href={`#m-${exchange.answer.seq}`}>
            See the answer
          </a>
        )}
      </p>
      {about && (
        <p class="small soft">
          Carries out <a href={`#m-${about.seq}`}>{`${about.proposer}'s proposal`}</a>.
        </p>
      )}
      <Given message={message} />
      {below && (
        <div id={`m-${below.seq}`} tabIndex={-1}>
          <Answer message={below} />
        </div>
      )}
      {open && exchange?.progress && (
        <Progress label="Progress" value={exchange.progress.share} text={oneLine(exchange.progress.text, 120)} />
      )}
      {forMe && <AnswerForm stream={stream} request={message} />}
      {open && message.from === me && (
        <div>
          <Button kind="plain" onClick={() => void attempt(() => cancel(stream, message))}>
            Cancel the request
          </Button>
        </div>
      )}
    </div>
  );
}

function cancel(stream: RoomStream, message: Envelope) {
  const method = "notifications/cancelled";
  const params = { requestId: message.payload?.["id"] ?? null };
  return stream.post({
    kind: `mcp.notification.${method}`,
    correlation_id: [message.id],
    payload: { jsonrpc: "2.0", method, params },
  });
}

function Elapsed({ since }: { since: number }) {
  const [now, setNow] = useState(Date.now() / 1000);
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now() / 1000), 1000);
    return () => clearInterval(timer);
  }, []);
  const rest = now - since;
  return rest >= 1 ? <span class="small soft">{duration(Math.floor(rest))}</span> : null;
}

/** The arguments of a call, folded where they are long. */
function Given({ message }: { message: Envelope }) {
  const params = message.payload?.["params"];
  const given = isMembers(params) && "arguments" in params ? params["arguments"] : params;
  if (given === undefined || (isMembers(given) && !Object.keys(given).length)) return null;
  return <Folded summary="Arguments" value={given as Json} />;
}

function Answered({ message, stream }: { message: Envelope; stream: RoomStream }) {
  const request = message.correlation_id?.map((id) => stream.pairs.value.exchanges.get(id)).find(Boolean);
  const took = request && tookSeconds(request);
  return (
    <div class="exchange">
      <p class="line">
        <span>
          answers <strong>{message.to?.join(", ")}</strong>: <span class="mono">{askedFor(message)}</span>
        </span>
        {took !== undefined && <span class="soft small">after {duration(took)}</span>}
        {request && (
          <a class="small" href={`#m-${request.request.seq}`}>
            See the request
          </a>
        )}
      </p>
      <Answer message={message} />
    </div>
  );
}

/** What was answered: a result, or why there is none. */
function Answer({ message }: { message: Envelope }) {
  const { error, result } = message.payload ?? {};
  if (isMembers(error)) return <p class="notice danger">{oneLine(String(error["message"] ?? "It failed without a reason."), 1000)}</p>;
  return <Result value={result} />;
}

/** Reasoning is folded: it is long, and seldom for everyone. */
function Thoughts({ message, thinking }: { message: Envelope; thinking: Thinking | undefined }) {
  const [open, setOpen] = useState(false);
  const all = thinking ? [thinking.start, ...thinking.thoughts, ...(thinking.end ? [thinking.end] : [])] : [message];
  const kind = message.kind.split(".")[1] ?? "";
  const state = thinking ? (thinking.end ? "Reasoning" : "Reasoning, still going on") : `Reasoning: ${kind}`;
  const first = oneLine(thought(thinking?.end ?? message), 100);
  return (
    <details class="reasoning" open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>
        {state}
        {all.length > 1 && ` (${all.length})`}
        {first && <span class="soft">{`: ${first}`}</span>}
      </summary>
      {open && all.map((each) => <Long key={each.seq} text={thought(each)} />)}
    </details>
  );
}

function thought({ payload = {} }: Envelope): string {
  for (const name of ["text", "message", "input", "conclusion", "thought", "reason"]) {
    if (typeof payload[name] === "string") return payload[name];
  }
  return Object.keys(payload).length ? JSON.stringify(payload) : "";
}

/** Everything else, in one sentence. */
export function inWords(message: Envelope): string {
  const { kind, payload = {} } = message;
  const text = (name: string) => (typeof payload[name] === "string" ? oneLine(payload[name], 300) : "");
  const why = text("reason") ? `: ${text("reason")}` : "";
  const who = isMembers(payload["participant"]) ? String(payload["participant"]["id"]) : text("participant");
  const held = Array.isArray(payload["capabilities"]) ? (payload["capabilities"] as Capability[]) : [];
  const rights = held.length ? allInWords(held).join(", ") : "rights";
  const to = message.to?.join(", ") || "everyone";
  const known: Record<string, () => string> = {
    "system.presence.join": () => `${who} entered`,
    "system.presence.leave": () => `${who} left`,
    "system.proposal.expired": () => "A proposal expired: nobody decided in time",
    "system.proposal.withdrawn": () => "A proposal was withdrawn, since its proposer was removed",
    "system.participant.paused": () => `${who} is paused${text("by") ? ` by ${text("by")}` : ""}${why}`,
    "system.participant.resumed": () => `${who} can go on`,
    "mcpx.reject.proposal": () => `rejected a proposal${why}`,
    "mcpx.withdraw.proposal": () => `withdrew a proposal${why}`,
    "mcpx.begin.request": () => "began to work on a request",
    "capability.grant": () => `granted ${text("recipient")}: ${rights}${why}`,
    "capability.revoke": () => `revoked from ${text("recipient") || "a grant"}: ${rights}${why}`,
    "capability.grant-ack": () => "The grant is in effect",
    "room.invite": () => `invited ${text("handle") || text("guest")}`,
    "room.kick": () => `removed ${who}${why}`,
    "participant.pause": () => `pauses ${to}${why}`,
    "participant.resume": () => `lets ${to} go on`,
    "participant.status": () => `status: ${text("status") || text("text") || text("state")}`,
    "chat.acknowledge": () => "has seen a message",
    "chat.cancel": () => "needs no answer any more",
    "mcp.notification.notifications/progress": () => "reports progress",
    "mcp.notification.notifications/cancelled": () => "cancelled a request",
  };
  return known[kind]?.() ?? oneLine(kind, 160);
}

/** What is said in place of what was, where it is deleted. */
const DELETED = { text: "This message was deleted.", deleted: true };

function Actions({ message, chat, me, stream, onWrite }: RowProps & { chat: Chat | null }) {
  const said = chat && !chat.deleted && !chat.replaces;
  const [raw, setRaw] = useState(false);
  return (
    <>
      <div class="message-actions">
        {said && (
          <Button kind="plain" icon="reply" label={`Reply to ${message.from}`} onClick={() => onWrite({ message, how: "reply" })} />
        )}
        {said && message.from === me && (
          <>
            <Button kind="plain" icon="write" label={`Edit message ${message.seq}`} onClick={() => onWrite({ message, how: "edit" })} />
            <Confirm
              icon="trash"
              iconOnly
              label={`Delete message ${message.seq}`}
              question="Everyone sees that it was deleted. What it said is gone."
              verb="Delete"
              onConfirm={() => attempt(() => sayIn(stream, { ...DELETED, replaces: message.id }))}
            />
          </>
        )}
        <button
          type="button"
          class="button plain small"
          aria-expanded={raw}
          aria-label={`Message ${message.seq} as JSON`}
          onClick={() => setRaw(!raw)}
        >
          {"{ }"}
        </button>
      </div>
      {raw && <Raw value={message} />}
    </>
  );
}
