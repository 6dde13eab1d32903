/** The state of one reader's inbox, and everything that changes it. Components only draw it. */
import { batch, computed, signal } from "@preact/signals";

import { Refused, sentence, type Surroundings, Unreachable } from "../api/call";
import type { Digest, Message, Opened as OpenedInbox, Profile, Thread } from "../api/types";
import type { Keyring } from "../crypto/keyring";
import { memoryStorage, type Storage } from "../crypto/storage";
import { open, type Opened } from "../crypto/opening";
import { oneLine } from "../text/names";
import { arrivalsNote, draftRequest } from "./assistant";
import { Encryption } from "./encryption";

export const POLL_SECONDS = 15;
const RETRY_SECONDS = 5;
const PAGE = 50;
const MOST_PAGES = 50;
const INFORMS = "mmp_informs";

export type View =
  | { name: "inbox" }
  | { name: "thread"; id: string }
  | { name: "compose"; to: string }
  | { name: "people" }
  | { name: "settings" }
  | { name: "keys" };

export type Filter = "inbox" | "unread" | "starred" | "muted" | "archived";
export const FILTERS: readonly Filter[] = ["inbox", "unread", "starred", "muted", "archived"];

export interface Shown extends Opened {
  message: Message;
  outgoing: boolean;
}

export interface Conversation {
  thread: Thread;
  /** The oldest first. */
  messages: Shown[];
  /** Where earlier messages begin; null when there are none. */
  earlier: string | null;
}

export interface Draft {
  text: string;
  /** One key for each text that is sent, so that trying again sends nothing twice. */
  key: string;
}

export class Mailbox {
  readonly phase = signal<"loading" | "signed_out" | "ready">("loading");
  readonly me = signal<Profile | null>(null);
  readonly threads = signal<Thread[]>([]);
  readonly digest = signal<Digest | null>(null);
  readonly moreThreads = signal<string | null>(null);
  readonly conversation = signal<Conversation | null>(null);
  readonly view = signal<View>({ name: "inbox" });
  readonly filter = signal<Filter>("inbox");
  readonly query = signal("");
  /** What keeps the page from the hub; empty when all is well. */
  readonly trouble = signal("");
  /** What just happened, for everyone, and read out to those who cannot see it. */
  readonly said = signal<{ text: string; bad: boolean }>({ text: "", bad: false });
  /** Whether the assistant is told what arrives. */
  readonly informs = signal(true);
  readonly drafts = new Map<string, Draft>();
  readonly encryption: Encryption;
  hub = "";
  /** How often it asks what is new; seldom where it is told as well. */
  pollSeconds = POLL_SECONDS;

  private timer: ReturnType<typeof setTimeout> | undefined;
  private refreshing: Promise<void> | null = null;
  private previews = signal<ReadonlyMap<string, string>>(new Map());
  private stopped = false;

  constructor(
    readonly around: Surroundings,
    readonly keyring: Keyring,
    private readonly storage: Storage = memoryStorage(),
  ) {
    this.encryption = new Encryption(this);
    this.informs.value = storage.read(INFORMS) !== "no";
  }

  setInforms(wanted: boolean): void {
    this.informs.value = wanted;
    this.storage.write(INFORMS, wanted ? null : "no");
  }

  readonly unread = computed(() => this.digest.value?.total_unread ?? 0);

  readonly listed = computed(() => {
    const wanted = this.query.value.trim().toLowerCase();
    const filter = this.filter.value;
    return this.threads.value.filter((thread) => {
      if (wanted) return this.searchable(thread).includes(wanted);
      if (filter === "inbox") return thread.member_state !== "archived";
      if (filter === "unread") return thread.unread_count > 0;
      return thread.member_state === filter;
    });
  });

  /** The last text of a thread, as far as it can be read here. */
  preview(thread: Thread): string | null {
    return thread.last_message_body ?? this.previews.value.get(previewKey(thread)) ?? null;
  }

