/** Marks a room as read while the reader looks at its end. */
import { useEffect } from "preact/hooks";

import { send } from "../../data";
import { pathTo } from "../../router";
import { groupOf } from "./envelope";
import type { RoomStream } from "./stream";

const LOOK_MS = 1_000;

export function useMarkRead(stream: RoomStream): void {
  useEffect(() => {
    let read = 0;
    const look = () => {
      const last = stream.lastSeq.value;
      const sees = !document.hidden && stream.atEnd.value && stream.following && stream.state.value === "open";
      if (!sees || last <= read) return;
      // What agents and tools exchange is not unread to anyone.
      const isTalk = !read || stream.messages.value.some((it) => it.seq > read && TALK.has(groupOf(it.kind)));
      read = last;
      if (isTalk) send("PUT", `/v1${pathTo("rooms", stream.name)}/read`, { seq: last }).catch(() => {});
    };
    const timer = setInterval(look, LOOK_MS);
    return () => {
      clearInterval(timer);
      look();
    };
  }, [stream]);
}

const TALK: ReadonlySet<string> = new Set(["chat", "proposal"]);
