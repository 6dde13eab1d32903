import { describe, expect, it, vi } from "vitest";

import { type Call, Refused, Unreachable } from "../src/api/call";
import type { Message, Thread } from "../src/api/types";
import { Keyring } from "../src/crypto/keyring";
import { memoryStorage } from "../src/crypto/storage";
import { Mailbox, POLL_SECONDS } from "../src/mail/mailbox";

function thread(id: string, change: Partial<Thread> = {}): Thread {
  return {
    id,
    subject: "",
    other_handle: `from_${id}`,
    other_display_name: id,
    last_message_body: `Hello from ${id}`,
    last_message_at: 1,
    unread_count: 0,
    member_state: "active",
    last_read_at: 0,
    created_at: 1,
    updated_at: 1,
    ...change,
  };
}

function letter(id: string): Message {
  return {
    id,
    thread_id: "a",
    from_handle: "from_a",
    to_handle: "ada",
    body: id,
    priority: "normal",
    encryption_mode: "server_assisted",
    reply_to: null,
    created_at: 1,
    unread: false,
  };
}

/** A hub of a few lines, which can be told to fail. */
function hub() {
  const state = {
    threads: [thread("a"), thread("b", { unread_count: 2 })],
    messages: [letter("m1")],
    failure: null as Error | null,
    calls: [] as string[],
  };
  const answers: Record<string, (args: any) => unknown> = {
    "msg/whoami": () => ({ handle: "ada", client_public_key: null, payload_formats: [] }),
    "msg/open_inbox": () => ({ hub: "http://hub.test" }),
    "msg/threads": () => ({ threads: state.threads, next_cursor: null }),
    "msg/digest": () => ({
      total_unread: state.threads.reduce((sum, each) => sum + each.unread_count, 0),
    }),
    "msg/thread": ({ thread_id: id }) => ({
      thread: state.threads.find((each) => each.id === id),
      messages: [...state.messages].reverse(),
      next_cursor: null,
    }),
    "msg/lookup": () => ({ handle: "from_a", display_name: "a", client_public_key: null }),
    "msg/star": ({ undo }) => ({ state: undo ? "active" : "starred" }),
  };
  const call = vi.fn(async (name: string, args: unknown) => {
    state.calls.push(name);
    if (state.failure) throw state.failure;
    return structuredClone(answers[name]!(args));
  });
  return { state, call: call as unknown as Call };
}

async function started(informAssistant?: (text: string) => Promise<void>) {
  const { state, call } = hub();
  const around = { call, openLink: () => {}, informAssistant };
  const mailbox = new Mailbox(around, new Keyring(memoryStorage()));
  await mailbox.start();
  mailbox.stop();
  return { state, mailbox };
}

describe("the mailbox", () => {
  it("lists by filter and by what is searched for", async () => {
    const { mailbox } = await started();
    expect(mailbox.unread.value).toBe(2);
    mailbox.filter.value = "unread";
    expect(mailbox.listed.value.map((it) => it.id)).toEqual(["b"]);
    await mailbox.search("HELLO FROM A");
    expect(mailbox.listed.value.map((it) => it.id)).toEqual(["a"]);
  });

  it("draws nothing again when nothing changed", async () => {
    const { state, mailbox } = await started();
    const before = mailbox.threads.value;
    await mailbox.look();
    expect(mailbox.threads.value).toBe(before);
    state.threads = [thread("c"), ...state.threads];
    await mailbox.look();
    expect(mailbox.threads.value).not.toBe(before);
  });

  it("tells the assistant what arrived, once", async () => {
    const told: string[] = [];
    const { state, mailbox } = await started(async (text) => void told.push(text));
    state.threads = [thread("a", { unread_count: 1, last_message_body: "News" }), state.threads[1]!];
    await mailbox.look();
    await mailbox.look();
    expect(told).toHaveLength(1);
    expect(told[0]).toContain("News");
    mailbox.informs.value = false;
    state.threads = [thread("a", { unread_count: 2 }), state.threads[1]!];
    await mailbox.look();
    expect(told).toHaveLength(1);
  });

  it("keeps what is there while the hub is away, and comes back", async () => {
    const { state, mailbox } = await started();
    state.failure = new Unreachable();
    await mailbox.look();
    mailbox.stop();
    expect(mailbox.trouble.value).toContain("does not answer");
    expect(mailbox.threads.value).toHaveLength(2);
    state.failure = null;
    await mailbox.look();
    mailbox.stop();
    expect(mailbox.trouble.value).toBe("");
  });

  it("says so when nobody is signed in any more", async () => {
    const { state, mailbox } = await started();
    state.failure = new Refused("Authentication required.");
    await mailbox.look();
    expect(mailbox.phase.value).toBe("signed_out");
  });

  it("keeps earlier pages of a conversation when new messages come", async () => {
    const { state, mailbox } = await started();
    await mailbox.openThread("a");
    const shown = () => mailbox.conversation.value!.messages.map((it) => it.message.id);
    expect(shown()).toEqual(["m1"]);
    mailbox.conversation.value = {
      ...mailbox.conversation.value!,
      messages: [
        ...["old1", "old2"].map((id) => ({ ...mailbox.conversation.value!.messages[0]!, message: letter(id) })),
        ...mailbox.conversation.value!.messages,
      ],
    };
    state.messages = [letter("m1"), letter("m2")];
    state.threads = [thread("a", { last_message_at: 2, unread_count: 1 }), state.threads[1]!];
    await mailbox.look();
    mailbox.stop();
    expect(shown()).toEqual(["old1", "old2", "m1", "m2"]);
  });

  it("polls every fifteen seconds", async () => {
    vi.useFakeTimers();
    const { state, call } = hub();
    const mailbox = new Mailbox({ call, openLink: () => {} }, new Keyring(memoryStorage()));
    await mailbox.start();
    state.calls.length = 0;
    await vi.advanceTimersByTimeAsync((POLL_SECONDS - 1) * 1000);
    expect(state.calls).toEqual([]);
    await vi.advanceTimersByTimeAsync(1000);
    expect(state.calls).toEqual(["msg/threads", "msg/digest"]);
    mailbox.stop();
    vi.useRealTimers();
  });
});

it("keeps the reader's wish about the assistant", () => {
  const storage = memoryStorage();
  const around = { call: hub().call, openLink: () => {} };
  new Mailbox(around, new Keyring(storage), storage).setInforms(false);
  expect(new Mailbox(around, new Keyring(storage), storage).informs.value).toBe(false);
});