  private searchable(thread: Thread): string {
    const texts = [thread.other_display_name, `@${thread.other_handle}`, thread.subject];
    return [...texts, this.preview(thread) ?? ""].join("\n").toLowerCase();
  }

  /** Begin with what the hub gave when the inbox was opened, or by asking. */
  async start(opened?: OpenedInbox): Promise<void> {
    if (opened) {
      batch(() => {
        this.hub = opened.hub ?? "";
        this.threads.value = opened.threads;
        this.digest.value = opened.digest;
      });
    }
    try {
      const me = await this.around.call("msg/whoami", {});
      this.me.value = me;
      await this.encryption.begin(me);
      if (!opened) {
        this.hub = (await this.around.call("msg/open_inbox", {})).hub ?? "";
      }
      await this.refresh();
      this.phase.value = "ready";
    } catch (error) {
      this.fail(error);
    }
    this.schedule();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
  }

  private schedule(): void {
    clearTimeout(this.timer);
    if (this.stopped) return;
    const seconds = this.trouble.value ? RETRY_SECONDS : this.pollSeconds;
    this.timer = setTimeout(() => void this.poll(), seconds * 1000);
  }

  private async poll(): Promise<void> {
    if (this.phase.value === "loading") return this.start();
    if (this.phase.value === "ready") await this.refresh().catch((error) => this.fail(error));
    this.schedule();
  }

  /** Ask for what is new now, instead of at the next poll. */
  async look(): Promise<void> {
    // One that is under way may have asked before what is new happened.
    await this.refreshing?.catch(() => {});
    await this.refresh().catch((error) => this.fail(error));
    this.schedule();
  }

  /** Show what was just sent: of two messages in one second, the list of threads shows one. */
  async afterSending(id: string): Promise<void> {
    await this.attempt(() => this.fetchConversation(id));
    await this.look();
  }

  private refresh(): Promise<void> {
    this.refreshing ??= this.fetchNew().finally(() => {
      this.refreshing = null;
    });
    return this.refreshing;
  }

  private async fetchNew(): Promise<void> {
    const { call } = this.around;
    const [page, digest] = await Promise.all([
      call("msg/threads", { limit: 100 }),
      call("msg/digest", {}),
    ]);
    const before = this.threads.value;
    const fresh = new Set(page.threads.map((thread) => thread.id));
    // Later pages stay: what is new is always on the first.
    const rest = this.moreThreads.value === null ? [] : before.filter((it) => !fresh.has(it.id));
    batch(() => {
      this.trouble.value = "";
      replace(this.threads, [...page.threads, ...rest]);
      replace(this.digest, digest);
      if (!rest.length) this.moreThreads.value = page.next_cursor;
    });
    if (this.phase.value === "ready") await this.informOf(before);
    const shown = this.conversation.value;
    const current = shown && page.threads.find((thread) => thread.id === shown.thread.id);
    if (shown && current && JSON.stringify(current) !== JSON.stringify(shown.thread)) {
      await this.fetchConversation(shown.thread.id);
    }
    await this.fetchPreviews();
  }

  async fetchMoreThreads(): Promise<void> {
    for (let pages = 0; this.moreThreads.value !== null && pages < MOST_PAGES; pages += 1) {
      const cursor = this.moreThreads.value;
      const page = await this.around.call("msg/threads", { limit: 100, cursor });
      const known = new Set(this.threads.value.map((thread) => thread.id));
      const added = page.threads.filter((thread) => !known.has(thread.id));
      batch(() => {
        this.threads.value = [...this.threads.value, ...added];
        this.moreThreads.value = page.next_cursor;
      });
      if (!this.query.value) return;
    }
  }

  /** Search all threads, not only those that were fetched. */
  async search(query: string): Promise<void> {
    this.query.value = query;
    if (query.trim()) await this.attempt(() => this.fetchMoreThreads());
  }

