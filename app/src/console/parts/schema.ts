/** JSON schemas of tools, read as far as a form can show them. What it cannot is typed as JSON. */

export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
export type Fields = { [name: string]: Json };

/** Stands for what was typed as JSON and is none, so that it cannot be taken for nothing. */
export const UNREADABLE: Fields = Object.freeze({});

/** How one value is asked for. */
export type Shape =
  | { is: "text"; long: boolean; format: string | undefined; least: number; most: number | undefined }
  | { is: "number"; whole: boolean; least: number | undefined; most: number | undefined }
  | { is: "boolean" }
  | { is: "choice"; options: Json[] }
  | { is: "list"; items: Schema; least: number; most: number | undefined }
  | { is: "fields"; fields: Field[] }
  | { is: "json" };

export interface Field {
  name: string;
  required: boolean;
  schema: Schema;
}

type Members = { [name: string]: unknown };

/** A schema within its document, which its references lead into. */
export interface Schema {
  here: Members;
  document: Members;
  depth: number;
}

export interface Problem {
  /** Where, as a JSON pointer. */
  at: string;
  says: string;
}

/** Beyond these a form would be of no use to anyone. */
const DEEPEST = 6;
const MOST_FIELDS = 100;
const MOST_OPTIONS = 500;
const LONG_WORDS = /text|body|content|message|description|query|prompt|code|script/i;

export function read(document: unknown): Schema {
  const members = isMembers(document) ? document : {};
  return resolved({ here: members, document: members, depth: 0 });
}

export function isMembers(value: unknown): value is Members {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Follows references, and reads `X or null` as X that may be left out. */
function resolved(schema: Schema): Schema {
  let { here } = schema;
  for (let steps = 0; steps < 8; steps++) {
    const next = stepped(here, schema.document);
    if (!next) return { ...schema, here };
    const { $ref: _, anyOf: __, oneOf: ___, allOf: ____, ...own } = here;
    here = { ...next, ...own };
  }
  return { ...schema, here: {} };
}

function stepped(here: Members, document: Members): Members | undefined {
  if (typeof here["$ref"] === "string") return found(here["$ref"], document) ?? {};
  for (const name of ["anyOf", "oneOf", "allOf"] as const) {
    const some = here[name];
    if (!Array.isArray(some)) continue;
    const real = some.filter((each) => isMembers(each) && each["type"] !== "null");
    if (real.length === 1 && (name !== "allOf" || some.length === 1)) return real[0] as Members;
  }
  return undefined;
}

function found(reference: string, document: Members): Members | undefined {
  if (!reference.startsWith("#/")) return undefined;
  let at: unknown = document;
  for (const part of reference.slice(2).split("/")) {
    const name = part.replace(/~1/g, "/").replace(/~0/g, "~");
    at = isMembers(at) && Object.hasOwn(at, name) ? at[name] : undefined;
  }
  return isMembers(at) ? at : undefined;
}

export function inside(schema: Schema, here: unknown): Schema {
  const members = isMembers(here) ? here : {};
  return resolved({ here: members, document: schema.document, depth: schema.depth + 1 });
}

export function shapeOf(schema: Schema, name = ""): Shape {
  const { here } = schema;
  if (Object.hasOwn(here, "const")) return { is: "choice", options: [here["const"] as Json] };
  const options = here["enum"];
  if (Array.isArray(options) && options.length && options.length <= MOST_OPTIONS) {
    return { is: "choice", options: options.filter((each) => each !== null) as Json[] };
  }
  if (here["anyOf"] || here["oneOf"] || here["allOf"] || here["not"] || here["if"]) return { is: "json" };
  switch (typeOf(here)) {
    case "string": {
      const most = amount(here["maxLength"]);
      const long = LONG_WORDS.test(name) && (most === undefined || most > 120);
      return { is: "text", long, format: word(here["format"]), least: amount(here["minLength"]) ?? 0, most };
    }
    case "number":
    case "integer":
      return {
        is: "number",
        whole: typeOf(here) === "integer",
        least: amount(here["minimum"]),
        most: amount(here["maximum"]),
      };
    case "boolean":
      return { is: "boolean" };
    case "array":
      if (schema.depth >= DEEPEST || !isMembers(here["items"]) || here["prefixItems"]) return { is: "json" };
      return {
        is: "list",
        items: inside(schema, here["items"]),
        least: amount(here["minItems"]) ?? 0,
        most: amount(here["maxItems"]),
      };
    case "object":
      return fieldsOf(schema);
    default:
      return { is: "json" };
  }
}

function fieldsOf(schema: Schema): Shape {
  const { properties, required, additionalProperties } = schema.here;
  const named = isMembers(properties) ? Object.entries(properties) : [];
  // A tool without arguments has an empty form; an object of any members must be typed.
  if (!named.length && (schema.depth > 0 || isMembers(additionalProperties))) return { is: "json" };
  if (schema.depth >= DEEPEST || named.length > MOST_FIELDS) return { is: "json" };
  const needed = new Set(Array.isArray(required) ? required : []);
  return {
    is: "fields",
    fields: named.map(([name, here]) => ({
      name,
      required: needed.has(name),
      schema: inside(schema, here),
    })),
  };
}

function typeOf(here: Members): string {
  const type = here["type"];
  if (typeof type === "string") return type;
  if (Array.isArray(type)) {
    const real = type.filter((each) => each !== "null");
    return real.length === 1 ? String(real[0]) : "";
  }
  return isMembers(here["properties"]) ? "object" : "";
}

const amount = (value: unknown): number | undefined => (typeof value === "number" ? value : undefined);
const word = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);

