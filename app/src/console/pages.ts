/** Every page of the console, one row each: where it is, what it is called and who may see it. */
import type { Signal } from "@preact/signals";
import type { ComponentType } from "preact";

import { unread, waiting } from "./badges";
import type { IconName } from "./icons";
import { Asks } from "./pages/asks/Asks";
import { Audit } from "./pages/audit/Audit";
import { Home } from "./pages/home/Home";
import { People } from "./pages/people/People";
import { Person } from "./pages/people/Person";
import { Room } from "./pages/rooms/Room";
import { Rooms } from "./pages/rooms/Rooms";
import { Server } from "./pages/servers/Server";
import { Servers } from "./pages/servers/Servers";
import { Tape } from "./pages/tapes/Tape";
import { Tapes } from "./pages/tapes/Tapes";

export type Params = Record<string, string>;

/** What a page is given: what its path names. The query is in `place.value.query` (router.ts). */
export interface PageProps {
  params: Params;
}

export interface PageRow {
  /** Parts that begin with a colon are names: `/rooms/:name`. */
  path: string;
  title: string | ((params: Params) => string);
  component: ComponentType<PageProps>;
  /** The scope without which the page is not offered; "" for none, `operate` for operators. */
  scope: string;
  /** Its place in the navigation; without it the page is not there. */
  navigation?: NavigationEntry;
}

export interface NavigationEntry {
  order: number;
  label: string;
  icon: IconName;
  /** How many things wait there. */
  badge?: Signal<number>;
}

export const PAGES: readonly PageRow[] = [
  {
    path: "/",
    title: "Home",
    component: Home,
    scope: "",
    navigation: { order: 0, label: "Home", icon: "home" },
  },
  {
    path: "/rooms",
    title: "Rooms",
    component: Rooms,
    scope: "rooms",
    navigation: { order: 20, label: "Rooms", icon: "rooms" },
  },
  { path: "/rooms/:name", title: (params) => params["name"] ?? "Room", component: Room, scope: "rooms" },
  {
    path: "/asks",
    title: "Asks",
    component: Asks,
    scope: "decide",
    navigation: { order: 30, label: "Asks", icon: "asks", badge: waiting },
  },
  {
    path: "/tapes",
    title: "Tapes",
    component: Tapes,
    scope: "operate",
    navigation: { order: 50, label: "Tapes", icon: "tapes" },
  },
  {
    path: "/tapes/:name",
    title: ({ name }) => name ?? "Tape",
    component: Tape,
    scope: "operate",
  },
  {
    path: "/people",
    title: "People",
    component: People,
    scope: "operate",
    navigation: { order: 60, label: "People", icon: "people" },
  },
  {
    path: "/people/:handle",
    title: ({ handle }) => `@${handle}`,
    component: Person,
    scope: "operate",
  },
  {
    path: "/audit",
    title: "Audit log",
    component: Audit,
    scope: "operate",
    navigation: { order: 70, label: "Audit", icon: "audit" },
  },
  {
    path: "/servers",
    title: "Servers",
    component: Servers,
    scope: "tools",
    navigation: { order: 40, label: "Servers", icon: "servers" },
  },
  { path: "/servers/:name", title: (params) => params["name"] ?? "", component: Server, scope: "tools" },
];

/** Pages that are not the console's: one goes there by a plain link. */
export const ELSEWHERE: readonly (NavigationEntry & { path: string; scope: string })[] = [
  { path: "/inbox", scope: "mail.read", order: 10, label: "Inbox", icon: "mail", badge: unread },
  { path: "/docs", scope: "", order: 95, label: "Documentation", icon: "docs" },
];
