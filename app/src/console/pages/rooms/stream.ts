/**
 * A room as the page has it: a window onto its history that follows the end or stays where the
 * reader is, who is here, and what is proposed. At most `KEEP` messages are in the page; the rest is
 * read again when the reader goes there.
 */
import { batch, computed, signal } from "@preact/signals";

import { sentence } from "../../../api/call";
import type * as hub from "../../../api/schema";
import { send, withQuery } from "../../data";
import { fetchProposal, fetchProposals, type ProposalShown } from "../../parts/proposals";
import { type Capability } from "./capabilities";
import { Connection, type Participant, type State, type Welcome } from "./connection";
import {
  chatOf,
  type Direct,
  type Envelope,
  type Filter,
  edited,
  groupOf,
  isBelow,
  isFiltering,
  isFolded,
  matches,
  NO_FILTER,
  seconds,
} from "./envelope";
import { foldOf, joined } from "./folding";
import { pair } from "./pairing";

/** Messages in the page, on one page of the hub, and how many are looked at for a filter at once. */
export const KEEP = 240;
export const PAGE = 60;
/** How many folded messages are looked at for an answer at once. */
const LOOK = 500;
export const UNFOLD = 100;
const MOST_LOOKS = 8;
/** Messages that come in a burst are drawn together. */
const GATHER_MS = 50;
const MOST_PROPOSALS = 300;
/** How many messages of the protocol that came live are kept, for the requests they are about. */
const MOST_NOTES = 100;

interface MessagePage extends Omit<hub.MessagePage, "messages"> {
  messages: Envelope[];
}

export class RoomStream {
  readonly messages = signal<readonly Envelope[]>([]);
  /** What nobody needs to read between the messages of the window, in order. */
  readonly folds = signal<readonly hub.Fold[]>([]);
  private readonly notes = signal<readonly Envelope[]>([]);
  readonly pairs = computed(() => pair([...this.messages.value, ...this.notes.value]));
  /** Whether the window reaches the newest message. */
  readonly atEnd = signal(true);
  /** Whether there may be messages before the window. */
  readonly hasOlder = signal(false);
  /** Everything from here on was looked at for the filter. */
  readonly lookedFrom = signal(0);
  /** Messages that came while the window was elsewhere. */
  readonly missed = signal(0);
  readonly lastSeq = signal(0);
  readonly filter = signal<Filter>(NO_FILTER);
  readonly loading = signal(false);
  readonly trouble = signal("");
  readonly state = signal<State>("connecting");
  readonly reason = signal("");
  readonly you = signal<Welcome["you"] | null>(null);
  readonly present = signal<ReadonlyMap<string, Participant>>(new Map());
  readonly presentTotal = signal(0);
  readonly proposals = signal<ReadonlyMap<string, ProposalShown>>(new Map());
  /** Answers to approved proposals that are not in the window, by the proposal's id. */
  readonly answers = signal<ReadonlyMap<string, Envelope>>(new Map());
  /** The ids of open proposals that the hub says the reader may decide on. */
  readonly waiting = signal<ReadonlySet<string>>(new Set());
  /** Requests to the reader that are open. */
  readonly asked = signal<readonly hub.OpenRequest[]>([]);
  /** The message that was jumped to. */
  readonly target = signal(0);
  /** Something that a reader should know, such as a gap in the history. */
  readonly notice = signal("");

  /** Whether the reader looks at the end of the window; the view says so. */
  following = true;

  private connection: Connection | null = null;
  private held: Envelope[] = [];
  private timer: ReturnType<typeof setTimeout> | undefined;
  private refreshing: ReturnType<typeof setTimeout> | undefined;
  private run = 0;
  /** Everything in the window's place up to here is in it. */
  private through = 0;
  private stopped = false;
  private readonly asking = new Set<string>();

  constructor(readonly name: string) {}

  get capabilities(): readonly Capability[] {
    return this.you.value?.capabilities ?? [];
  }

