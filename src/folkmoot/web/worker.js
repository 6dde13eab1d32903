// Keeps the pages themselves, so that they open and say it when the hub does not answer. Nothing else
// is kept: no mail, no answer of the hub. The line before this one names the build and its pages.
const CACHE = `folkmoot-shell-${BUILD}`;
const WAIT_MS = 10_000;
const GONE = [502, 503, 504];

const fits = (pattern, path) =>
  pattern.endsWith("/*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern;

function shellOf(request) {
  const url = new URL(request.url);
  if (request.mode !== "navigate" || request.method !== "GET") return undefined;
  if (url.origin !== location.origin) return undefined;
  return SHELLS.find(({ paths }) => paths.some((it) => fits(it, url.pathname)));
}

async function keep() {
  const cache = await caches.open(CACHE);
  for (const { from } of SHELLS) {
    const answer = await fetch(from, { cache: "no-store", credentials: "omit", redirect: "error" });
    if (!answer.ok) throw new TypeError(`${from}: ${answer.status}`);
    await cache.put(from, answer);
  }
  await self.skipWaiting();
}

async function forget() {
  const old = (await caches.keys()).filter((it) => it.startsWith("folkmoot-") && it !== CACHE);
  await Promise.all(old.map((it) => caches.delete(it)));
  await self.clients.claim();
}

async function answer(request, { from }) {
  const asked = fetch(request).catch(() => undefined);
  const late = new Promise((done) => setTimeout(done, WAIT_MS));
  const given = await Promise.race([asked, late]);
  if (given && !GONE.includes(given.status)) return given;
  const kept = await caches.match(from, { cacheName: CACHE, ignoreVary: true });
  return kept ?? given ?? (await asked) ?? Response.error();
}

self.addEventListener("install", (event) => event.waitUntil(keep()));
self.addEventListener("activate", (event) => event.waitUntil(forget()));
self.addEventListener("fetch", (event) => {
  const shell = shellOf(event.request);
  if (shell) event.respondWith(answer(event.request, shell));
});
