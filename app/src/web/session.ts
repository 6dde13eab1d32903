/** Who is signed in in this browser, and everything about one's account that is not mail. */
import type * as hub from "../api/schema";
import { presence } from "./passkeys";
import { ending } from "./requests";
import { ask, request } from "./rest";

export type Session = hub.BrowserSession;
export type Credential = hub.Credential;
export type OpenInvite = hub.OpenInvite;

/** The hub tells everyone who they are, also those whose session has ended. */
export const session = () => request<Session>("GET", "/v1/session");
export const signIn = (token: string) => ask<unknown>("POST", "/v1/session", { token });
export const useCode = (code: string) => ask<unknown>("POST", "/v1/session/code", { code });
export const setUp = (secret: string, handle: string) =>
  ask<hub.Registration>("POST", "/v1/set-up", { secret, handle });
/** Have the browser forget a session that may have ended already. */
export const forget = () => request<unknown>("DELETE", "/v1/session");
export const signOut = () => ending(forget);

export const credentials = async () =>
  (await ask<hub.Tokens>("GET", "/v1/me/credentials")).tokens;
/** A token is given once more to `confirm` it; without one, a passkey is used. */
export async function createToken(label: string, confirm: string): Promise<hub.CreatedCredential> {
  const args = label ? { label } : {};
  const shown = confirm ? {} : await presence("folkmoot/create_token", args);
  return ask("POST", "/v1/me/credentials", { ...args, ...shown }, confirm);
}
export const revoke = (id: string) =>
  ask<unknown>("DELETE", `/v1/me/credentials/${encodeURIComponent(id)}`);

export const openInvites = (cursor?: string) =>
  ask<hub.OpenInvites>("GET", `/v1/me/invites${cursor ? `?${new URLSearchParams({ cursor })}` : ""}`);
export const withdrawInvite = (id: string) =>
  ask<unknown>("DELETE", `/v1/me/invites/${encodeURIComponent(id)}`);

export const changeHandle = (handle: string) =>
  ask<hub.HandleChanged>("PUT", "/v1/me/handle", { new_handle: handle });
export const deleteAccount = (handle: string) =>
  ending(() =>
    request<hub.AccountDeleted>("DELETE", `/v1/me?${new URLSearchParams({ confirm: handle })}`),
  );
