/** Dialogs, and buttons that ask in one before something happens. */
import type { ComponentChildren } from "preact";
import { useId, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Button, type IconName } from "./parts";

interface DialogProps {
  /** Its name for those who do not see it, where no element has the id `labelledBy`. */
  label?: string;
  labelledBy?: string;
  /** A heading that names it. */
  title?: string;
  onClose: () => void;
  children: ComponentChildren;
}

/** Above everything else, until it is closed; whoever opened it then has the focus again. */
export function Dialog({ label, labelledBy, title, onClose, children }: DialogProps) {
  const id = useId();
  const dialog = useRef<HTMLDialogElement>(null);
  // Before the next key: one pressed while nothing has the focus would be lost.
  useLayoutEffect(() => {
    const shown = dialog.current!;
    shown.showModal();
    shown.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
    return () => shown.close();
  }, []);
  return (
    <dialog
      class="dialog"
      aria-label={label}
      aria-labelledby={title ? id : labelledBy}
      ref={dialog}
      onClose={onClose}
      onClick={(event) => event.target === dialog.current && onClose()}
    >
      <div class="dialog-body">
        {title && (
          <h2 id={id} class="subtitle">
            {title}
          </h2>
        )}
        {children}
      </div>
    </dialog>
  );
}

interface ConfirmProps {
  label: string;
  /** What will happen. */
  question: string;
  /** The word on the button that does it, if it is not the label. */
  verb?: string;
  danger?: boolean;
  disabled?: boolean;
  icon?: IconName;
  /** Show the icon alone. */
  iconOnly?: boolean;
  /** Fields that belong to the question. */
  children?: ComponentChildren;
  /** Whether it can be done as the fields are. */
  ready?: boolean;
  /** Answers false to keep the question open, as after a failure. */
  onConfirm: () => unknown;
}

export function Confirm(props: ConfirmProps) {
  const { label, icon, iconOnly, disabled = false } = props;
  const [asking, setAsking] = useState(false);
  const shown = { ...(icon ? { icon } : {}), disabled, onClick: () => setAsking(true) };
  return (
    <>
      {iconOnly ? <Button {...shown} kind="plain" label={label} /> : <Button {...shown}>{label}</Button>}
      {asking && <Question {...props} onClose={() => setAsking(false)} />}
    </>
  );
}

function Question(props: ConfirmProps & { onClose: () => void }) {
  const { label, question, verb = label.replace(/…$/, ""), danger = true, ready = true, onClose } = props;
  const [busy, setBusy] = useState(false);
  const id = useId();
  const confirm = async () => {
    setBusy(true);
    const done = await props.onConfirm();
    setBusy(false);
    if (done !== false) onClose();
  };
  return (
    <Dialog labelledBy={id} onClose={onClose}>
      <p id={id}>{question}</p>
      {props.children}
      <div class="line buttons">
        <Button disabled={busy} onClick={onClose}>
          Cancel
        </Button>
        <Button kind={danger ? "danger" : "primary"} disabled={busy || !ready} onClick={() => void confirm()}>
          {verb}
        </Button>
      </div>
    </Dialog>
  );
}
