/** What changes, as the hub tells it: `/v1/events`. Where that fails, the inbox goes on polling. */

const HEARD = [
  "mail.received",
  "mail.sent",
  "mail.changed",
  "contacts.changed",
  "account.changed",
  "tokens.changed",
  "reload",
] as const;
const AGAIN_MS = 5_000;

export class Live {
  private source: EventSource | null = null;
  private timer: ReturnType<typeof setTimeout> | undefined;

  /** `onChange` is called for every event, and `onState` when the stream comes or goes. */
  constructor(
    private readonly onChange: () => void,
    private readonly onState: (open: boolean) => void,
  ) {}

  open(): void {
    if (this.source) return;
    const source = new EventSource("/v1/events");
    this.source = source;
    for (const name of HEARD) source.addEventListener(name, this.onChange);
    source.onopen = () => this.onState(true);
    source.onerror = () => {
      this.onState(false);
      if (source.readyState !== EventSource.CLOSED) return;
      // A browser comes back to a stream that broke, but not to one that was refused.
      this.close();
      this.timer = setTimeout(() => this.open(), AGAIN_MS);
    };
  }

  close(): void {
    clearTimeout(this.timer);
    this.source?.close();
    this.source = null;
  }
}
