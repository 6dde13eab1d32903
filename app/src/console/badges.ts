/** How much waits for the reader, as the navigation shows it on every page. */
import { signal } from "@preact/signals";

/** Unread messages in the inbox. */
export const unread = signal(0);
/** Decisions that wait for the reader. */
export const waiting = signal(0);
