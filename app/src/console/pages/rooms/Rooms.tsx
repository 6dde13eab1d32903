/** The rooms that the reader is in or may enter, what is new there and what waits. */
import { useEffect, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { Button, Choice, Field, focused } from "../../../components/parts";
import { roomNews } from "../../../navigation/badges";
import { oneLine } from "../../../text/names";
import { send, usePages } from "../../data";
import { useEvents } from "../../live";
import { Empty } from "../../parts/Empty";
import { PageHead } from "../../parts/PageHead";
import { Pager } from "../../parts/Table";
import { Problem } from "../../parts/Problem";
import { counted, Time } from "../../parts/Time";
import { go, pathTo } from "../../router";
import { may } from "../../session";
import { NewsBadges } from "../../parts/NewsBadges";
import { NotifyToggle } from "../../notify";
import { askedFor, chatOf, type Envelope, groupOf, seconds } from "./envelope";
import { inWords } from "./Row";

/** How many rooms are on one page of the list, and how many of them are asked about at once. */
const PAGE = 25;
const AT_ONCE = 4;
/** Messages among which the last is looked for that someone said. */
const LOOKED_AT = 10;

interface News {
  last: Envelope | undefined;
  waiting: number;
}

export function Rooms() {
  const list = usePages<hub.RoomPage, hub.Room>(`/v1/rooms?limit=${PAGE}`, {
    items: (page) => page.rooms,
    next: (page) => page.next_cursor,
    on: ["room.membership", "room.changed", "room.presence"],
  });
  const news = useNews(list.items ?? []);
  const rooms = withNewsFirst(list.items ?? []);
  const [making, setMaking] = useState(false);
  const waiting = [...news.values()].reduce((sum, each) => sum + each.waiting, 0);
  return (
    <>
      <PageHead
        title="Rooms"
        lead={
          waiting ? (
            <a href="/decisions">{`${counted(waiting, "thing waits", "things wait")} for you`}</a>
          ) : (
            "Where people, agents and tools talk."
          )
        }
      >
        <NotifyToggle />
        {may("rooms") && (
          <Button kind={making ? "plain" : "primary"} expanded={making} onClick={() => setMaking(!making)}>
            Create a room
          </Button>
        )}
      </PageHead>
      {making && <Create onClose={() => setMaking(false)} />}
      <Problem error={list.error} onRetry={list.reload} />
      {list.items === null && !list.error && (
        <p class="soft" role="status" aria-busy="true">
          Loading…
        </p>
      )}
      {list.items?.length === 0 && (
        <Empty title="No rooms yet.">Create one, or ask someone to invite you to theirs.</Empty>
      )}
      {!!list.items?.length && (
        <ul class="room-list" aria-label="Rooms">
          {rooms.map((room) => (
            <RoomEntry key={room.name} room={room} news={news.get(room.name)} />
          ))}
        </ul>
      )}
      <Pager list={list} />
    </>
  );
}

/** A room of the list, or one that is further down in it and has news. */
type Listed = Pick<hub.Room, "name" | "unread" | "mentions" | "invited"> & Partial<hub.Room>;

/** Invitations, mentions, other news, and the rest as it was. */
function withNewsFirst(rooms: readonly hub.Room[]): readonly Listed[] {
  const loaded = new Map(rooms.map((room) => [room.name, room]));
  const first = roomNews.value.map(({ room, ...news }) => ({ ...loaded.get(room), ...news, name: room }));
  const named = new Set(first.map((room) => room.name));
  const rest = rooms.filter((room) => !named.has(room.name));
  return [...first, ...rest.map((room) => ({ ...room, unread: 0, mentions: 0 }))];
}

function RoomEntry({ room, news }: { room: Listed; news: News | undefined }) {
  const { name, role, access, participants, invited, may_enter: mayEnter = true } = room;
  const standing = role ? ROLES[role] : invited ? "" : access === "open" ? "Open to all" : mayEnter ? "Member" : "By invitation";
  return (
    <li class={`room-entry${room.unread || invited ? " news" : ""}`}>
      <div class="line">
        {mayEnter ? (
          <a class="room-name" href={pathTo("rooms", name)}>
            {name}
          </a>
        ) : (
          <span class="room-name soft">{name}</span>
        )}
        {standing && <span class="tag">{standing}</span>}
        {access === "private" && <span class="tag">Private</span>}
        <NewsBadges {...room} />
        {!!news?.waiting && (
          <a class="badge" href={pathTo("rooms", name)}>
            {`${news.waiting} to decide`}
          </a>
        )}
      </div>
      {participants !== undefined && (
        <p class="small soft line">
          <span>{participants ? `${participants.toLocaleString()} here now` : "Nobody here now"}</span>
          {news?.last && <Time at={seconds(news.last.ts)} />}
        </p>
      )}
      {news?.last && <p class="small room-preview">{preview(news.last)}</p>}
    </li>
  );
}

const ROLES: Record<string, string> = { owner: "You own it", member: "Member", guest: "Guest" };

function lastSaid(messages: readonly Envelope[]): Envelope | undefined {
  const last = (fits: (each: Envelope) => boolean) => messages.findLast(fits);
  return last((each) => chatOf(each) !== null) ?? last((each) => groupOf(each.kind) !== "presence") ?? messages.at(-1);
}

function preview(message: Envelope): string {
  const chat = chatOf(message);
  if (chat) return `${message.from}: ${oneLine(chat.text, 140)}`;
  const { group, words } = { group: groupOf(message.kind), words: askedFor(message) };
  if (group === "request") return `${message.from} asks for ${oneLine(words, 140)}`;
  if (group === "response") return `${message.from} answers: ${oneLine(words, 140)}`;
  if (group === "proposal" && message.kind.startsWith("mcp.")) return `${message.from} proposes ${oneLine(words, 140)}`;
  return message.from === "gateway" ? inWords(message) : `${message.from} ${inWords(message)}`;
}

/** The last message of each room, and how much waits there; a few at a time. */
function useNews(rooms: readonly hub.Room[]): ReadonlyMap<string, News> {
  const [news, setNews] = useState<ReadonlyMap<string, News>>(new Map());
  const [round, setRound] = useState(0);
  const wanted = rooms.filter((room) => room.may_enter).map((room) => room.name);
  useEvents(["room.message", "room.proposal"], () => setRound((was) => was + 1));
  useEffect(() => {
    let stopped = false;
    const read = async (name: string) => {
      const path = `/v1${pathTo("rooms", name)}`;
      try {
        const [page, waiting] = await Promise.all([
          send<hub.MessagePage>("GET", `${path}/messages?limit=${LOOKED_AT}`),
          send<hub.WaitingPage>("GET", `${path}/waiting?limit=100`),
        ]);
        const found = {
          last: lastSaid(page.messages as unknown as Envelope[]),
          waiting: waiting.proposals.length + waiting.requests.length,
        };
        if (!stopped) setNews((was) => new Map(was).set(name, found));
      } catch {
        // The room is shown without its news.
      }
    };
    const work = async () => {
      for (let at = 0; at < wanted.length && !stopped; at += AT_ONCE) {
        await Promise.all(wanted.slice(at, at + AT_ONCE).map(read));
      }
    };
    // A busy room must not be asked about for every message.
    const timer = setTimeout(() => void work(), round ? 1000 : 0);
    return () => {
      stopped = true;
      clearTimeout(timer);
    };
  }, [wanted.join(" "), round]);
  return news;
}

type Access = hub.Room["access"];
export const ACCESS = [
  ["open", "Open: everyone with an account can enter"],
  ["invite", "By invitation: everyone sees it, invited people can enter"],
  ["private", "Private: only invited people see it"],
] as const satisfies readonly (readonly [Access, string])[];

const NAME = /^[a-z0-9][a-z0-9._-]{0,63}$/;

function Create({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState("");
  const [access, setAccess] = useState<Access>("invite");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const create = async () => {
    if (!NAME.test(name)) {
      return setError("Use 1 to 64 lower-case letters, digits, dots, underscores and hyphens; begin with a letter or digit.");
    }
    setBusy(true);
    try {
      await send("POST", "/v1/rooms", { name, access });
      go(pathTo("rooms", name));
    } catch (failure) {
      setError(sentence(failure));
      setBusy(false);
    }
  };
  return (
    <section class="section" aria-label="Create a room">
      <Field
        label="Name"
        value={name}
        most={64}
        error={error || undefined}
        onInput={(text) => {
          setName(text.toLowerCase());
          setError("");
        }}
        onEnter={() => void create()}
        hint="Such as planning. Everyone who can see the room sees its name."
        inputRef={focused}
      />
      <Choice label="Who can enter" value={access} options={ACCESS} onChange={setAccess} />
      <div class="line">
        <Button kind="primary" disabled={busy || !name} onClick={() => void create()}>
          Create
        </Button>
        <Button onClick={onClose}>Cancel</Button>
      </div>
    </section>
  );
}
