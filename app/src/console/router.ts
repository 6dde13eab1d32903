/** Which page is shown: the address of the browser, and how it is changed without loading anew. */
import { signal } from "@preact/signals";

import type { PageRow, Params } from "./pages";

interface Place {
  path: string;
  query: URLSearchParams;
}

const read = (): Place => ({
  path: location.pathname.replace(/(.)\/+$/, "$1"),
  query: new URLSearchParams(location.search),
});

export const place = signal<Place>(read());
/** Counts the times that the reader went to another page, which then takes the focus. */
export const arrivals = signal(0);

/** Go to a path of the console. With `replace` the one that is left is not in the history. */
export function go(to: string, replace = false): void {
  const before = place.value.path;
  if (replace) history.replaceState(null, "", to);
  else history.pushState(null, "", to);
  place.value = read();
  if (place.value.path === before) return;
  scrollTo(0, 0);
  arrivals.value += 1;
}

/** Set or remove parts of the query, so that what is shown can be linked to. */
export function setQuery(changed: Record<string, string | null>, replace = true): void {
  const query = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(changed)) {
    if (value === null || value === "") query.delete(name);
    else query.set(name, value);
  }
  go(query.size ? `${location.pathname}?${query}` : location.pathname, replace);
}

/** A path with each part as it is written in an address. */
export function pathTo(...parts: string[]): string {
  return `/${parts.map(encodeURIComponent).join("/")}`;
}

/** The page of a path and what the path names; null where there is none. */
export function match(
  path: string,
  pages: readonly PageRow[],
): { page: PageRow; params: Params } | null {
  for (const page of pages) {
    const params = fits(path.split("/"), page.path.split("/"));
    if (params) return { page, params };
  }
  return null;
}

function fits(given: string[], pattern: string[]): Params | null {
  if (given.length !== pattern.length) return null;
  const params: Params = {};
  for (const [at, part] of pattern.entries()) {
    const here = given[at] ?? "";
    if (!part.startsWith(":")) {
      if (part !== here) return null;
      continue;
    }
    try {
      params[part.slice(1)] = decodeURIComponent(here);
    } catch {
      return null;
    }
    if (!here) return null;
  }
  return params;
}

/** Have links within the console change the page; all others are left to the browser. */
export function followLinks(pages: readonly PageRow[]): void {
  addEventListener("popstate", () => {
    const before = place.value.path;
    place.value = read();
    if (place.value.path !== before) arrivals.value += 1;
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element).closest?.("a");
    if (!link || link.target || link.hasAttribute("download")) return;
    const url = new URL(link.href, location.href);
    if (url.origin !== location.origin || url.hash || !match(url.pathname, pages)) return;
    event.preventDefault();
    go(url.pathname + url.search);
  });
}
