/**
 * Builds the pages: `node build.js [FOLDER]`. Without a folder they go where the repository keeps them.
 * Each is one HTML file that carries its own policy: by hash, with Trusted Types, from no other origin.
 */
import { createHash } from "node:crypto";
import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";

import { build } from "vite";
import { viteSingleFile } from "vite-plugin-singlefile";

const HERE = dirname(fileURLToPath(import.meta.url));
const REPOSITORY = dirname(HERE);
const TO = process.argv[2] ? resolve(process.argv[2]) : REPOSITORY;
const BUILT = "src/folkmoot/web/built";
/** Pages of the hub itself talk to it and can be installed; the one in a host's frame can neither. */
const HUB = {
  policy: [
    "img-src 'self' data:",
    "connect-src 'self'",
    "manifest-src 'self'",
    "worker-src 'self'",
    "trusted-types folkmoot-worker",
  ],
  installable: true,
};
const FRAME = { policy: ["img-src data:", "connect-src 'none'", "trusted-types 'none'"] };
const PAGES = [
  { root: "src/host", to: `${BUILT}/inbox.html`, ...FRAME },
  { root: "src/web", to: `${BUILT}/web.html`, ...HUB },
  { root: "src/console", to: `${BUILT}/console.html`, ...HUB },
  { root: "test/host", to: "tests/browser/host.html" },
];

const digest = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

function withPolicy(html, allowed) {
  const inline = (tag) =>
    [...html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, "g"))].map((it) => digest(it[1]));
  const policy = [
    "default-src 'none'",
    `script-src ${inline("script").join(" ")}`,
    `style-src ${inline("style").join(" ")}`,
    ...allowed,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
  ].join("; ");
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}" />`;
  return html.replace('<meta charset="utf-8" />', `$&\n    ${meta}`);
}

const icon = await readFile(join(HERE, "src/design/icon.svg"), "utf-8");
const HEAD = `<link rel="icon" href="data:image/svg+xml,${encodeURIComponent(icon.trim())}" />
    <link rel="apple-touch-icon" href="/icons/icon-192.png" />
    <link rel="manifest" href="/manifest.webmanifest" />
    <meta name="theme-color" media="(prefers-color-scheme: light)" content="#f6f3ea" />
    <meta name="theme-color" media="(prefers-color-scheme: dark)" content="#12150f" />`;

for (const page of PAGES) {
  const result = await build({
    root: join(HERE, page.root),
    configFile: false,
    logLevel: "warn",
    plugins: [viteSingleFile({ removeViteModuleLoader: true })],
    build: {
      write: false,
      target: "es2022",
      modulePreload: false,
      assetsInlineLimit: 100_000_000,
      // Message bodies must not reach the console, and a library writes them there.
      rolldownOptions: { output: { minify: { compress: { dropConsole: true }, mangle: true } } },
    },
  });
  const html = result.output.find((each) => each.fileName === "index.html");
  let text = String(html.source);
  if (page.installable) text = text.replace('<link rel="icon" href="data:," />', () => HEAD);
  if (page.policy) text = withPolicy(text, page.policy);
  const target = join(TO, page.to);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, text);
}
for (const name of ["tokens.css", "icon.svg"]) {
  await copyFile(join(HERE, "src/design", name), join(TO, BUILT, name));
}
