/** What could not be read, and a way to try again. */
import type { ComponentChildren } from "preact";

import { Button, Notice } from "../../components/parts";
import type { Load } from "../data";

interface Props {
  /** The sentence; "" shows nothing. */
  error: string;
  onRetry?: (() => unknown) | undefined;
}

export function Problem({ error, onRetry }: Props) {
  if (!error) return null;
  return (
    <Notice tone="danger">
      <div class="line" role="alert">
        <span class="grow">{error}</span>
        {onRetry && <Button onClick={() => void onRetry()}>Try again</Button>}
      </div>
    </Notice>
  );
}

/** What was read, once it is there; before that, that it is being read; and what went wrong. */
export function Loaded<T>({ load, children }: {
  load: Pick<Load<T>, "data" | "error" | "busy" | "reload">;
  children: (data: T) => ComponentChildren;
}) {
  return (
    <>
      <Problem error={load.error} onRetry={load.reload} />
      {load.data !== null && children(load.data)}
      {load.data === null && !load.error && (
        <p class="soft" role="status" aria-busy="true">
          Loading…
        </p>
      )}
    </>
  );
}
