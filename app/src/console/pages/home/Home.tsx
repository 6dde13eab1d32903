/** `/`: what is new for the reader. */
import { unread } from "../../badges";
import { PageHead } from "../../parts/PageHead";
import { counted } from "../../parts/Time";
import { may, who } from "../../session";

export function Home() {
  const name = who.value?.display_name || `@${who.value?.handle}`;
  return (
    <>
      <PageHead title={`Hello, ${name}`} />
      {may("mail.read") && (
        <p>
          {unread.value ? (
            <a href="/inbox">{counted(unread.value, "unread message")}</a>
          ) : (
            <>
              No unread messages. <a href="/inbox">Open your inbox</a>
            </>
          )}
        </p>
      )}
    </>
  );
}
