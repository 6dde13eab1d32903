/** The host's side of the inbox: an MCP client that shows it in a frame. */
import { App } from "@modelcontextprotocol/ext-apps";

import { type Call, Refused, type Surroundings, Unreachable } from "../api/call";
import type { Opened } from "../api/types";
import { place } from "../text/time";

type Context = NonNullable<ReturnType<App["getHostContext"]>>;
type Result = Awaited<ReturnType<App["callServerTool"]>>;

const CALL_MS = 30_000;

export interface Host {
  around: Surroundings;
  /** What the tool that opened the app gave; undefined when nobody is signed in, or it never came. */
  opened: Promise<Opened | undefined>;
}

export async function connect(onTeardown: () => void): Promise<Host> {
  const app = new App({ name: "folkmoot-inbox", version: "1.0.0" }, {}, { autoResize: true });
  const opened = new Promise<Opened | undefined>((resolve) => {
    app.ontoolresult = (result) => resolve(result.isError ? undefined : payload(result as Result));
    app.ontoolcancelled = () => resolve(undefined);
    setTimeout(() => resolve(undefined), 2_000);
  });
  app.onhostcontextchanged = (changed) => adapt({ ...app.getHostContext(), ...changed });
  app.onteardown = async () => {
    onTeardown();
    return {};
  };
  await app.connect();
  adapt(app.getHostContext() ?? {});
  return { around: surroundings(app), opened };
}

function surroundings(app: App): Surroundings {
  const can = app.getHostCapabilities() ?? {};
  const listed = app.getHostContext()?.toolInfo?.tool.name ?? "";
  const call = (async (name: string, args: Record<string, unknown>) => {
    // A host may know tools only as the hub lists them to it.
    const spelled = listed.includes("/") ? name : name.replace("/", "_");
    let result: Result;
    try {
      const params = { name: spelled, arguments: args };
      result = await app.callServerTool(params, { timeout: CALL_MS });
    } catch {
      throw new Unreachable();
    }
    const answer = payload(result) as Record<string, unknown> | undefined;
    if (result.isError || !answer) {
      const said = answer?.["error"];
      throw new Refused(typeof said === "string" ? said : "The hub refused without a reason.");
    }
    return answer;
  }) as Call;
  const text = (words: string) => [{ type: "text" as const, text: words }];
  return {
    call,
    openLink: (url) => void app.openLink({ url }).catch(() => {}),
    askAssistant: can.message
      ? async (words) => {
          const answer = await app.sendMessage({ role: "user", content: text(words) });
          if (answer.isError) throw new Refused("Your assistant did not take the request.");
        }
      : undefined,
    informAssistant: can.updateModelContext
      ? async (words) => void (await app.updateModelContext({ content: text(words) }))
      : undefined,
    saveFile: can.downloadFile
      ? async (name, words) => {
          const resource = { uri: `file:///${name}`, mimeType: "application/json", text: words };
          const answer = await app.downloadFile({ contents: [{ type: "resource", resource }] });
          if (answer.isError) throw new Refused("The file was not saved.");
        }
      : undefined,
  };
}

/** What a result says: as data, or as the text that clients without structured content get. */
function payload<T>(result: Result): T | undefined {
  if (result.structuredContent) return result.structuredContent as T;
  const block = result.content?.find((each) => each.type === "text");
  try {
    return block && (JSON.parse(block.text) as T);
  } catch {
    return undefined;
  }
}

/** Our colours and fonts, and what a host calls its own. */
const STYLES: readonly (readonly [string, keyof NonNullable<NonNullable<Context["styles"]>["variables"]>])[] = [
  ["--paper", "--color-background-primary"],
  ["--sheet", "--color-background-secondary"],
  ["--ink", "--color-text-primary"],
  ["--soft", "--color-text-secondary"],
  ["--edge", "--color-border-primary"],
  ["--line", "--color-border-secondary"],
  ["--danger", "--color-text-danger"],
  ["--danger-wash", "--color-background-danger"],
  ["--warning", "--color-text-warning"],
  ["--warning-wash", "--color-background-warning"],
  ["--info", "--color-text-info"],
  ["--info-wash", "--color-background-info"],
  ["--sans", "--font-sans"],
  ["--serif", "--font-sans"],
  ["--mono", "--font-mono"],
  ["--round", "--border-radius-md"],
  ["--round-large", "--border-radius-lg"],
];

/** Theme, colours, fonts, language, time zone and size are the host's. */
function adapt(context: Context): void {
  const root = document.documentElement;
  if (context.theme) root.dataset["theme"] = context.theme;
  const { variables } = context.styles ?? {};
  for (const [own, theirs] of STYLES) if (variables?.[theirs]) root.style.setProperty(own, variables[theirs]);
  place.value = { locale: context.locale, timeZone: context.timeZone };
  const size = context.containerDimensions ?? {};
  const fixed = "height" in size ? size.height : undefined;
  const most = "maxHeight" in size ? size.maxHeight : undefined;
  const full = context.displayMode === "fullscreen";
  root.dataset["fill"] = fixed || full ? "yes" : "no";
  root.style.setProperty("--most-height", most ? `${most}px` : "40rem");
  const inset = context.safeAreaInsets;
  if (inset) {
    const sides = [inset.top, inset.right, inset.bottom, inset.left];
    root.style.setProperty("--safe-area", sides.map((side) => `${side}px`).join(" "));
  }
}
