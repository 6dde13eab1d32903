/** The reader's own keys, and the first key each correspondent was seen with. */
import { fromBase64, isPublicKey, keyPair, KEY_BYTES, toBase64, type KeyPair } from "./boxes";
import type { Storage } from "./storage";

/** Where MMP keeps the private key (section 8.4). */
export const PRIVATE_KEY = "mmp_private_key";
const PAST_KEYS = "mmp_past_keys";
const PINS = "mmp_peers";
const SENT = "mmp_sent";
const MOST_SENT = 1000;

/** A correspondent's key, as the bridge's files have it. */
export interface Pin {
  handle: string;
  key: string;
  since: number;
  /** When another key took its place; null for the present one. */
  until: number | null;
  letters: boolean;
  /** Whether the two people have compared it. */
  verified: boolean;
}

export type Standing = "none" | "new" | "pinned" | "verified" | "changed" | "gone";

export class Keyring {
  own: KeyPair | null;
  past: KeyPair[];
  private pins: Pin[];
  private sent: string[];

  constructor(private readonly storage: Storage) {
    this.own = readKey(storage.read(PRIVATE_KEY));
    this.past = list(storage.read(PAST_KEYS)).flatMap((text) => readKey(text) ?? []);
    this.pins = list(storage.read(PINS)).filter(isPin);
    this.sent = list(storage.read(SENT)).filter((text) => typeof text === "string");
  }

  get lasting(): boolean {
    return this.storage.lasting;
  }

  get all(): KeyPair[] {
    return this.own ? [this.own, ...this.past] : this.past;
  }

  ownKey(key: string): KeyPair | undefined {
    return this.all.find((pair) => pair.public === key);
  }

  /** Use another key from now on; the one before is kept to read old mail. */
  use(next: KeyPair, earlier: KeyPair[] = []): void {
    const known = new Map([...this.all, ...earlier].map((pair) => [pair.public, pair]));
    known.delete(next.public);
    this.own = next;
    this.past = [...known.values()];
    this.storage.write(PRIVATE_KEY, toBase64(next.secret));
    this.storage.write(PAST_KEYS, JSON.stringify(this.past.map((pair) => toBase64(pair.secret))));
  }

  pinOf(handle: string): Pin | undefined {
    return this.pins.find((pin) => pin.handle === handle && pin.until === null);
  }

  /** Every key that someone was known by, the present one first. */
  keysOf(handle: string): string[] {
    const mine = this.pins.filter((pin) => pin.handle === handle && pin.key);
    return mine.sort((a, b) => Number(b.until === null) - Number(a.until === null)).map((p) => p.key);
  }

  allPins(): Pin[] {
    return [...this.pins];
  }

  /** What the key that the hub names now means, without trusting it. */
  standing(handle: string, offered: string | null | undefined): Standing {
    const pin = this.pinOf(handle);
    if (!pin?.key) return offered ? "new" : "none";
    if (!offered) return "gone";
    if (pin.key !== offered) return "changed";
    return pin.verified ? "verified" : "pinned";
  }

  /** Trust a key: that of someone new, or one that takes an earlier key's place. */
  accept(handle: string, key: string, more: Partial<Pin> = {}): void {
    const now = Math.floor(Date.now() / 1000);
    const before = this.pinOf(handle);
    if (before?.key === key) {
      this.pins = this.pins.map((pin) => (pin === before ? { ...pin, ...more } : pin));
    } else {
      this.pins = this.pins.map((pin) => (pin === before ? { ...pin, until: now } : pin));
      const fresh = { handle, key, since: now, until: null, letters: false, verified: false };
      this.pins.push({ ...fresh, ...more });
    }
    this.storage.write(PINS, JSON.stringify(this.pins));
  }

  /** Take over what another device trusts, where nothing is known here. */
  recall(pins: Pin[]): void {
    for (const pin of pins.filter(isPin)) {
      const known = this.pins.some((it) => it.handle === pin.handle && it.key === pin.key);
      if (!known && !(pin.until === null && this.pinOf(pin.handle))) this.pins.push(pin);
    }
    this.storage.write(PINS, JSON.stringify(this.pins));
  }

  /** Remember a box of one's own, so that it is known when it is handed back as someone else's. */
  noteSent(nonce: string): void {
    this.sent = [...this.sent.slice(1 - MOST_SENT), nonce];
    this.storage.write(SENT, JSON.stringify(this.sent));
  }

  wasSent(nonce: string): boolean {
    return this.sent.includes(nonce);
  }
}

function readKey(text: unknown): KeyPair | null {
  try {
    const secret = fromBase64(String(text ?? ""));
    return secret.length === KEY_BYTES ? keyPair(secret) : null;
  } catch {
    return null;
  }
}

function list(text: string | null): any[] {
  try {
    const found: unknown = JSON.parse(text ?? "[]");
    return Array.isArray(found) ? found : [];
  } catch {
    return [];
  }
}

function isPin(value: any): value is Pin {
  return (
    typeof value?.handle === "string" &&
    (value.key === "" || isPublicKey(value.key)) &&
    (value.until === null || value.until === undefined || typeof value.until === "number")
  );
}
