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
const PAGES = [
  { root: "src/host", to: `${BUILT}/inbox.html`, connects: "'none'" },
  { root: "src/web", to: `${BUILT}/web.html`, connects: "'self'" },
  { root: "src/console", to: `${BUILT}/console.html`, connects: "'self'" },
  { root: "test/host", to: "tests/browser/host.html" },
];

const digest = (text) => `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

function withPolicy(html, connects) {
  const inline = (tag) =>
    [...html.matchAll(new RegExp(`<${tag}[^>]*>([\\s\\S]*?)</${tag}>`, "g"))].map((it) => digest(it[1]));
  const policy = [
    "default-src 'none'",
    `script-src ${inline("script").join(" ")}`,
    `style-src ${inline("style").join(" ")}`,
    "img-src data:",
    `connect-src ${connects}`,
    "base-uri 'none'",
    "form-action 'none'",
    "require-trusted-types-for 'script'",
    "trusted-types 'none'",
  ].join("; ");
  const meta = `<meta http-equiv="Content-Security-Policy" content="${policy}" />`;
  return html.replace('<meta charset="utf-8" />', `$&\n    ${meta}`);
}

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
  const text = String(html.source);
  const target = join(TO, page.to);
  await mkdir(dirname(target), { recursive: true });
  await writeFile(target, page.connects ? withPolicy(text, page.connects) : text);
}
await copyFile(join(HERE, "src/design/tokens.css"), join(TO, BUILT, "tokens.css"));
