/** What is different between two JSON values, by path: for people who decide. */
import { isMembers, type Json } from "./schema";

export interface Change {
  /** Where, as in `arguments.path` or `items[2]`. */
  path: string;
  before: Json | undefined;
  after: Json | undefined;
}

const MOST = 50;

export function changes(before: Json | undefined, after: Json | undefined): Change[] {
  const found: Change[] = [];
  compare("", before, after, found);
  return found;
}

function compare(path: string, before: Json | undefined, after: Json | undefined, found: Change[]): void {
  if (found.length >= MOST || same(before, after)) return;
  if (isMembers(before) && isMembers(after)) {
    const names = new Set([...Object.keys(before), ...Object.keys(after)]);
    for (const name of names) {
      compare(joined(path, name), own(before, name), own(after, name), found);
    }
  } else if (Array.isArray(before) && Array.isArray(after)) {
    for (let place = 0; place < Math.max(before.length, after.length); place++) {
      compare(`${path}[${place}]`, before[place], after[place], found);
    }
  } else found.push({ path: path || "all of it", before, after });
}

const own = (value: object, name: string): Json | undefined =>
  Object.hasOwn(value, name) ? (value as Record<string, Json>)[name] : undefined;

function joined(path: string, name: string): string {
  const part = /^[\w-]+$/.test(name) ? name : JSON.stringify(name);
  return path ? `${path}.${part}` : part;
}

/** Equal as the hub compares them: by value and type, whatever the order of members. */
export function same(one: Json | undefined, other: Json | undefined): boolean {
  if (one === other) return true;
  if (Array.isArray(one) || Array.isArray(other)) {
    if (!Array.isArray(one) || !Array.isArray(other) || one.length !== other.length) return false;
    return one.every((each, place) => same(each, other[place]));
  }
  if (!isMembers(one) || !isMembers(other)) return false;
  const names = Object.keys(one);
  if (names.length !== Object.keys(other).length) return false;
  return names.every((name) => Object.hasOwn(other, name) && same(own(one, name), own(other, name)));
}
