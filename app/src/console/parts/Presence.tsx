/** Shows the hub that the reader is there, before something dangerous: by passkey, or a token once more. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type * as hub from "../../api/schema";
import { Button, Field, Notice } from "../../components/parts";
import { obstacle, presence, why } from "../../web/passkeys";
import { useLoad } from "../data";

export interface Presence {
  /** What the reader has to give or to know, among the fields of what is done. */
  field: ComponentChildren;
  ready: boolean;
  /** The headers that show it, for one call of an operation with all of its arguments. */
  show: (operation: string, args: object) => Promise<Record<string, string>>;
}

export function usePresence(): Presence {
  const { data } = useLoad<hub.PasskeyList>("/v1/me/passkeys");
  const [token, setToken] = useState("");
  if (!isSecureContext) {
    return {
      field: (
        <Notice tone="warning">
          This page came over plain http, so it cannot be done here. Open the hub at its https address, or in a
          browser on its own machine at localhost.
        </Notice>
      ),
      ready: false,
      show: async () => ({}),
    };
  }
  const own = data?.passkeys.some((it) => it.rp_id === location.hostname) && !obstacle();
  if (own) {
    return {
      field: <p class="small soft">You confirm it with your passkey.</p>,
      ready: true,
      show: async (operation, args) => {
        const { ticket, passkey } = await presence(operation, args);
        return { "folkmoot-ticket": ticket, "folkmoot-passkey": passkey };
      },
    };
  }
  return {
    field: data && (
      <Field
        label="Your token, once more"
        secret
        value={token}
        onInput={setToken}
        most={200}
        hint="With a passkey you would not need it."
      />
    ),
    ready: token.trim() !== "",
    show: async () => ({ "folkmoot-confirm": token.trim() }),
  };
}

interface ConfirmingProps {
  verb: string;
  danger?: boolean;
  /** False while what is to be sent is not whole yet. */
  ready?: boolean;
  operation: string;
  /** All arguments of the operation, as they will be sent. */
  args: object;
  /** Sends them, with the headers. */
  work: (headers: Record<string, string>) => Promise<unknown>;
  onClose: () => void;
}

/** The end of a dialog: what shows that the reader is there, what went wrong, and the buttons. */
export function Confirming({ verb, danger = false, ready = true, operation, args, work, onClose }: ConfirmingProps) {
  const presence = usePresence();
  const [error, setError] = useState("");
  const [busy, setBusy] = useState(false);
  const run = async () => {
    setError("");
    setBusy(true);
    try {
      await work(await presence.show(operation, args));
    } catch (failed) {
      setError(why(failed));
    }
    setBusy(false);
  };
  return (
    <>
      {presence.field}
      {error && (
        <Notice tone="danger">
          <p role="alert">{error}</p>
        </Notice>
      )}
      <div class="line">
        <Button kind={danger ? "danger" : "primary"} disabled={busy || !ready || !presence.ready} onClick={() => void run()}>
          {verb}
        </Button>
        <Button disabled={busy} onClick={onClose}>
          Cancel
        </Button>
      </div>
    </>
  );
}
