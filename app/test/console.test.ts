import { describe, expect, it } from "vitest";

import { bytes, counted, duration } from "../src/console/parts/Time";
import { match, pathTo } from "../src/console/router";
import type { PageRow } from "../src/console/pages";
import { withQuery } from "../src/console/data";
import { ownPath, signInPath } from "../src/web/paths";

const page = (path: string) => ({ path, title: path, scope: "" }) as unknown as PageRow;

describe("the way to another page", () => {
  it("leads to paths of this hub alone", () => {
    for (const wanted of ["/", "/people", "/rooms/square?seq=3", "/tapes/a%2Fb"]) {
      expect(ownPath(wanted)).toBe(wanted);
    }
    const wrong = [
      null, "", "people", "https://evil.example/", "//evil.example", "/\\evil.example", "/\\/evil.example",
      "\\\\evil.example", "javascript:alert(1)", "/\t/evil.example", "/sign-in", "/sign-in?next=/", " /people",
    ];
    for (const wanted of wrong) expect(ownPath(wanted)).toBe(null);
    expect(ownPath("/people#oc_1")).toBe("/people");
  });

  it("comes back after signing in", () => {
    const given = signInPath("/rooms/a b?x=1&y=/z");
    expect(new URL(given, "http://hub").searchParams.get("next")).toBe("/rooms/a b?x=1&y=/z");
  });
});

describe("pages by their paths", () => {
  const pages = [page("/"), page("/rooms"), page("/rooms/:name"), page("/tapes/:tape/:call")];

  it("finds the page and what the path names", () => {
    expect(match("/", pages)?.page.path).toBe("/");
    expect(match("/rooms/a%20b", pages)?.params).toEqual({ name: "a b" });
    expect(match(pathTo("tapes", "x/y", "1"), pages)?.params).toEqual({ tape: "x/y", call: "1" });
  });

  it("finds none for what is not there or malformed", () => {
    for (const path of ["/nothing", "/rooms/a/b", "/rooms/%E0%A4%A", "/rooms/", ""]) {
      expect(match(path, pages)).toBe(null);
    }
  });
});

describe("what is shown with units", () => {
  it("has sizes, durations and counts", () => {
    expect([0, 1023, 1024, 10_240, 1 << 30].map(bytes)).toEqual(
      ["0 bytes", "1023 bytes", "1.0 KiB", "10 KiB", "1.0 GiB"],
    );
    expect([0.0042, 0.5, 2.51, 42, 60, 3_660, 90_000].map(duration)).toEqual(
      ["4 ms", "500 ms", "2.5 s", "42 s", "1 min", "1 h 1 min", "1 d 1 h"],
    );
    expect([counted(1, "line"), counted(2, "entry", "entries")]).toEqual(["1 line", "2 entries"]);
  });

  it("leaves out of a query what is empty", () => {
    expect(withQuery("/v1/audit", { by: "", text: null, limit: 5, since: undefined })).toBe("/v1/audit?limit=5");
    expect(withQuery("/v1/x?a=1", { b: "ä&b" })).toBe("/v1/x?a=1&b=%C3%A4%26b");
  });
});
