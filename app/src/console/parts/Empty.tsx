/** Where there is nothing to show: why, and what to do. */
import type { ComponentChildren } from "preact";

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="nothing">
      <p class="subtitle">{title}</p>
      {children && <div class="soft">{children}</div>}
    </div>
  );
}
