/** How much waits for the reader, as the navigation shows it on every page. */
import { computed, signal } from "@preact/signals";

import type { UnreadRoom } from "../api/schema";
import type { EventName, HubEvent } from "../web/live";

/** Unread messages in the inbox. */
export const unread = signal(0);
/** Decisions that wait for the reader. */
export const waiting = signal(0);
/** The rooms with something new, as `/v1/unread` lists them. */
export const roomNews = signal<readonly UnreadRoom[]>([]);
/** Mentions and invitations: what is meant for the reader alone. */
export const mentions = computed(() => roomNews.value.reduce((sum, it) => sum + it.mentions + Number(it.invited), 0));
export const talk = computed(() => roomNews.value.reduce((sum, it) => sum + it.unread, 0));

/** The events after which something else may be unread in rooms. */
export const ROOM_EVENTS: readonly EventName[] = ["room.unread", "room.message", "room.membership", "room.changed"];
/** Whether an event may be news: what agents and tools exchange is not. */
export const isNews = ({ name, data }: HubEvent): boolean => name !== "room.message" || data["talk"] !== false;

/** The events after which something else may wait. */
export const ASK_EVENTS: readonly EventName[] = [
  "ask.changed",
  "room.proposal",
  "room.rights",
  "room.membership",
  "room.changed",
  "held.changed",
  "pins.changed",
];
