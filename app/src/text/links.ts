/** Finds web and mail addresses in text. What is not plainly one stays text. */

export type Piece = { text: string; href?: string };

const ADDRESS = /\b(?:https?:\/\/|mailto:)[^\s<>"'`\u0000-\u001f\u061c\u200b-\u200f\u202a-\u202e\u2066-\u2069]+/gi;
const ENDING = /[.,;:!?…)\]}»”’]+$/u;
const SCHEMES = new Set(["http:", "https:", "mailto:"]);

export function withLinks(text: string): Piece[] {
  const pieces: Piece[] = [];
  let end = 0;
  for (const found of text.matchAll(ADDRESS)) {
    const address = trimmed(found[0]);
    const href = address && webAddress(address);
    if (!href) continue;
    if (found.index > end) pieces.push({ text: text.slice(end, found.index) });
    pieces.push({ text: address, href });
    end = found.index + address.length;
  }
  if (end < text.length) pieces.push({ text: text.slice(end) });
  return pieces;
}

/** Without the sentence's own punctuation, but with brackets that were opened within. */
function trimmed(address: string): string {
  let rest = address;
  for (let ending = ENDING.exec(rest); ending; ending = ENDING.exec(rest)) {
    const last = rest.at(-1)!;
    if (last === ")" && rest.split("(").length >= rest.split(")").length) break;
    rest = rest.slice(0, -1);
  }
  return rest;
}

/** An address that a page may lead to, in full; empty for any other. */
export function webAddress(address: string): string {
  try {
    const url = new URL(address);
    return SCHEMES.has(url.protocol) ? url.href : "";
  } catch {
    return "";
  }
}
