/** Small parts that every view uses. Nothing here is a form: a host's frame may forbid forms. */
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef, useState } from "preact/hooks";

const PATHS = {
  back: "M15 5l-7 7 7 7",
  write: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  people: "M9 11a3.5 3.5 0 100-7 3.5 3.5 0 000 7zM2.5 20c.5-4 3-6 6.5-6s6 2 6.5 6M16 4.5a3.5 3.5 0 010 6M18 14.5c2 .7 3.2 2.5 3.5 5.5",
  settings: "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.8v4.4M9 14.8v4.4",
  star: "M12 4l2.4 5 5.6.7-4.1 3.8 1.1 5.5-5-2.8-5 2.8 1.1-5.5L4 9.7 9.6 9z",
  bell: "M6 16v-5a6 6 0 0112 0v5l1.5 2h-15zM10 20.5h4",
  mute: "M6 16V11a6 6 0 0110.5-4M18 11v5l1.5 2h-12M10 20.5h4M4 4l16 16",
  archive: "M4 5h16v4H4zM5.5 9v10h13V9M10 13h4",
  search: "M10.5 17a6.5 6.5 0 100-13 6.5 6.5 0 000 13zM15.5 15.5L20 20",
  trash: "M5 7h14M9 7V4.5h6V7M7 7l1 12.5h8L17 7",
  lock: "M6.5 11h11v9h-11zM8.5 11V8a3.5 3.5 0 017 0v3",
  unlock: "M6.5 11h11v9h-11zM8.5 11V8a3.5 3.5 0 016.7-1.5",
  warning: "M12 4l9 16H3zM12 10v4.5M12 17.3v.2",
  reply: "M9 7l-5 5 5 5M4 12h9c4 0 6.5 2 7 6",
  spark: "M12 3.5l1.8 5.7 5.7 1.8-5.7 1.8L12 18.5l-1.8-5.7L4.5 11l5.7-1.8zM19 17v4M17 19h4",
  mail: "M4 6h16v12H4zM4 7l8 6.5L20 7",
  close: "M6 6l12 12M18 6L6 18",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, filled = false }: { name: IconName; filled?: boolean }) {
  return (
    <svg viewBox="0 0 24 24" width="18" height="18" aria-hidden="true" focusable="false">
      <path
        d={PATHS[name]}
        fill={filled ? "currentColor" : "none"}
        stroke="currentColor"
        stroke-width="1.7"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  );
}

/** The meeting seen from above: stones in a ring, one of them speaking, a fire in the middle. */
export function Ring({ size = 28, stones = 9, scale = 10 }) {
  return (
    <svg class="ring" viewBox="0 0 120 120" width={size} height={size} aria-hidden="true">
      <circle class="glow" cx="60" cy="60" r={scale * 3} />
      <circle class="fire" cx="60" cy="60" r={scale * 1.1} />
      {Array.from({ length: stones }, (_, place) => (
        <ellipse
          key={place}
          class={place === Math.floor(stones / 6) ? "speaker" : "stone"}
          cx="60"
          cy={60 - (45 + 1.6 * Math.cos(place * 1.7))}
          rx={scale * (1 + 0.2 * Math.sin(place * 2.4))}
          ry={scale * (0.72 + 0.1 * Math.cos(place * 3.1))}
          transform={`rotate(${(360 * place) / stones} 60 60)`}
        />
      ))}
    </svg>
  );
}

interface ButtonProps {
  children?: ComponentChildren;
  kind?: "primary" | "danger" | "plain";
  icon?: IconName;
  filled?: boolean;
  /** The name of a button that shows an icon alone, and its tooltip. */
  label?: string;
  pressed?: boolean;
  current?: boolean;
  disabled?: boolean;
  expanded?: boolean;
  onClick: () => void;
}

export function Button(props: ButtonProps) {
  const { children, kind, icon, filled, label, pressed, current, disabled, expanded } = props;
  const classes = ["button", kind, children === undefined ? "icon" : ""].filter(Boolean);
  return (
    <button
      type="button"
      class={classes.join(" ")}
      aria-label={label}
      title={label}
      aria-pressed={pressed}
      aria-current={current ? "page" : undefined}
      aria-expanded={expanded}
      disabled={disabled}
      onClick={props.onClick}
    >
      {icon && <Icon name={icon} filled={filled ?? false} />}
      {children}
    </button>
  );
}

interface FieldProps {
  label: string;
  value: string;
  onInput: (value: string) => void;
  onEnter?: () => void;
  hint?: ComponentChildren;
  error?: string | undefined;
  secret?: boolean;
  rows?: number;
  most?: number;
  placeholder?: string;
  autoComplete?: string;
  hideLabel?: boolean;
  inputRef?: (element: HTMLInputElement | HTMLTextAreaElement | null) => void;
}

