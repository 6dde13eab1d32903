/** One room, live: its messages, who is here, its tools and its settings. */
import { useEffect, useMemo, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, Notice } from "../../../components/parts";
import { useLoad } from "../../data";
import { Empty } from "../../parts/Empty";
import { PageHead } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { inWords } from "../../parts/Proposal";
import { counted } from "../../parts/Time";
import { pathTo, place, setQuery } from "../../router";
import type { PageProps } from "../../pages";
import { may } from "../../session";
import { type About, Composer } from "./Composer";
import { askedFor, type Envelope, type Filter, type Group, isFiltering } from "./envelope";
import { Finder } from "./Finder";
import { Messages } from "./Messages";
import { People } from "./People";
import { useMarkRead } from "./reading";
import { Settings } from "./Settings";
import { RoomStream } from "./stream";
import { Tools } from "./Tools";

const AGAIN_MS = 3_000;

export function Room({ params }: PageProps) {
  const name = params["name"]!;
  const load = useLoad<hub.Room>(`/v1${pathTo("rooms", name)}`, ["room.changed", "room.membership"]);
  const [entered, setEntered] = useState(false);
  if (load.status === 404 || load.status === 400) {
    return (
      <>
        <PageHead title={name} />
        <Empty title="There is no such room, or you can't see it.">
          <a href="/rooms">See your rooms</a>
        </Empty>
      </>
    );
  }
  if (load.data && (load.data.role || entered)) {
    return <Inside key={load.data.name} room={load.data} onChanged={load.reload} />;
  }
  return (
    <>
      <PageHead title={name} />
      <Loaded load={load}>{(room) => <Door room={room} onEnter={() => setEntered(true)} />}</Loaded>
    </>
  );
}

function Door({ room, onEnter }: { room: hub.Room; onEnter: () => void }) {
  if (!room.may_enter) {
    return (
      <Empty title={room.access === "open" ? "You were removed from this room." : "This room is for invited people."}>
        <p>{`Ask ${room.owners.map((each) => `@${each}`).join(" or ") || "someone in it"} to invite you.`}</p>
      </Empty>
    );
  }
  return (
    <Empty title={room.access === "open" ? "You are not in this room yet." : "You are invited to this room."}>
      <p>{`${counted(room.participants, "participant")} here now. Others will see that you entered.`}</p>
      <Button kind="primary" onClick={onEnter}>
        Enter the room
      </Button>
    </Empty>
  );
}

type Panel = "" | "people" | "tools" | "settings";

function readFilter(): Filter {
  const { query } = place.value;
  const text = (name: string) => query.get(name) ?? "";
  return { group: text("kind") as Group | "", person: text("from"), text: text("text"), thread: text("thread") };
}