  /** The texts of end-to-end threads, which only this page can open. */
  private async fetchPreviews(): Promise<void> {
    if (!this.keyring.all.length) return;
    const missing = this.threads.value
      .slice(0, 30)
      .filter((it) => it.last_message_body === null && !this.previews.value.has(previewKey(it)));
    for (const thread of missing) {
      const last = { thread_id: thread.id, limit: 1, peek: true };
      const page = await this.around.call("msg/thread", last).catch(() => null);
      if (!page) continue;
      const found = (await this.shown(page.messages))[0];
      const all = new Map(this.previews.value);
      this.previews.value = all.set(previewKey(thread), found?.body ?? "");
    }
  }

  forgetPreviews(): void {
    this.previews.value = new Map();
  }

  private async informOf(before: Thread[]): Promise<void> {
    const known = new Map(before.map((thread) => [thread.id, thread]));
    const arrived = this.threads.value.filter(
      (thread) =>
        thread.unread_count > (known.get(thread.id)?.unread_count ?? 0) &&
        thread.member_state !== "muted",
    );
    if (!arrived.length) return;
    const names = arrived.map((thread) => `@${thread.other_handle}`).join(", ");
    this.say(`New mail from ${names}.`);
    const { informAssistant } = this.around;
    if (!informAssistant || !this.informs.value) return;
    const arrivals = arrived.map((thread) => ({
      handle: thread.other_handle,
      unread: thread.unread_count,
      body: thread.last_message_body,
    }));
    // A host that refuses it is no trouble for the reader.
    await informAssistant(arrivalsNote(this.me.value?.handle ?? "", arrivals)).catch(() => {});
  }

  go(view: View): void {
    batch(() => {
      if (view.name !== "thread") this.conversation.value = null;
      this.view.value = view;
    });
  }

  async openThread(id: string): Promise<void> {
    if (this.conversation.value?.thread.id !== id) this.conversation.value = null;
    this.view.value = { name: "thread", id };
    await this.attempt(() => this.fetchConversation(id));
    const thread = this.conversation.value?.thread;
    if (thread) void this.encryption.meet(thread.other_handle);
  }

  private async fetchConversation(id: string): Promise<void> {
    const peek = document.hidden;
    const page = await this.around.call("msg/thread", { thread_id: id, limit: PAGE, peek });
    const view = this.view.value;
    if (view.name !== "thread" || view.id !== id) return;
    const messages = await this.shown([...page.messages].reverse());
    const before = this.conversation.value;
    const first = messages[0]?.message;
    const overlap = before?.messages.findIndex((shown) => shown.message.id === first?.id) ?? -1;
    const kept = before && overlap > 0 ? before.messages.slice(0, overlap) : [];
    const thread = peek ? page.thread : { ...page.thread, unread_count: 0 };
    batch(() => {
      replace(this.conversation, {
        thread,
        messages: [...kept, ...messages],
        earlier: kept.length ? before!.earlier : page.next_cursor,
      });
      this.patch(thread);
    });
  }

  async fetchEarlier(): Promise<void> {
    const shown = this.conversation.value;
    if (!shown?.earlier) return;
    const page = await this.around.call("msg/thread", {
      thread_id: shown.thread.id,
      limit: 100,
      cursor: shown.earlier,
    });
    const now = this.conversation.value;
    if (now?.thread.id !== shown.thread.id) return;
    const added = await this.shown([...page.messages].reverse());
    this.conversation.value = {
      ...now,
      messages: [...added, ...now.messages],
      earlier: page.next_cursor,
    };
  }

  /** Open messages again, after a key came or was accepted. */
  async reopen(): Promise<void> {
    this.forgetPreviews();
    const shown = this.conversation.value;
    if (shown) {
      const messages = await this.shown(shown.messages.map((it) => it.message));
      this.conversation.value = { ...shown, messages };
    }
    await this.fetchPreviews();
  }

  private async shown(messages: Message[]): Promise<Shown[]> {
    const me = this.me.value?.handle ?? "";
    if (this.keyring.all.length) {
      for (const message of messages) {
        if (message.encryption_mode !== "e2e" || !message.encrypted_payload) continue;
        const outgoing = message.from_handle === me;
        const peer = outgoing ? message.to_handle : message.from_handle;
        await this.encryption.meet(peer, outgoing ? undefined : message.encrypted_payload);
      }
    }
    return messages.map((message) => ({
      ...open(message, me, this.keyring),
      message,
      outgoing: message.from_handle === me,
    }));
  }

