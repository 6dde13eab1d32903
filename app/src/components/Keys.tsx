/** The reader's own key: making it, keeping it safe, taking it elsewhere. */
import { useState } from "preact/hooks";

import { sentence } from "../api/call";
import { passphraseFault } from "../crypto/backup";
import type { KeyState } from "../mail/encryption";
import type { Mailbox } from "../mail/mailbox";
import { Page } from "./Page";
import { Confirm } from "./Dialog";
import { Button, CopyText, Field, Notice } from "./parts";
import { Fingerprint } from "./PeerKey";
import { Part } from "./People";

const WORDS: Record<KeyState, string> = {
  off: "With a key of your own, what you and others with a key write can be read by you two alone. Without one, the hub encrypts your mail for storage, and can read it.",
  on: "On. The hub names this key as yours.",
  elsewhere:
    "Your key is on another device. Restore its backup here to read end-to-end mail on this one too.",
  replaced:
    "The hub names another key as yours than the one that is here. Restore the backup of that key, or publish this one in its place.",
  unpublished: "There is a key here, but the hub names none as yours. Publish it to use it.",
};

export function Keys({ mailbox }: { mailbox: Mailbox }) {
  const { encryption, keyring } = mailbox;
  const state = encryption.state.value;
  const { lasting } = keyring;
  return (
    <Page mailbox={mailbox} title="End-to-end encryption">
      <Part title="Your key">
        <p>{WORDS[state]}</p>
        {keyring.own && <Fingerprint label="Fingerprint" value={keyring.own.public} />}
        {!lasting && (
          <Notice tone="warning">
            This client does not let the inbox keep anything, so a key is lost when the inbox is
            closed. Make your key in another client, in a browser or with the bridge, and restore its
            backup here each time.
          </Notice>
        )}
        {lasting && state === "on" && (
          <Notice tone="warning">
            The key is kept in this browser alone. If its data is cleared and you have no backup, your
            end-to-end mail is lost.
          </Notice>
        )}
        <div class="line">
          {state === "off" && lasting && (
            <Button kind="primary" onClick={() => void mailbox.attempt(() => encryption.makeKey())}>
              Turn on
            </Button>
          )}
          {state === "elsewhere" && lasting && (
            <Confirm
              label="Make a new key"
              question="Mail to the old key stays unreadable here, and others are warned that your key changed."
              onConfirm={() => void mailbox.attempt(() => encryption.makeKey())}
            />
          )}
          {state === "unpublished" && (
            <Button kind="primary" onClick={() => void mailbox.attempt(() => encryption.publish())}>
              Publish
            </Button>
          )}
          {state === "replaced" && (
            <Confirm
              label="Publish this key"
              question="The other device can then no longer read new mail, and others are warned."
              onConfirm={() => void mailbox.attempt(() => encryption.publish())}
            />
          )}
        </div>
      </Part>
      {keyring.own && <Backup mailbox={mailbox} />}
      <Restore mailbox={mailbox} />
    </Page>
  );
}

function Backup({ mailbox }: { mailbox: Mailbox }) {
  const [passphrase, setPassphrase] = useState("");
  const [file, setFile] = useState("");
  const [error, setError] = useState("");
  const [share, setShare] = useState(-1);
  const { saveFile } = mailbox.around;
  const name = `folkmoot-key-${mailbox.me.value?.handle ?? "mine"}.json`;
  const make = async () => {
    const fault = passphraseFault(passphrase);
    setError(fault);
    if (fault || share >= 0) return;
    setShare(0);
    try {
      setFile(await mailbox.encryption.backup(passphrase, setShare));
      setPassphrase("");
    } catch (failure) {
      setError(sentence(failure));
    }
    setShare(-1);
  };
  return (
    <Part
      title="Back up"
      hint="The backup is encrypted with a passphrase that only you know. The bridge reads it too."
    >
      <Field
        label="New passphrase"
        secret
        autoComplete="new-password"
        value={passphrase}
        onInput={setPassphrase}
        onEnter={() => void make()}
        error={error}
        hint="At least 12 characters. Without it the backup cannot be opened."
      />
      <div class="line">
        <Button disabled={share >= 0} onClick={() => void make()}>
          {share >= 0 ? `Encrypting… ${Math.round(share * 100)} %` : "Make a backup"}
        </Button>
      </div>
      {file && (
        <>
          <CopyText label="Backup" text={file} rows={5} />
          <p class="small soft">Save this text in a file. It is safe to store: it is encrypted.</p>
          {saveFile && (
            <div class="line">
              <Button onClick={() => void mailbox.attempt(() => saveFile(name, file))}>
                Save {name}
              </Button>
            </div>
          )}
        </>
      )}
    </Part>
  );
}

function Restore({ mailbox }: { mailbox: Mailbox }) {
  const [file, setFile] = useState("");
  const [passphrase, setPassphrase] = useState("");
  const [error, setError] = useState("");
  const [share, setShare] = useState(-1);
  const restore = async () => {
    if (share >= 0 || !file.trim()) return;
    setShare(0);
    setError("");
    try {
      const restored = await mailbox.encryption.restore(file, passphrase, setShare);
      setFile("");
      setPassphrase("");
      mailbox.say(`The key of @${restored.handle} is here.`);
    } catch (failure) {
      setError(sentence(failure));
    }
    setShare(-1);
  };
  return (
    <Part title="Restore" hint="A backup made here, or by ‘folkmoot bridge key export’.">
      <Field label="Backup" rows={4} value={file} onInput={setFile} placeholder="Paste the file" />
      <Field
        label="Its passphrase"
        secret
        autoComplete="current-password"
        value={passphrase}
        onInput={setPassphrase}
        onEnter={() => void restore()}
        error={error}
      />
      <div class="line">
        <Button disabled={share >= 0 || !file.trim()} onClick={() => void restore()}>
          {share >= 0 ? `Decrypting… ${Math.round(share * 100)} %` : "Restore"}
        </Button>
      </div>
    </Part>
  );
}
