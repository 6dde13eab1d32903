/** A view beside the mail: a title, and what belongs to it. */
import type { ComponentChildren } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";

import type { Mailbox } from "../mail/mailbox";
import { Button } from "./parts";

interface Props {
  mailbox: Mailbox;
  title: string;
  children: ComponentChildren;
}

export function Page({ mailbox, title, children }: Props) {
  const heading = useRef<HTMLHeadingElement>(null);
  useLayoutEffect(() => heading.current?.focus(), []);
  return (
    <div class="page">
      <header class="conversation-head">
        <Button
          kind="plain"
          icon="back"
          label="Back to the list"
          onClick={() => mailbox.go({ name: "inbox" })}
        />
        <h2 class="title grow" tabIndex={-1} ref={heading}>
          {title}
        </h2>
      </header>
      <div class="scroll pad" tabIndex={0} role="region" aria-label={title}>
        <div class="page-body">{children}</div>
      </div>
    </div>
  );
}
