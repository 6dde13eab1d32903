import { describe, expect, it } from "vitest";

import type { Message } from "../src/api/types";
import { pack, passphraseFault, unpack } from "../src/crypto/backup";
import { fingerprint, isPublicKey, keyPair, newId, newKeyPair, seal, unseal } from "../src/crypto/boxes";
import { Keyring, PRIVATE_KEY } from "../src/crypto/keyring";
import { LETTER_FORMAT, readLetter, writeLetter } from "../src/crypto/letters";
import { open } from "../src/crypto/opening";
import { memoryStorage } from "../src/crypto/storage";
import bridgeExport from "./bridge-export.json";

const CHEAP = { passes: 1, memory: 64 * 1024 };

function keyringWithKey(): Keyring {
  const keyring = new Keyring(memoryStorage());
  keyring.use(newKeyPair());
  return keyring;
}

function message(change: Partial<Message>): Message {
  return {
    id: "m1",
    thread_id: "t1",
    from_handle: "bob",
    to_handle: "ada",
    body: null,
    priority: "normal",
    encryption_mode: "e2e",
    reply_to: null,
    created_at: 1,
    unread: false,
    ...change,
  };
}

describe("boxes", () => {
  it("open for both sides, and for nobody else", () => {
    const [ada, bob, eve] = [newKeyPair(), newKeyPair(), newKeyPair()];
    const box = seal(ada, bob.public, "Grüße ☂");
    expect(unseal(bob, ada.public, box)).toBe("Grüße ☂");
    expect(unseal(ada, bob.public, box)).toBe("Grüße ☂");
    expect(unseal(eve, ada.public, box)).toBeNull();
    expect(unseal(bob, ada.public, { ...box, ciphertext: "????" })).toBeNull();
  });

  it("take no key that gives no secrecy", () => {
    expect(isPublicKey(newKeyPair().public)).toBe(true);
    for (const bad of ["", "AAAA", btoa("\0".repeat(32)), btoa(`\x01${"\0".repeat(31)}`), null]) {
      expect(isPublicKey(bad)).toBe(false);
    }
  });

  it("have the fingerprints that the bridge shows", () => {
    // folkmoot.bridge.boxes.fingerprint of the public key to thirty-two bytes of 7.
    const pair = keyPair(new Uint8Array(32).fill(7));
    expect(fingerprint(pair.public)).toBe(FINGERPRINT_OF_SEVEN);
  });

  it("make ids that are UUIDs", () => {
    expect(newId()).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  });
});

const FINGERPRINT_OF_SEVEN = "0f6d 2553 ff0c 0f44 7ae2 02ed d843 83e1";

describe("a message", () => {
  it("opens from a trusted key, as plain text or as a letter", () => {
    const mine = keyringWithKey();
    const bob = newKeyPair();
    mine.accept("bob", bob.public);
    const plain = seal(bob, mine.own!.public, "Hello");
    expect(open(message({ encrypted_payload: plain }), "ada", mine)).toMatchObject({
      body: "Hello",
      protection: "end_to_end",
    });
    const letter = seal(bob, mine.own!.public, writeLetter("bob", "ada", "Hi", "m0"));
    const answering = message({ encrypted_payload: letter, reply_to: "m0" });
    expect(open(answering, "ada", mine).body).toBe("Hi");
    for (const wrong of [{ reply_to: null }, { from_handle: "eve" }]) {
      if (wrong.from_handle) mine.accept("eve", bob.public);
      expect(open({ ...answering, ...wrong }, "ada", mine).protection).toBe("closed");
    }
  });

  it("stays closed from another key, or when it is one's own words", () => {
    const mine = keyringWithKey();
    const [bob, eve] = [newKeyPair(), newKeyPair()];
    mine.accept("bob", bob.public);
    const foreign = seal(eve, mine.own!.public, "I am Bob");
    expect(open(message({ encrypted_payload: foreign }), "ada", mine)).toMatchObject({
      body: null,
      protection: "closed",
    });
    const own = seal(mine.own!, bob.public, "My words");
    mine.noteSent(own.nonce);
    const turned = { ...own, sender_public_key: bob.public };
    expect(open(message({ encrypted_payload: turned }), "ada", mine).note).toContain("your own words");
  });

  it("of one's own is read with any key the other side had", () => {
    const mine = keyringWithKey();
    const [old, fresh] = [newKeyPair(), newKeyPair()];
    mine.accept("bob", old.public);
    const sent = seal(mine.own!, old.public, "Then");
    mine.accept("bob", fresh.public);
    const shown = message({ from_handle: "ada", to_handle: "bob", encrypted_payload: sent });
    expect(open(shown, "ada", mine).body).toBe("Then");
  });

  it("is not called end-to-end because the hub says so", () => {
    const shown = open(message({ body: "Trust me" }), "ada", keyringWithKey());
    expect(shown.protection).toBe("opened_elsewhere");
  });
});

