/** Whose session the console runs in, and when it is over. */
import { signal } from "@preact/signals";

import { session, signOut } from "../web/session";
import { signInPath } from "../web/paths";
import { requests } from "../web/requests";
import { ask } from "../web/rest";
import { guestOf, who } from "../web/who";
import { pathTo } from "./router";

export { guestOf, may, mayForSome, operates, who } from "../web/who";

/** Why the session is over, once it is. */
export const lost = signal("");

/** An invitation that the address named: in memory alone, until it is used. */
export const invitation = signal<{ room: string; token: string } | null>(null);

/** Take an invitation out of the address, so that it stays in no history and on no screen. */
export function takeInvitation(): void {
  const room = /^\/rooms\/([^/]+)\/?$/.exec(location.pathname)?.[1];
  const token = /^#invite=(gi_[0-9a-f]+)$/.exec(location.hash)?.[1];
  if (!room || !token) return;
  history.replaceState(null, "", location.pathname + location.search);
  invitation.value = { room: decodeURIComponent(room), token };
}

/** Enter the room as its guest: the hub keeps the credential in a cookie that no page reads. */
export async function enterAsGuest(): Promise<void> {
  const { room, token } = invitation.value!;
  await ask("POST", `/v1${pathTo("rooms", room, "guests")}`, { token });
  invitation.value = null;
}

/** Ask who is signed in; whoever is not goes to the page to sign in, and back. */
export async function start(): Promise<boolean> {
  const found = await session();
  const { handle, guest } = found;
  if (handle === null && guest === null) {
    if (invitation.value) return false;
    if (who.value === null) location.replace(signInPath(location.pathname + location.search));
    else over();
    return false;
  }
  if (who.value !== null && (who.value.handle !== handle || who.value.room !== found.room)) {
    // Somebody else signed in, in another tab: nothing of the first may stay on the screen.
    location.reload();
    return false;
  }
  who.value = found;
  return true;
}

/** Everything that was shown goes away, and asks for nothing more. */
export function over(): void {
  void requests().stop();
  lost.value = guestOf.value
    ? "Your guest access has ended. Ask for another invitation."
    : "You are signed out, or your session has ended.";
}

export async function leave(): Promise<void> {
  await signOut();
  location.assign("/");
}
