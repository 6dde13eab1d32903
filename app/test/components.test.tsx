import { render } from "preact";
import { expect, it } from "vitest";

import { type Call, Refused, Unreachable } from "../src/api/call";
import { Composer } from "../src/components/Composer";
import { Keyring } from "../src/crypto/keyring";
import { memoryStorage } from "../src/crypto/storage";
import { Mailbox } from "../src/mail/mailbox";

const settled = () => new Promise((resolve) => setTimeout(resolve, 40));

/** A composer, and what it sends. */
function composing(answer: () => Promise<unknown>) {
  const sent: Record<string, unknown>[] = [];
  const call = (async (_: string, args: Record<string, unknown>) => {
    sent.push(args);
    return answer();
  }) as unknown as Call;
  const mailbox = new Mailbox({ call, openLink: () => {} }, new Keyring(memoryStorage()));
  const root = document.createElement("div");
  document.body.append(root);
  render(<Composer mailbox={mailbox} to="bob" onSent={() => {}} />, root);
  const field = root.querySelector("textarea")!;
  const write = async (text: string) => {
    field.value = text;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await settled();
    root.querySelector<HTMLButtonElement>(".button.primary")!.click();
    await settled();
  };
  return { sent, write, field, root };
}

it("sends the same text again under the same key, and another under another", async () => {
  const { sent, write, root } = composing(() => Promise.reject(new Unreachable()));
  await write("Once");
  await write("Once");
  await write("Twice");
  const keys = sent.map((args) => args["idempotency_key"]);
  expect(keys[0]).toBe(keys[1]);
  expect(keys[2]).not.toBe(keys[0]);
  expect(root.querySelector("[role=alert]")?.textContent).toContain("Your text is still here");
});

it("keeps what was refused, and clears what was sent", async () => {
  let fails = true;
  const { write, field, root } = composing(async () => {
    if (fails) throw new Refused("User not found.");
    return { thread_id: "t" };
  });
  await write("Hello");
  expect(field.value).toBe("Hello");
  expect(root.querySelector("[role=alert]")?.textContent).toBe("User not found.");
  fails = false;
  await write("Hello");
  expect(field.value).toBe("");
});
