/** Keys and boxes as MMP v0.1 has them: NaCl boxes of UTF-8 text, everything in base64. */
import { sha256 } from "@noble/hashes/sha2.js";
import nacl from "tweetnacl";

import type { EncryptedPayload } from "../api/types";

export const KEY_BYTES = 32;
const GROUPS = 8;

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { fatal: true });

export interface KeyPair {
  secret: Uint8Array;
  /** In base64, as the hub names it. */
  public: string;
}

export function newKeyPair(): KeyPair {
  return keyPair(nacl.randomBytes(KEY_BYTES));
}

export function keyPair(secret: Uint8Array): KeyPair {
  return { secret, public: toBase64(nacl.box.keyPair.fromSecretKey(secret).publicKey) };
}

export function seal(own: KeyPair, recipient: string, text: string): EncryptedPayload {
  const nonce = nacl.randomBytes(nacl.box.nonceLength);
  const box = nacl.box(encoder.encode(text), nonce, publicKey(recipient), own.secret);
  return { ciphertext: toBase64(box), nonce: toBase64(nonce), sender_public_key: own.public };
}

/** The text in a box that one of the two closed; null if it was not closed between them. */
export function unseal(own: KeyPair, other: string, payload: EncryptedPayload): string | null {
  try {
    const opened = nacl.box.open(
      fromBase64(payload.ciphertext),
      fromBase64(payload.nonce),
      publicKey(other),
      own.secret,
    );
    return opened && decoder.decode(opened);
  } catch {
    return null;
  }
}

/** The bytes of a public key; throws for what is no key, or gives no secrecy to anyone. */
export function publicKey(text: string): Uint8Array {
  const bytes = fromBase64(text);
  if (bytes.length !== KEY_BYTES || toBase64(bytes) !== text) {
    throw new Error("A public key must be 32 bytes in base64.");
  }
  // A point of small order makes every shared secret the same.
  if (nacl.scalarMult(PROBE, bytes).every((byte) => byte === 0)) {
    throw new Error("The hub names a key that gives no secrecy to anyone.");
  }
  return bytes;
}

const PROBE = sha256(encoder.encode("folkmoot: is this a key?"));

export function isPublicKey(text: unknown): text is string {
  try {
    return typeof text === "string" && publicKey(text).length === KEY_BYTES;
  } catch {
    return false;
  }
}

/** What two people compare to know that they have each other's key. */
export function fingerprint(key: string): string {
  const hex = Array.from(sha256(fromBase64(key)), (byte) => byte.toString(16).padStart(2, "0"));
  const digits = hex.join("");
  return Array.from({ length: GROUPS }, (_, n) => digits.slice(4 * n, 4 * n + 4)).join(" ");
}

export function toBase64(bytes: Uint8Array): string {
  let text = "";
  for (const byte of bytes) text += String.fromCharCode(byte);
  return btoa(text);
}

/** Strict: throws for anything that is not base64. */
export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (character) => character.charCodeAt(0));
}

export function newId(): string {
  // `crypto.randomUUID` exists in secure contexts alone.
  const bytes = nacl.randomBytes(16);
  bytes[6] = (bytes[6]! & 0x0f) | 0x40;
  bytes[8] = (bytes[8]! & 0x3f) | 0x80;
  const hex = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
  return [8, 12, 16, 20, 32].map((end, n) => hex.slice([0, 8, 12, 16, 20][n], end)).join("-");
}
