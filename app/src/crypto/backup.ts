/**
 * Keys in one file, encrypted with a passphrase: Argon2id and a secretbox. The bridge writes and reads
 * the same file (`folkmoot bridge key export` and `import`).
 */
import { argon2idAsync } from "@noble/hashes/argon2.js";
import nacl from "tweetnacl";

import { fromBase64, keyPair, KEY_BYTES, toBase64, type KeyPair } from "./boxes";
import type { Keyring, Pin } from "./keyring";

const FORMAT = "folkmoot-device-key";
const LEAST_CHARACTERS = 12;
const LEAST_DIFFERENT = 5;
const SALT_BYTES = 16;
const MOST_PASSES = 16;
const MOST_MEMORY = 1024 * 1024 * 1024;

/** What one guess costs: passes over so many bytes. Pages have less memory than computers. */
export interface Cost {
  passes: number;
  memory: number;
}
export const COST: Cost = { passes: 3, memory: 64 * 1024 * 1024 };

export type Progress = (share: number) => void;

export interface Restored {
  hub: string;
  handle: string;
  keys: KeyPair[];
  pins: Pin[];
}

/** Why a passphrase is refused; empty if it is good. */
export function passphraseFault(passphrase: string): string {
  return passphrase.length < LEAST_CHARACTERS || new Set(passphrase).size < LEAST_DIFFERENT
    ? `Use at least ${LEAST_CHARACTERS} characters, such as five words picked at random.`
    : "";
}

export async function pack(
  keyring: Keyring,
  account: { hub: string; handle: string },
  passphrase: string,
  cost: Cost = COST,
  progress: Progress = () => {},
): Promise<string> {
  const salt = nacl.randomBytes(SALT_BYTES);
  const content = {
    ...account,
    keys: keyring.all.map((pair) => toBase64(pair.secret)),
    pins: keyring.allPins(),
  };
  const nonce = nacl.randomBytes(nacl.secretbox.nonceLength);
  const key = await derive(passphrase, salt, cost, progress);
  const box = nacl.secretbox(new TextEncoder().encode(JSON.stringify(content)), nonce, key);
  const whole = new Uint8Array(nonce.length + box.length);
  whole.set(nonce);
  whole.set(box, nonce.length);
  const file = {
    format: FORMAT,
    version: 1,
    ...account,
    kdf: "argon2id",
    ...cost,
    salt: toBase64(salt),
    box: toBase64(whole),
  };
  return `${JSON.stringify(file, null, 2)}\n`;
}

/** Throws with a sentence for the reader. */
export async function unpack(
  text: string,
  passphrase: string,
  progress: Progress = () => {},
): Promise<Restored> {
  const file = parsed(text);
  const { passes, memory, version } = file;
  if (version !== 1) throw new Error("The backup was written by a newer Folkmoot.");
  if (!(passes >= 1 && passes <= MOST_PASSES && memory >= 8192 && memory <= MOST_MEMORY)) {
    throw new Error("The backup asks for more memory or time than any backup needs.");
  }
  const key = await derive(passphrase, fromBase64(file.salt), { passes, memory }, progress);
  const whole = fromBase64(file.box);
  const size = nacl.secretbox.nonceLength;
  const opened = nacl.secretbox.open(whole.subarray(size), whole.subarray(0, size), key);
  if (!opened) throw new Error("The passphrase is wrong, or the backup was changed.");
  const content = JSON.parse(new TextDecoder().decode(opened)) as {
    hub: string;
    handle: string;
    keys: string[];
    pins?: Pin[];
  };
  const secrets = content.keys.map(fromBase64);
  if (!secrets.length || secrets.some((secret) => secret.length !== KEY_BYTES)) {
    throw new Error("The backup holds no key.");
  }
  const { hub, handle, pins } = content;
  return { hub, handle, keys: secrets.map(keyPair), pins: pins ?? [] };
}

function parsed(text: string): Record<string, any> {
  let file: any = null;
  try {
    file = JSON.parse(text);
  } catch {
    // Said below.
  }
  if (file?.format !== FORMAT || file.kdf !== "argon2id") {
    throw new Error("This is not a backup of a key.");
  }
  return file;
}

function derive(passphrase: string, salt: Uint8Array, cost: Cost, progress: Progress) {
  return argon2idAsync(new TextEncoder().encode(passphrase), salt, {
    t: cost.passes,
    m: Math.floor(cost.memory / 1024),
    p: 1,
    dkLen: nacl.secretbox.keyLength,
    maxmem: MOST_MEMORY + 1024 * 1024,
    onProgress: progress,
  });
}
