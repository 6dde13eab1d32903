/** A proposal among what waits; what its room knows beside it is read once it is on the screen. */
import { useEffect, useMemo, useRef, useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { send } from "../../data";
import { Proposal } from "../../parts/Proposal";
import { fetchProposals, shown } from "../../parts/proposals";
import { may, who } from "../../session";

export function AskedProposal({ ask, proposal }: { ask: hub.Ask; proposal: hub.Proposal }) {
  const room = ask.room ?? "";
  const [frame, seen] = useSeen();
  const view = useMemo(() => shown(room, proposal), [room, proposal.id, proposal.rejections]);
  const others = useRead(seen, () => fetchProposals(room));
  const candidates = useRead(seen && proposal.to.length !== 1, () => present(room));
  const decide = may("decide", room);
  return (
    <div ref={frame}>
      <Proposal
        proposal={view}
        others={others}
        mayApprove={decide && ask.may.includes("approve")}
        mayReject={decide && ask.may.includes("reject")}
        candidates={candidates ?? []}
        me={who.value?.handle ?? ""}
        showRoom
      />
    </div>
  );
}

async function present(room: string): Promise<string[]> {
  const here = await send<hub.ParticipantPage>("GET", `/v1/rooms/${encodeURIComponent(room)}/participants`);
  return here.participants.map((it) => it.id).filter((id) => id !== who.value?.handle);
}

/** Whether an element is, or was, on the screen. */
function useSeen() {
  const frame = useRef<HTMLDivElement>(null);
  const [seen, setSeen] = useState(false);
  useEffect(() => {
    if (!frame.current) return;
    const observer = new IntersectionObserver(([entry]) => {
      if (entry?.isIntersecting) setSeen(true);
    });
    observer.observe(frame.current);
    return () => observer.disconnect();
  }, []);
  return [frame, seen] as const;
}

/** Something that is read once it is wanted; null before that, and where it cannot be read. */
function useRead<T>(wanted: boolean, read: () => Promise<T>): T | null {
  const [found, setFound] = useState<T | null>(null);
  useEffect(() => {
    let alive = true;
    if (wanted) {
      read().then(
        (it) => alive && setFound(it),
        () => {},
      );
    }
    return () => {
      alive = false;
    };
  }, [wanted]);
  return found;
}

