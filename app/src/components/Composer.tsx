/** Writing: text, priority, and whether the hub may read it. */
import { useEffect, useRef, useState } from "preact/hooks";

import { Refused, sentence } from "../api/call";
import type { Message, Priority } from "../api/types";
import { newId } from "../crypto/boxes";
import type { Mailbox } from "../mail/mailbox";
import { Button, Check, Choice, Field } from "./parts";
import { ProtectionMark } from "./Protection";

const PRIORITIES = [
  ["normal", "Normal"],
  ["urgent", "Urgent"],
  ["low", "Low"],
  ["fyi", "For information"],
] as const satisfies readonly (readonly [Priority, string])[];

interface Props {
  mailbox: Mailbox;
  to: string;
  answers?: Message | null;
  onSent: (threadId: string) => void;
  onText?: (element: HTMLTextAreaElement | null) => void;
}

export function Composer({ mailbox, to, answers, onSent, onText }: Props) {
  const draft = mailbox.drafts.get(to);
  const [text, setText] = useState(draft?.text ?? "");
  const [priority, setPriority] = useState<Priority>("normal");
  const [chosen, setChosen] = useState<boolean | null>(null);
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const key = useRef(draft?.key ?? newId());
  const tried = useRef("");
  const { encryption } = mailbox;
  const obstacle = encryption.obstacle(to);
  const standing = encryption.standing(to);
  // Who had a key is not written to readably without a word from the reader.
  const lost = standing === "changed" || standing === "gone";
  const sealed = !obstacle && (chosen ?? true);
  const refused = lost && chosen !== false && encryption.state.value === "on";

  useEffect(() => {
    mailbox.drafts.set(to, { text, key: key.current });
  }, [text, to]);

  const write = (next: string) => {
    // Another text is another message, even if the first may have been sent.
    if (tried.current && next !== tried.current) {
      tried.current = "";
      key.current = newId();
    }
    setText(next);
  };

  const send = async () => {
    if (busy || !text.trim() || !to || refused) return;
    setBusy(true);
    setError("");
    tried.current = text;
    try {
      const outgoing = { to, body: text, priority, sealed, answers: answers?.id, key: key.current };
      const sent = await encryption.send(outgoing);
      key.current = newId();
      tried.current = "";
      mailbox.drafts.delete(to);
      setText("");
      setPriority("normal");
      mailbox.say("Sent.");
      onSent(sent.thread_id);
    } catch (failure) {
      const again = failure instanceof Refused ? "" : " Your text is still here: send it again.";
      setError(sentence(failure) + again);
    }
    setBusy(false);
  };

  return (
    <div
      class={`composer${refused ? " open" : ""}`}
      onKeyDown={(event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
          event.preventDefault();
          void send();
        }
      }}
    >
      <Field
        label="Message"
        hideLabel
        rows={1}
        value={text}
        onInput={write}
        placeholder={to ? `Write to @${to}` : "Write a message"}
        error={error}
        inputRef={(element) => onText?.(element as HTMLTextAreaElement | null)}
      />
      <div class="line composer-tools">
        <div class="line grow">
          {refused ? (
            <Check checked={false} onChange={() => setChosen(false)}>
              <span class="small">Send it so that the hub can read it</span>
            </Check>
          ) : obstacle ? (
            <>
              <ProtectionMark protection="server" />
              {to && <span class="small soft">{obstacle}</span>}
            </>
          ) : (
            <Check checked={sealed} onChange={setChosen}>
              <ProtectionMark
                protection={sealed ? "end_to_end" : "server"}
                verified={sealed && standing === "verified"}
              />
            </Check>
          )}
        </div>
        <Choice label="Priority" hideLabel value={priority} options={PRIORITIES} onChange={setPriority} />
      </div>
      <Button kind="primary" disabled={busy || !text.trim() || !to || refused} onClick={() => void send()}>
        {busy ? "Sending…" : "Send"}
      </Button>
    </div>
  );
}