describe("letters", () => {
  it("leave other text alone, and refuse what is broken or newer", () => {
    for (const text of ["Hello", "{}", "[1]", '{"v": 1}', '{"v":"other"}', "null"]) {
      expect(readLetter(text)).toBe(text);
    }
    expect(() => readLetter('{"v":"folkmoot-mail-2"}')).toThrow("newer");
    expect(() => readLetter(JSON.stringify({ v: LETTER_FORMAT, from: "a" }))).toThrow("whole");
  });
});

describe("the keyring", () => {
  it("keeps its key where MMP says, and survives nonsense there", () => {
    const storage = memoryStorage();
    new Keyring(storage).use(newKeyPair());
    expect(atob(storage.read(PRIVATE_KEY)!)).toHaveLength(32);
    expect(new Keyring(storage).own).not.toBeNull();
    storage.write(PRIVATE_KEY, "not a key");
    storage.write("mmp_peers", "{");
    expect(new Keyring(storage).own).toBeNull();
  });

  it("trusts the first key, and no other until it is accepted", () => {
    const keyring = keyringWithKey();
    const [first, second] = [newKeyPair().public, newKeyPair().public];
    expect(keyring.standing("bob", first)).toBe("new");
    keyring.accept("bob", first);
    expect(keyring.standing("bob", first)).toBe("pinned");
    expect(keyring.standing("bob", second)).toBe("changed");
    expect(keyring.standing("bob", null)).toBe("gone");
    keyring.accept("bob", second, { verified: true });
    expect(keyring.standing("bob", second)).toBe("verified");
    expect(keyring.keysOf("bob")).toEqual([second, first]);
  });
});

describe("a backup", () => {
  it("brings keys and pins back with its passphrase alone", async () => {
    const keyring = keyringWithKey();
    const bob = newKeyPair().public;
    keyring.accept("bob", bob, { verified: true });
    const account = { hub: "https://moot.example", handle: "ada" };
    const file = await pack(keyring, account, "correct horse battery", CHEAP);
    await expect(unpack(file, "another passphrase")).rejects.toThrow("The passphrase is wrong");
    const restored = await unpack(file, "correct horse battery");
    expect(restored.keys.map((pair) => pair.public)).toEqual([keyring.own!.public]);
    expect(restored.pins).toMatchObject([{ handle: "bob", key: bob, verified: true }]);
    await expect(unpack("{}", "x")).rejects.toThrow("not a backup");
    const greedy = JSON.stringify({ ...JSON.parse(file), memory: 2 ** 40 });
    await expect(unpack(greedy, "x")).rejects.toThrow("more memory");
  });

  it("may be one that the bridge has written", async () => {
    // folkmoot.bridge.transfer.pack of the key of thirty-two bytes of 7, at the least cost.
    const restored = await unpack(JSON.stringify(bridgeExport), "correct horse battery");
    expect(restored.handle).toBe("ada");
    expect(fingerprint(restored.keys[0]!.public)).toBe(FINGERPRINT_OF_SEVEN);
    expect(restored.pins).toMatchObject([{ handle: "bob", verified: true, until: null }]);
  });

  it("asks for a passphrase that is hard to guess", () => {
    expect(passphraseFault("short")).toContain("12 characters");
    expect(passphraseFault("aaaaaaaaaaaaaaaa")).toContain("12 characters");
    expect(passphraseFault("correct horse battery")).toBe("");
  });
});
