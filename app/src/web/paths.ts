/** Ways between the hub's pages. */

/** A path of this hub that an address names, with its query; anything else, such as another site, is null. */
export function ownPath(wanted: string | null): string | null {
  if (!wanted || !wanted.startsWith("/")) return null;
  try {
    const url = new URL(wanted, location.origin);
    // A browser takes `//host` and `/\host` for another site.
    if (url.origin !== location.origin || url.pathname.startsWith("//")) return null;
    return url.pathname.startsWith("/sign-in") ? null : url.pathname + url.search;
  } catch {
    return null;
  }
}

/** The page to sign in at, which then leads on to where the reader wanted to go. */
export function signInPath(next: string): string {
  return `/sign-in?${new URLSearchParams({ next })}`;
}