export function Field(props: FieldProps) {
  const id = useId();
  const described = [props.hint ? `${id}-hint` : "", props.error ? `${id}-error` : ""];
  const shared = {
    id,
    class: "input",
    value: props.value,
    placeholder: props.placeholder,
    maxLength: props.most,
    autocomplete: props.autoComplete ?? "off",
    spellcheck: props.rows !== undefined,
    "aria-describedby": described.join(" ").trim() || undefined,
    "aria-invalid": props.error ? true : undefined,
    onInput: (event: { currentTarget: HTMLInputElement | HTMLTextAreaElement }) =>
      props.onInput(event.currentTarget.value),
  };
  return (
    <div class="field">
      <label for={id} class={props.hideLabel ? "hidden" : ""}>
        {props.label}
      </label>
      {props.rows !== undefined ? (
        <textarea {...shared} rows={props.rows} dir="auto" ref={props.inputRef ?? null} />
      ) : (
        <input
          {...shared}
          {...(props.secret ? { type: "password" } : { type: "text" })}
          autocapitalize="none"
          ref={props.inputRef ?? null}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.isComposing) props.onEnter?.();
          }}
        />
      )}
      {props.hint && (
        <p id={`${id}-hint`} class="small soft">
          {props.hint}
        </p>
      )}
      {props.error && (
        <p id={`${id}-error`} class="small error" role="alert">
          {props.error}
        </p>
      )}
    </div>
  );
}

interface ChoiceProps<Value extends string> {
  label: string;
  value: Value;
  options: readonly (readonly [Value, string])[];
  onChange: (value: Value) => void;
  hideLabel?: boolean;
}

export function Choice<Value extends string>(props: ChoiceProps<Value>) {
  const id = useId();
  return (
    <div class="field">
      <label for={id} class={props.hideLabel ? "hidden" : ""}>
        {props.label}
      </label>
      <select
        id={id}
        class="input"
        value={props.value}
        onChange={(event) => props.onChange(event.currentTarget.value as Value)}
      >
        {props.options.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </div>
  );
}

interface CheckProps {
  children: ComponentChildren;
  checked: boolean;
  disabled?: boolean;
  onChange: (checked: boolean) => void;
}

export function Check({ children, checked, disabled, onChange }: CheckProps) {
  return (
    <label class="check">
      <input
        type="checkbox"
        checked={checked}
        disabled={disabled}
        onChange={(event) => onChange(event.currentTarget.checked)}
      />
      <span>{children}</span>
    </label>
  );
}

type Tone = "info" | "good" | "warning" | "danger";

export function Notice({ tone = "info", children }: { tone?: Tone; children: ComponentChildren }) {
  return <div class={`notice ${tone}`}>{children}</div>;
}

const TOAST_MS = 6_000;

/** What happened last. It goes by itself; an error, and what is pointed at, stays until it is closed. */
export function Toast({ text, bad, onClose }: { text: string; bad: boolean; onClose: () => void }) {
  const [kept, setKept] = useState(false);
  useEffect(() => {
    if (!text) setKept(false);
    if (!text || bad || kept) return;
    const timer = setTimeout(onClose, TOAST_MS);
    return () => clearTimeout(timer);
  }, [text, bad, kept]);
  return (
    <p
      class={text ? `notice toast ${bad ? "danger" : "good"}` : "hidden"}
      role={bad ? "alert" : "status"}
      onMouseEnter={() => setKept(true)}
      onMouseLeave={() => setKept(false)}
      onFocusCapture={() => setKept(true)}
      onBlurCapture={() => setKept(false)}
    >
      {text}
      {text && <Button kind="plain" icon="close" label="Close" onClick={onClose} />}
    </p>
  );
}

/** Where a browser can say so beforehand: trying in vain is an error on its console. */
function mayCopy(): boolean {
  const policy = (document as { featurePolicy?: { allowsFeature(name: string): boolean } }).featurePolicy;
  return policy?.allowsFeature("clipboard-write") ?? true;
}

/** An `inputRef` for a field that is written in at once; only the same function is called but once. */
export const focused = (element: HTMLElement | null) => element?.focus();

/** Text to take elsewhere. Where the clipboard is out of reach the text is selected instead. */
export function CopyText({ label, text, rows }: { label: string; text: string; rows?: number }) {
  const id = useId();
  const [said, setSaid] = useState("");
  const field = useRef<HTMLInputElement & HTMLTextAreaElement>(null);
  const copy = async () => {
    try {
      if (!mayCopy()) throw new Error("The frame may not use the clipboard.");
      await navigator.clipboard.writeText(text);
      setSaid("Copied.");
    } catch {
      field.current?.focus();
      field.current?.select();
      setSaid("Selected. Press Ctrl+C or ⌘C to copy.");
    }
  };
  const shared = { id, class: "input mono", readOnly: true, value: text, spellcheck: false };
  return (
    <div class="field">
      <label for={id}>{label}</label>
      <div class="copy">
        {rows ? (
          <textarea {...shared} rows={rows} ref={field} />
        ) : (
          <input {...shared} type="text" ref={field} />
        )}
        <button type="button" class="button" aria-label={`Copy: ${label}`} onClick={() => void copy()}>
          Copy
        </button>
      </div>
      <p class="small soft" role="status">
        {said}
      </p>
    </div>
  );
}
