/** Answering by hand what one was asked. */
import { useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import { Button, Field } from "../../../components/parts";
import type { Json } from "../../parts/schema";
import type { Envelope } from "./envelope";
import type { RoomStream } from "./stream";

/** The JSON-RPC code of an answer that says in words why it failed. */
const FAILED = -32000;

export function AnswerForm({ stream, request }: { stream: RoomStream; request: Envelope }) {
  const [text, setText] = useState("");
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState("");
  const answer = async (outcome: { [name: string]: Json }) => {
    setBusy(true);
    setError("");
    try {
      await stream.post({
        kind: request.kind.replace("mcp.request.", "mcp.response."),
        to: [request.from],
        correlation_id: [request.id],
        payload: { jsonrpc: "2.0", id: request.payload?.["id"] ?? null, ...outcome },
      });
    } catch (failure) {
      setError(sentence(failure));
      setBusy(false);
    }
  };
  return (
    <div class="stack">
      <Field label="Your answer" rows={2} value={text} onInput={setText} error={error || undefined} />
      <div class="line">
        <Button
          kind="primary"
          disabled={busy || !text.trim()}
          onClick={() => void answer({ result: { content: [{ type: "text", text }] } })}
        >
          Answer
        </Button>
        <Button
          disabled={busy || !text.trim()}
          onClick={() => void answer({ error: { code: FAILED, message: text } })}
        >
          It could not be done
        </Button>
      </div>
    </div>
  );
}
