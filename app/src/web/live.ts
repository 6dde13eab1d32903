/** What changes, as the hub tells it: `/v1/events`. Where that fails, a page goes on polling. */

import { requests } from "./requests";

/** Each name that `docs/reference/events.md` lists. */
export type EventName =
  | "mail.received"
  | "mail.sent"
  | "mail.changed"
  | "contacts.changed"
  | "account.changed"
  | "tokens.changed"
  | "connections.changed"
  | "ask.changed"
  | "room.membership"
  | "room.changed"
  | "room.message"
  | "room.unread"
  | "room.presence"
  | "room.proposal"
  | "room.rights"
  | "tools.changed"
  | "held.changed"
  | "server.changed"
  | "pins.changed"
  | "people.changed"
  | "audit.changed"
  | "settings.changed"
  | "reload";

export interface HubEvent {
  name: EventName;
  data: Record<string, unknown>;
}

const AGAIN_MS = 5_000;

export class Live {
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;
  private readonly names = new Set<EventName>();
  private wanted = false;
  private ignoreStop = () => {};

  /** `onEvent` is called for every event, and `onState` when the stream comes or goes. */
  constructor(
    names: readonly EventName[],
    private readonly onEvent: (event: HubEvent) => void,
    private readonly onState: (open: boolean) => void,
  ) {
    names.forEach((name) => this.names.add(name));
  }

  open(): void {
    this.wanted = true;
    if (!this.source) this.connect();
  }

  private connect(): void {
    const asking = requests();
    if (asking.signal.aborted) {
      void asking.free.then(() => this.wanted && this.open());
      return;
    }
    const source = new EventSource("/v1/events");
    this.source = source;
    this.names.forEach((name) => this.listen(name));
    this.ignoreStop = asking.onStop(() => {
      this.disconnect();
      this.connect();
    });
    source.onopen = () => this.onState(true);
    source.onerror = () => {
      this.onState(false);
      if (source.readyState !== EventSource.CLOSED) return;
      // A browser comes back to a stream that broke, but not to one that was refused.
      this.disconnect();
      this.timer = setTimeout(() => this.open(), AGAIN_MS);
    };
  }

  get isOpen(): boolean {
    return this.source !== null;
  }

  /** Hear one more kind of event. */
  add(name: EventName): void {
    if (this.names.has(name)) return;
    this.names.add(name);
    this.listen(name);
  }

  close(): void {
    this.wanted = false;
    this.disconnect();
  }

  private disconnect(): void {
    clearTimeout(this.timer);
    this.ignoreStop();
    this.source?.close();
    this.source = null;
  }

  private listen(name: EventName): void {
    this.source?.addEventListener(name, (event) => {
      this.onEvent({ name, data: parsed(event.data) });
    });
  }
}

function parsed(text: string): Record<string, unknown> {
  try {
    return JSON.parse(text) as Record<string, unknown>;
  } catch {
    return {};
  }
}
