/** How a message was protected, in words and colour (MMP section 6.3). */
import type { Protection } from "../crypto/opening";
import { Icon, type IconName } from "./parts";

const WORDS: Record<Protection, { text: string; title: string; icon: IconName }> = {
  end_to_end: {
    text: "End-to-end",
    title: "Encrypted between your key and theirs. The hub could not read it.",
    icon: "lock",
  },
  server: {
    text: "Encrypted by the hub",
    title: "The hub encrypted it for storage, and can read it.",
    icon: "unlock",
  },
  opened_elsewhere: {
    text: "Decrypted before this page",
    title: "Said to be end-to-end. It was decrypted before it reached this page.",
    icon: "unlock",
  },
  closed: {
    text: "Not readable here",
    title: "It is encrypted end to end, and does not open with a key that is here.",
    icon: "warning",
  },
};

interface Props {
  protection: Protection;
  verified?: boolean;
}

export function ProtectionMark({ protection, verified = false }: Props) {
  const { text, title, icon } = WORDS[protection];
  return (
    <span class={`protection ${protection}`} title={title}>
      <Icon name={icon} />
      {text}
      {verified && ", key compared"}
    </span>
  );
}
