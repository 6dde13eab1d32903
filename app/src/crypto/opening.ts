/** Opens messages, and says of each how it was protected: by what was seen, not by what was told. */
import type { Message } from "../api/types";
import { fingerprint, unseal } from "./boxes";
import type { Keyring } from "./keyring";
import { misplaced, readLetter } from "./letters";

export type Protection =
  /** Opened here, from a key that is known to be the other side's. */
  | "end_to_end"
  /** The hub handed over the text, and could read it. */
  | "server"
  /** Said to be end-to-end, and opened before it came here: by a bridge, or the hub itself. */
  | "opened_elsewhere"
  /** Sealed, and not to be opened here. */
  | "closed";

export interface Opened {
  body: string | null;
  protection: Protection;
  /** Whether the two people have compared the key. */
  verified: boolean;
  /** What else is to be said, or why there is no text. */
  note: string;
}

export function open(message: Message, me: string, keyring: Keyring): Opened {
  if (message.encryption_mode !== "e2e") {
    return { body: message.body, protection: "server", verified: false, note: message.error ?? "" };
  }
  const payload = message.encrypted_payload;
  if (!payload) {
    const note = "It was decrypted before it reached this page: by a bridge, or by the hub.";
    return message.body === null
      ? closed(message.error ?? "The hub gave no text.")
      : { body: message.body, protection: "opened_elsewhere", verified: false, note };
  }
  const outgoing = message.from_handle === me;
  const peer = outgoing ? message.to_handle : message.from_handle;
  if (keyring.all.length === 0) {
    return closed("Your key is not here. Restore it in Settings to read this message.");
  }
  const known = keyring.keysOf(peer);
  if (!outgoing) {
    if (keyring.ownKey(payload.sender_public_key) || keyring.wasSent(payload.nonce)) {
      return closed(`These are your own words, shown as if from @${peer}.`);
    }
    if (!known.includes(payload.sender_public_key)) {
      return closed(
        `It was encrypted with the key ${fingerprint(payload.sender_public_key)}, which is not one ` +
          `you trust as @${peer}’s.`,
      );
    }
  } else if (!keyring.ownKey(payload.sender_public_key)) {
    return closed("It was encrypted on another device, with a key that is not here.");
  }
  const others = outgoing ? known : [payload.sender_public_key];
  for (const own of keyring.all) {
    for (const key of others) {
      const content = unseal(own, key, payload);
      if (content !== null) return read(content, message, keyring, peer, key);
    }
  }
  return closed("It does not open with your key: it was encrypted for another one, or changed.");
}

function read(content: string, message: Message, keyring: Keyring, peer: string, key: string): Opened {
  try {
    const found = readLetter(content);
    if (typeof found !== "string") {
      const why = misplaced(found, message);
      if (why) return closed(why);
    }
    const pin = keyring.pinOf(peer);
    return {
      body: typeof found === "string" ? found : found.body,
      protection: "end_to_end",
      verified: pin?.key === key && pin.verified,
      note: pin && pin.key !== key ? `It was encrypted with a key that @${peer} had before.` : "",
    };
  } catch (error) {
    return closed(error instanceof Error ? error.message : "It is not text.");
  }
}

function closed(note: string): Opened {
  return { body: null, protection: "closed", verified: false, note };
}
