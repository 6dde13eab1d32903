/** How far a link of the hub reaches. */

const LOOPBACK = /^(localhost|.*\.localhost|127(\.\d+){3}|\[::1\])$/;
const NETWORK = /^(10\.|192\.168\.|172\.(1[6-9]|2\d|3[01])\.|169\.254\.|\[f[cde])|\.(local|lan|internal)$|^[^.]+$/;

export const isLoopback = (host: string) => LOOPBACK.test(host);

/** What to say of a link that not everyone can open; empty where everyone can. */
export function reachOf(link: string): string {
  const host = new URL(link).hostname;
  const where = isLoopback(host) ? "on this computer" : NETWORK.test(host) ? "in your network" : "";
  return where && `This link works only ${where}. To invite people elsewhere, set public_url in the hub’s settings.`;
}
