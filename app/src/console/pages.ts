/**
 * Every page of the console, one row each: where it is, what it is called and who may see it.
 * Its place in the navigation, if it has one, is a row in `../navigation/places.ts`.
 */
import type { ComponentType } from "preact";

import { Asks } from "./pages/asks/Asks";
import { Audit } from "./pages/audit/Audit";
import { Home } from "./pages/home/Home";
import { People } from "./pages/people/People";
import { Person } from "./pages/people/Person";
import { Room } from "./pages/rooms/Room";
import { Rooms } from "./pages/rooms/Rooms";
import { Server } from "./pages/servers/Server";
import { Servers } from "./pages/servers/Servers";
import { Settings } from "./pages/settings/Settings";
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
}

export const PAGES: readonly PageRow[] = [
  { path: "/", title: "Home", component: Home, scope: "" },
  { path: "/rooms", title: "Rooms", component: Rooms, scope: "rooms" },
  { path: "/rooms/:name", title: (params) => params["name"] ?? "Room", component: Room, scope: "rooms" },
  { path: "/decisions", title: "Decisions", component: Asks, scope: "decide" },
  { path: "/tapes", title: "Tapes", component: Tapes, scope: "operate" },
  { path: "/tapes/:name", title: ({ name }) => name ?? "Tape", component: Tape, scope: "operate" },
  { path: "/people", title: "People", component: People, scope: "operate" },
  { path: "/people/:handle", title: ({ handle }) => `@${handle}`, component: Person, scope: "operate" },
  { path: "/audit", title: "Audit log", component: Audit, scope: "operate" },
  { path: "/settings", title: "Settings", component: Settings, scope: "operate" },
  { path: "/servers", title: "Servers", component: Servers, scope: "tools operate" },
  { path: "/servers/:name", title: (params) => params["name"] ?? "", component: Server, scope: "tools operate" },
];