/** The words of a schema about itself. */
export function described(schema: Schema): { title: string; text: string; fallback: Json | undefined } {
  const { title, description } = schema.here;
  const fallback = schema.here["default"] as Json | undefined;
  return { title: word(title) ?? "", text: word(description) ?? "", fallback };
}

/** What a form begins with: the defaults, and nothing where there is none. */
export function initial(schema: Schema, required = true): Json | undefined {
  const { fallback } = described(schema);
  if (fallback !== undefined && fallback !== null) return structuredClone(fallback);
  if (Object.hasOwn(schema.here, "const")) return schema.here["const"] as Json;
  const shape = shapeOf(schema);
  if (shape.is === "fields") {
    const made: Fields = {};
    for (const field of shape.fields) {
      const value = initial(field.schema, field.required);
      if (value !== undefined) put(made, field.name, value);
    }
    return required || Object.keys(made).length ? made : undefined;
  }
  if (!required) return undefined;
  if (shape.is === "list") return Array.from({ length: Math.min(shape.least, 20) }, () => initial(shape.items) ?? null);
  return shape.is === "boolean" ? false : undefined;
}

/** Sets a member by any name, `__proto__` included. */
export function put(into: Fields, name: string, value: Json): void {
  Object.defineProperty(into, name, { value, enumerable: true, configurable: true, writable: true });
}

export function withMember(value: Json | undefined, name: string, member: Json | undefined): Fields {
  const made: Fields = {};
  for (const [each, its] of Object.entries(isMembers(value) ? (value as Fields) : {})) {
    if (each !== name) put(made, each, its);
  }
  if (member !== undefined) put(made, name, member);
  return made;
}

export function member(value: Json | undefined, name: string): Json | undefined {
  return isMembers(value) && Object.hasOwn(value, name) ? (value[name] as Json) : undefined;
}

/** What must be changed before a value can be sent, in the order of the form. */
export function problemsOf(schema: Schema, value: Json | undefined, at = "", required = true): Problem[] {
  const problem = (says: string): Problem[] => [{ at, says }];
  if (value === UNREADABLE) return problem("This is not valid JSON.");
  if (value === undefined || value === "") {
    return required ? problem("This is required.") : [];
  }
  const shape = shapeOf(schema);
  switch (shape.is) {
    case "text": {
      if (typeof value !== "string") return problem("This must be text.");
      const length = [...value].length;
      if (length < shape.least) return problem(`This must have at least ${shape.least} characters.`);
      if (shape.most !== undefined && length > shape.most) return problem(`At most ${shape.most} characters are allowed.`);
      return [];
    }
    case "number": {
      if (typeof value !== "number" || !Number.isFinite(value)) return problem("This must be a number.");
      if (shape.whole && !Number.isInteger(value)) return problem("This must be a whole number.");
      if (shape.whole && !Number.isSafeInteger(value)) return problem("This number is too large to be sent exactly.");
      if (shape.least !== undefined && value < shape.least) return problem(`This must be at least ${shape.least}.`);
      if (shape.most !== undefined && value > shape.most) return problem(`This must be at most ${shape.most}.`);
      return [];
    }
    case "boolean":
      return typeof value === "boolean" ? [] : problem("This must be yes or no.");
    case "choice": {
      const wanted = JSON.stringify(value);
      return shape.options.some((each) => JSON.stringify(each) === wanted) ? [] : problem("Choose one of the list.");
    }
    case "list": {
      if (!Array.isArray(value)) return problem("This must be a list.");
      if (value.length < shape.least) return problem(`At least ${shape.least} are needed.`);
      if (shape.most !== undefined && value.length > shape.most) return problem(`At most ${shape.most} are allowed.`);
      return value.flatMap((each, place) => problemsOf(shape.items, each ?? undefined, `${at}/${place}`));
    }
    case "fields":
      if (!isMembers(value)) return problem("This must be a JSON object.");
      return shape.fields.flatMap((field) =>
        problemsOf(field.schema, member(value, field.name), `${at}/${pointer(field.name)}`, field.required),
      );
    case "json":
      return at || isMembers(value) ? [] : problem("This must be a JSON object.");
  }
}

export const pointer = (name: string): string => name.replace(/~/g, "~0").replace(/\//g, "~1");
