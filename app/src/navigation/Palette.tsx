/** Keys of every page: Ctrl-K goes anywhere, `?` shows what the keys do. */
import { useEffect, useId, useMemo, useState } from "preact/hooks";

import { Dialog } from "../components/Dialog";
import { ask } from "../web/rest";
import { guestOf, mayForSome, operates } from "../web/who";
import { DECISION_KEYS, INBOX_KEYS, isFree, KEYS_EVERYWHERE } from "./keys";
import { PLACES } from "./places";

const MOST_SHOWN = 8;

interface Target {
  label: string;
  kind: string;
  to: string;
}

type Members = Record<string, Record<string, string>[]>;
interface Source {
  kind: string;
  scope: string;
  path: string;
  /** The member of the answer that lists them, what each is called there, and where it leads. */
  of: readonly [list: string, name: string, to: string];
}

const sources = (): readonly Source[] => [
  { kind: "Room", scope: "rooms", path: "/v1/rooms?limit=100", of: ["rooms", "name", "/rooms/"] },
  operates.value
    ? { kind: "Server", scope: "operate", path: "/v1/servers", of: ["backends", "namespace", "/servers/"] }
    : { kind: "Server", scope: "tools", path: "/v1/me/servers", of: ["servers", "namespace", "/servers/"] },
  operates.value
    ? { kind: "Person", scope: "operate", path: "/v1/accounts", of: ["people", "handle", "/people/"] }
    : { kind: "Person", scope: "mail.read", path: "/v1/contacts", of: ["contacts", "handle", "/inbox?to="] },
];

async function fetchTargets({ kind, path, of: [list, name, to] }: Source): Promise<Target[]> {
  const found = await ask<Members>("GET", path).catch((): Members => ({}));
  return (found[list] ?? []).map((it) => {
    const label = it[name] ?? "";
    return { kind, label: kind === "Person" ? `@${label}` : label, to: to + encodeURIComponent(label) };
  });
}

export function Shortcuts() {
  const [open, setOpen] = useState<"" | "palette" | "keys">("");
  useEffect(() => {
    if (guestOf.value) return;
    const onKey = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() === "k" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
        event.preventDefault();
        if (!document.querySelector("dialog[open]")) setOpen("palette");
      } else if (event.key === "?" && isFree(event)) setOpen("keys");
    };
    document.addEventListener("keydown", onKey);
    return () => document.removeEventListener("keydown", onKey);
  }, [guestOf.value]);
  if (open === "palette") return <Palette onClose={() => setOpen("")} />;
  return open ? <Help onClose={() => setOpen("")} /> : null;
}

/** A link that the page follows as it follows its own. */
function follow(to: string): void {
  const link = document.createElement("a");
  link.href = to;
  link.className = "place hidden";
  document.body.append(link);
  link.click();
  link.remove();
}

function Palette({ onClose }: { onClose: () => void }) {
  const [sought, setSought] = useState("");
  const [at, setAt] = useState(0);
  const [found, setFound] = useState<readonly Target[]>([]);
  const id = useId();
  useEffect(() => {
    for (const source of sources()) {
      if (mayForSome(source.scope)) void fetchTargets(source).then((more) => setFound((was) => [...was, ...more]));
    }
  }, []);
  const pages = useMemo(
    () => [
      ...PLACES.filter(({ scope }) => mayForSome(scope)).map(({ label, path }) => ({ kind: "Page", label, to: path })),
      { kind: "Page", label: "Account", to: "/account" },
    ],
    [],
  );
  const words = sought.trim().toLowerCase();
  const fits = ({ label }: Target) => label.toLowerCase().includes(words);
  const first = ({ label }: Target) => (label.toLowerCase().replace("@", "").startsWith(words.replace("@", "")) ? 0 : 1);
  const shown = [...pages, ...found].filter(fits).sort((one, other) => first(one) - first(other)).slice(0, MOST_SHOWN);
  const chosen = Math.min(at, shown.length - 1);
  const pick = (target: Target | undefined) => {
    if (!target) return;
    onClose();
    follow(target.to);
  };
  return (
    <Dialog label="Go to" onClose={onClose}>
      <input
        class="input"
        type="text"
        role="combobox"
        aria-label="Go to a page, room, person or server"
        aria-expanded={shown.length > 0}
        aria-controls={id}
        aria-activedescendant={shown.length ? `${id}-${chosen}` : undefined}
        placeholder="Go to a page, room, person or server"
        autocomplete="off"
        spellcheck={false}
        maxLength={100}
        value={sought}
        onInput={(event) => {
          setSought(event.currentTarget.value);
          setAt(0);
        }}
        onKeyDown={(event) => {
          const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
          if (by) setAt(Math.max(0, Math.min(shown.length - 1, chosen + by)));
          else if (event.key === "Enter" && !event.isComposing) pick(shown[chosen]);
          else return;
          event.preventDefault();
        }}
      />
      <ul class="targets" role="listbox" id={id} aria-label="Found">
        {shown.map((it, place) => (
          <li key={it.to} id={`${id}-${place}`} role="option" aria-selected={place === chosen} onClick={() => pick(it)}>
            <span class="grow">{it.label}</span>
            <span class="small soft">{it.kind}</span>
          </li>
        ))}
      </ul>
      <p class={shown.length ? "hidden" : "soft"} role="status">
        {shown.length ? `${shown.length} found` : "Nothing found."}
      </p>
    </Dialog>
  );
}

function Help({ onClose }: { onClose: () => void }) {
  return (
    <Dialog label="Keys" onClose={onClose}>
      <div class="line">
        <h2 class="subtitle grow">Keys</h2>
        <button type="button" class="button" onClick={onClose}>
          Close
        </button>
      </div>
      <KeyList title="Everywhere" keys={KEYS_EVERYWHERE} />
      {mayForSome("decide") && <KeyList title="Decisions and rooms" keys={DECISION_KEYS} />}
      {mayForSome("mail.read") && <KeyList title="Inbox" keys={INBOX_KEYS} />}
    </Dialog>
  );
}

function KeyList({ title, keys }: { title: string; keys: typeof INBOX_KEYS }) {
  return (
    <section aria-label={title}>
      <h3 class="small soft">{title}</h3>
      <dl class="shortcuts">
        {keys.map(([key, what]) => (
          <div key={key}>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </section>
  );
}
