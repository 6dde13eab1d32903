/** Whose session the console runs in, and when it is over. */
import { signal } from "@preact/signals";

import { session, signOut } from "../web/session";
import { signInPath } from "../web/paths";
import { who } from "../web/who";

export { may, mayForSome, operates, who } from "../web/who";

/** Why the session is over, once it is. */
export const lost = signal("");

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
