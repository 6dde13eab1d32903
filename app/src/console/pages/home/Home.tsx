/** `/`: what is new for the reader, what waits for them, and for operators how the hub is. */
import type * as hub from "../../../api/schema";
import { roomNews } from "../../../navigation/badges";
import { displayName } from "../../../text/names";
import { useLoad } from "../../data";
import { askTitle, RiskTag } from "../../parts/Card";
import { NewsBadges } from "../../parts/NewsBadges";
import { PageHead, Section } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { count, counted, Time } from "../../parts/Time";
import { pathTo } from "../../router";
import { may, mayForSome, operates, who } from "../../session";
import { Begin } from "./Begin";
import { Hub } from "./Hub";

const SHOWN = 6;

export function Home() {
  const handle = who.value?.handle ?? "";
  return (
    <>
      <PageHead title={`Hello, ${displayName(who.value?.display_name ?? "", handle)}`} />
      <div class="sections">
        <Begin />
        {mayForSome("decide") && <Waiting />}
        {may("mail.read") && <Mail />}
        {mayForSome("rooms") && <Rooms />}
        {operates.value && <Hub />}
      </div>
    </>
  );
}

function Mail() {
  const load = useLoad<hub.Digest>("/v1/digest", ["mail.received", "mail.changed"]);
  return (
    <Section title="Mail" beside={<a href="/inbox">Open your inbox</a>}>
      <Loaded load={load}>
        {({ total_unread, urgent_count, threads_with_unread, recent_senders, more_senders = 0 }) =>
          total_unread ? (
            <>
              <p>
                <strong>{counted(total_unread, "unread message")}</strong> in{" "}
                {counted(threads_with_unread, "conversation")}
                {urgent_count > 0 && (
                  <>
                    {" "}
                    <span class="tag urgent">{counted(urgent_count, "urgent one")}</span>
                  </>
                )}
              </p>
              <p class="soft">
                From {recent_senders.map((it) => `@${it}`).join(", ")}
                {more_senders > 0 && ` and ${count(more_senders)} more`}.
              </p>
            </>
          ) : (
            <p class="soft">No unread messages.</p>
          )
        }
      </Loaded>
    </Section>
  );
}

function Waiting() {
  const load = useLoad<hub.Asks>(`/v1/asks?limit=${SHOWN}`, [
    "ask.changed",
    "room.proposal",
    "room.membership",
    "held.changed",
    "pins.changed",
    "tools.changed",
  ]);
  return (
    <Section title="Waiting for you" beside={<a href="/decisions">See all</a>}>
      <Loaded load={load}>
        {({ asks, count: all }) =>
          asks.length ? (
            <>
              <ul class="entries">
                {asks.map((it) => (
                  <li key={it.id}>
                    <span class="line">
                      <a href="/decisions">{askTitle(it)}</a>
                      <RiskTag risk={it.risk} />
                    </span>
                    <span class="soft small">
                      {[it.by && `by ${it.by}`, it.room && `in ${it.room}`].filter(Boolean).join(", ")}{" "}
                      <Time at={Date.parse(it.since) / 1000} />
                    </span>
                  </li>
                ))}
              </ul>
              {all > asks.length && <p class="soft">{count(all - asks.length)} more.</p>}
            </>
          ) : (
            <p class="soft">Nothing to decide.</p>
          )
        }
      </Loaded>
    </Section>
  );
}

function Rooms() {
  const load = useLoad<hub.RoomPage>("/v1/rooms?limit=100", [
    "room.membership",
    "room.changed",
    "room.presence",
  ]);
  return (
    <Section title="Rooms" beside={<a href="/rooms">All rooms</a>}>
      <Loaded load={load}>
        {({ rooms }) => {
          const here = new Map(rooms.filter((it) => it.role !== null).map((it) => [it.name, it.participants]));
          const news = new Map(roomNews.value.map((it) => [it.room, it]));
          const quiet = [...here.keys()].filter((name) => !news.has(name)).sort((one, other) => here.get(other)! - here.get(one)!);
          const first = [...news.keys(), ...quiet].slice(0, SHOWN);
          if (!first.length) return <p class="soft">You haven't joined any rooms yet.</p>;
          return (
            <ul class="entries">
              {first.map((name) => (
                <li key={name}>
                  <span class="line">
                    <a href={pathTo("rooms", name)}>{name}</a>
                    <NewsBadges {...news.get(name)} />
                  </span>
                  {here.has(name) && (
                    <span class="soft small">
                      {here.get(name) ? `${count(here.get(name)!)} here now` : "nobody here now"}
                    </span>
                  )}
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Section>
  );
}
