/** Filters over the history, and ways to a place in it. */
import { useState } from "preact/hooks";

import { Button, Choice, Field } from "../../../components/parts";
import { type Filter, type Group, isFiltering, NO_FILTER } from "./envelope";
import type { RoomStream } from "./stream";

const KINDS = [
  ["", "Everything"],
  ["chat", "Chat"],
  ["proposal", "Proposals"],
  ["request", "Requests"],
  ["response", "Answers"],
  ["progress", "Progress"],
  ["reasoning", "Reasoning"],
  ["presence", "Coming and going"],
  ["rights", "Rights and people"],
  ["other", "Other"],
] as const satisfies readonly (readonly [Group | "", string])[];

export function Finder({ stream, onFilter }: { stream: RoomStream; onFilter: (filter: Filter) => void }) {
  const [filter, setFilter] = useState(stream.filter.value);
  const [to, setTo] = useState("");
  const [time, setTime] = useState("");
  const change = (changed: Partial<Filter>) => setFilter((was) => ({ ...was, ...changed }));
  const apply = () => onFilter(filter);
  const jump = () => {
    const seq = Number(to.replace(/^#/, ""));
    if (!Number.isSafeInteger(seq) || seq < 1) return;
    void stream.jump(seq);
  };
  const jumpToTime = () => {
    const moment = new Date(time).getTime() / 1000;
    if (Number.isFinite(moment)) void stream.jumpToTime(moment);
  };
  return (
    <div class="finder" role="search" aria-label="Find in this room">
      <div class="filters">
        <Choice label="Kind" value={filter.group} options={KINDS} onChange={(group) => change({ group })} />
        <Field
          label="Person"
          value={filter.person}
          most={64}
          onInput={(person) => change({ person: person.replace(/^@/, "").toLowerCase() })}
          onEnter={apply}
        />
        <Field label="Text" value={filter.text} most={200} onInput={(text) => change({ text })} onEnter={apply} />
        <Field label="Thread" value={filter.thread} most={128} onInput={(thread) => change({ thread })} onEnter={apply} />
        <div class="line">
          <Button kind="primary" onClick={apply}>
            Filter
          </Button>
          {isFiltering(stream.filter.value) && (
            <Button
              onClick={() => {
                setFilter(NO_FILTER);
                onFilter(NO_FILTER);
              }}
            >
              Show all
            </Button>
          )}
        </div>
      </div>
      <div class="filters">
        <Field label="Message number" value={to} most={16} onInput={setTo} onEnter={jump} />
        <Button disabled={!to} onClick={jump}>
          Go to number
        </Button>
        <div class="field">
          <label for="jump-time">Time</label>
          <input
            id="jump-time"
            class="input"
            type="datetime-local"
            step="1"
            value={time}
            onInput={(event) => setTime(event.currentTarget.value)}
          />
        </div>
        <Button disabled={!time} onClick={jumpToTime}>
          Go to time
        </Button>
      </div>
    </div>
  );
}
