/**
 * Letters: a body with its author, recipient, time and what it answers, inside the box, so that a hub
 * cannot pass one box off as another message. Only readers whose profile says so get one; all others
 * get the body alone. The bridge writes and reads the same.
 */
import type { Message, Person } from "../api/types";
import { newId } from "./boxes";

export const LETTER_FORMAT = "folkmoot-mail-1";
const FAMILY = "folkmoot-mail-";

export interface Letter {
  v: string;
  from: string;
  to: string;
  id: string;
  ts: number;
  body: string;
  re?: string;
}

export function readsLetters(person: Person): boolean {
  return Boolean(person.payload_formats?.includes(LETTER_FORMAT));
}

export function writeLetter(from: string, to: string, body: string, answers?: string): string {
  const letter: Letter = {
    v: LETTER_FORMAT,
    from,
    to,
    id: newId(),
    ts: Math.floor(Date.now() / 1000),
    body,
    ...(answers ? { re: answers } : {}),
  };
  return JSON.stringify(letter);
}

/** The letter in a box, or the plain text that other programs put there; throws for a broken one. */
export function readLetter(content: string): Letter | string {
  let found: unknown;
  try {
    found = JSON.parse(content);
  } catch {
    return content;
  }
  const version = typeof found === "object" && found !== null && "v" in found ? found.v : null;
  if (typeof version !== "string" || !version.startsWith(FAMILY)) return content;
  if (version !== LETTER_FORMAT) throw new Error("It was written by a newer program.");
  const letter = found as Partial<Letter>;
  const texts = [letter.from, letter.to, letter.id, letter.body];
  if (!texts.every((text) => typeof text === "string") || typeof letter.ts !== "number") {
    throw new Error("It is not a whole letter.");
  }
  return letter as Letter;
}

/** Why a letter does not belong to the message it came in; null if it does. */
export function misplaced(letter: Letter, message: Message): string | null {
  if (letter.from !== message.from_handle) {
    return `It was written by @${letter.from}; the hub shows @${message.from_handle}.`;
  }
  if (letter.to !== message.to_handle) {
    return `It was written to @${letter.to}; the hub shows @${message.to_handle}.`;
  }
  if ((letter.re ?? null) !== (message.reply_to ?? null)) {
    return "The hub shows it as an answer to another message than it is.";
  }
  return null;
}
