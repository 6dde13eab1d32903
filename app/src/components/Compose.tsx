/** A message to someone: whom, then what. Handles are completed from contacts, threads and search. */
import { useEffect, useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import type { Person } from "../api/types";
import type { Mailbox } from "../mail/mailbox";
import { displayName, plainHandle } from "../text/names";
import { Composer } from "./Composer";
import { Button } from "./parts";
import { PeerKey } from "./PeerKey";

const PAUSE = 250;
const MOST = 8;

export function Compose({ mailbox, to }: { mailbox: Mailbox; to: string }) {
  const [typed, setTyped] = useState(to);
  const [found, setFound] = useState<Person[]>([]);
  const [place, setPlace] = useState(-1);
  const [open, setOpen] = useState(false);
  const [unknown, setUnknown] = useState("");
  const [chosen, setChosen] = useState("");
  const known = useRef("");
  const field = useRef<HTMLInputElement>(null);
  const text = useRef<HTMLTextAreaElement | null>(null);
  const id = useId();

  useEffect(() => {
    if (to) void choose(to);
    else field.current?.focus();
  }, [to]);

  // Who leaves the field for something else is not called back to the text.
  useLayoutEffect(() => {
    if (chosen && [document.body, field.current].includes(document.activeElement as HTMLInputElement)) text.current?.focus();
  }, [chosen]);

  useEffect(() => {
    const wanted = plainHandle(typed);
    setPlace(-1);
    if (!wanted || wanted === chosen) {
      setFound([]);
      return undefined;
    }
    let current = true;
    const timer = setTimeout(() => {
      void suggestions(mailbox, wanted).then((people) => {
        if (current) setFound(people);
      });
    }, PAUSE);
    return () => {
      current = false;
      clearTimeout(timer);
    };
  }, [typed, chosen]);

  const choose = async (handle: string) => {
    const name = plainHandle(handle);
    if (!name) return;
    known.current = name;
    setTyped(name);
    setChosen(name);
    setOpen(false);
    setUnknown("");
    const peer = await mailbox.encryption.meet(name);
    if (!peer.person) {
      setUnknown(`@${name} was not found, or takes mail from contacts only. You can still try.`);
    }
  };

  const shown = open ? found : [];
  return (
    <section class="conversation" aria-label="New message">
      <header class="conversation-head">
        <Button
          kind="plain"
          icon="back"
          label="Back to the list"
          onClick={() => mailbox.go({ name: "inbox" })}
        />
        <h2 class="title grow">New message</h2>
      </header>
      <div class="scroll pad stack">
        <div class="field">
          <label for={id}>To</label>
          <div class="combo">
            <input
              id={id}
              class="input"
              type="text"
              role="combobox"
              autocomplete="off"
              autocapitalize="none"
              spellcheck={false}
              placeholder="@handle or a name"
              aria-expanded={shown.length > 0}
              aria-controls={`${id}-list`}
              aria-autocomplete="list"
              aria-activedescendant={place >= 0 && shown[place] ? `${id}-${place}` : undefined}
              value={typed}
              ref={field}
              onInput={(event) => {
                setTyped(event.currentTarget.value);
                setChosen("");
                known.current = "";
                setOpen(true);
              }}
              onBlur={() => {
                setOpen(false);
                if (typed && !known.current) void choose(typed);
              }}
              onKeyDown={(event) => {
                if (event.isComposing) return;
                if (event.key === "ArrowDown" || event.key === "ArrowUp") {
                  const step = event.key === "ArrowDown" ? 1 : -1;
                  setOpen(true);
                  setPlace(Math.max(-1, Math.min(found.length - 1, place + step)));
                  event.preventDefault();
                } else if (event.key === "Enter") {
                  void choose(shown[place]?.handle ?? typed);
                  event.preventDefault();
                } else if (event.key === "Escape" && open) {
                  setOpen(false);
                  event.stopPropagation();
                }
              }}
            />
            <ul id={`${id}-list`} role="listbox" aria-label="People" hidden={!shown.length}>
              {shown.map((person, at) => (
                <li
                  key={person.handle}
                  id={`${id}-${at}`}
                  role="option"
                  aria-selected={at === place}
                  onMouseDown={(event) => {
                    event.preventDefault();
                    void choose(person.handle);
                  }}
                >
                  <bdi>{displayName(person.display_name, person.handle)}</bdi>{" "}
                  <span class="soft small">@{person.handle}</span>
                </li>
              ))}
            </ul>
          </div>
          {unknown && <p class="small soft">{unknown}</p>}
        </div>
        {chosen && <PeerKey mailbox={mailbox} handle={chosen} open={false} />}
      </div>
      <Composer
        key={chosen}
        mailbox={mailbox}
        to={chosen}
        onText={(element) => (text.current = element)}
        onSent={(thread) => {
          void mailbox.look();
          void mailbox.openThread(thread);
        }}
      />
    </section>
  );
}

async function suggestions(mailbox: Mailbox, wanted: string): Promise<Person[]> {
  const known = new Map<string, Person>();
  for (const thread of mailbox.threads.value) {
    const { other_handle: handle, other_display_name: display_name } = thread;
    if (!handle.startsWith("[")) known.set(handle, { handle, display_name });
  }
  const near = [...known.values()].filter(
    (it) => it.handle.includes(wanted) || it.display_name.toLowerCase().includes(wanted),
  );
  if (wanted.length >= 2) {
    // A limit on searches leaves those who are known already.
    const answer = await mailbox.around
      .call("msg/search_users", { query: wanted })
      .catch(() => ({ results: [] }));
    const me = mailbox.me.value?.handle;
    near.push(...answer.results.filter((it) => it.handle !== me && !known.has(it.handle)));
  }
  return near.slice(0, MOST);
}
