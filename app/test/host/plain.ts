/** Any MMP v0.1 client: the specification's own lines (section 8.4), with tweetnacl alone. */
import nacl from "tweetnacl";

const encodeBase64 = (bytes: Uint8Array) => btoa(String.fromCharCode(...bytes));
const decodeBase64 = (text: string) => Uint8Array.from(atob(text), (it) => it.charCodeAt(0));

interface Payload {
  ciphertext: string;
  nonce: string;
  sender_public_key: string;
}

export const plain = {
  keyPair() {
    const pair = nacl.box.keyPair();
    return { secret: encodeBase64(pair.secretKey), public: encodeBase64(pair.publicKey) };
  },
  seal(body: string, recipient: string, own: { secret: string; public: string }): Payload {
    const nonce = nacl.randomBytes(24);
    const ciphertext = nacl.box(
      new TextEncoder().encode(body),
      nonce,
      decodeBase64(recipient),
      decodeBase64(own.secret),
    );
    return {
      ciphertext: encodeBase64(ciphertext),
      nonce: encodeBase64(nonce),
      sender_public_key: own.public,
    };
  },
  open(payload: Payload, own: { secret: string }): string | null {
    const plaintext = nacl.box.open(
      decodeBase64(payload.ciphertext),
      decodeBase64(payload.nonce),
      decodeBase64(payload.sender_public_key),
      decodeBase64(own.secret),
    );
    return plaintext && new TextDecoder().decode(plaintext);
  },
};
