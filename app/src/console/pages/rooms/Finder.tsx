/** One row above the messages: search, filters, and ways to a place in the history. */
import { useEffect, useId, useRef, useState } from "preact/hooks";

import { Button, Icon } from "../../../components/parts";
import { type Filter, type Group, isFiltering, NO_FILTER } from "./envelope";
import type { RoomStream } from "./stream";

const KINDS = [
  ["", "Any kind"],
  ["chat", "Chat"],
  ["proposal", "Proposals"],
  ["request", "Calls"],
  ["response", "Answers"],
  ["reasoning", "Reasoning"],
  ["presence", "Coming and going"],
  ["other", "Other"],
] as const satisfies readonly (readonly [Group | "", string])[];

interface Props {
  stream: RoomStream;
  onFilter: (filter: Filter) => void;
  onClose: () => void;
}

export function Finder({ stream, onFilter, onClose }: Props) {
  const applied = stream.filter.value;
  const [filter, setFilter] = useState(applied);
  const field = useRef<HTMLInputElement>(null);
  const id = useId();
  useEffect(() => setFilter(applied), [applied]);
  useEffect(() => field.current?.focus(), []);
  const change = (changed: Partial<Filter>, now = false) => {
    const next = { ...filter, ...changed };
    setFilter(next);
    if (now) onFilter(next);
  };
  const apply = () => {
    const number = /^#([0-9]{1,15})$/.exec(filter.text.trim())?.[1];
    if (!number) return onFilter({ ...filter, text: filter.text.trim() });
    setFilter(NO_FILTER);
    void stream.jump(Number(number));
  };
  return (
    <form
      class="finder"
      role="search"
      aria-label="Find in this room"
      onSubmit={(event) => {
        event.preventDefault();
        apply();
      }}
      onKeyDown={(event) => event.key === "Escape" && onClose()}
    >
      <input
        class="input finder-text"
        type="search"
        aria-label="Text"
        placeholder="Search or #41"
        maxLength={200}
        value={filter.text}
        ref={field}
        onInput={(event) => change({ text: event.currentTarget.value })}
      />
      <button type="submit" class="button" aria-label="Search">
        <Icon name="search" />
      </button>
      <select
        class="input finder-kind"
        aria-label="Kind"
        value={filter.group}
        onChange={(event) => change({ group: event.currentTarget.value as Group | "" }, true)}
      >
        {KINDS.map(([value, words]) => (
          <option key={value} value={value}>
            {words}
          </option>
        ))}
      </select>
      <input
        class="input finder-person"
        aria-label="Person"
        placeholder="From"
        list={`${id}-people`}
        maxLength={64}
        value={filter.person}
        onInput={(event) => change({ person: event.currentTarget.value.replace(/^@/, "").toLowerCase() })}
        onChange={apply}
      />
      <datalist id={`${id}-people`}>
        {[...stream.present.value.keys()].slice(0, 50).map((name) => (
          <option key={name} value={name} />
        ))}
      </datalist>
      <input
        class="input finder-day"
        type="date"
        aria-label="Go to a day"
        onChange={(event) => {
          const moment = new Date(`${event.currentTarget.value}T00:00`).getTime() / 1000;
          if (Number.isFinite(moment)) void stream.jumpToTime(moment);
        }}
      />
      {isFiltering(applied) && <Button onClick={() => onFilter(NO_FILTER)}>Show all</Button>}
    </form>
  );
}
