/** Whose session the console runs in, and what it may do. */
import { computed, signal } from "@preact/signals";

import { type Session, session, signOut } from "../web/session";
import { signInPath } from "../web/paths";

export const who = signal<Session | null>(null);
/** Why the session is over, once it is. */
export const lost = signal("");

const words = computed(() => new Set((who.value?.scope ?? "").split(" ").filter(Boolean)));

/** Whether the session has a scope, for one room or server if `about` names it; "" needs none. */
export function may(scope: string, about = ""): boolean {
  const held = words.value;
  if (!scope || held.has(scope) || (about && held.has(`${scope}:${about}`))) return true;
  return scope !== "operate" && held.has("*");
}

/** Whether the session has a scope for everything, or for at least one room or server. */
export function mayForSome(scope: string): boolean {
  return may(scope) || [...words.value].some((word) => word.startsWith(`${scope}:`));
}

export const operates = computed(() => may("operate"));

/** Ask who is signed in; whoever is not goes to the page to sign in, and back. */
export async function start(): Promise<boolean> {
  const found = await session();
  if (found.handle === null) {
    if (who.value === null) location.replace(signInPath(location.pathname + location.search));
    else over();
    return false;
  }
  if (who.value !== null && who.value.handle !== found.handle) {
    // Somebody else signed in, in another tab: nothing of the first may stay on the screen.
    location.reload();
    return false;
  }
  who.value = found;
  return true;
}

/** Everything that was shown goes away. */
export function over(): void {
  lost.value = "You are signed out, or your session has ended.";
}

export async function leave(): Promise<void> {
  await signOut();
  location.assign("/");
}
