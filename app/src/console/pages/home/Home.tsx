/** `/`: what is new for the reader, what waits for them, and for operators how the hub is. */
import type * as hub from "../../../api/schema";
import { displayName } from "../../../text/names";
import { useLoad } from "../../data";
import { PageHead, Section } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { count, counted, Time } from "../../parts/Time";
import { pathTo } from "../../router";
import { may, mayForSome, operates, who } from "../../session";
import { Hub } from "./Hub";

const SHOWN = 6;

export function Home() {
  const handle = who.value?.handle ?? "";
  return (
    <>
      <PageHead title={`Hello, ${displayName(who.value?.display_name ?? "", handle)}`} />
      <div class="sections">
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
    "room.proposal",
    "room.membership",
    "held.changed",
    "pins.changed",
  ]);
  return (
    <Section title="Waiting for you" beside={<a href="/asks">All of it</a>}>
      <Loaded load={load}>
        {({ asks, count: all }) =>
          asks.length ? (
            <>
              <ul class="entries">
                {asks.map((it) => (
                  <li key={it.id}>
                    <a href="/asks">{it.what}</a>
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
            <p class="soft">Nothing waits for your decision.</p>
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
          const own = rooms.filter((it) => it.role !== null);
          const first = [...own].sort((one, other) => other.participants - one.participants).slice(0, SHOWN);
          if (!first.length) {
            return <p class="soft">You are in no room yet. Create one, or enter one that is open.</p>;
          }
          return (
            <ul class="entries">
              {first.map((it) => (
                <li key={it.name}>
                  <a href={pathTo("rooms", it.name)}>{it.name}</a>
                  <span class="soft small">
                    {it.participants ? `${count(it.participants)} here now` : "nobody here now"}
                  </span>
                </li>
              ))}
            </ul>
          );
        }}
      </Loaded>
    </Section>
  );
}
