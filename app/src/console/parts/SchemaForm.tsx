/** A form made of a tool's JSON schema, with the same as JSON beside it. */
import type { ComponentChildren } from "preact";
import { useId, useState } from "preact/hooks";

import { Button, Check } from "../../components/parts";
import { oneLine } from "../../text/names";
import {
  described,
  initial,
  isMembers,
  type Json,
  member,
  pointer,
  type Problem,
  type Schema,
  type Shape,
  shapeOf,
  UNREADABLE,
  withMember,
} from "./schema";

export { initial, type Json, type Problem, problemsOf, read, type Schema } from "./schema";

export interface SchemaFormProps {
  /** From `read(tool.inputSchema)`. */
  schema: Schema;
  /** From `initial(schema)` at first. */
  value: Json | undefined;
  onChange: (value: Json | undefined) => void;
  /** From `problemsOf(schema, value)`, which must be empty to send; shown once someone tried to. */
  problems?: readonly Problem[];
}

export function SchemaForm({ schema, value, onChange, problems = [] }: SchemaFormProps) {
  const shape = shapeOf(schema);
  const [typed, setTyped] = useState(shape.is !== "fields");
  return (
    <div class="schema-form stack">
      {shape.is === "fields" && (
        <div class="line" role="group" aria-label="How to fill it in">
          <Button pressed={!typed} onClick={() => setTyped(false)} disabled={typed && (!isMembers(value) || value === UNREADABLE)}>
            Form
          </Button>
          <Button pressed={typed} onClick={() => setTyped(true)}>
            JSON
          </Button>
        </div>
      )}
      {typed || shape.is !== "fields" ? (
        <JsonField label="Arguments as JSON" value={value} rows={8} onChange={onChange} problem="" />
      ) : shape.fields.length ? (
        <Members shape={shape} value={value} at="" problems={problems} onChange={onChange} />
      ) : (
        <p class="soft">It takes no arguments.</p>
      )}
    </div>
  );
}

interface MembersProps {
  shape: Extract<Shape, { is: "fields" }>;
  value: Json | undefined;
  at: string;
  problems: readonly Problem[];
  onChange: (value: Json) => void;
}

function Members({ shape, value, at, problems, onChange }: MembersProps) {
  return (
    <>
      {shape.fields.map((field) => (
        <Value
          key={field.name}
          name={field.name}
          schema={field.schema}
          required={field.required}
          value={member(value, field.name)}
          at={`${at}/${pointer(field.name)}`}
          problems={problems}
          onChange={(its) => onChange(withMember(value, field.name, its))}
        />
      ))}
    </>
  );
}

interface ValueProps {
  name: string;
  schema: Schema;
  required: boolean;
  value: Json | undefined;
  at: string;
  problems: readonly Problem[];
  onChange: (value: Json | undefined) => void;
}

function Value(props: ValueProps) {
  const { name, schema, required, value, at, problems, onChange } = props;
  const shape = shapeOf(schema, name);
  const { title, text } = described(schema);
  const label = oneLine(title && title !== name ? `${title} (${name})` : name, 120);
  const problem = problems.find((each) => each.at === at)?.says ?? "";
  const shared = { label, hint: oneLine(text, 600), problem, required };
  switch (shape.is) {
    case "fields":
      return (
        <fieldset class="schema-group stack">
          <legend>{label}</legend>
          {text && <p class="small soft">{oneLine(text, 600)}</p>}
          <Members shape={shape} value={value} at={at} problems={problems} onChange={onChange} />
        </fieldset>
      );
    case "list":
      return <List {...props} shape={shape} label={label} hint={shared.hint} problem={problem} />;
    case "boolean":
      if (required || typeof value === "boolean") {
        return (
          <div class="field">
            <Check checked={value === true} onChange={onChange}>
              <strong>{label}</strong>
              {text && <span class="small soft"> {oneLine(text, 600)}</span>}
            </Check>
          </div>
        );
      }
      return <Options {...shared} options={[true, false]} value={value} onChange={onChange} />;
    case "choice":
      return <Options {...shared} options={shape.options} value={value} onChange={onChange} />;
    case "number":
      return <NumberField {...shared} whole={shape.whole} value={value} onChange={onChange} />;
    case "text":
      return (
        <TextField
          {...shared}
          long={shape.long}
          secret={shape.format === "password"}
          value={typeof value === "string" ? value : ""}
          onChange={(said) => onChange(said === "" ? undefined : said)}
        />
      );
    case "json":
      return <JsonField {...shared} value={value} rows={3} onChange={onChange} optional={!required} />;
  }
}

interface Shared {
  label: string;
  hint?: string;
  problem: string;
  required?: boolean;
}

/** A labelled control, with what it is for and what is wrong with it. */
function Control(props: Shared & { children: (shared: { id: string } & Record<string, unknown>) => ComponentChildren }) {
  const id = useId();
  const { label, hint, problem, required } = props;
  const described = [hint ? `${id}-hint` : "", problem ? `${id}-error` : ""].join(" ").trim();
  return (
    <div class="field">
      <label for={id}>
        {label}
        {required === false && <span class="soft"> (optional)</span>}
      </label>
      {props.children({
        id,
        class: "input",
        "aria-describedby": described || undefined,
        "aria-invalid": problem ? true : undefined,
        "aria-required": required ? true : undefined,
      })}
      {hint && (
        <p id={`${id}-hint`} class="small soft">
          {hint}
        </p>
      )}
      {problem && (
        <p id={`${id}-error`} class="small error" role="alert">
          {problem}
        </p>
      )}
    </div>
  );
}

