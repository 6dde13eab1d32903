import "./quiet";

import { render } from "preact";

import { Inbox } from "../components/Inbox";
import { Keyring } from "../crypto/keyring";
import { browserStorage } from "../crypto/storage";
import { Mailbox } from "../mail/mailbox";
import { connect } from "./host";

import "../design/tokens.css";
import "../design/base.css";
import "../design/inbox.css";
import "../design/conversation.css";
import "../design/views.css";

const root = document.getElementById("inbox")!;

async function start(): Promise<void> {
  if (window.parent === window) {
    render(<p class="pad">This page is shown by an MCP client. Ask your assistant to open it.</p>, root);
    return;
  }
  let mailbox: Mailbox | null = null;
  const host = await connect(() => mailbox?.stop());
  const storage = browserStorage();
  mailbox = new Mailbox(host.around, new Keyring(storage), storage);
  render(<Inbox mailbox={mailbox} />, root);
  await mailbox.start(await host.opened);
}

void start();
