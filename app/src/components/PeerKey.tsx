/** A correspondent's key: its fingerprint, whether the two compared it, and a warning when it changes. */
import { fingerprint } from "../crypto/boxes";
import type { Mailbox } from "../mail/mailbox";
import { Button, Notice } from "./parts";

interface Props {
  mailbox: Mailbox;
  handle: string;
  open: boolean;
}

export function PeerKey({ mailbox, handle, open }: Props) {
  const { encryption, keyring } = mailbox;
  const offered = encryption.peers.value.get(handle)?.offered ?? null;
  const standing = encryption.standing(handle);
  const pin = keyring.pinOf(handle);
  const own = keyring.own;
  const accept = (verified: boolean) =>
    void mailbox.attempt(() => encryption.accept(handle, verified));
  if (standing === "changed" || standing === "gone") {
    return (
      <div class="peer-key" role="alert">
        <Notice tone="danger">
          <div class="stack">
            <p>
              {standing === "changed" ? (
                <>
                  <b>The key of @{handle} has changed.</b> They may have a new device, or someone may
                  be posing as them. Ask them in another way, not over this hub, whether the new
                  fingerprint is theirs.
                </>
              ) : (
                <>
                  <b>The hub no longer names a key of @{handle}.</b> Without one, the hub can read what
                  you write. Ask them in another way whether they turned it off.
                </>
              )}
            </p>
            {pin?.key && <Fingerprint label="It was" value={pin.key} />}
            {offered && <Fingerprint label="It is now" value={offered} />}
            <div class="line">
              <Button kind="danger" onClick={() => accept(false)}>
                {standing === "changed" ? "Trust the new key" : "Write without end-to-end"}
              </Button>
              {standing === "changed" && (
                <Button onClick={() => accept(true)}>We compared it: trust it</Button>
              )}
            </div>
          </div>
        </Notice>
      </div>
    );
  }
  if (!open) return null;
  return (
    <div class="peer-key">
      <Notice tone={standing === "verified" ? "good" : "info"}>
        <div class="stack">
          {pin?.key ? (
            <>
              <Fingerprint label={`Key of @${handle}`} value={pin.key} />
              {own && <Fingerprint label="Your key" value={own.public} />}
              {standing === "verified" ? (
                <p>You have compared this key.</p>
              ) : (
                <>
                  <p>
                    Read these to each other in another way, such as on the phone. If both see the
                    same, nobody is in between.
                  </p>
                  <div class="line">
                    <Button onClick={() => accept(true)}>They are the same</Button>
                  </div>
                </>
              )}
            </>
          ) : (
            <p>@{handle} has no key. The hub encrypts your messages, and can read them.</p>
          )}
          {!own && (
            <div class="line">
              <Button onClick={() => mailbox.go({ name: "keys" })}>Set up end-to-end</Button>
            </div>
          )}
        </div>
      </Notice>
    </div>
  );
}

export function Fingerprint({ label, value }: { label: string; value: string }) {
  return (
    <p>
      <span class="small soft">{label}</span>
      <br />
      <span class="mono fingerprint">{fingerprint(value)}</span>
    </p>
  );
}
