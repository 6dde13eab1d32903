/** Who is here and who may do what, with what the reader may change of it. */
import { useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, CopyText, Field } from "../../../components/parts";
import { oneLine } from "../../../text/names";
import { attempt, send, useLoad, usePages } from "../../data";
import { Confirm } from "../../parts/Confirm";
import { Problem } from "../../parts/Problem";
import { Pager } from "../../parts/Table";
import { pathTo } from "../../router";
import { may } from "../../session";
import { allInWords, allows, type Capability } from "./capabilities";
import type { RoomStream } from "./stream";

const TYPES: Record<string, string> = { person: "person", agent: "agent", guest: "guest", backend: "server of the hub" };

interface Props {
  stream: RoomStream;
  room: hub.Room;
  away: readonly hub.AwayMember[];
}

export function People({ stream, room, away }: Props) {
  const base = `/v1${pathTo("rooms", stream.name)}`;
  const list = usePages<hub.ParticipantPage, hub.Participant>(`${base}/participants?limit=50`, {
    items: (page) => page.participants,
    next: (page) => page.next_cursor,
    on: ["room.presence"],
  });
  const rights = useLoad<hub.RoomRights>(`${base}/grants`, ["room.changed"]);
  const manages = may("rooms.manage", stream.name);
  const can = (kind: string) => manages && allows(stream.capabilities, kind);
  const you = stream.you.value;
  return (
    <div class="stack">
      <h2 class="subtitle">Here now</h2>
      <Problem error={list.error} onRetry={list.reload} />
      <ul class="people" aria-label="Participants">
        {(list.items ?? []).map((each) => (
          <Person
            key={each.id}
            participant={each}
            you={you?.id === each.id}
            stream={stream}
            room={room}
            rights={rights.data}
            can={can}
            onChanged={() => void rights.reload()}
          />
        ))}
      </ul>
      <Pager list={list} />
      {away.length > 0 && (
        <>
          <h2 class="subtitle">Away</h2>
          <ul class="people" aria-label="Members who are away">
            {away.map((each) => (
              <Person
                key={each.id}
                participant={{ ...each, offers_tools: false }}
                you={you?.id === each.id}
                stream={stream}
                room={room}
                rights={rights.data}
                can={can}
                onChanged={() => void rights.reload()}
              />
            ))}
          </ul>
        </>
      )}
      {you && (
        <section class="stack" aria-label="What you can do">
          <h2 class="subtitle">You can</h2>
          <Words held={you.capabilities} />
        </section>
      )}
      {can("room.invite") && <Invite base={base} />}
    </div>
  );
}

function Words({ held }: { held: readonly Capability[] }) {
  const words = allInWords(held);
  if (!words.length) return <p class="small soft">Nothing but read.</p>;
  return (
    <ul class="rights small">
      {words.map((each) => (
        <li key={each}>{oneLine(each, 200)}</li>
      ))}
    </ul>
  );
}

interface PersonProps {
  participant: hub.Participant;
  you: boolean;
  stream: RoomStream;
  room: hub.Room;
  rights: hub.RoomRights | null;
  can: (kind: string) => boolean;
  onChanged: () => void;
}

function Person({ participant, you, stream, room, rights, can, onChanged }: PersonProps) {
  const { id, role, type, offers_tools: offers } = participant;
  const [open, setOpen] = useState(false);
  const base = `/v1${pathTo("rooms", stream.name)}`;
  const granted = rights?.grants.filter((each) => each.recipient === id) ?? [];
  const bySettings = room.grants?.[id] ?? [];
  const byRole = rights?.roles[role] ?? [];
  const revoke = (grant: string) =>
    attempt(() => send("POST", `${base}/revocations`, { grant_id: grant }), `The grant to ${id} is taken back.`).then(
      onChanged,
    );
  const me = stream.you.value?.id;
  return (
    <li>
      <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
        <summary>
          <strong>{id}</strong>
          {you && " (you)"} <span class="small soft">{`${role === type ? "" : `${role}, `}${TYPES[type] ?? type}`}</span>
          {offers && " "}
          {offers && <span class="tag">tools</span>}
        </summary>
        {open && (
          <div class="stack person">
            <p class="small soft">{`As ${role}, ${you ? "you" : id} can:`}</p>
            <Words held={byRole as Capability[]} />
            {bySettings.length > 0 && (
              <>
                <p class="small soft">By the settings of the room also:</p>
                <Words held={bySettings as Capability[]} />
              </>
            )}
            {granted.map((each) => (
              <div class="stack" key={each.id}>
                <p class="small soft">{`Granted by ${each.granter ?? "someone who is gone"}:`}</p>
                <Words held={each.capabilities as Capability[]} />
                {(each.granter === me || can("capability.revoke")) && may("rooms.manage", stream.name) && (
                  <Confirm label="Take back" question={`Take this back from ${id}?`} onConfirm={() => revoke(each.id)} />
                )}
              </div>
            ))}
            {!you && role !== "owner" && role !== "backend" && (
              <>
                {can("capability.grant") && <Grant base={base} to={id} onChanged={onChanged} />}
                {can("room.kick") && <Kick base={base} who={id} />}
              </>
            )}
          </div>
        )}
      </details>
    </li>
  );
}

