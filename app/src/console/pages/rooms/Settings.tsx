/** What a room is, for everyone in it; its settings and its end, for owners. */
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Choice, Field } from "../../../components/parts";
import { attempt, send, useLoad } from "../../data";
import { Confirm } from "../../parts/Confirm";
import { Problem } from "../../parts/Problem";
import { count, duration, Time } from "../../parts/Time";
import { go, pathTo } from "../../router";
import { guestOf, leave, may } from "../../session";
import { ACCESS } from "./Rooms";
import { seconds } from "./envelope";
import type { RoomStream } from "./stream";

interface Props {
  stream: RoomStream;
  room: hub.Room;
  onChanged: () => void;
}

const words = (value: string) => value.split(/[\s,]+/).filter(Boolean);

export function Settings({ stream, room, onChanged }: Props) {
  const owns = stream.you.value?.role === "owner" && may("rooms.manage", room.name);
  const { policy } = room;
  return (
    <div class="stack">
      <h2 class="subtitle">About this room</h2>
      <dl class="facts">
        <dt>Access</dt>
        <dd>{ACCESS.find(([value]) => value === room.access)?.[1]}</dd>
        <dt>Owners</dt>
        <dd>{room.owners.join(", ") || "nobody"}</dd>
        <dt>Made</dt>
        <dd>
          <Time at={seconds(room.created_at)} />
        </dd>
        <dt>History</dt>
        <dd>
          {room.durable ? "Kept on the hub's disk" : "In memory only"}
          {`, at most ${count(policy.keep_messages)} messages`}
          {policy.keep_days ? `, for ${count(policy.keep_days)} days` : ""}. Operators of the hub can read it.
        </dd>
        <dt>Messages</dt>
        <dd>{count(stream.lastSeq.value)}</dd>
        <dt>Proposals</dt>
        <dd>{`Open for ${duration(policy.proposal_seconds)}; closed by ${policy.quorum} rejection${policy.quorum === 1 ? "" : "s"}`}</dd>
        <dt>Requests</dt>
        <dd>{`Answered within ${duration(policy.request_seconds)}`}</dd>
        {room.backends && (
          <>
            <dt>Servers</dt>
            <dd>{room.backends.join(", ") || "none"}</dd>
          </>
        )}
      </dl>
      {may("rooms.manage", room.name) && stream.you.value && stream.you.value.role !== "guest" && (
        <Invitations room={room} owns={owns} />
      )}
      {owns && <Change key={`${room.access} ${room.owners}`} room={room} onChanged={onChanged} />}
      {owns && <Delete room={room} />}
      {guestOf.value && <Leave />}
    </div>
  );
}

function Change({ room, onChanged }: { room: hub.Room; onChanged: () => void }) {
  const [access, setAccess] = useState(room.access);
  const [owners, setOwners] = useState(room.owners.join(" "));
  const [backends, setBackends] = useState((room.backends ?? []).join(" "));
  const [rights, setRights] = useState(room.capabilities.map((each) => (typeof each === "string" ? each : JSON.stringify(each))).join("\n"));
  const [quorum, setQuorum] = useState(String(room.policy.quorum));
  const [open, setOpen] = useState(String(room.policy.proposal_seconds));
  const [guard, setGuard] = useState(String(room.policy.loop_guard));
  const [wrong, setWrong] = useState("");
  const save = async () => {
    setWrong("");
    const changed: Record<string, unknown> = {};
    if (access !== room.access) changed["access"] = access;
    if (words(owners).join() !== room.owners.join()) changed["owners"] = words(owners).map((each) => each.replace(/^@/, ""));
    if (words(backends).join() !== (room.backends ?? []).join()) changed["backends"] = words(backends);
    try {
      const lines = rights.split("\n").map((line) => line.trim()).filter(Boolean);
      const given = lines.map((line) => (line.startsWith("{") ? (JSON.parse(line) as object) : line));
      if (JSON.stringify(given) !== JSON.stringify(room.capabilities)) changed["capabilities"] = given;
    } catch {
      return setWrong("A line of the rights that begins with { must be valid JSON.");
    }
    const policy: Record<string, number> = {};
    for (const [name, text] of [["quorum", quorum], ["proposal_seconds", open], ["loop_guard", guard]] as const) {
      const value = Number(text);
      if (!text.trim() || !Number.isFinite(value)) return setWrong("Rejections, seconds and answers must be numbers.");
      if (value !== room.policy[name]) policy[name] = value;
    }
    if (Object.keys(policy).length) changed["policy"] = policy;
    if (!Object.keys(changed).length) return setWrong("Nothing is different yet.");
    const done = await attempt(() => send("PATCH", `/v1${pathTo("rooms", room.name)}`, changed), "The settings are saved.");
    if (done !== undefined) onChanged();
  };
  return (
    <section class="stack" aria-label="Change the settings">
      <h2 class="subtitle">Change</h2>
      <Choice label="Who can enter" value={access} options={ACCESS} onChange={setAccess} />
      <Field label="Owners" value={owners} onInput={setOwners} hint="Handles of members, with spaces between them." />
      <Field label="Servers of the hub" value={backends} onInput={setBackends} hint="Namespaces, with spaces between them." />
      <Field label="What members can do" rows={5} value={rights} onInput={setRights} hint="One capability on each line." />
      <Field label="Rejections that close a proposal" value={quorum} onInput={setQuorum} />
      <Field label="Seconds that a proposal is open" value={open} onInput={setOpen} />
      <Field
        label="Answers of agents to each other before they are paused"
        value={guard}
        onInput={setGuard}
        hint="0 for no limit."
        error={wrong || undefined}
      />
      <div>
        <Button kind="primary" onClick={() => void save()}>
          Save
        </Button>
      </div>
    </section>
  );
}

