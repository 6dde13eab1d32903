/** `/authorize` and `/device`: an app asks to use the reader's account; they say what it can do, or no. */
import { useEffect, useState } from "preact/hooks";

import { sentence } from "../api/call";
import type * as hub from "../api/schema";
import { Button, Check, Field, Notice, Ring } from "../components/parts";
import { ask } from "./rest";

export interface Reader {
  handle: string;
  onOther: () => void;
}

/** An app sent the reader here, and is told what they decide. */
export function Authorize(reader: Reader) {
  const asking = { query: location.search.slice(1) };
  return <Consent {...reader} path="/v1/authorization" asking={asking} onDone={(it: hub.Decided) => go(it.redirect)} />;
}

const go = (url: string) => location.replace(url);
const plain = (code: string) => code.replace(/[^A-Za-z]/g, "");

/** A program on another device shows a code, which the reader types here. */
export function Device(reader: Reader) {
  const [typed, setTyped] = useState(new URLSearchParams(location.search).get("user_code")?.slice(0, 32) ?? "");
  const [code, setCode] = useState("");
  const [done, setDone] = useState("");
  const decided = ({ allowed }: hub.DeviceDecided) =>
    setDone(allowed ? "The device is connected. You can close this page." : "The device was not connected.");

  if (code && !done) {
    const again = () => setCode("");
    const asking = { user_code: code };
    return <Consent {...reader} path="/v1/device-authorization" asking={asking} onDone={decided} onAgain={again} />;
  }
  return (
    <main class="welcome">
      <Ring size={72} stones={17} scale={5.4} />
      <h1 class="title">Connect a device</h1>
      {done ? (
        <Notice tone="good">
          <p role="status">{done}</p>
        </Notice>
      ) : (
        <form
          class="card stack"
          onSubmit={(event) => {
            event.preventDefault();
            setCode(typed);
          }}
        >
          <Field label="Code" value={typed} onInput={setTyped} most={32} hint="Eight letters, as the device shows them." />
          <p class="small soft">Type only a code that you see on your own device. Never one that somebody sent you.</p>
          <button type="submit" class="button primary" disabled={plain(typed).length !== 8}>
            Continue
          </button>
        </form>
      )}
    </main>
  );
}

interface Asking<T> extends Reader {
  path: string;
  asking: Record<string, string>;
  onDone: (decided: T) => void;
  onAgain?: () => void;
}

function Consent<T>({ handle, onOther, path, asking, onDone, onAgain }: Asking<T>) {
  const [asked, setAsked] = useState<hub.Authorization | null>(null);
  const [chosen, setChosen] = useState<ReadonlySet<string>>(new Set());
  const [error, setError] = useState("");
  const [back, setBack] = useState("");
  const [busy, setBusy] = useState(false);

  const load = async () => {
    setError("");
    try {
      const found = await ask<hub.Authorization>("GET", `${path}?${new URLSearchParams(asking)}`);
      // Anyone can register an address and lead here: nobody is sent there unasked.
      if (found.redirect) {
        setBack(found.redirect);
        return setError(new URL(found.redirect).searchParams.get("error_description") ?? "The app asked in a wrong way.");
      }
      setChosen(new Set(found.scopes.filter((it) => it.chosen).map((it) => it.scope)));
      setAsked(found);
    } catch (failure) {
      setError(sentence(failure));
    }
  };
  useEffect(() => void load(), [handle]);

  const decide = async (allow: boolean) => {
    setBusy(true);
    setError("");
    try {
      onDone(await ask<T>("POST", path, { ...asking, allow, scopes: allow ? [...chosen] : [] }));
    } catch (failure) {
      setError(sentence(failure));
      setBusy(false);
    }
  };
  const choose = (scope: string, on: boolean) => {
    const next = new Set(chosen);
    if (on) next.add(scope);
    else next.delete(scope);
    setChosen(next);
  };

  if (!asked) {
    return (
      <main class="welcome" aria-busy={!error}>
        <Ring size={72} stones={17} scale={5.4} />
        <h1 class="title">Connect an app</h1>
        {error ? (
          <Notice tone="danger">
            <p role="alert">{error}</p>
          </Notice>
        ) : (
          <p class="soft">Loading…</p>
        )}
        {error && <p class="soft">Nothing was connected. You can close this page.</p>}
        {back && <Button onClick={() => go(back)}>Back to {new URL(back).host || "the app"}</Button>}
        {error && onAgain && <Button onClick={onAgain}>Type the code again</Button>}
      </main>
    );
  }
  return (
    <main class="welcome">
      <Ring size={72} stones={17} scale={5.4} />
      <h1 class="title" id="page-title" tabIndex={-1}>
        Connect {asked.name}?
      </h1>
      <div class="card stack">
        <p>
          <b>{asked.name}</b> asks to use Folkmoot as <b>@{handle}</b>.
        </p>
        <p class="small soft">
          {asked.host
            ? `This app is published by ${asked.host}.`
            : "The app chose this name itself; nobody has checked it."}{" "}
          {asked.sent_to ? (
            <>
              You are sent back to <b>{asked.sent_to}</b>.
            </>
          ) : (
            <>
              It runs on the device that shows <b>{asking.user_code}</b>.
            </>
          )}
        </p>
        <fieldset class="stack plain">
          <legend>It can:</legend>
          {asked.scopes.map((it) => (
            <Check
              key={it.scope}
              checked={chosen.has(it.scope)}
              disabled={busy}
              onChange={(on) => choose(it.scope, on)}
            >
              {it.description} {it.scope.includes(":") && <code>{it.scope}</code>}
            </Check>
          ))}
        </fieldset>
        <p class="small soft">
          Connect only what you have just {asked.sent_to ? "opened" : "started"} yourself. You can end it under Account at any time.
        </p>
        {error && (
          <p class="small error" role="alert">
            {error}
          </p>
        )}
        <div class="line">
          <Button kind="primary" disabled={busy || chosen.size === 0} onClick={() => void decide(true)}>
            Connect
          </Button>
          <Button disabled={busy} onClick={() => void decide(false)}>
            Cancel
          </Button>
        </div>
      </div>
      <Button kind="plain" onClick={onOther}>
        Not @{handle}? Sign in as someone else
      </Button>
    </main>
  );
}
