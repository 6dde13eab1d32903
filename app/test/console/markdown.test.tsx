import { render } from "preact";
import { expect, test } from "vitest";

import { Markdown, MOST_MARKDOWN, tokens } from "../../src/console/parts/Markdown";

function drawn(text: string, me = ""): HTMLElement {
  const root = document.createElement("div");
  const known = (name: string) => (name === me ? "me" : name === "bob" ? "other" : null);
  render(<Markdown text={text} mentioned={known} />, root);
  return root;
}

test("the usual marks are drawn", () => {
  const root = drawn("# Plan\n\n**Paint** the _boat_ and `rest`.\n\n1. first\n2. second\n\n- [x] done\n\n> said\n\n```js\nlet a = 1;\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |");
  expect(root.querySelector("strong")?.textContent).toBe("Paint");
  expect(root.querySelector("em")?.textContent).toBe("boat");
  expect(root.querySelectorAll("ol li")).toHaveLength(2);
  expect(root.querySelector("ul li")?.textContent).toContain("☑ done");
  expect(root.querySelector("blockquote")?.textContent).toBe("said");
  expect(root.querySelector("pre code")?.textContent).toBe("let a = 1;");
  expect(root.querySelectorAll("td")).toHaveLength(2);
  expect(root.querySelector("h1")).toBeNull();
});

test("HTML stays text", () => {
  const root = drawn('<img src=x onerror=alert(1)> and <b>bold</b>\n\n<script>alert(1)</script>\n\n<div onclick="x()">\nblock\n</div>');
  expect(root.querySelector("img, b, script, div[onclick]")).toBeNull();
  expect(root.textContent).toContain("<img src=x onerror=alert(1)>");
  expect(root.textContent).toContain("<script>alert(1)</script>");
});

test("only web and mail addresses become links", () => {
  const bad = [
    "[a](javascript:alert(1))",
    "[a](JaVaScRiPt:alert(1))",
    "[a](data:text/html,x)",
    "[a](vbscript:x)",
    "[a](/inbox)",
    "[a](//evil.example)",
    "![a](javascript:alert(1))",
    "<javascript:alert(1)>",
    "[a](file:///etc/passwd)",
  ];
  for (const text of bad) expect(drawn(text).querySelector("a"), text).toBeNull();
  const good = drawn("[a](https://example.org/x) <mailto:ann@example.org> http://example.org");
  expect([...good.querySelectorAll("a")].map((it) => it.href)).toEqual([
    "https://example.org/x",
    "mailto:ann@example.org",
    "http://example.org/",
  ]);
  for (const it of good.querySelectorAll("a")) expect(it.rel).toBe("noopener noreferrer");
});

test("a link says where it leads when its words do not", () => {
  expect(drawn("[https://bank.example](https://evil.example/x)").textContent).toContain("(evil.example)");
  expect(drawn("https://bank.example/").textContent).not.toContain("(");
});

test("images are links", () => {
  const root = drawn("![a cat](https://example.org/cat.png)");
  expect(root.querySelector("img")).toBeNull();
  expect(root.querySelector("a")?.textContent).toBe("Image: a cat");
});

test("mentions of those who are known stand out, and those of the reader most", () => {
  const root = drawn("Hi @bob, @ann and @nobody; mail x@bob.example", "ann");
  expect([...root.querySelectorAll(".mention")].map((it) => it.textContent)).toEqual(["@bob", "@ann"]);
  expect(root.querySelector("mark")?.textContent).toBe("@ann");
});

test("what is too long or too deep is shown as it was written, and soon", () => {
  const hard = [
    "a".repeat(MOST_MARKDOWN + 1),
    ">".repeat(5_000),
    "[".repeat(5_000),
    "*a ".repeat(3_000),
    "![".repeat(3_000),
    "_a_".repeat(3_000),
    "`".repeat(5_000),
    "- ".repeat(4_000),
    "a|".repeat(4_000) + "\n" + "-|".repeat(500),
    "<".repeat(5_000),
    "[a](".repeat(2_000),
    "**".repeat(4_000),
    "> ".repeat(4_000) + "x",
    "\\[".repeat(4_000),
    "http://a".repeat(1_000),
    "a@".repeat(4_000),
    "&".repeat(9_000),
    "  ".repeat(4_000) + "x",
    "1. ".repeat(3_000),
    "\t".repeat(9_000) + "a",
    "~".repeat(9_000) + "a~",
    "[x]: <".repeat(1_500),
    "_a_".repeat(130),
    "1. ".repeat(15) + "a",
    "- a\n".repeat(199),
    "**a ".repeat(199),
  ];
  for (const text of hard) {
    const before = performance.now();
    const root = drawn(text);
    expect(performance.now() - before, text.slice(0, 8)).toBeLessThan(500);
    expect(root.textContent!.length).toBeGreaterThan(0);
  }
  expect(tokens(hard[0]!)).toBeNull();
});

test("what turns letters around is left out", () => {
  expect(drawn("a\u202eb").textContent).toBe("ab");
});
