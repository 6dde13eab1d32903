/** The navigation of all of the hub's pages: beside them, and where it is narrow below them. */
import "../design/navigation.css";

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { Ring } from "../components/parts";
import { guestOf, mayForSome, who } from "../web/who";
import { Icon } from "./icons";
import { Shortcuts } from "./Palette";
import { belongs, type Place, PLACES } from "./places";

/** Places in the bar of a narrow page; the others are behind "More". */
const MOST_NARROW = 4;

interface Props {
  /** The page that is shown. Its heading has the id `page-title`. */
  path: string;
  onSignOut: () => void;
}

export function Navigation({ path, onSignOut }: Props) {
  const [open, setOpen] = useState(false);
  const more = useRef<HTMLButtonElement>(null);
  const own: Place = { path: "/account", label: `@${who.value?.handle ?? "…"}`, icon: "account", scope: "" };
  const guest = guestOf.value;
  const room: Place = { path: `/rooms/${encodeURIComponent(guest)}`, label: guest, icon: "rooms", scope: "" };
  const places = guest ? [room] : PLACES.filter(({ scope }) => (who.value ? mayForSome(scope) : scope !== "operate"));
  useEffect(() => setOpen(false), [path]);
  // Before it is painted: a key that is pressed as soon as the menu is seen closes it.
  useLayoutEffect(() => {
    if (!open) return;
    const close = (event: KeyboardEvent) => {
      if (event.key !== "Escape") return;
      setOpen(false);
      more.current?.focus();
    };
    document.addEventListener("keydown", close);
    return () => document.removeEventListener("keydown", close);
  }, [open]);
  return (
    <>
      <a class="skip button" href="#page-title">
        Skip to the page
      </a>
      <nav aria-label="Pages" class={`side${open ? " open" : ""}`}>
        <a class="brand" href="/">
          <Ring size={28} />
          <span>Folkmoot</span>
        </a>
        <ul class="places">
          {places.map((it, at) => (
            <li key={it.path} class={at < MOST_NARROW ? "" : "rest"}>
              <Way place={it} path={path} />
            </li>
          ))}
          {!guest && (
            <>
              <li class="rest last">
                <Way place={own} path={path} />
              </li>
              <li class="rest">
                <button type="button" class="place" onClick={onSignOut}>
                  <Icon name="out" />
                  <span class="name">Sign out</span>
                </button>
              </li>
              <li class="place-more">
                <button type="button" class="place" aria-expanded={open} ref={more} onClick={() => setOpen(!open)}>
                  <Icon name="more" />
                  <span class="name">More</span>
                </button>
              </li>
            </>
          )}
        </ul>
      </nav>
      <Shortcuts />
    </>
  );
}

function Way({ place, path }: { place: Place; path: string }) {
  const loud = place.badge?.value ?? 0;
  const count = loud || (place.quiet?.value ?? 0);
  return (
    <a class="place" href={place.path} aria-current={belongs(path, place.path) ? "page" : undefined}>
      <Icon name={place.icon} />
      <span class="name">{place.label}</span>
      {count > 0 && (
        <span class={loud ? "badge" : "badge quiet"}>
          {count > 99 ? "99+" : count}
          <span class="hidden"> new</span>
        </span>
      )}
    </a>
  );
}
