/** What keys do, and when they must not. */

export const INBOX_KEYS: readonly (readonly [string, string])[] = [
  ["c", "Write a message"],
  ["/", "Search"],
  ["j k or ↓ ↑", "Move in the list"],
  ["r", "Reply"],
  ["s, e, m", "Star, archive, mute"],
  ["Ctrl Enter", "Send"],
  ["Esc", "Back to the list"],
];
export const DECISION_KEYS: readonly (readonly [string, string])[] = [
  ["j k", "Next, previous decision"],
  ["a", "Approve; Enter as well if it can destroy"],
  ["r", "Reject"],
];
export const KEYS_EVERYWHERE: readonly (readonly [string, string])[] = [
  ["Ctrl K", "Go to a page, room, person or server"],
  ["?", "Show the keys"],
];

/** Whether a key may do something: not while someone types, nor in a dialog. */
export function isFree(event: KeyboardEvent): boolean {
  if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || event.defaultPrevented) return false;
  if (document.querySelector("dialog[open]")) return false;
  return !(event.target as Element).closest?.("input, textarea, select, [contenteditable]");
}

/** Give the focus to the next of some elements, or the one before; the first where none has it. */
export function step(all: readonly HTMLElement[], by: 1 | -1, from = document.activeElement): void {
  const at = all.findIndex((it) => it === from || it.contains(from));
  const next = at < 0 ? 0 : Math.max(0, Math.min(all.length - 1, at + by));
  all[next]?.focus();
  all[next]?.scrollIntoView({ block: "nearest" });
}

const seen = (it: HTMLElement) => it.offsetParent !== null;

/** `j` and `k` move between what is to be decided, `a` and `r` decide. */
export function decideByKey(event: KeyboardEvent): void {
  if (!["j", "k", "a", "r"].includes(event.key) || event.repeat || !isFree(event)) return;
  const cards = [...document.querySelectorAll<HTMLElement>(".decision.open")].filter(seen);
  if (!cards.length) return;
  event.preventDefault();
  const card = cards.find((it) => it.contains(document.activeElement));
  if (event.key === "j" || event.key === "k" || !card) return step(cards, event.key === "k" ? -1 : 1);
  const buttons = [...card.querySelectorAll<HTMLButtonElement>(".decisions > .button")];
  const button = event.key === "a" ? buttons.find((it) => it.matches(".primary")) : buttons.find((it) => !it.matches(".primary"));
  if (!button || button.disabled) return;
  button.focus();
  // One key alone must not destroy anything.
  if (event.key === "r" || !card.querySelector(".risk-destroys")) button.click();
}