/** The message that the address names: `#m-41`, or `#m-` and its id. */
function target(): string {
  try {
    return decodeURIComponent(/^#m-(.+)$/.exec(location.hash)?.[1] ?? "");
  } catch {
    return "";
  }
}

const isNumber = (text: string) => /^[0-9]{1,15}$/.test(text);

function Inside({ room, onChanged }: { room: hub.Room; onChanged: () => void }) {
  const { name } = room;
  const stream = useMemo(() => new RoomStream(name), [name]);
  const [panel, setPanel] = useState<Panel>(() => (matchMedia("(min-width: 70rem)").matches ? "people" : ""));
  const [finding, setFinding] = useState(() => isFiltering(readFilter()));
  const [about, setAbout] = useState<About | null>(null);
  const [trouble, setTrouble] = useState("");

  useEffect(() => {
    let over = false;
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = async () => {
      try {
        const to = target();
        const filter = readFilter();
        stream.filter.value = filter;
        await stream.start(room, isNumber(to) ? { seq: Number(to) } : undefined);
        setTrouble("");
        if (to && !isNumber(to)) await stream.jumpToId(to);
        else if (!to && isFiltering(filter)) await stream.reload();
      } catch (error) {
        if (over) return;
        setTrouble(sentence(error));
        timer = setTimeout(() => void begin(), AGAIN_MS);
      }
    };
    void begin();
    const moved = () => {
      const to = target();
      if (isNumber(to)) void stream.jump(Number(to));
      else if (to) void stream.jumpToId(to);
    };
    const hurry = () => document.hidden || stream.hurry();
    addEventListener("hashchange", moved);
    addEventListener("online", hurry);
    document.addEventListener("visibilitychange", hurry);
    return () => {
      over = true;
      clearTimeout(timer);
      stream.stop();
      removeEventListener("hashchange", moved);
      removeEventListener("online", hurry);
      document.removeEventListener("visibilitychange", hurry);
    };
  }, [stream]);

  useMarkRead(stream);
  const list = useLoad<hub.ParticipantPage>(
    `/v1${pathTo("rooms", name)}/participants?limit=1`,
    ["room.presence"],
    () => stream.state.value === "open",
  );
  // Who came back since the list was read is here again.
  const away = (list.data?.away ?? []).filter((it) => !stream.present.value.has(it.id));
  const filter = (next: Filter) => {
    setQuery({ kind: next.group, from: next.person, text: next.text, thread: next.thread });
    void stream.setFilter(next);
  };
  const toggle = (next: Panel) => setPanel((was) => (was === next ? "" : next));
  const here = stream.presentTotal.value || room.participants;
  return (
    <div class={`room${panel ? " with-panel" : ""}`}>
      <PageHead title={name} lead={<Standing stream={stream} room={room} />}>
        <div class="line room-tabs" role="group" aria-label="Beside the messages">
          <Button pressed={finding} icon="search" onClick={() => setFinding(!finding)}>
            Find
          </Button>
          <Button pressed={panel === "people"} icon="people" onClick={() => toggle("people")}>
            {`People ${here.toLocaleString()}`}
          </Button>
          <Button pressed={panel === "tools"} onClick={() => toggle("tools")}>
            Tools
          </Button>
          <Button pressed={panel === "settings"} icon="settings" onClick={() => toggle("settings")}>
            Room
          </Button>
        </div>
      </PageHead>
      {trouble && (
        <Notice tone="danger">
          <span role="alert">{trouble}</span>
        </Notice>
      )}
      <div class="room-body">
        <section class="room-main" aria-label="Messages and what waits">
          {finding && <Finder stream={stream} onFilter={filter} onClose={() => setFinding(false)} />}
          <Waiting stream={stream} />
          <Messages stream={stream} onWrite={setAbout} onThread={(thread) => filter({ ...stream.filter.value, thread })} />
          <Composer stream={stream} away={away} about={about} onDone={() => setAbout(null)} />
        </section>
        {panel && (
          <aside class="room-panel" aria-label={PANELS[panel]}>
            <div class="line only-panel">
              <Button icon="back" onClick={() => setPanel("")}>
                Back to the messages
              </Button>
            </div>
            {panel === "people" && <People stream={stream} room={room} away={away} />}
            {panel === "tools" && <Tools stream={stream} />}
            {panel === "settings" && <Settings stream={stream} room={room} onChanged={onChanged} />}
          </aside>
        )}
      </div>
    </div>
  );
}

const PANELS: Record<Exclude<Panel, "">, string> = { people: "People", tools: "Tools", settings: "About this room" };

const ROLES: Record<string, string> = { owner: "an owner of", guest: "a guest in" };

/** Whether the room is live, in words. */
function Standing({ stream, room }: { stream: RoomStream; room: hub.Room }) {
  const state = stream.state.value;
  const role = stream.you.value?.role ?? room.role ?? "member";
  const words = {
    open: `Live. You're ${ROLES[role] ?? `a ${role} of`} this room.`,
    connecting: "Connecting…",
    waiting: "Connection lost. Reconnecting…",
    closed: stream.reason.value || "Closed.",
  }[state];
  return (
    <span class="line" role="status">
      <span class={`dot ${state}`} aria-hidden="true" />
      <span>{words}</span>
      {stream.you.value?.paused !== undefined && <span class="tag">Paused</span>}
    </span>
  );
}

/** What waits for the reader: how much, and the way to the first; the others come up as it is done. */
function Waiting({ stream }: { stream: RoomStream }) {
  const proposals = [...stream.proposals.value.values()]
    .filter((each) => stream.waiting.value.has(each.id) && each.state === "open")
    .sort((one, other) => one.seq - other.seq);
  const requests = stream.asked.value;
  const total = proposals.length + requests.length;
  if (!total || !may("decide", stream.name)) return null;
  const [proposal] = proposals;
  const [request] = requests;
  const what = proposal
    ? `${inWords(proposal)}, proposed by ${proposal.proposer}`
    : `${request!.requester} asks you: ${askedFor(request as unknown as Envelope)}`;
  return (
    <section class="waiting" aria-label="Waits for you">
      <strong>{`${counted(total, "thing waits", "things wait")} for you`}</strong>
      <span class="grow">{what}</span>
      <Button onClick={() => void stream.jump((proposal ?? request!).seq)}>{proposal ? "Decide" : "Answer"}</Button>
    </section>
  );
}