  /** Reads the end of the history, or the part around a message, and then follows what is said. */
  async start(room: hub.Room, jump?: { seq: number }): Promise<void> {
    const [page] = await Promise.all([
      jump ? this.around(jump.seq) : this.folded({}),
      this.refreshProposals().catch(() => {}),
    ]);
    if (this.stopped) return;
    this.show(page, jump?.seq);
    this.connection = new Connection(this.name, page.last_seq, room.epoch, {
      onWelcome: (welcome) => this.welcome(welcome),
      onMessage: (message) => this.take(message),
      onDirect: (message) => this.direct(message),
      onState: (state, reason) => {
        batch(() => {
          this.state.value = state;
          this.reason.value = reason;
        });
      },
    });
    this.connection.open();
  }

  stop(): void {
    this.stopped = true;
    clearTimeout(this.timer);
    clearTimeout(this.refreshing);
    this.connection?.close();
  }

  hurry(): void {
    this.connection?.hurry();
  }

  post(message: Partial<Envelope> & { kind: string }): Promise<Envelope | null> {
    if (!this.connection) return Promise.reject(new Error("The room is not open yet."));
    return this.connection.send(message);
  }

  /** Reads what is before the window. */
  async older(): Promise<void> {
    if (this.loading.value || !this.hasOlder.value) return;
    await this.reading(async (stale) => {
      const before = this.lookedFrom.value;
      const found = await this.look(before, stale);
      if (stale()) return;
      const all = [...found.messages, ...this.messages.value];
      batch(() => {
        this.folds.value = joined([...found.folds, ...this.folds.value], all);
        if (all.length > KEEP) this.leaveEnd(all[KEEP - 1]!.seq);
        this.messages.value = all.slice(0, KEEP);
        this.lookedFrom.value = found.from;
        this.hasOlder.value = found.more;
      });
    });
  }

  /** Reads what is after the window. */
  async newer(): Promise<void> {
    if (this.loading.value || this.atEnd.value) return;
    await this.reading(async (stale) => {
      if (isFiltering(this.filter.value)) return this.reload();
      let after = this.through;
      const found: Envelope[] = [];
      const folds: hub.Fold[] = [];
      let page: MessagePage;
      let looks = 0;
      do {
        page = await this.folded({ after });
        if (stale()) return;
        found.push(...page.messages);
        folds.push(...(page.folded ?? []));
        after = page.through_seq ?? page.last_seq;
      } while (found.length < PAGE && after < page.last_seq && ++looks < MOST_LOOKS);
      const all = [...this.messages.value, ...found];
      batch(() => {
        this.through = after;
        this.folds.value = joined([...this.folds.value, ...folds], all);
        if (all.length > KEEP) this.dropFrom(all, all.length - KEEP);
        this.messages.value = all.slice(-KEEP);
        if (after >= page.last_seq && after >= this.lastSeq.value) this.rejoin();
      });
    });
  }

  /** To the newest messages. */
  async toEnd(): Promise<void> {
    this.target.value = 0;
    this.following = true;
    if (this.atEnd.value) return this.rejoin();
    await this.reload();
  }

  /** To a message by its number. */
  async jump(seq: number): Promise<void> {
    this.following = false;
    if (seq >= this.lookedFrom.value && seq <= this.through && !isFiltering(this.filter.value)) {
      this.target.value = 0;
      this.target.value = seq;
      return;
    }
    if (isFiltering(this.filter.value)) this.filter.value = NO_FILTER;
    await this.reading(async (stale) => {
      const page = await this.around(seq);
      if (!stale()) this.show(page, seq);
    });
  }

  /** To a message by its id, as far as the page or the proposals know it. */
  async jumpToId(id: string): Promise<void> {
    const here = this.messages.value.find((each) => each.id === id);
    if (here) return this.jump(here.seq);
    try {
      await this.jump((await fetchProposal(this.name, id)).seq);
    } catch {
      this.notice.value = "That message is not among those that are shown. Jump to it by its number or time.";
    }
  }

