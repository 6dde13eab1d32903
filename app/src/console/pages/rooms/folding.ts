/** Runs of messages that nobody needs to read, each as one line. */
import type { Comings, Fold } from "../../../api/schema";
import { counted } from "../../parts/Time";
import { type Envelope, isBelow } from "./envelope";

/** One quiet message as a run of its own. */
export function foldOf({ seq, kind, payload }: Envelope): Fold {
  const participant = payload?.["participant"] as { id?: unknown } | undefined;
  const present = isBelow(kind, "system.presence");
  const came = kind === "system.presence.join" ? 1 : 0;
  const presence = present ? { [String(participant?.id ?? "")]: { came, left: 1 - came } } : {};
  return { first: seq, last: seq, protocol: present ? 0 : 1, presence, others: 0 };
}

/** The same runs with those as one that no message lies between; both are in order. */
export function joined(folds: readonly Fold[], messages: readonly Envelope[]): Fold[] {
  const found: Fold[] = [];
  let place = 0;
  for (const fold of folds) {
    const last = found.at(-1);
    while (place < messages.length && messages[place]!.seq < (last?.last ?? 0)) place += 1;
    const between = place < messages.length && messages[place]!.seq < fold.first;
    if (last && !between) found[found.length - 1] = both(last, fold);
    else found.push(fold);
  }
  return found;
}

function both(one: Fold, other: Fold): Fold {
  const presence: Record<string, Comings> = { ...one.presence };
  for (const [name, { came, left }] of Object.entries(other.presence)) {
    const was = presence[name];
    presence[name] = { came: came + (was?.came ?? 0), left: left + (was?.left ?? 0) };
  }
  return {
    first: one.first,
    last: other.last,
    protocol: one.protocol + other.protocol,
    presence,
    others: one.others + other.others,
  };
}

const NAMED = 3;

/** "ada came and went 6 times · 12 protocol messages" */
export function foldInWords({ presence, protocol, others }: Fold): string {
  const people = Object.entries(presence);
  const rest = others + Math.max(0, people.length - NAMED);
  return [
    ...people.slice(0, NAMED).map(([name, comings]) => `${name} ${comingsInWords(comings)}`),
    rest ? `${counted(rest, "more person", "more people")} came or went` : "",
    protocol ? counted(protocol, "protocol message") : "",
  ]
    .filter(Boolean)
    .join(" · ");
}

function comingsInWords({ came, left }: Comings): string {
  const words = came && left ? "came and went" : came ? "entered" : "left";
  const times = Math.max(came, left);
  return times > 1 ? `${words} ${times.toLocaleString()} times` : words;
}
