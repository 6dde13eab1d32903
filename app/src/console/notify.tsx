/** Notifications of the browser about mentions and invitations, where the reader wants them. */
import { Check } from "../components/parts";
import type { HubEvent } from "../web/live";
import { say } from "./data";
import { keepOpen, useEvents } from "./live";
import { go, pathTo } from "./router";
import { guestOf, who } from "./session";

/** Chosen for each account on each device; absent where a page has no secure context. */
const key = () => `folkmoot.notify.${who.value?.handle ?? ""}`;
const possible = () => "Notification" in window && isSecureContext && !guestOf.value;

function isChosen(): boolean {
  try {
    return possible() && Notification.permission === "granted" && localStorage.getItem(key()) === "on";
  } catch {
    return false;
  }
}

async function choose(on: boolean): Promise<void> {
  // What is ticked is unticked again where the browser refuses.
  keepOpen.value = on;
  const granted = on && (await Notification.requestPermission()) === "granted";
  if (on && !granted) say("The browser does not allow notifications of this site. Its settings can.", true);
  if (granted) localStorage.setItem(key(), "on");
  else localStorage.removeItem(key());
  keepOpen.value = granted;
}

function sentence({ name, data }: HubEvent): string {
  if (name === "room.unread" && data["change"] === "mention") return `You were mentioned in ${data["room"]}`;
  if (name === "room.membership" && data["state"] === "invited") return `You are invited to ${data["room"]}`;
  return "";
}

/** Listens on every page; says nothing to one who looks at the page. */
export function Notifier() {
  keepOpen.value = isChosen();
  useEvents(["room.unread", "room.membership"], (event) => {
    const text = sentence(event);
    if (!text || !keepOpen.value || (!document.hidden && document.hasFocus())) return;
    try {
      const shown = new Notification(text, { tag: text });
      shown.onclick = () => {
        window.focus();
        go(pathTo("rooms", String(event.data["room"])));
      };
    } catch {
      // Some phones leave notifications to installed apps.
    }
  });
  return null;
}

export function NotifyToggle() {
  if (!possible()) return null;
  return (
    <Check checked={keepOpen.value} onChange={(on) => void choose(on)}>
      Notify me on this device
    </Check>
  );
}
