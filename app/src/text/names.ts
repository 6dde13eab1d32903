/** Text of strangers that stands among our own: one line, with nothing that turns it around. */

const TURNING = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;
const OVERRIDES = /[\u202d\u202e]/g;
const INVISIBLE = /[\u0000-\u001f\u007f-\u009f\u200b\u2028\u2029\u2060\ufeff]+/g;

export function oneLine(text: string, most = 200): string {
  const line = text.replace(TURNING, "").replace(INVISIBLE, " ").replace(/\s+/g, " ").trim();
  return line.length > most ? `${line.slice(0, most - 1)}…` : line;
}

/** A name to show for someone, or their handle where the name has nothing to see. */
export function displayName(name: string | undefined, handle: string): string {
  return oneLine(name ?? "", 60) || `@${handle}`;
}

/** A body as it is shown: all of it, except for what reverses the letters. */
export function bodyText(text: string): string {
  return text.replace(OVERRIDES, "");
}

/** A handle as it is stored: without the @, in lower case. */
export function plainHandle(text: string): string {
  return text.trim().replace(/^@/, "").toLowerCase();
}