  /** To the first message at or after a time, in seconds. */
  async jumpToTime(time: number): Promise<void> {
    await this.reading(async (stale) => {
      const end = await this.page({ limit: 1 });
      let low = end.oldest_seq ?? end.first_seq;
      let high = end.last_seq;
      while (low < high && !stale()) {
        const middle = Math.floor((low + high) / 2);
        const [found] = (await this.page({ after: middle - 1, limit: 1 })).messages;
        if (!found || seconds(found.ts) >= time) high = middle;
        else low = found.seq + 1;
      }
      if (stale()) return;
      if (isFiltering(this.filter.value)) this.filter.value = NO_FILTER;
      const page = await this.around(low);
      const first = page.messages.find((each) => each.seq >= low)?.seq;
      this.following = false;
      if (!stale()) this.show(page, first);
    });
  }

  async setFilter(filter: Filter): Promise<void> {
    this.filter.value = filter;
    this.following = true;
    await this.reload();
  }

  /** Reads the end of the history again, as the filter wants it. */
  async reload(): Promise<void> {
    await this.reading(async (stale) => {
      const found = await this.look(0, stale);
      if (stale()) return;
      batch(() => {
        this.folds.value = found.folds;
        this.through = found.through;
        this.messages.value = found.messages.slice(-KEEP);
        this.lookedFrom.value = found.from;
        this.hasOlder.value = found.more;
        this.rejoin();
        // What came while it was read.
        for (const each of this.held.splice(0)) this.append([each]);
      });
    });
  }

  async refreshProposals(): Promise<void> {
    const [proposals, waiting] = await Promise.all([
      fetchProposals(this.name),
      send<hub.WaitingPage>("GET", `${this.path}/waiting`),
    ]);
    batch(() => {
      const known = new Map(this.proposals.value);
      for (const each of proposals) known.set(each.id, each);
      // The oldest go first: those that are shown are asked for again.
      const sorted = [...known].sort(([, one], [, other]) => other.seq - one.seq);
      this.proposals.value = new Map(sorted.slice(0, MOST_PROPOSALS));
      this.waiting.value = new Set(waiting.proposals.map((each) => each.id));
      this.asked.value = waiting.requests;
    });
  }

  /** Reads one proposal that is shown and not known. */
  async wantProposal(id: string): Promise<void> {
    if (this.asking.has(id) || this.proposals.value.has(id)) return;
    this.asking.add(id);
    try {
      const found = await fetchProposal(this.name, id);
      this.proposals.value = new Map([...this.proposals.value, [id, found]]);
      this.asking.delete(id);
    } catch {
      // It is asked for once: the room remembers the latest alone.
    }
  }

  /** Reads the answer to an approved proposal that is not in the window. */
  async wantAnswer({ id, seq }: Envelope): Promise<void> {
    const asking = `answer ${id}`;
    if (this.asking.has(asking)) return;
    this.asking.add(asking);
    let after = seq;
    let request = "";
    try {
      for (let looks = 0; looks < MOST_LOOKS; looks++) {
        const page = await this.folded({ after }, LOOK);
        for (const each of page.messages) {
          if (isBelow(each.kind, "mcp.request") && each.correlation_id?.includes(id)) request = each.id;
          else if (request && groupOf(each.kind) === "response" && each.correlation_id?.includes(request)) {
            this.answers.value = new Map([...this.answers.value, [id, each]]);
            return;
          }
        }
        after = page.through_seq ?? page.last_seq;
        if (after >= page.last_seq) return;
      }
    } catch {
      // The card goes without it.
    }
  }

  private get path(): string {
    return `/v1/rooms/${encodeURIComponent(this.name)}`;
  }

  private page(query: Record<string, string | number>): Promise<MessagePage> {
    return send<MessagePage>("GET", withQuery(`${this.path}/messages`, query));
  }

  /** The last messages before a place that the filter lets through; the hub looks for them. */
  private sought(place: { before?: number }): Promise<MessagePage> {
    const { text, person, group, thread } = this.filter.value;
    const wanted = { search: text, sender: person, kind: group, thread };
    const given = Object.entries(wanted).filter(([, value]) => value);
    return this.page({ ...place, limit: PAGE, ...Object.fromEntries(given) });
  }

  private folded(query: { after?: number; before?: number }, limit = PAGE): Promise<MessagePage> {
    return this.page({ ...query, limit, fold: "true" });
  }