function TextField(props: Shared & { long: boolean; secret: boolean; value: string; onChange: (value: string) => void }) {
  const given = (event: { currentTarget: { value: string } }) => props.onChange(event.currentTarget.value);
  return (
    <Control {...props}>
      {(shared) =>
        props.long ? (
          <textarea {...shared} rows={3} dir="auto" value={props.value} onInput={given} />
        ) : (
          <input
            {...shared}
            {...(props.secret ? { type: "password" } : { type: "text" })}
            autocomplete="off"
            autocapitalize="none"
            value={props.value}
            onInput={given}
          />
        )
      }
    </Control>
  );
}

/** Keeps what was typed: `1.` and `-` are on the way to a number. */
function NumberField(props: Shared & { whole: boolean; value: Json | undefined; onChange: (value: Json | undefined) => void }) {
  const [typed, setTyped] = useState(props.value === undefined ? "" : String(props.value));
  const meant = number(typed);
  const shown = meant === props.value ? typed : props.value === undefined ? "" : String(props.value);
  return (
    <Control {...props}>
      {(shared) => (
        <input
          {...shared}
          type="text"
          inputMode={props.whole ? "numeric" : "decimal"}
          autocomplete="off"
          value={shown}
          onInput={(event) => {
            setTyped(event.currentTarget.value);
            props.onChange(number(event.currentTarget.value));
          }}
        />
      )}
    </Control>
  );
}

/** The number that a text is; the text itself where it is none, so that it is not lost. */
function number(text: string): Json | undefined {
  if (!text.trim()) return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

function Options(props: Shared & { options: Json[]; value: Json | undefined; onChange: (value: Json | undefined) => void }) {
  const wanted = JSON.stringify(props.value);
  const place = props.value === undefined ? -1 : props.options.findIndex((each) => JSON.stringify(each) === wanted);
  return (
    <Control {...props}>
      {(shared) => (
        <select
          {...shared}
          value={String(place)}
          onChange={(event) => props.onChange(props.options[Number(event.currentTarget.value)])}
        >
          {(!props.required || place < 0) && <option value="-1">{props.required ? "Choose…" : "Not set"}</option>}
          {props.options.map((each, at) => (
            <option key={at} value={String(at)}>
              {each === true ? "Yes" : each === false ? "No" : oneLine(typeof each === "string" ? each : JSON.stringify(each), 120)}
            </option>
          ))}
        </select>
      )}
    </Control>
  );
}

function List(props: ValueProps & { shape: Extract<Shape, { is: "list" }>; label: string; hint: string; problem: string }) {
  const { shape, label, hint, problem, at, problems, onChange, required } = props;
  const items = Array.isArray(props.value) ? props.value : [];
  const change = (list: Json[]) => onChange(list.length || required ? list : undefined);
  return (
    <fieldset class="schema-group stack">
      <legend>
        {label}
        {!required && <span class="soft"> (optional)</span>}
      </legend>
      {hint && <p class="small soft">{hint}</p>}
      {items.map((item, place) => (
        <div class="schema-item" key={place}>
          <Value
            name={`${props.name} ${place + 1}`}
            schema={shape.items}
            required
            value={item ?? undefined}
            at={`${at}/${place}`}
            problems={problems}
            onChange={(its) => change(items.with(place, its ?? null))}
          />
          <Button
            kind="plain"
            icon="trash"
            label={`Remove ${props.name} ${place + 1}`}
            onClick={() => change(items.toSpliced(place, 1))}
          />
        </div>
      ))}
      {problem && (
        <p class="small error" role="alert">
          {problem}
        </p>
      )}
      <div>
        <Button
          disabled={shape.most !== undefined && items.length >= shape.most}
          onClick={() => change([...items, initial(shape.items) ?? null])}
        >
          {`Add to ${oneLine(props.name, 60)}`}
        </Button>
      </div>
    </fieldset>
  );
}

interface JsonFieldProps extends Shared {
  value: Json | undefined;
  rows: number;
  optional?: boolean;
  onChange: (value: Json | undefined) => void;
}

function JsonField({ value, rows, optional, onChange, ...shared }: JsonFieldProps) {
  const [typed, setTyped] = useState(() => (value === undefined || value === UNREADABLE ? "" : JSON.stringify(value, null, 2)));
  const [wrong, setWrong] = useState("");
  const type = (text: string) => {
    setTyped(text);
    if (!text.trim() && optional) {
      setWrong("");
      return onChange(undefined);
    }
    try {
      const read = JSON.parse(text) as Json;
      setWrong("");
      onChange(read);
    } catch {
      setWrong("This is not valid JSON yet.");
      onChange(UNREADABLE);
    }
  };
  return (
    <Control {...shared} problem={wrong || shared.problem}>
      {(props) => (
        <textarea
          {...props}
          class="input mono"
          rows={rows}
          spellcheck={false}
          value={typed}
          onInput={(event) => type(event.currentTarget.value)}
        />
      )}
    </Control>
  );
}
