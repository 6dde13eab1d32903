/** What a request was answered with, and long texts and values of which little is shown at first. */
import { useState } from "preact/hooks";

import { Button } from "../../components/parts";
import { type Mentioned, PlainText } from "./Markdown";
import { isMembers, type Json } from "./schema";

/** Characters of a text that are shown at once. */
const LONG = 2_500;

export function Long({ text, mentioned }: { text: string; mentioned?: Mentioned }) {
  const [whole, setWhole] = useState(false);
  const cut = text.length > LONG + 500 && !whole;
  return (
    <>
      <PlainText text={cut ? `${text.slice(0, LONG)}…` : text} mentioned={mentioned} />
      {cut && <Button kind="plain" onClick={() => setWhole(true)}>{`Show all ${text.length.toLocaleString()} characters`}</Button>}
    </>
  );
}

export function Folded({ summary, value }: { summary: string; value: Json }) {
  const text = JSON.stringify(value);
  const [open, setOpen] = useState(text.length <= 200);
  return (
    <details open={open} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary class="small">{`${summary} (${text.length.toLocaleString()} characters)`}</summary>
      {open && <Raw value={value} />}
    </details>
  );
}

/** How many characters of JSON are drawn at most. */
const MOST_RAW = 100_000;

export function Raw({ value }: { value: unknown }) {
  const text = JSON.stringify(value, null, 2);
  return (
    <pre class="raw" dir="ltr">
      {text.length > MOST_RAW ? `${text.slice(0, MOST_RAW)}…` : text}
    </pre>
  );
}

export function Result({ value }: { value: Json | undefined }) {
  const result = isMembers(value) ? value : {};
  const content = Array.isArray(result["content"]) ? result["content"].slice(0, 50) : [];
  const failed = result["isError"] === true;
  const texts = content.map((each) => (isMembers(each) ? piece(each) : "")).filter(Boolean);
  if (texts.length) {
    return (
      <div class={failed ? "notice danger" : "result"}>
        {texts.map((text, place) => (
          <Long key={place} text={text} />
        ))}
      </div>
    );
  }
  return value === undefined ? null : <Folded summary="Result" value={value} />;
}

function piece(content: Record<string, unknown>): string {
  if (typeof content["text"] === "string") return content["text"];
  if (typeof content["uri"] === "string") return content["uri"];
  const type = String(content["type"] ?? "something");
  return `[${type}${typeof content["mimeType"] === "string" ? `, ${content["mimeType"]}` : ""}]`;
}