  private async around(seq: number): Promise<MessagePage> {
    const [page, rest] = await Promise.all([
      this.folded({ before: seq + 1 }, PAGE / 2),
      this.folded({ after: seq }, PAGE / 2),
    ]);
    const messages = [...page.messages, ...rest.messages];
    const folded = joined([...(page.folded ?? []), ...(rest.folded ?? [])], messages);
    return { ...page, ...(rest.through_seq ? { through_seq: rest.through_seq } : {}), messages, folded };
  }

  /** The messages of a run that is opened, from a place in it. */
  async unfold(from: number, last: number): Promise<Envelope[]> {
    const page = await this.page({ after: from - 1, before: last + 1, limit: UNFOLD });
    return page.messages.filter(isFolded);
  }

  /** The last matching messages before a place; 0 is the end. */
  private async look(before: number, stale: () => boolean) {
    const filtering = isFiltering(this.filter.value);
    let messages: Envelope[] = [];
    let folds: hub.Fold[] = [];
    let from = before;
    let through = 0;
    let more = true;
    for (let looks = 0; looks < MOST_LOOKS && more && messages.length < PAGE && !stale(); looks++) {
      const place = from ? { before: from } : {};
      const page = await (filtering ? this.sought(place) : this.folded(place));
      messages = [...page.messages, ...messages];
      folds = [...(page.folded ?? []), ...folds];
      const first = page.from_seq ?? page.messages[0]?.seq;
      more = first !== undefined && first > (page.oldest_seq ?? page.first_seq);
      from = first ?? from;
      through ||= page.through_seq ?? page.last_seq;
      this.lastSeq.value = Math.max(this.lastSeq.value, page.last_seq);
      // One page is enough, if there is anything to read on it.
      if (messages.length) break;
    }
    return { messages, folds: joined(folds, messages), from, through, more };
  }

  private async reading(work: (stale: () => boolean) => Promise<void>): Promise<void> {
    const run = ++this.run;
    const stale = () => run !== this.run || this.stopped;
    this.loading.value = true;
    try {
      await work(stale);
      if (!stale()) this.trouble.value = "";
    } catch (error) {
      if (!stale()) this.trouble.value = sentence(error);
    } finally {
      if (!stale()) this.loading.value = false;
    }
  }

  private show(page: MessagePage, target = 0): void {
    batch(() => {
      this.messages.value = page.messages;
      this.folds.value = page.folded ?? [];
      this.lookedFrom.value = page.from_seq ?? page.messages[0]?.seq ?? 0;
      this.through = page.through_seq ?? page.last_seq;
      this.hasOlder.value = this.lookedFrom.value > (page.oldest_seq ?? page.first_seq);
      this.lastSeq.value = Math.max(this.lastSeq.value, page.last_seq);
      this.atEnd.value = this.through >= this.lastSeq.value;
      this.missed.value = 0;
      this.following = !target;
      this.target.value = 0;
      this.target.value = target;
    });
  }

  private welcome(welcome: Welcome): void {
    const before = this.you.value;
    batch(() => {
      this.you.value = welcome.you;
      this.presentTotal.value = welcome.participants_total;
      this.present.value = new Map(welcome.participants.map((each) => [each.id, each]));
    });
    const { resume } = welcome;
    if (resume && !resume.complete) {
      this.notice.value =
        resume.reason === "epoch_changed"
          ? "The history of this room began anew. What was here before is gone."
          : "Some messages were missed while the connection was lost; the room no longer keeps them.";
      this.lastSeq.value = welcome.history.last_seq;
      void this.reload();
    }
    // Other rights, or a break in which something was decided.
    if (before) this.refreshSoon();
  }

  private take(message: Envelope): void {
    this.lastSeq.value = Math.max(this.lastSeq.value, message.seq);
    if (isBelow(message.kind, "system.presence")) this.presence(message);
    if (this.touchesProposals(message)) this.refreshSoon();
    this.held.push(message);
    if (this.held.length > 2 * KEEP) this.held.splice(0, this.held.length - 2 * KEEP);
    this.timer ??= setTimeout(() => this.flush(), GATHER_MS);
  }

