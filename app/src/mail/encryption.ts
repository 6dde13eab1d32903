/** End-to-end encryption of the inbox: the reader's key, the others' keys, and what is sent. */
import { signal } from "@preact/signals";

import { Refused } from "../api/call";
import type { EncryptedPayload, Operations, Person, Priority, Profile } from "../api/types";
import { pack, type Progress, type Restored, unpack } from "../crypto/backup";
import { isPublicKey, newId, newKeyPair, seal } from "../crypto/boxes";
import type { Standing } from "../crypto/keyring";
import { LETTER_FORMAT, readsLetters, writeLetter } from "../crypto/letters";
import type { Mailbox } from "./mailbox";

/** How it stands with the reader's own key. */
export type KeyState =
  /** No key anywhere: mail is encrypted by the hub alone. */
  | "off"
  /** The hub names the key that is here. */
  | "on"
  /** The hub names a key that is not here. */
  | "elsewhere"
  /** There is a key here, and the hub names another. */
  | "replaced"
  /** There is a key here, and the hub names none. */
  | "unpublished";

export interface Peer {
  person: Person | null;
  /** What the hub names as their key now. */
  offered: string | null;
  standing: Standing;
}

export interface Outgoing {
  to: string;
  body: string;
  priority: Priority;
  sealed: boolean;
  answers?: string | undefined;
  key: string;
}

export class Encryption {
  readonly state = signal<KeyState>("off");
  readonly peers = signal<ReadonlyMap<string, Peer>>(new Map());
  private asked = new Map<string, Promise<Peer>>();
  private strange = new Set<string>();

  constructor(private readonly mailbox: Mailbox) {}

  async begin(me: Profile): Promise<void> {
    const { keyring } = this.mailbox;
    const here = keyring.own?.public ?? null;
    const named = me.client_public_key;
    if (!named) this.state.value = here ? "unpublished" : "off";
    else if (named === here) this.state.value = "on";
    else this.state.value = here ? "replaced" : "elsewhere";
  }

  /** Make a key here and have the hub name it. */
  async makeKey(): Promise<void> {
    this.mailbox.keyring.use(newKeyPair());
    await this.publish();
  }

  async publish(): Promise<void> {
    const { around, keyring, me } = this.mailbox;
    if (!keyring.own) return;
    const key = keyring.own.public;
    const told = { client_public_key: key, payload_formats: [LETTER_FORMAT] };
    // A hub that knows nothing of formats refuses to be told of them.
    const known = me.value?.payload_formats !== undefined;
    await around.call("msg/set_profile", known ? told : { client_public_key: key });
    const profile = await around.call("msg/whoami", {});
    me.value = profile;
    await this.begin(profile);
    await this.mailbox.reopen();
  }

  async backup(passphrase: string, progress: Progress): Promise<string> {
    const account = { hub: this.mailbox.hub, handle: this.mailbox.me.value?.handle ?? "" };
    return pack(this.mailbox.keyring, account, passphrase, undefined, progress);
  }

  async restore(text: string, passphrase: string, progress: Progress): Promise<Restored> {
    const restored = await unpack(text, passphrase, progress);
    const [first, ...earlier] = restored.keys;
    this.mailbox.keyring.use(first!, earlier);
    this.mailbox.keyring.recall(restored.pins);
    if (this.mailbox.me.value) await this.begin(this.mailbox.me.value);
    await this.mailbox.reopen();
    return restored;
  }

  /** Know someone's key. The first that is seen is trusted; another one later is not. */
  async meet(handle: string, sealed?: EncryptedPayload): Promise<Peer> {
    const { keyring } = this.mailbox;
    let asking = this.asked.get(handle);
    if (!asking) {
      asking = this.ask(handle);
      this.asked.set(handle, asking);
      asking.catch(() => this.asked.delete(handle));
    }
    const peer = await asking.catch((): Peer => ({ person: null, offered: null, standing: "none" }));
    const theirs = sealed?.sender_public_key;
    if (theirs && peer.person && !keyring.keysOf(handle).includes(theirs) && !this.strange.has(theirs)) {
      // They may have another key by now.
      this.strange.add(theirs);
      return this.meetAgain(handle);
    }
    if (!peer.person && !keyring.pinOf(handle) && isPublicKey(theirs) && !keyring.ownKey(theirs)) {
      // Their profile is hidden from us; their first message names their key.
      keyring.accept(handle, theirs);
    }
    return peer;
  }

