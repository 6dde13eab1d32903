/** One WebSocket to a room, which comes back after a break and goes on where it was. */
import { requests } from "../../../web/requests";
import type { Capability } from "./capabilities";
import type { Direct, Envelope } from "./envelope";

export interface Participant {
  id: string;
  type: string;
  role: string;
}

/** The payload of `system.welcome`. */
export interface Welcome {
  you: { id: string; type: string; role: string; capabilities: Capability[]; paused?: unknown };
  participants: Participant[];
  participants_total: number;
  epoch: string;
  history: { enabled: boolean; first_seq: number; last_seq: number };
  resume?: { after: number; complete: boolean; reason: string | null };
}

export type State = "connecting" | "open" | "waiting" | "closed";

export interface Handlers {
  onWelcome(welcome: Welcome): void;
  /** Every message once, in order, without a gap unless a welcome said so. */
  onMessage(message: Envelope): void;
  onDirect(message: Direct): void;
  onState(state: State, reason: string): void;
}

/** The hub refused a message. */
export class RoomRefusal extends Error {
  constructor(
    readonly code: string,
    message: string,
  ) {
    super(message);
    this.name = "RoomRefusal";
  }
}

interface Pending {
  text: string;
  resolve: (message: Envelope | null) => void;
  reject: (error: Error) => void;
}

/** Codes after which coming back is of no use, and what to do. */
const FINAL: Record<number, string> = {
  4009: "This room is open in another window with the same connection. Reload the page to continue here.",
  4400: "The hub did not understand the request. Reload the page.",
  4401: "You are signed out. Sign in again.",
  4403: "You can't be in this room.",
  4404: "There is no such room.",
};
const FIRST_MS = 300;
const LONGEST_MS = 8_000;
const MOST_PENDING = 100;

type Socket = Pick<WebSocket, "send" | "close"> & {
  onopen: unknown;
  onmessage: unknown;
  onclose: unknown;
};

export class Connection {
  private socket: Socket | null = null;
  private readonly pending = new Map<string, Pending>();
  private timer: ReturnType<typeof setTimeout> | undefined;
  private tries = 0;
  private ended = false;
  private welcomed = false;
  private ignoreStop = () => {};
  private readonly conn = newId();

  /** Messages after `after` are wanted; in another epoch all of them may be new. */
  constructor(
    private readonly room: string,
    public after: number,
    public epoch: string,
    private readonly handlers: Handlers,
    private readonly connect: (url: string) => Socket = (url) => new WebSocket(url),
  ) {}

  open(): void {
    clearTimeout(this.timer);
    if (this.ended || this.socket) return;
    const asking = requests();
    if (asking.signal.aborted) {
      void asking.free.then(() => this.open());
      return;
    }
    this.handlers.onState("connecting", "");
    const query = new URLSearchParams({ room: this.room, conn: this.conn, linger: "1", after: String(this.after) });
    if (this.epoch) query.set("epoch", this.epoch);
    const socket = this.connect(`${location.origin.replace(/^http/, "ws")}/ws?${query}`);
    this.socket = socket;
    this.welcomed = false;
    socket.onmessage = (event: { data: unknown }) => {
      if (socket === this.socket && typeof event.data === "string") this.take(event.data);
    };
    this.ignoreStop = asking.onStop(() => {
      socket.close();
      this.socket = null;
      this.welcomed = false;
      this.open();
    });
    socket.onclose = (event: { code: number; reason: string }) => {
      if (socket === this.socket) this.broken(event.code, event.reason);
    };
  }

  /** Comes back at once, as when the reader looks again or the network is there again. */
  hurry(): void {
    if (this.socket || this.ended) return;
    this.tries = 0;
    this.open();
  }

  close(): void {
    this.ended = true;
    clearTimeout(this.timer);
    this.ignoreStop();
    this.socket?.close();
    this.socket = null;
    for (const each of this.pending.values()) each.reject(new Error("The page left the room."));
    this.pending.clear();
  }

  /**
   * Sends a message. Answers it as it was stored, or null where it was stored before and not seen.
   * What was not acknowledged when the connection broke is sent again under the same id.
   */
  send(message: Partial<Envelope> & { kind: string }): Promise<Envelope | null> {
    if (this.ended) return Promise.reject(new Error("The page left the room."));
    if (this.pending.size >= MOST_PENDING) {
      return Promise.reject(new Error("Too many messages wait to be sent. Try again in a moment."));
    }
    const id = message.id ?? newId();
    const text = JSON.stringify({ protocol: "mcpx/v1", ...message, id });
    return new Promise((resolve, reject) => {
      this.pending.set(id, { text, resolve, reject });
      if (this.welcomed) this.socket?.send(text);
    });
  }

  private take(data: string): void {
    let message: Envelope | Direct;
    try {
      message = JSON.parse(data) as Envelope | Direct;
    } catch {
      return;
    }
    if (message.kind === "system.welcome") return this.welcome(message.payload as unknown as Welcome);
    if (typeof message.seq === "number") {
      // Once each, whatever was sent twice.
      if (message.seq <= this.after) return;
      this.after = message.seq;
      this.settle(message.id)?.resolve(message);
      this.handlers.onMessage(message);
    } else {
      if (message.kind === "system.error") this.refused(message);
      this.handlers.onDirect(message);
    }
  }

  private welcome(welcome: Welcome): void {
    const first = !this.welcomed;
    if (welcome.epoch !== this.epoch && this.epoch) this.after = 0;
    this.epoch = welcome.epoch;
    if (first && (!welcome.resume || !welcome.resume.complete)) this.after = welcome.history.last_seq;
    this.welcomed = true;
    this.tries = 0;
    this.handlers.onWelcome(welcome);
    if (!first) return;
    this.handlers.onState("open", "");
    for (const each of this.pending.values()) this.socket?.send(each.text);
  }

  private refused(message: Direct): void {
    const { error, message: words, seq } = (message.payload ?? {}) as Record<string, unknown>;
    for (const id of message.correlation_id ?? []) {
      const its = this.settle(id);
      // Our own message from before the break.
      if (error === "id_used" && typeof seq === "number") its?.resolve(null);
      else its?.reject(new RoomRefusal(String(error), String(words ?? "The hub refused it.")));
    }
  }

  private settle(id: string): Pending | undefined {
    const found = this.pending.get(id);
    this.pending.delete(id);
    return found;
  }

  private broken(code: number, reason: string): void {
    this.ignoreStop();
    this.socket = null;
    this.welcomed = false;
    const final = FINAL[code];
    if (final) {
      this.close();
      this.handlers.onState("closed", reason || final);
      return;
    }
    const most = Math.min(LONGEST_MS, FIRST_MS * 2 ** this.tries++);
    this.timer = setTimeout(() => this.open(), most * (0.5 + Math.random() / 2));
    this.handlers.onState("waiting", reason);
  }
}

/** `crypto.randomUUID` exists in secure contexts alone. */
export function newId(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
