/** Proposals of rooms over REST: reading them, and deciding exactly once. */
import { Refused } from "../../api/call";
import type * as hub from "../../api/schema";
import { ask } from "../../web/rest";
import type { Json } from "./schema";

/** A proposal, with what its message says, as long as the room's history has it. */
export interface ProposalShown extends Omit<hub.Proposal, "message"> {
  room: string;
  method: string | undefined;
  params: Json | undefined;
}

const base = (room: string) => `/v1/rooms/${encodeURIComponent(room)}/proposals`;
const one = (room: string, id: string) => `${base(room)}/${encodeURIComponent(id)}`;
/** How long an approval waits for the answer of whoever is asked, in seconds. */
const WAIT = 20;

export function shown(room: string, view: hub.Proposal): ProposalShown {
  const { message, ...rest } = view;
  const payload = (message as { payload?: Record<string, Json> } | undefined)?.payload ?? {};
  const { method, params } = payload;
  return {
    ...rest,
    room,
    method: typeof method === "string" ? method : undefined,
    params,
  };
}

export async function fetchProposal(room: string, id: string): Promise<ProposalShown> {
  return shown(room, await ask<hub.Proposal>("GET", one(room, id)));
}

export async function fetchProposals(room: string): Promise<ProposalShown[]> {
  const page = await ask<hub.ProposalPage>("GET", `${base(room)}?limit=100`);
  return page.proposals.map((view) => shown(room, view));
}

/** The latest proposal before this one that asks the same of the same, if any is remembered. */
export function lastSuch(all: readonly ProposalShown[], given: ProposalShown): ProposalShown | undefined {
  const to = given.to.join();
  return all
    .filter((each) => each.seq < given.seq && each.kind === given.kind && each.to.join() === to)
    .reduce<ProposalShown | undefined>((last, each) => (last && last.seq > each.seq ? last : each), undefined);
}

/** Someone else decided first. */
export class TooLate extends Error {
  constructor(readonly proposal: ProposalShown) {
    super("Someone else was faster.");
    this.name = "TooLate";
  }
}

export const approve = (room: string, id: string, to?: string): Promise<hub.Outcome> => {
  const query = new URLSearchParams({ wait: String(WAIT), ...(to ? { to } : {}) });
  return decided(room, id, () => ask<hub.Outcome>("POST", `${one(room, id)}/approve?${query}`));
};

export const reject = (room: string, id: string, reason: string): Promise<hub.Outcome> =>
  decided(room, id, () => ask<hub.Outcome>("POST", `${one(room, id)}/reject`, { reason }));

/** A decision; where it was refused because another came first, who that was. */
async function decided(room: string, id: string, decide: () => Promise<hub.Outcome>): Promise<hub.Outcome> {
  try {
    return await decide();
  } catch (error) {
    if (!(error instanceof Refused) || error.signedOut) throw error;
    const now = await fetchProposal(room, id).catch(() => undefined);
    if (now && now.state !== "open") throw new TooLate(now);
    throw error;
  }
}
