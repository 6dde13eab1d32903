/** How much waits for the reader, as the navigation shows it on every page. */
import { signal } from "@preact/signals";

import type { EventName } from "../web/live";

/** Unread messages in the inbox. */
export const unread = signal(0);
/** Decisions that wait for the reader. */
export const waiting = signal(0);

/** The events after which something else may wait. */
export const ASK_EVENTS: readonly EventName[] = [
  "room.proposal",
  "room.rights",
  "room.membership",
  "room.changed",
  "held.changed",
  "pins.changed",
];
