import { render } from "preact";
import { afterEach, beforeEach, expect, it, vi } from "vitest";

import { useLoad } from "../src/console/data";
import { closeLive, openLive } from "../src/console/live";

const sources: FakeSource[] = [];

class FakeSource extends EventTarget {
  static readonly CLOSED = 2;
  readyState = 1;
  onopen: (() => void) | null = null;
  onerror: (() => void) | null = null;

  constructor(readonly url: string) {
    super();
    sources.push(this);
  }

  close() {
    this.readyState = FakeSource.CLOSED;
  }

  tell(name: string) {
    this.dispatchEvent(new MessageEvent(name, { data: "{}" }));
  }
}

let asked = 0;
let hidden = false;

function Shown() {
  const { data } = useLoad<{ n: number }>("/v1/status", ["settings.changed"]);
  return <p>{data ? data.n : "none"}</p>;
}

async function opened() {
  sources[0]!.onopen?.();
  await settle(50);
}

const settle = (ms: number) => vi.advanceTimersByTimeAsync(ms);
const show = (state: boolean) => {
  hidden = !state;
  document.dispatchEvent(new Event("visibilitychange"));
};

beforeEach(async () => {
  vi.useFakeTimers();
  sources.length = asked = 0;
  hidden = false;
  vi.stubGlobal("EventSource", FakeSource);
  vi.stubGlobal("fetch", async () => Response.json({ n: ++asked }));
  Object.defineProperty(document, "hidden", { configurable: true, get: () => hidden });
  document.body.innerHTML = "<main></main>";
  openLive();
  render(<Shown />, document.querySelector("main")!);
});

afterEach(() => {
  render(null, document.querySelector("main")!);
  closeLive();
  vi.unstubAllGlobals();
  vi.useRealTimers();
});

it("reads nothing before it is told of changes, so that none falls between", async () => {
  await settle(900);
  expect(asked).toBe(0);
  await opened();
  await settle(2_000);
  expect(asked).toBe(1);
});

it("reads without a stream that takes long, and again when it is open", async () => {
  await settle(1_100);
  expect(asked).toBe(1);
  await opened();
  await settle(2_000);
  expect(asked).toBe(2);
});

it("reads again once for many events, and goes on while they do not stop", async () => {
  await opened();
  expect(document.body.textContent).toBe("1");
  for (let n = 0; n < 50; n++) sources[0]!.tell("settings.changed");
  await settle(1_100);
  expect(document.body.textContent).toBe("2");
  for (let n = 0; n < 100; n++) {
    sources[0]!.tell("settings.changed");
    await settle(50);
  }
  expect(asked).toBeGreaterThan(5);
  expect(asked).toBeLessThan(10);
});

it("does not read what nobody sees, and reads once when it is seen", async () => {
  await opened();
  show(false);
  for (let n = 0; n < 50; n++) {
    sources[0]!.tell("settings.changed");
    await settle(400);
  }
  expect(asked).toBe(1);
  show(true);
  await settle(1_100);
  expect(asked).toBe(2);
});

it("gives its connection up while nobody sees the page, and reads anew with the next", async () => {
  await opened();
  show(false);
  await settle(31_000);
  expect(sources.map((it) => it.readyState)).toEqual([FakeSource.CLOSED]);
  show(true);
  expect(sources).toHaveLength(2);
  sources[1]!.onopen?.();
  await settle(1_100);
  expect(asked).toBe(2);
});
