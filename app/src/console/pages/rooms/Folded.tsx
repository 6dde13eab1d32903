/** Presence and protocol between the messages: one line, which opens. */
import { useEffect, useState } from "preact/hooks";

import { sentence } from "../../../api/call";
import type { Fold } from "../../../api/schema";
import { Button } from "../../../components/parts";
import type { Envelope } from "./envelope";
import { foldInWords } from "./folding";
import { pair } from "./pairing";
import { Row } from "./Row";
import { type RoomStream, UNFOLD } from "./stream";

interface Props {
  stream: RoomStream;
  fold: Fold;
  /** The message that was jumped to, which may be in here. */
  target: number;
  me: string;
}

const nothing = () => {};

export function Folded({ stream, fold, target, me }: Props) {
  const aimed = target >= fold.first && target <= fold.last ? target : 0;
  const [open, setOpen] = useState(false);
  const [from, setFrom] = useState(fold.first);
  const [messages, setMessages] = useState<readonly Envelope[] | null>(null);
  const [error, setError] = useState("");
  const load = async (start: number) => {
    setError("");
    setFrom(start);
    try {
      setMessages(await stream.unfold(start, fold.last));
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  const toggle = (next: boolean, start = fold.first) => {
    setOpen(next);
    if (next) void load(start);
  };
  useEffect(() => {
    if (aimed) toggle(true, Math.max(fold.first, aimed - UNFOLD / 4));
  }, [aimed]);
  useEffect(() => {
    const row = aimed && document.getElementById(`m-${aimed}`);
    if (!row) return;
    row.scrollIntoView({ block: "center" });
    row.focus({ preventScroll: true });
  }, [messages]);
  const last = messages?.at(-1)?.seq ?? fold.last;
  const { exchanges } = pair(messages ?? []);
  return (
    <li class="folded small" id={`f-${fold.first}`}>
      <button type="button" class="folded-line soft" aria-expanded={open} onClick={() => toggle(!open)}>
        {foldInWords(fold)}
      </button>
      {open && (
        <>
          {error && (
            <p class="error" role="alert">
              {error}
            </p>
          )}
          {from > fold.first && (
            <Button kind="plain" onClick={() => void load(Math.max(fold.first, from - UNFOLD))}>
              Earlier
            </Button>
          )}
          <ol class="messages">
            {messages?.map((message) => (
              <Row
                key={message.seq}
                stream={stream}
                message={message}
                me={me}
                day=""
                marked={message.seq === aimed}
                exchange={exchanges.get(message.id)}
                thinking={undefined}
                onWrite={nothing}
                onThread={nothing}
              />
            ))}
          </ol>
          {messages && last < fold.last && (
            <Button kind="plain" onClick={() => void load(last + 1)}>
              Later
            </Button>
          )}
        </>
      )}
    </li>
  );
}
