/** What surrounds every page: the navigation, the line that says what happened, the connection. */
import { useEffect, useLayoutEffect } from "preact/hooks";

import type { Digest, UnreadRooms } from "../api/schema";
import { Toast } from "../components/parts";
import { ASK_EVENTS, isNews, mentions, ROOM_EVENTS, roomNews, unread, waiting } from "../navigation/badges";
import { decideByKey } from "../navigation/keys";
import { Navigation } from "../navigation/Navigation";
import { attempt, said, say, useLoad } from "./data";
import { connected } from "./live";
import { Notifier } from "./notify";
import { PAGES, type PageRow, type Params } from "./pages";
import { Empty } from "./parts/Empty";
import { PageHead } from "./parts/PageHead";
import { arrivals, match, pathTo, place } from "./router";
import { guestOf, leave, may, mayForSome } from "./session";

export function Shell() {
  const { path } = place.value;
  const found = match(path, PAGES);
  useTitle(found && titleOf(found.page, found.params));
  useArrival();
  useEffect(() => {
    document.addEventListener("keydown", decideByKey);
    return () => document.removeEventListener("keydown", decideByKey);
  }, []);
  return (
    <div class="console framed">
      <Navigation path={path} onSignOut={() => void attempt(leave)} />
      <main class="page" key={path}>
        {found ? <Shown {...found} /> : <Unknown />}
      </main>
      <Status />
      {may("mail.read") && <Unread />}
      {may("decide") && <Waiting />}
      {may("rooms") && !guestOf.value && <News />}
      <Notifier />
    </div>
  );
}

function titleOf(page: PageRow, params: Params): string {
  return typeof page.title === "string" ? page.title : page.title(params);
}

function Shown({ page, params }: { page: PageRow; params: Params }) {
  if (guestOf.value && params["name"] !== guestOf.value) return <ForAccounts />;
  if (page.scope && !mayForSome(page.scope)) return <Forbidden page={page} params={params} />;
  const Component = page.component;
  return <Component params={params} />;
}

function Unknown() {
  return (
    <>
      <PageHead title="Page not found" />
      <Empty title="There is no such page.">
        <a href="/">Go to the home page</a>
      </Empty>
    </>
  );
}

/** What a guest of one room sees of all other pages. */
function ForAccounts() {
  return (
    <>
      <PageHead title="Not for guests" />
      <Empty title={`You are a guest of ${guestOf.value}.`}>
        <p>Other pages are for people with an account.</p>
        <a href={pathTo("rooms", guestOf.value)}>Go to the room</a>
      </Empty>
    </>
  );
}

function Forbidden({ page, params }: { page: PageRow; params: Params }) {
  const operators = page.scope === "operate";
  return (
    <>
      <PageHead title={titleOf(page, params)} />
      <Empty title={operators ? "This page is for operators of the hub." : "Not in this session."}>
        {operators ? (
          <p>
            Whoever runs the hub opens it on the hub's own machine, with{" "}
            <code>folkmoot open --operate --for HANDLE</code>, or signs in with a token that has the
            scope <code>operate</code>.
          </p>
        ) : (
          <p>
            It needs the scope <code>{page.scope}</code>, which the token that you signed in with
            does not have.
          </p>
        )}
      </Empty>
    </>
  );
}

function Status() {
  const { text, bad } = said.value;
  return (
    <div class="status">
      {connected.value === false && (
        <p class="notice warning" role="alert">
          The connection to the hub is lost. Trying again.
        </p>
      )}
      <Toast text={text} bad={bad} onClose={() => say("")} />
    </div>
  );
}

/** Keeps the number beside the inbox. */
function Unread() {
  const { data } = useLoad<Digest>("/v1/digest", ["mail.received", "mail.changed"]);
  useEffect(() => {
    if (data) unread.value = data.total_unread;
  }, [data]);
  return null;
}

/** Keeps the number beside the asks. */
function Waiting() {
  const { data } = useLoad<{ count: number }>("/v1/asks?limit=0", ASK_EVENTS);
  useEffect(() => {
    if (data) waiting.value = data.count;
  }, [data]);
  return null;
}

/** Keeps the number beside the rooms. */
function News() {
  const { data } = useLoad<UnreadRooms>("/v1/unread", ROOM_EVENTS, isNews);
  useEffect(() => {
    if (data) roomNews.value = data.rooms;
  }, [data]);
  return null;
}

function useTitle(title: string | null): void {
  const count = mentions.value;
  useEffect(() => {
    document.title = `${count ? `(${count}) ` : ""}${title ?? "Page not found"} · Folkmoot`;
  }, [title, count]);
}

/** Whoever goes to another page is at its heading, also without seeing it. */
function useArrival(): void {
  const count = arrivals.value;
  useLayoutEffect(() => {
    if (count) document.getElementById("page-title")?.focus({ preventScroll: true });
  }, [count]);
}
