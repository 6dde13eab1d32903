/** What is new in a room: an invitation and mentions stand out, unread messages do not. */
interface Props {
  unread?: number | undefined;
  mentions?: number | undefined;
  invited?: boolean | undefined;
}

const MOST = 99;
const shown = (count: number) => (count > MOST ? `${MOST}+` : String(count));

export function NewsBadges({ unread = 0, mentions = 0, invited = false }: Props) {
  return (
    <>
      {invited && <span class="badge">You are invited</span>}
      {mentions > 0 && (
        <span class="badge" title={mentions === 1 ? "1 mention of you" : `${shown(mentions)} mentions of you`}>
          {`@ ${shown(mentions)}`}
          <span class="hidden"> mentions of you</span>
        </span>
      )}
      {unread > 0 && <span class="badge quiet">{`${shown(unread)} unread`}</span>}
    </>
  );
}