const COMMON = [
  ["mcp.request.tools/call", "call any tool"],
  ["mcpx.reject.proposal", "reject proposals"],
  ["room.invite", "invite people"],
] as const;

function Grant({ base, to, onChanged }: { base: string; to: string; onChanged: () => void }) {
  const [patterns, setPatterns] = useState("");
  const [reason, setReason] = useState("");
  const given = patterns.split(/[\s,]+/).filter(Boolean);
  const grant = async () => {
    const body = { recipient: to, capabilities: given, ...(reason.trim() ? { reason: reason.trim() } : {}) };
    const done = await attempt(() => send("POST", `${base}/grants`, body), `${to} can do that now.`);
    if (done === undefined) return false;
    setPatterns("");
    setReason("");
    onChanged();
    return true;
  };
  return (
    <Confirm
      label="Grant…"
      verb="Grant"
      danger={false}
      question={`What else can ${to} do?`}
      ready={given.length > 0}
      onConfirm={grant}
    >
      <Field
        label="Capabilities"
        value={patterns}
        onInput={setPatterns}
        hint={given.length ? `In words: ${allInWords(given).join(", ")}` : "Patterns over kinds, such as mcp.request.tools/call:read_file"}
      />
      <div class="line">
        {COMMON.map(([pattern, words]) => (
          <Button key={pattern} kind="plain" onClick={() => setPatterns([...given, pattern].join(" "))}>
            {words}
          </Button>
        ))}
      </div>
      <Field label="Reason (optional)" value={reason} most={1000} onInput={setReason} hint="Everyone in the room reads it." />
    </Confirm>
  );
}

function Kick({ base, who }: { base: string; who: string }) {
  const [reason, setReason] = useState("");
  const query = reason.trim() ? `?${new URLSearchParams({ reason: reason.trim() })}` : "";
  const path = `${base}/participants/${encodeURIComponent(who)}${query}`;
  return (
    <Confirm
      label="Remove…"
      verb="Remove"
      question={`Remove ${who} from the room? They need a new invitation to come back.`}
      onConfirm={async () => (await attempt(() => send("DELETE", path), `${who} is removed.`)) !== undefined}
    >
      <Field label="Reason (optional)" value={reason} most={1000} onInput={setReason} hint="Everyone in the room reads it." />
    </Confirm>
  );
}

function Invite({ base }: { base: string }) {
  const [name, setName] = useState("");
  const [guest, setGuest] = useState(false);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const [made, setMade] = useState<{ name: string; token: string | undefined } | null>(null);
  const invite = async () => {
    setBusy(true);
    setError("");
    try {
      const who = name.trim().replace(/^@/, "");
      const answer = await send<{ token?: string }>("POST", `${base}/invites`, guest ? { guest: who } : { handle: who });
      setMade({ name: who, token: answer.token });
      setName("");
    } catch (failure) {
      setError(sentence(failure));
    }
    setBusy(false);
  };
  return (
    <section class="stack" aria-label="Invite someone">
      <h2 class="subtitle">Invite</h2>
      <div class="line" role="group" aria-label="Whom">
        <Button pressed={!guest} onClick={() => setGuest(false)}>
          Someone with an account
        </Button>
        <Button pressed={guest} onClick={() => setGuest(true)}>
          A guest
        </Button>
      </div>
      <Field
        label={guest ? "The guest's name in this room" : "Handle"}
        value={name}
        most={64}
        error={error || undefined}
        onInput={setName}
        onEnter={() => void invite()}
        hint={guest ? "A guest needs no account, and can chat." : "They are notified, and can enter at once."}
      />
      <div>
        <Button disabled={busy || !name.trim()} onClick={() => void invite()}>
          Invite
        </Button>
      </div>
      {made && (
        <div class="notice good stack" role="status">
          <p>{made.token ? `Give the link to ${made.name} only: whoever opens it first enters, once. A program enters with the token. Neither is shown again.` : `@${made.name} has been invited.`}</p>
          {made.token && (
            <CopyText
              label="The guest's link"
              text={`${location.origin}${base.replace(/^\/v1/, "")}#invite=${made.token}`}
            />
          )}
          {made.token && <CopyText label="The guest's token" text={made.token} />}
        </div>
      )}
    </section>
  );
}
