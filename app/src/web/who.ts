/** Who is signed in on this page, and what the session may do. */
import { computed, signal } from "@preact/signals";

import type { Session } from "./session";

export const who = signal<Session | null>(null);

const words = computed(() => new Set((who.value?.scope ?? "").split(" ").filter(Boolean)));

/** Whether the session has a scope, for one room or server if `about` names it; "" needs none. */
export function may(scope: string, about = ""): boolean {
  const held = words.value;
  if (!scope || held.has(scope) || (about && held.has(`${scope}:${about}`))) return true;
  return scope !== "operate" && held.has("*");
}

/** Whether the session has a scope for everything, or for at least one room or server. Of several
 * scopes with spaces between them, one is enough. */
export function mayForSome(scopes: string): boolean {
  return scopes
    .split(" ")
    .some((scope) => may(scope) || [...words.value].some((word) => word.startsWith(`${scope}:`)));
}

/** A guest of one room has no account, and nothing of the pages but that room. */
export const guestOf = computed(() => who.value?.room ?? "");

export const operates = computed(() => may("operate"));
