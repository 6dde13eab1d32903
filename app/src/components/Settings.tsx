/** The reader's profile, privacy and preferences. */
import { useState } from "preact/hooks";

import type { Privacy, Profile } from "../api/types";
import type { Mailbox } from "../mail/mailbox";
import { INBOX_KEYS } from "../navigation/keys";
import { Page } from "./Page";
import { Button, Check, Choice, Field } from "./parts";
import { Part } from "./People";

const PRIVACY = [
  ["public", "Public: anyone finds you and can write"],
  ["contacts_only", "Contacts: anyone finds your name, contacts can write"],
  ["private", "Private: only contacts find you and can write"],
] as const satisfies readonly (readonly [Privacy, string])[];

export function Settings({ mailbox }: { mailbox: Mailbox }) {
  const me = mailbox.me.value;
  if (!me) return null;
  return (
    <Page mailbox={mailbox} title="Settings">
      <ProfilePart mailbox={mailbox} me={me} />
      <Part title="End-to-end encryption">
        <p class="soft">
          {mailbox.encryption.state.value === "on"
            ? "On. What you and others with a key write, the hub cannot read."
            : "Off here. The hub encrypts mail for storage, and can read it."}
        </p>
        <div class="line">
          <Button icon="lock" onClick={() => mailbox.go({ name: "keys" })}>
            Keys and backup
          </Button>
        </div>
      </Part>
      {mailbox.around.openAccount && (
        <Part title="Account">
          <p class="soft">Where you are signed in, your tokens, your data, and the end of the account.</p>
          <div class="line">
            <Button onClick={mailbox.around.openAccount}>Open your account</Button>
          </div>
        </Part>
      )}
      {mailbox.around.informAssistant && (
        <Part title="Your assistant">
          <Check
            checked={mailbox.informs.value}
            onChange={(checked) => mailbox.setInforms(checked)}
          >
            Tell my assistant what arrives while the inbox is open. End-to-end encrypted text is never
            included.
          </Check>
        </Part>
      )}
      <Part title="Keyboard">
        <dl class="shortcuts">
          {INBOX_KEYS.map(([keys, what]) => (
            <div key={keys}>
              <dt>
                <kbd>{keys}</kbd>
              </dt>
              <dd>{what}</dd>
            </div>
          ))}
        </dl>
      </Part>
    </Page>
  );
}

export function ProfilePart({ mailbox, me }: { mailbox: Mailbox; me: Profile }) {
  const [name, setName] = useState(me.display_name);
  const [bio, setBio] = useState(me.bio);
  const [status, setStatus] = useState(me.status);
  const [privacy, setPrivacy] = useState<Privacy>(me.privacy);
  const save = () =>
    mailbox.attempt(async () => {
      const profile = { display_name: name.trim() || me.handle, bio, status, privacy };
      mailbox.me.value = { ...me, ...(await mailbox.around.call("msg/set_profile", profile)) };
      mailbox.say("Your profile is saved.");
    });
  return (
    <Part title={`Profile of @${me.handle}`}>
      <Field label="Name" value={name} onInput={setName} most={100} />
      <Field label="Status" value={status} onInput={setStatus} most={100} />
      <Field label="About you" rows={2} value={bio} onInput={setBio} most={500} />
      <Choice label="Privacy" value={privacy} options={PRIVACY} onChange={setPrivacy} />
      <div class="line">
        <Button kind="primary" onClick={() => void save()}>
          Save
        </Button>
      </div>
    </Part>
  );
}