  private flush(): void {
    this.timer = undefined;
    if (this.loading.value) {
      // What is being read now may have them already.
      this.timer = setTimeout(() => this.flush(), GATHER_MS);
      return;
    }
    const held = this.held.splice(0);
    batch(() => this.append(held));
  }

  /** Adds what came at the end, where the window is there. */
  private append(held: readonly Envelope[]): void {
    const filtering = isFiltering(this.filter.value);
    const last = this.messages.value.at(-1)?.seq ?? this.through;
    const fresh = held.filter((each) => each.seq > this.through);
    const quiet = filtering ? [] : fresh.filter(isFolded);
    const wanted = fresh.filter((each) => (filtering ? matches(this.filter.value, each) : !isFolded(each)));
    if (this.atEnd.value) this.through = fresh.at(-1)?.seq ?? this.through;
    for (const edit of held.filter((each) => chatOf(each)?.replaces)) {
      const changed = (each: Envelope) => edited(each, edit);
      this.messages.value = this.messages.value.map(changed);
      wanted.splice(0, wanted.length, ...wanted.map(changed));
    }
    if (quiet.length && this.atEnd.value) {
      const notes = quiet.filter((each) => each.correlation_id?.length);
      this.notes.value = [...this.notes.value, ...notes].slice(-MOST_NOTES);
      const all = [...this.messages.value, ...wanted];
      this.folds.value = joined([...this.folds.value, ...quiet.map(foldOf)], all);
    }
    if (!wanted.length) return;
    if (!this.atEnd.value) {
      this.missed.value += wanted.length;
      return;
    }
    const all = [...this.messages.value, ...wanted];
    if (all.length <= KEEP) {
      this.messages.value = all;
      if (!this.following) this.missed.value += wanted.length;
    } else if (this.following) {
      this.dropFrom(all, all.length - KEEP);
      this.messages.value = all.slice(-KEEP);
    } else {
      // The reader is further up: nothing is pulled away there.
      this.leaveEnd(last);
      this.missed.value += wanted.length;
    }
  }

  private dropFrom(all: readonly Envelope[], count: number): void {
    if (count <= 0) return;
    const first = all[count]!.seq;
    this.lookedFrom.value = first;
    this.hasOlder.value = true;
    this.folds.value = this.folds.value.filter((each) => each.first > first);
  }

  /** The window ends with this message. */
  private leaveEnd(last: number): void {
    this.atEnd.value = false;
    this.through = last;
    this.folds.value = this.folds.value.filter((each) => each.first < last);
  }

  private rejoin(): void {
    this.atEnd.value = true;
    this.missed.value = 0;
  }

  private presence(message: Envelope): void {
    const participant = message.payload?.["participant"] as unknown as Participant | undefined;
    if (!participant || typeof participant.id !== "string") return;
    const present = new Map(this.present.value);
    const was = present.has(participant.id);
    if (message.kind.startsWith("system.presence.join")) {
      if (present.size < KEEP * 2) present.set(participant.id, participant);
      if (!was) this.presentTotal.value += 1;
    } else {
      present.delete(participant.id);
      this.presentTotal.value = Math.max(present.size, this.presentTotal.value - 1);
    }
    this.present.value = present;
  }

  private touchesProposals(message: Envelope): boolean {
    if (groupOf(message.kind) === "proposal") return true;
    const me = this.you.value?.id;
    if (isBelow(message.kind, "mcp.request")) {
      return message.to?.[0] === me || Boolean(message.correlation_id?.some((id) => this.proposals.value.has(id)));
    }
    return isBelow(message.kind, "mcp.response") && message.from === me;
  }

  private refreshSoon(): void {
    clearTimeout(this.refreshing);
    this.refreshing = setTimeout(() => {
      this.refreshProposals().catch(() => this.refreshSoon());
    }, 4 * GATHER_MS);
  }

  private direct(message: Direct): void {
    if (message.kind !== "system.error" || message.correlation_id?.length) return;
    const words = message.payload?.["message"];
    if (typeof words === "string") this.notice.value = words;
  }
}