  private async ask(handle: string): Promise<Peer> {
    const { around, keyring } = this.mailbox;
    let person: Person | null = null;
    try {
      person = await around.call("msg/lookup", { handle });
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
    }
    const named = person?.client_public_key;
    const offered = isPublicKey(named) && !keyring.ownKey(named) ? named : null;
    const standing = person ? keyring.standing(handle, offered) : "none";
    if (standing === "new" && offered) {
      keyring.accept(handle, offered, { letters: readsLetters(person!) });
    } else if (offered && person && readsLetters(person) && keyring.pinOf(handle)?.key === offered) {
      keyring.accept(handle, offered, { letters: true });
    }
    const peer = { person, offered, standing };
    this.peers.value = new Map(this.peers.value).set(handle, peer);
    return peer;
  }

  /** Ask again who someone is, and what key they have now. */
  async meetAgain(handle: string): Promise<Peer> {
    this.asked.delete(handle);
    return this.meet(handle);
  }

  /** Trust the key that the hub names now, or that the two people compared it. */
  async accept(handle: string, verified: boolean): Promise<void> {
    const peer = await this.meet(handle);
    const { keyring } = this.mailbox;
    const letters = Boolean(peer.person && readsLetters(peer.person));
    keyring.accept(handle, peer.offered ?? "", { letters, verified });
    await this.meetAgain(handle);
    await this.mailbox.reopen();
  }

  /** How far the key that the hub names now is known to be theirs; undefined until it was asked. */
  standing(handle: string): Standing | undefined {
    const peer = this.peers.value.get(handle);
    const pin = this.mailbox.keyring.pinOf(handle);
    // Who hides their profile may still have shown a key by writing.
    return peer && !peer.person && pin?.key ? (pin.verified ? "verified" : "pinned") : peer?.standing;
  }

  /** Why nothing can be encrypted end to end for someone; empty if it can. */
  obstacle(handle: string): string {
    if (this.state.value === "elsewhere") return "Your key is on another device. Restore it in Settings.";
    if (this.state.value !== "on") return "Turn on end-to-end encryption in Settings to use it.";
    switch (this.standing(handle)) {
      case undefined:
        return "Looking for their key…";
      case "none":
        return `@${handle} has no key, so end-to-end is not possible yet.`;
      case "changed":
        return `The key of @${handle} has changed.`;
      case "gone":
        return `The hub no longer names a key of @${handle}.`;
      default:
        return "";
    }
  }

  async send(outgoing: Outgoing): Promise<{ thread_id: string }> {
    const { call } = this.mailbox.around;
    const { answers, priority } = outgoing;
    if (outgoing.sealed) await this.meetAgain(outgoing.to);
    const content = {
      priority,
      idempotency_key: outgoing.key || newId(),
      ...(outgoing.sealed ? { encrypted_payload: this.sealed(outgoing) } : { body: outgoing.body }),
    };
    if (answers) return call("msg/reply", { message_id: answers, ...content });
    const args: Operations["msg/send"][0] = { to: outgoing.to, ...content };
    return call("msg/send", args);
  }

  private sealed({ to, body, answers }: Outgoing): EncryptedPayload {
    const { keyring, me } = this.mailbox;
    const pin = keyring.pinOf(to);
    const obstacle = this.obstacle(to);
    if (obstacle || !pin?.key || !keyring.own || !me.value) throw new Refused(obstacle);
    const content = pin.letters ? writeLetter(me.value.handle, to, body, answers) : body;
    const payload = seal(keyring.own, pin.key, content);
    keyring.noteSent(payload.nonce);
    return payload;
  }
}
