/** The window onto the messages: it follows the end, or stays where the reader is. */
import { useEffect, useLayoutEffect, useRef } from "preact/hooks";

import { Button } from "../../../components/parts";
import { dayTitle, sameDay } from "../../../text/time";
import { Empty } from "../../parts/Empty";
import { Problem } from "../../parts/Problem";
import { counted } from "../../parts/Time";
import { isCancellation, isFiltering, seconds } from "./envelope";
import type { About } from "./Composer";
import { Folded } from "./Folded";
import { joined } from "./folding";
import { Row } from "./Row";
import type { RoomStream } from "./stream";

/** Pixels from an end that count as being there. */
const NEAR = 60;
const EARLY = 600;

interface Props {
  stream: RoomStream;
  onWrite: (about: About) => void;
  onThread: (thread: string) => void;
}

/**
 * Nothing but the window, and nothing around it. The parent's element keeps the first tree of a
 * component that draws itself again, and with it every row that ever shared a part with the next;
 * what a component returns alone is replaced.
 */
export function Messages(props: Props) {
  return <Window {...props} />;
}

function Window({ stream, onWrite, onThread }: Props) {
  const box = useRef<HTMLDivElement>(null);
  const list = useRef<HTMLOListElement>(null);
  const shownTarget = useRef(0);
  /** How far down the window was last: a reader who leaves the end goes up. */
  const top = useRef(0);
  const messages = stream.messages.value;
  const target = stream.target.value;
  const filtering = isFiltering(stream.filter.value);
  // What the reader looks at, before anything above it changes.
  const anchor = firstVisible(box.current, list.current);

  const toBottom = (frame: HTMLElement) => {
    frame.scrollTop = frame.scrollHeight;
    top.current = frame.scrollTop;
  };

  useLayoutEffect(() => {
    const frame = box.current;
    if (!frame) return;
    if (target && target !== shownTarget.current) {
      const row = document.getElementById(`m-${target}`);
      if (row) {
        shownTarget.current = target;
        row.scrollIntoView({ block: "center" });
        row.focus({ preventScroll: true });
      }
    } else if (stream.following) toBottom(frame);
    else {
      const still = anchor && document.getElementById(anchor.id);
      if (still) frame.scrollTop += still.getBoundingClientRect().top - anchor.top;
    }
    if (!target) shownTarget.current = 0;
  }, [messages, stream.folds.value, target]);

  // Rows that grow, as when an answer comes, must not push the end away.
  useEffect(() => {
    const frame = box.current;
    if (!frame || !list.current) return;
    const watch = new ResizeObserver(() => {
      if (stream.following) toBottom(frame);
    });
    watch.observe(list.current);
    watch.observe(frame);
    return () => watch.disconnect();
  }, [stream]);

  const onScroll = () => {
    const frame = box.current;
    if (!frame) return;
    const rest = frame.scrollHeight - frame.scrollTop - frame.clientHeight;
    const up = frame.scrollTop < top.current;
    top.current = frame.scrollTop;
    if (rest < NEAR) stream.following = stream.atEnd.value;
    else if (up || !stream.atEnd.value) stream.following = false;
    // Rows grew since this was sent; the reader did nothing.
    else if (stream.following) toBottom(frame);
    if (stream.following) {
      if (stream.missed.value) stream.missed.value = 0;
      return;
    }
    // A filter looks further back when it is asked to: there may be nothing for long.
    if (frame.scrollTop < EARLY && !filtering) void stream.older();
    else if (rest < EARLY && !stream.atEnd.value) void stream.newer();
  };

  const toEnd = async () => {
    await stream.toEnd();
    if (box.current) toBottom(box.current);
  };

  const { exchanges, fulfilments, thinking, within } = stream.pairs.value;
  const me = stream.you.value?.id ?? "";
  let day = 0;
  // A cancellation is seen on its request; one without is of something that nobody reads.
  const visible = messages.filter((each) => filtering || !(within.has(each.id) || isCancellation(each)));
  const folds = joined(stream.folds.value, visible);
  let place = 0;
  /** What is folded before a message. */
  const foldedBefore = (seq: number) => {
    for (; place < folds.length && folds[place]!.first < seq; place++) {
      const fold = folds[place]!;
      rows.push(<Folded key={`f${fold.first}`} stream={stream} fold={fold} target={target} me={me} />);
    }
  };
  const rows: preact.JSX.Element[] = [];
  for (const message of visible) {
    foldedBefore(message.seq);
    const at = seconds(message.ts);
    const newDay = !sameDay(at, day) ? dayTitle(at) : "";
    day = at;
    rows.push(
      <Row
        key={message.seq}
        stream={stream}
        message={message}
        me={me}
        day={newDay}
        marked={message.seq === target}
        exchange={exchanges.get(message.id) ?? fulfilments.get(message.id)}
        thinking={thinking.get(message.id)}
        onWrite={onWrite}
        onThread={onThread}
      />,
    );
  }
  foldedBefore(Infinity);
  return (
    <div class="stream-frame">
      <div class="stream" ref={box} onScroll={onScroll} role="region" aria-label="Messages" tabIndex={0}>
        <Problem error={stream.trouble.value} onRetry={() => stream.reload()} />
        {stream.notice.value && (
          <p class="notice warning" role="alert">
            {stream.notice.value}
          </p>
        )}
        <Earlier stream={stream} filtering={filtering} />
        <ol class="messages" ref={list} aria-busy={stream.loading.value}>
          {rows}
        </ol>
        {!messages.length && !folds.length && !stream.loading.value && (
          <Empty title={filtering ? "No messages found." : "No messages yet."}>
            {filtering ? "Look further back, or search for something else." : "Write the first one."}
          </Empty>
        )}
      </div>
      {(stream.missed.value > 0 || !stream.atEnd.value) && (
        <div class="to-end">
          <Button kind="primary" onClick={() => void toEnd()}>
            {stream.missed.value ? `${counted(stream.missed.value, "new message")} ↓` : "To the newest ↓"}
          </Button>
        </div>
      )}
    </div>
  );
}

function Earlier({ stream, filtering }: { stream: RoomStream; filtering: boolean }) {
  const busy = stream.loading.value;
  if (!stream.hasOlder.value) {
    return stream.messages.value.length || stream.folds.value.length ? <p class="small soft centered">This is the beginning of the room.</p> : null;
  }
  return (
    <div class="line centered">
      {filtering && <span class="small soft">{`Looked back to #${stream.lookedFrom.value.toLocaleString()}.`}</span>}
      <Button kind="plain" disabled={busy} onClick={() => void stream.older()}>
        {busy ? "Loading…" : filtering ? "Look further back" : "Earlier messages"}
      </Button>
    </div>
  );
}

/** The topmost message in view, and where it is. */
function firstVisible(frame: HTMLElement | null, list: HTMLElement | null): { id: string; top: number } | null {
  if (!frame || !list) return null;
  const edge = frame.getBoundingClientRect().top;
  for (const each of list.children) {
    const { bottom, top } = each.getBoundingClientRect();
    if (each.id && bottom > edge) return { id: each.id, top };
  }
  return null;
}
