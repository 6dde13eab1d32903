/** Words and order of what waits for a decision. */
import type * as hub from "../../../api/schema";

export { ASK_EVENTS } from "../../../navigation/badges";

export const KINDS = [
  { name: "proposal", label: "Proposals" },
  { name: "call", label: "Programs" },
  { name: "held", label: "Held messages" },
  { name: "tool", label: "Tools" },
] as const;

/** New items, and those of before that must stay, each at the place that it had. */
export function keeping<T extends { id: string }>(
  before: readonly T[],
  now: readonly T[],
  touched: ReadonlySet<string>,
): readonly T[] {
  const listed = new Set(now.map((it) => it.id));
  const shown = [...now];
  before.forEach((it, at) => {
    if (touched.has(it.id) && !listed.has(it.id)) shown.splice(Math.min(at, shown.length), 0, it);
  });
  return shown;
}

const VERDICTS: Record<hub.Decision["decision"], string> = {
  approved: "Approved",
  rejected: "Rejected",
  released: "Released",
  edited: "Released, edited",
  dropped: "Dropped",
  accepted: "Accepted",
};

export const verdict = (it: hub.Decision) =>
  it.kind === "call" && it.decision === "edited" ? "Approved, edited" : (VERDICTS[it.decision] ?? it.decision);

/** What came of a decision, in words, and whether that is well, ill, or not known yet. */
export function outcome({ kind, decision, by, outcome: came }: hub.Decision): { text: string; tone: "good" | "bad" | "" } {
  if (kind === "call") return { text: by ? `@${by} was told` : "Told", tone: "" };
  if (decision === "approved") {
    if (came === "answered") return { text: "Done", tone: "good" };
    if (came === "failed") return { text: "It failed", tone: "bad" };
    if (came === "cancelled") return { text: "Cancelled", tone: "" };
    return { text: "No answer yet", tone: "" };
  }
  if (decision === "rejected") {
    if (came === "open") return { text: "Still open: more must reject it", tone: "" };
    if (came === "fulfilled") return { text: "Somebody else approved it", tone: "bad" };
    if (came === "rejected") return { text: "Closed", tone: "good" };
    if (came === "withdrawn") return { text: "Withdrawn", tone: "" };
    return { text: "It expired", tone: "" };
  }
  if (decision === "dropped") return { text: "It went no further", tone: "good" };
  if (decision === "accepted") return { text: "Listed and callable", tone: "good" };
  return { text: "It went on", tone: "good" };
}
