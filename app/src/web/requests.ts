/**
 * What a page asks of the hub as whoever is signed in. All of it stops before their session ends:
 * whatever came later would be refused.
 */

/** A session ends without waiting longer for what is being saved: the hub has begun with it. */
const SAVING_MS = 2_000;

export class Requests {
  private stopped = new AbortController();
  private release = () => {};
  private readonly saving = new Set<Promise<unknown>>();
  /** Pending while nothing may be asked; for ever where the session has ended. */
  free: Promise<void> = Promise.resolve();

  /** Aborted while nothing may be asked. */
  get signal(): AbortSignal {
    return this.stopped.signal;
  }

  /** Do something when nothing may be asked any more; answers how to call that off. */
  onStop(work: () => void): () => void {
    const { signal } = this;
    signal.addEventListener("abort", work, { once: true });
    return () => signal.removeEventListener("abort", work);
  }

  /** Read something. What is cut off is read again if the session goes on, and else never answers. */
  async read<T>(work: (signal: AbortSignal) => Promise<T>): Promise<T> {
    for (;;) {
      while (this.signal.aborted) await this.free;
      const { signal } = this;
      try {
        const found = await work(signal);
        if (!signal.aborted) return found;
      } catch (error) {
        if (!signal.aborted) throw error;
      }
    }
  }

  /** Change something. That is never cut off, since nobody could tell whether it was done. */
  async change<T>(work: () => Promise<T>): Promise<T> {
    while (this.signal.aborted) await this.free;
    const done = work();
    this.saving.add(done);
    try {
      return await done;
    } finally {
      this.saving.delete(done);
    }
  }

  /** Stop, and wait for what is being saved. */
  async stop(): Promise<void> {
    if (!this.signal.aborted) {
      this.free = new Promise((resolve) => (this.release = resolve));
      this.stopped.abort();
    }
    const late = new Promise((resolve) => setTimeout(resolve, SAVING_MS));
    if (this.saving.size) await Promise.race([Promise.allSettled(this.saving), late]);
  }

  /** The session has not ended after all. */
  goOn(): void {
    this.stopped = new AbortController();
    this.release();
  }
}

let current = new Requests();

/** Those of the session that the page is in. */
export const requests = (): Requests => current;

/** Let somebody else sign in on this page; nothing of the session before is asked or answered. */
export function startOver(): void {
  void current.stop();
  current = new Requests();
}

/** Do what ends the session. Where that fails, everything goes on. */
export async function ending<T>(work: () => Promise<T>): Promise<T> {
  const asking = current;
  await asking.stop();
  try {
    return await work();
  } catch (error) {
    asking.goOn();
    throw error;
  }
}
