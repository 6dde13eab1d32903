/** A button that asks once more before something happens, with what else has to be said for it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef, useState } from "preact/hooks";

import { Button } from "../../components/parts";

interface Props {
  label: string;
  /** What will happen. */
  question: string;
  /** The word on the button that does it, if it is not the label. */
  verb?: string;
  danger?: boolean;
  disabled?: boolean;
  /** Fields that belong to the question. */
  children?: ComponentChildren;
  /** Whether it can be done as the fields are. */
  ready?: boolean;
  /** Answers false to keep the question open, as after a failure. */
  onConfirm: () => unknown;
}

export function Confirm(props: Props) {
  const { label, question, verb = label, danger = true, ready = true } = props;
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const group = useRef<HTMLDivElement>(null);
  const was = useRef(false);
  const button = useRef<HTMLSpanElement>(null);
  // Before the next key: one pressed while nothing has the focus would be lost.
  useLayoutEffect(() => {
    if (asking) group.current?.querySelector<HTMLElement>("input, textarea, select, button")?.focus();
    else if (was.current) button.current?.querySelector("button")?.focus();
    was.current = asking;
  }, [asking]);
  if (!asking) {
    return (
      <span ref={button}>
        <Button disabled={props.disabled ?? false} onClick={() => setAsking(true)}>
          {label}
        </Button>
      </span>
    );
  }
  const confirm = async () => {
    setBusy(true);
    const done = await props.onConfirm();
    setBusy(false);
    if (done !== false) setAsking(false);
  };
  return (
    <div
      class="question"
      role="group"
      aria-label={question}
      ref={group}
      onKeyDown={(event) => {
        if (event.key === "Escape") setAsking(false);
      }}
    >
      <p>{question}</p>
      {props.children}
      <div class="line">
        <Button
          kind={danger ? "danger" : "primary"}
          disabled={busy || !ready}
          onClick={() => void confirm()}
        >
          {verb}
        </Button>
        <Button disabled={busy} onClick={() => setAsking(false)}>
          Cancel
        </Button>
      </div>
    </div>
  );
}
