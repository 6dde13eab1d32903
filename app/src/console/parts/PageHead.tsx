/** The head of a page: its heading, which takes the focus on arrival, and what can be done there. */
import type { ComponentChildren } from "preact";

interface Props {
  title: ComponentChildren;
  /** A line below the heading. */
  lead?: ComponentChildren;
  /** Buttons and links beside the heading. */
  children?: ComponentChildren;
}

export function PageHead({ title, lead, children }: Props) {
  return (
    <header class="page-head">
      <div class="grow">
        <h1 class="title" id="page-title" tabIndex={-1}>
          {title}
        </h1>
        {lead && <p class="soft">{lead}</p>}
      </div>
      {children && <div class="line">{children}</div>}
    </header>
  );
}

/** A part of a page under a heading of its own. */
export function Section({ title, hint, children, beside }: {
  title: string;
  hint?: ComponentChildren;
  children: ComponentChildren;
  beside?: ComponentChildren;
}) {
  return (
    <section class="section" aria-label={title}>
      <div class="line">
        <h2 class="subtitle grow">{title}</h2>
        {beside}
      </div>
      {hint && <p class="soft small">{hint}</p>}
      {children}
    </section>
  );
}
