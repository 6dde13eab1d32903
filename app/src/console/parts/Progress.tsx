/** How far something is, or how much of a limit is used; a maximum of 0 is none. */
import { useId } from "preact/hooks";

interface Props {
  label: string;
  /** Undefined while nobody knows how far it is. */
  value?: number | undefined;
  max?: number;
  /** The same in words, with units. */
  text?: string;
}

export function Progress({ label, value, max = 1, text }: Props) {
  const id = useId();
  const share = value === undefined || !max ? undefined : Math.min(1, value / max);
  return (
    <div class={`progress${share !== undefined && share >= 0.9 ? " full" : ""}`}>
      <div class="line">
        <label for={id} class="grow">
          {label}
        </label>
        {text && <span class="soft small">{text}</span>}
      </div>
      <progress id={id} {...(share === undefined ? {} : { value: share, max: 1 })} aria-valuetext={text} />
    </div>
  );
}
