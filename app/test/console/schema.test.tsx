import { render } from "preact";
import { useState } from "preact/hooks";
import { expect, test } from "vitest";

import { initial, type Json, problemsOf, read, SchemaForm } from "../../src/console/parts/SchemaForm";
import { shapeOf, withMember } from "../../src/console/parts/schema";

const SCHEMA = {
  type: "object",
  required: ["path", "count", "mode"],
  properties: {
    path: { type: "string", description: "Which file" },
    count: { type: "integer", minimum: 1, maximum: 10, default: 3 },
    ratio: { type: "number" },
    mode: { enum: ["read", "write"] },
    force: { type: "boolean" },
    tags: { type: "array", items: { type: "string" }, maxItems: 2 },
    options: { type: "object", properties: { deep: { $ref: "#/$defs/deep" } } },
    extra: { anyOf: [{ type: "string" }, { type: "number" }] },
    maybe: { anyOf: [{ type: "string" }, { type: "null" }] },
  },
  $defs: { deep: { type: "object", required: ["name"], properties: { name: { type: "string" } } } },
};

const settled = () => new Promise((done) => setTimeout(done, 30));

async function form(document: unknown) {
  const schema = read(document);
  const root = globalThis.document.body.appendChild(globalThis.document.createElement("div"));
  let value: Json | undefined = initial(schema);
  let draw = (_tried: boolean) => {};
  function Held() {
    const [now, setNow] = useState(value);
    const [tried, setTried] = useState(false);
    draw = setTried;
    const problems = tried ? problemsOf(schema, now) : [];
    const change = (next: Json | undefined) => {
      value = next;
      setNow(next);
    };
    return <SchemaForm schema={schema} value={now} problems={problems} onChange={change} />;
  }
  render(<Held />, root);
  await settled();
  const control = (label: string) => {
    const its = [...root.querySelectorAll("label")].find((it) => it.textContent!.startsWith(label));
    return root.querySelector<HTMLInputElement>(`[id="${its!.getAttribute("for")}"]`)!;
  };
  const type = async (label: string, text: string) => {
    const its = control(label);
    its.value = text;
    its.dispatchEvent(new Event(its.tagName === "SELECT" ? "change" : "input", { bubbles: true }));
    await settled();
  };
  const press = async (name: string) => {
    const button = [...root.querySelectorAll("button")].find(
      (it) => it.textContent === name || it.getAttribute("aria-label") === name,
    );
    button!.click();
    await settled();
  };
  return { root, control, type, press, draw: (tried: boolean) => draw(tried), value: () => value };
}

test("defaults and required fields are what a form begins with", () => {
  const schema = read(SCHEMA);
  expect(initial(schema)).toEqual({ count: 3 });
  expect(problemsOf(schema, initial(schema)).map((it) => it.at)).toEqual(["/path", "/mode"]);
});

test("a form is filled in field by field", async () => {
  const it = await form(SCHEMA);
  expect(it.control("path").getAttribute("aria-required")).toBe("true");
  expect(it.root.textContent).toContain("Which file");
  await it.type("path", "notes/today.md");
  await it.type("count", "7");
  await it.type("ratio", "0.5");
  await it.type("mode", "1");
  await it.type("force", "0");
  await it.press("Add to tags");
  await it.type("tags 1", "red");
  await it.type("name", "x");
  await it.type("extra", '{"a": 1}');
  await it.type("maybe", "perhaps");
  expect(it.value()).toEqual({
    path: "notes/today.md", count: 7, ratio: 0.5, mode: "write", force: true, tags: ["red"],
    options: { deep: { name: "x" } }, extra: { a: 1 }, maybe: "perhaps",
  });
  expect(problemsOf(read(SCHEMA), it.value())).toEqual([]);
  await it.press("Remove tags 1");
  expect(it.value()).not.toHaveProperty("tags");
});

test("what is wrong is said at its field", async () => {
  const it = await form(SCHEMA);
  await it.type("count", "11");
  it.draw(true);
  await settled();
  expect(it.root.textContent).toContain("This must be at most 10.");
  expect(it.control("path").getAttribute("aria-invalid")).toBe("true");
  await it.type("count", "many");
  expect(it.root.textContent).toContain("This must be a number.");
  expect(it.control("count").value).toBe("many");
  await it.type("count", "1.5");
  expect(it.root.textContent).toContain("This must be a whole number.");
});

test("JSON that cannot be read is not taken for nothing", async () => {
  const it = await form(SCHEMA);
  await it.type("extra", "{");
  expect(problemsOf(read(SCHEMA), it.value()).some((each) => each.at === "/extra")).toBe(true);
  await it.press("JSON");
  await it.type("Arguments as JSON", '{"path": "a", "count": 1, "mode": "read", "other": [1]}');
  expect(it.value()).toEqual({ path: "a", count: 1, mode: "read", other: [1] });
  expect(problemsOf(read(SCHEMA), it.value())).toEqual([]);
  await it.type("Arguments as JSON", "[1]");
  expect(problemsOf(read(SCHEMA), it.value())).toHaveLength(1);
});

test("schemas that no form can show are typed as JSON, and hostile ones harm nothing", () => {
  const loop = { $ref: "#/$defs/a", $defs: { a: { $ref: "#/$defs/a" } } };
  const tree = {
    type: "object", properties: { child: { $ref: "#/$defs/node" } },
    $defs: { node: { type: "object", properties: { child: { $ref: "#/$defs/node" } } } },
  };
  const many = { type: "object", properties: Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`p${n}`, {}])) };
  for (const given of [null, 7, [], "x", loop, many, { type: "array" }, { oneOf: [{}, {}] }]) {
    expect(shapeOf(read(given)).is).toBe("json");
  }
  expect(initial(read(tree))).toEqual({});
  expect(shapeOf(read({ type: "object" })).is).toBe("fields");
});

test("a member may be called as it likes", () => {
  const schema = read(JSON.parse('{"type":"object","properties":{"__proto__":{"type":"string"},"constructor":{"type":"string"}}}'));
  const value = withMember(withMember(initial(schema), "__proto__", "x"), "constructor", "y");
  expect(JSON.stringify(value)).toBe('{"__proto__":"x","constructor":"y"}');
  expect(problemsOf(schema, value)).toEqual([]);
  expect(({} as Record<string, unknown>)["x"]).toBeUndefined();
});