  /** Mark what is in view as read, when the reader comes back to it. */
  async seen(): Promise<void> {
    const shown = this.conversation.value;
    if (!shown || document.hidden || !shown.thread.unread_count) return;
    await this.attempt(() => this.fetchConversation(shown.thread.id));
  }

  private patch(thread: Thread): void {
    const before = this.threads.value.find((it) => it.id === thread.id);
    const digest = this.digest.value;
    if (!before || !digest) return;
    const read = before.unread_count - thread.unread_count;
    replace(this.threads, this.threads.value.map((it) => (it === before ? thread : it)));
    const total_unread = Math.max(0, digest.total_unread - read);
    replace(this.digest, { ...digest, total_unread });
  }

  async setState(thread: Thread, tool: "msg/archive" | "msg/star" | "msg/mute"): Promise<void> {
    const wanted = { "msg/archive": "archived", "msg/star": "starred", "msg/mute": "muted" }[tool];
    const undo = thread.member_state === wanted;
    const answer = await this.attempt(() => this.around.call(tool, { thread_id: thread.id, undo }));
    if (!answer) return;
    const changed = { ...thread, member_state: answer.state };
    batch(() => {
      this.patch(changed);
      const shown = this.conversation.value;
      if (shown?.thread.id === thread.id) {
        this.conversation.value = { ...shown, thread: { ...shown.thread, member_state: answer.state } };
      }
    });
    const name = thread.other_display_name || thread.other_handle;
    const words = { archived: "archived", starred: "starred", muted: "muted", active: "in the inbox" };
    this.say(`The conversation with ${oneLine(name, 40)} is ${words[answer.state]}.`);
  }

  async deleteThread(thread: Thread): Promise<void> {
    const args = { thread_id: thread.id, confirm: true };
    if ((await this.attempt(() => this.around.call("msg/delete_thread", args))) === undefined) return;
    this.threads.value = this.threads.value.filter((it) => it.id !== thread.id);
    this.go({ name: "inbox" });
    this.say("The conversation is deleted from your mailbox.");
    await this.look();
  }

  async deleteMessage(message: Message): Promise<void> {
    const args = { message_id: message.id };
    if ((await this.attempt(() => this.around.call("msg/delete_message", args))) === undefined) return;
    const shown = this.conversation.value;
    if (shown) {
      const messages = shown.messages.filter((it) => it.message.id !== message.id);
      this.conversation.value = { ...shown, messages };
    }
    this.say("Your copy of the message is deleted.");
    await this.look();
  }

  async draftReply(shown: Shown): Promise<void> {
    const { askAssistant } = this.around;
    if (!askAssistant || shown.body === null) return;
    const { message } = shown;
    const text = draftRequest(message.from_handle, message.id, shown.body);
    await this.attempt(() => askAssistant(text));
    this.say("Your assistant was asked for a draft.");
  }

  say(text: string, bad = false): void {
    this.said.value = { text, bad };
  }

  /** Do something for the reader, and tell them if it goes wrong; undefined means that it did. */
  async attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
    try {
      return await work();
    } catch (error) {
      this.fail(error);
      return undefined;
    }
  }

  private fail(error: unknown): void {
    if (error instanceof Refused && error.signedOut) {
      this.phase.value = "signed_out";
    } else if (error instanceof Unreachable) {
      this.trouble.value = error.message;
      this.schedule();
    } else {
      this.say(sentence(error), true);
    }
  }
}

function previewKey(thread: Thread): string {
  return `${thread.id} ${thread.last_message_at}`;
}

/** Set a signal only to something different, so that nothing is drawn again without a change. */
function replace<T>(target: { value: T }, next: T): void {
  if (JSON.stringify(target.value) !== JSON.stringify(next)) target.value = next;
}
