/** What surrounds every page: the navigation, the line that says what happened, the connection. */
import { useEffect, useRef, useState } from "preact/hooks";

import type { Digest } from "../api/schema";
import { Button, Ring } from "../components/parts";
import { unread, waiting } from "./badges";
import { attempt, said, useLoad } from "./data";
import { Icon } from "./icons";
import { connected } from "./live";
import { ASK_EVENTS } from "./pages/asks/asks";
import { ELSEWHERE, type NavigationEntry, PAGES, type PageRow, type Params } from "./pages";
import { Empty } from "./parts/Empty";
import { PageHead } from "./parts/PageHead";
import { arrivals, match, place } from "./router";
import { leave, may, mayForSome, who } from "./session";

/** Entries of the bar at the bottom of a narrow page; the others are behind "More". */
const MOST_NARROW = 4;

interface Entry extends NavigationEntry {
  path: string;
}

function entries(): Entry[] {
  const ours = PAGES.flatMap(({ path, scope, navigation }) =>
    navigation ? [{ ...navigation, path, scope }] : [],
  );
  return [...ours, ...ELSEWHERE]
    .filter(({ scope }) => mayForSome(scope))
    .sort((one, other) => one.order - other.order);
}

export function Shell() {
  const { path } = place.value;
  const found = match(path, PAGES);
  useTitle(found && titleOf(found.page, found.params));
  useArrival();
  return (
    <div class="console">
      <a class="skip button" href="#page-title">
        Skip to the page
      </a>
      <Navigation path={path} />
      <main class="page" key={path}>
        {found ? <Shown {...found} /> : <Unknown />}
      </main>
      <Status />
      {may("mail.read") && <Unread />}
      {may("decide") && <Waiting />}
    </div>
  );
}

function titleOf(page: PageRow, params: Params): string {
  return typeof page.title === "string" ? page.title : page.title(params);
}

function Shown({ page, params }: { page: PageRow; params: Params }) {
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

function Navigation({ path }: { path: string }) {
  const [open, setOpen] = useState(false);
  const all = entries();
  const more = useRef<HTMLButtonElement>(null);
  useEffect(() => setOpen(false), [path]);
  useEffect(() => {
    if (!open) return;
    const close = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      more.current?.focus();
    };
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, [open]);
  const here = (to: string) => (to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`));
  return (
    <header class={`side${open ? " open" : ""}`}>
      <a class="brand" href="/">
        <Ring size={28} />
        <span>Folkmoot</span>
      </a>
      <nav aria-label="Pages" class="places">
        <ul>
          {all.map((it, at) => (
            <li key={it.path} class={at < MOST_NARROW ? "" : "rest"}>
              <a class="place" href={it.path} aria-current={here(it.path) ? "page" : undefined}>
                <Icon name={it.icon} />
                <span class="name">{it.label}</span>
                <Badge count={it.badge?.value ?? 0} />
              </a>
            </li>
          ))}
          <li class="rest own">
            <a class="place" href="/account">
              <Icon name="account" />
              <span class="name">@{who.value?.handle}</span>
            </a>
          </li>
          <li class="rest">
            <button type="button" class="place" onClick={() => void attempt(leave)}>
              <Icon name="out" />
              <span class="name">Sign out</span>
            </button>
          </li>
          <li class="only-narrow">
            <button
              type="button"
              class="place"
              aria-expanded={open}
              ref={more}
              onClick={() => setOpen(!open)}
            >
              <Icon name="more" />
              <span class="name">More</span>
            </button>
          </li>
        </ul>
      </nav>
    </header>
  );
}

function Badge({ count }: { count: number }) {
  if (!count) return null;
  return (
    <span class="badge">
      {count > 99 ? "99+" : count}
      <span class="hidden"> new</span>
    </span>
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
      <p class={text ? `notice ${bad ? "danger" : "good"}` : "hidden"} role={bad ? "alert" : "status"}>
        {text}
        {text && (
          <Button kind="plain" onClick={() => (said.value = { text: "", bad: false })}>
            Close
          </Button>
        )}
      </p>
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

function useTitle(title: string | null): void {
  useEffect(() => {
    document.title = `${title ?? "Page not found"} · Folkmoot`;
  }, [title]);
}

/** Whoever goes to another page is at its heading, also without seeing it. */
function useArrival(): void {
  const count = arrivals.value;
  useEffect(() => {
    if (count) document.getElementById("page-title")?.focus({ preventScroll: true });
  }, [count]);
}
