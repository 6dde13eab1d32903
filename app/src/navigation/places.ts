/** Where the navigation leads, one row each, in its order. */
import type { ReadonlySignal } from "@preact/signals";

import { mentions, talk, unread, waiting } from "./badges";
import type { IconName } from "./icons";

export interface Place {
  path: string;
  label: string;
  icon: IconName;
  /** The scopes of which one is needed; "" for none, `operate` for operators. */
  scope: string;
  /** How many things wait there. */
  badge?: ReadonlySignal<number>;
  /** How much is new there that nobody waits for; shown where nothing waits. */
  quiet?: ReadonlySignal<number>;
}

export const PLACES: readonly Place[] = [
  { path: "/", label: "Home", icon: "home", scope: "" },
  { path: "/inbox", label: "Inbox", icon: "mail", scope: "mail.read", badge: unread },
  { path: "/rooms", label: "Rooms", icon: "rooms", scope: "rooms", badge: mentions, quiet: talk },
  { path: "/decisions", label: "Decisions", icon: "asks", scope: "decide", badge: waiting },
  { path: "/servers", label: "Servers", icon: "servers", scope: "tools operate" },
  { path: "/tapes", label: "Tapes", icon: "tapes", scope: "operate" },
  { path: "/people", label: "People", icon: "people", scope: "operate" },
  { path: "/audit", label: "Audit", icon: "audit", scope: "operate" },
  { path: "/settings", label: "Settings", icon: "settings", scope: "operate" },
  { path: "/docs", label: "Documentation", icon: "docs", scope: "" },
];

/** Whether a page belongs to a place, so that the place is marked. */
export function belongs(path: string, place: string): boolean {
  return path === place || (place !== "/" && path.startsWith(`${place}/`));
}
