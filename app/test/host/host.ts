/**
 * A host for the browser tests: the official client and AppBridge, and the inbox in a sandboxed frame.
 * `window.openInbox` begins; `window.host` holds what the app said and sent.
 */
import { Client, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";
import { AppBridge, PostMessageTransport } from "@modelcontextprotocol/ext-apps/app-bridge";

import { plain } from "./plain";

interface Options {
  url: string;
  token?: string;
  sandbox: string;
  theme?: "light" | "dark";
  locale?: string;
  timeZone?: string;
  /** Where a page is that holds the sandboxed frame; without one it is in this page. */
  proxy?: string;
  /** The inbox fills a container of this height; without one it says how high it is. */
  height?: number;
}

const APPS = "io.modelcontextprotocol/ui";
const STORING = "allow-scripts allow-same-origin";
const TYPE = "text/html;profile=mcp-app";

const host = {
  messages: [] as string[],
  contexts: [] as string[],
  links: [] as string[],
  files: [] as string[],
  heights: [] as number[],
  calls: [] as string[],
  meta: null as unknown,
  bridge: null as AppBridge | null,
};

async function openInbox(options: Options): Promise<void> {
  const capabilities = { extensions: { [APPS]: { mimeTypes: [TYPE] } } };
  const client = new Client({ name: "test-host", version: "1.0.0" }, { capabilities });
  const headers = options.token ? { Authorization: `Bearer ${options.token}` } : {};
  await client.connect(
    new StreamableHTTPClientTransport(new URL(options.url), { requestInit: { headers } }),
  );
  const { tools } = await client.listTools();
  const tool = tools.find((each) => each.name === "msg_open_inbox")!;
  const read = await client.readResource({ uri: "ui://mmp-inbox" });
  const content = read.contents[0] as { text: string; mimeType: string; _meta?: unknown };
  host.meta = { mimeType: content.mimeType, ...(content._meta as object) };

  const frame = document.createElement("iframe");
  frame.title = "Inbox";
  frame.setAttribute("sandbox", options.proxy ? STORING : options.sandbox);
  document.body.append(frame);

  const size = options.height
    ? { height: options.height, width: window.innerWidth }
    : { maxHeight: 900, width: window.innerWidth };
  const bridge = new AppBridge(
    client,
    { name: "test-host", version: "1.0.0" },
    { openLinks: {}, serverTools: {}, message: { text: {} }, updateModelContext: { text: {} }, downloadFile: {} },
    {
      hostContext: {
        toolInfo: { tool },
        theme: options.theme ?? "light",
        locale: options.locale ?? "en-GB",
        timeZone: options.timeZone ?? "UTC",
        displayMode: "inline",
        containerDimensions: size,
      },
    },
  );
  host.bridge = bridge;
  const callTool = client.callTool.bind(client);
  client.callTool = (params, ...rest) => {
    host.calls.push(params.name);
    return callTool(params, ...rest);
  };
  const texts = (blocks: unknown) =>
    (blocks as { text?: string }[] | undefined)?.map((each) => each.text ?? "").join("\n") ?? "";
  bridge.onmessage = async ({ content: blocks }) => {
    host.messages.push(texts(blocks));
    return {};
  };
  bridge.onupdatemodelcontext = async ({ content: blocks }) => {
    host.contexts.push(texts(blocks));
    return {};
  };
  bridge.onopenlink = async ({ url }) => {
    host.links.push(url);
    return {};
  };
  bridge.ondownloadfile = async ({ contents }) => {
    const first = contents[0] as { resource?: { text?: string } };
    host.files.push(first.resource?.text ?? "");
    return {};
  };
  bridge.onsizechange = ({ height }) => {
    if (height === undefined) return;
    host.heights.push(height);
    if (!options.height) frame.style.height = `${height}px`;
  };
  if (options.height) frame.style.height = `${options.height}px`;
  bridge.oninitialized = async () => {
    await bridge.sendToolInput({ arguments: {} });
    const result = await client.callTool({ name: tool.name, arguments: {} });
    await bridge.sendToolResult(result as Parameters<AppBridge["sendToolResult"]>[0]);
  };
  await bridge.connect(new PostMessageTransport(frame.contentWindow!, frame.contentWindow!));
  if (!options.proxy) {
    frame.srcdoc = content.text;
    return;
  }
  bridge.onsandboxready = () =>
    void bridge.sendSandboxResourceReady({ html: content.text, sandbox: options.sandbox });
  frame.src = options.proxy;
}

Object.assign(window, { host, openInbox, plain });