function Invitations({ room, owns }: { room: hub.Room; owns: boolean }) {
  const path = `/v1${pathTo("rooms", room.name, "invites")}`;
  const list = useLoad<hub.OpenInvitations>(path);
  const waited = list.data?.invitations ?? [];
  const withdraw = async (name: string) => {
    const done = await attempt(
      () => send("DELETE", `${path}/${encodeURIComponent(name)}`).then(() => true),
      `The invitation of ${name} is withdrawn.`,
    );
    await list.reload();
    return Boolean(done);
  };
  return (
    <section class="stack" aria-label="Open invitations">
      <h2 class="subtitle">Open invitations</h2>
      <Problem error={list.error} onRetry={list.reload} />
      {list.data && !waited.length && (
        <p class="soft">{owns ? "No pending invitations." : "All your guests have joined."}</p>
      )}
      <ul class="people">
        {waited.map((it) => {
          const name = it.handle ?? it.guest ?? "";
          return (
            <li key={name} class="line">
              <span class="grow">
                {it.handle ? `@${it.handle}` : `${name}, a guest`}
                {it.invited_by && <span class="soft">{` invited by @${it.invited_by}`}</span>}
                {it.expires_at && (
                  <span class="soft">
                    {" "}
                    until <Time at={seconds(it.expires_at)} />
                  </span>
                )}
              </span>
              <Confirm
                label="Withdraw"
                verb="Withdraw"
                question={`Withdraw the invitation of ${name}?`}
                onConfirm={() => withdraw(name)}
              />
            </li>
          );
        })}
      </ul>
    </section>
  );
}

/** The end of a guest's visit. */
function Leave() {
  return (
    <section class="stack" aria-label="Leave the room">
      <h2 class="subtitle">Leave</h2>
      <Confirm
        label="Leave for good…"
        verb="Leave"
        question="Leave the room? Your invitation is used up: to come back you need another one."
        onConfirm={() => attempt(leave)}
      />
    </section>
  );
}

function Delete({ room }: { room: hub.Room }) {
  const [typed, setTyped] = useState("");
  const remove = async () => {
    const done = await attempt(() => send("DELETE", `/v1${pathTo("rooms", room.name)}`).then(() => true), `The room ${room.name} is deleted.`);
    if (done) go("/rooms");
    return Boolean(done);
  };
  return (
    <section class="stack" aria-label="Delete the room">
      <h2 class="subtitle">Delete</h2>
      <Confirm
        label="Delete the room…"
        verb="Delete"
        question="Delete the room and everything that was said in it? It cannot be undone."
        ready={typed === room.name}
        onConfirm={remove}
      >
        <Field label={`Type ${room.name} to confirm`} value={typed} onInput={setTyped} />
      </Confirm>
    </section>
  );
}
