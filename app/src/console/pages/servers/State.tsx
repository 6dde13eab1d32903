/** How a server is, in a word and with what can be done about it. */
import { visible } from "../../parts/compare";
import { duration } from "../../parts/Time";

const STATES: Record<string, { word: string; tone: string }> = {
  up: { word: "Up", tone: "good" },
  starting: { word: "Starting", tone: "" },
  down: { word: "Down", tone: "bad" },
  broken: { word: "Failing", tone: "bad" },
  sign_in: { word: "Sign in to use", tone: "" },
  off: { word: "Off", tone: "" },
};

export function State({ state }: { state: string }) {
  const { word, tone } = STATES[state] ?? { word: state, tone: "" };
  return (
    <span class={`server-state ${tone}`}>
      <span class="lamp" aria-hidden="true" />
      {word}
    </span>
  );
}

/** Why a server is not up, and when it is tried again. */
export function Why({ why, retryAfter = null }: { why: string; retryAfter?: number | null }) {
  if (!why) return null;
  return (
    <p class="small">
      {visible(why)}
      {retryAfter !== null && <span class="soft"> Tried again in {duration(Math.max(1, retryAfter))}.</span>}
    </p>
  );
}
