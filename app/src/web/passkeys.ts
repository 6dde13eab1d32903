/** Passkeys in this browser: whether it has any here, making one, and signing in with one. */
import { Refused, sentence } from "../api/call";
import type * as hub from "../api/schema";
import { ask } from "./rest";

export type Passkey = hub.Passkey;

const PATH = "/v1/me/passkeys";
const SIGN_IN = "/v1/session/passkey";
const NUMBERS = new Set(["127.0.0.1", "[::1]"]);
const FAILED: Record<string, string> = {
  NotAllowedError: "The passkey was not used: it was cancelled, or took too long. Try again.",
  InvalidStateError: "This device has a passkey for your account already.",
};

/** This page under the name `localhost`, where it is at a number: passkeys need a name. */
export const byName = (): string | null =>
  NUMBERS.has(location.hostname)
    ? `${location.protocol}//localhost:${location.port}${location.pathname}${location.search}`
    : null;

/** Why there are no passkeys here; empty where there are. */
export function obstacle(): string {
  if (byName()) return "Passkeys do not work at a numeric address.";
  if (!isSecureContext) return "Passkeys need https, and this page came without it.";
  if (typeof window.PublicKeyCredential?.parseRequestOptionsFromJSON !== "function") {
    return "This browser has no passkeys that work here.";
  }
  return "";
}

export const passkeys = async () => (await ask<hub.PasskeyList>("GET", PATH)).passkeys;
export const renamePasskey = (id: string, name: string) =>
  ask<Passkey>("PATCH", `${PATH}/${encodeURIComponent(id)}`, { name });
/** `otherWay` is a token or the recovery code, which the last passkey needs. */
export const removePasskey = (id: string, otherWay: string) =>
  ask<unknown>("DELETE", `${PATH}/${encodeURIComponent(id)}`, undefined, otherWay);

export async function addPasskey(): Promise<Passkey> {
  const { ticket, options } = await ask<hub.PasskeyChallenge>("POST", `${PATH}/challenge`);
  const given = options as unknown as PublicKeyCredentialCreationOptionsJSON;
  const publicKey = PublicKeyCredential.parseCreationOptionsFromJSON(given);
  const made = await navigator.credentials.create({ publicKey });
  return ask<Passkey>("POST", PATH, { ticket, credential: written(made) });
}

export async function signInWithPasskey(): Promise<void> {
  await ask<unknown>("POST", SIGN_IN, await signed(`${SIGN_IN}/challenge`));
}

/** Show that one is there, for one call of an operation. */
export async function presence(operation: string, args: object): Promise<{ ticket: string; passkey: string }> {
  const { ticket, credential } = await signed(`${PATH}/presence`, { operation, arguments: args });
  return { ticket, passkey: credential };
}

async function signed(path: string, body?: object): Promise<{ ticket: string; credential: string }> {
  const { ticket, options } = await ask<hub.PasskeyChallenge>("POST", path, body);
  const given = options as unknown as PublicKeyCredentialRequestOptionsJSON;
  const publicKey = PublicKeyCredential.parseRequestOptionsFromJSON(given);
  return { ticket, credential: written(await navigator.credentials.get({ publicKey })) };
}

const written = (it: Credential | null) => JSON.stringify((it as PublicKeyCredential).toJSON());

/** What to tell a person of a passkey that was not made or used. */
export function why(failure: unknown): string {
  if (failure instanceof Refused || !(failure instanceof DOMException)) return sentence(failure);
  return FAILED[failure.name] ?? "This browser could not use a passkey. Try again, or sign in another way.";
}
