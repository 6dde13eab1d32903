import type { OperationName, Operations } from "./types";

/** Calls one of the hub's operations. A host stands behind it in an app, `fetch` in a browser. */
export type Call = <Name extends OperationName>(
  name: Name,
  args: Operations[Name][0],
) => Promise<Operations[Name][1]>;

const SIGNED_OUT = "Authentication required";

/** The hub answered, and said no; the message is for the reader. */
export class Refused extends Error {
  /** Whether nobody is signed in, so that every other call is refused as well. */
  readonly signedOut: boolean;
  /** The answer's status and the error's code, where REST refused. */
  readonly status: number;
  readonly code: string;

  constructor(
    message: string,
    signedOut = message.startsWith(SIGNED_OUT),
    status = 0,
    code = "",
  ) {
    super(message);
    this.name = "Refused";
    this.signedOut = signedOut;
    this.status = status;
    this.code = code;
  }
}

/** No answer came: the hub or the way to it is down, and the call may be tried again. */
export class Unreachable extends Error {
  constructor() {
    super("The hub does not answer. Trying again.");
    this.name = "Unreachable";
  }
}

/** What went wrong, in words for the reader. */
export function sentence(error: unknown): string {
  return error instanceof Error && error.message ? error.message : "Something went wrong.";
}

/** What surrounds the inbox: a host's frame or a browser, and what they can do for it. */
export interface Surroundings {
  call: Call;
  /** Opens a web address outside of the page. */
  openLink(url: string): void;
  /** Sends the assistant a message as the reader's; absent where there is no assistant. */
  askAssistant?: ((text: string) => Promise<void>) | undefined;
  /** Tells the assistant what it should know from now on, without a turn of its own. */
  informAssistant?: ((text: string) => Promise<void>) | undefined;
  /** Saves a file; absent where the page must show it instead. */
  saveFile?: ((name: string, text: string) => Promise<void>) | undefined;
  /** Whether the hub's navigation stands beside the inbox, with whose it is. */
  framed?: boolean | undefined;
  /** Opens the page about the reader's account; absent where there is none. */
  openAccount?: (() => void) | undefined;
}
