/** Connect an assistant: what to give each one, and whether it has called yet. */
import { useEffect, useState } from "preact/hooks";

import { CopyText } from "../components/parts";
import { why } from "./passkeys";
import { ask } from "./rest";
import { createToken, type Credential, credentials } from "./session";

import "../design/clients.css";

interface Way {
  how: string;
  text: string;
}

/** What `/clients.json` answers; `token` stands where a token goes. */
interface Known {
  token: string;
  clients: { id: string; name: string; ways: Way[]; with_token: Way[] }[];
}

const POLL_MS = 3_000;
const MOST_ROWS = 12;
const CONNECTS: readonly Credential["kind"][] = ["app", "token"];

/** The assistants that have called. */
export const callers = (all: readonly Credential[]) =>
  all.filter((it) => CONNECTS.includes(it.kind) && it.used_at !== null);

interface Props {
  /** A token that the reader has in hand. */
  token?: string;
  /** Told once an assistant has called. */
  onConnected?: () => void;
}

export function Clients({ token: given = "", onConnected }: Props) {
  const [known, setKnown] = useState<Known | null>(null);
  const [chosen, setChosen] = useState("claude-code");
  const [token, setToken] = useState("");
  const [error, setError] = useState("");
  useEffect(() => {
    ask<Known>("GET", "/clients.json").then(setKnown, (failure) => setError(why(failure)));
  }, []);
  const client = known?.clients.find((it) => it.id === chosen);
  const withToken = async () => {
    setError("");
    try {
      setToken(given || (await createToken(client?.name ?? "assistant", "")).token);
    } catch (failure) {
      setError(why(failure));
    }
  };
  return (
    <div class="stack clients">
      <fieldset class="choices">
        <legend class="small soft">Your assistant</legend>
        {known?.clients.map(({ id, name }) => (
          <label key={id}>
            <input type="radio" name="client" checked={id === chosen} onChange={() => setChosen(id)} />
            {name}
          </label>
        ))}
      </fieldset>
      {(token ? client?.with_token : client?.ways)?.map((way) => {
        const text = token ? way.text.replaceAll(known!.token, token) : way.text;
        const rows = Math.min(text.split("\n").length + (text.length > 60 ? 1 : 0), MOST_ROWS);
        return <CopyText key={way.how} label={way.how} text={text} rows={rows} />;
      })}
      {token ? (
        <p class="small soft">This has a token in it. Anyone who has it can use your account.</p>
      ) : (
        <p class="small soft">
          It opens a page where you let it in. If it can’t,{" "}
          <button type="button" class="link" onClick={() => void withToken()}>
            use a token
          </button>
          .
        </p>
      )}
      {error && (
        <p class="small error" role="alert">
          {error}
        </p>
      )}
      <Waiting {...(onConnected ? { onConnected } : {})} />
    </div>
  );
}

/** Looks until an assistant has called. */
function Waiting({ onConnected }: { onConnected?: () => void }) {
  const [found, setFound] = useState<readonly Credential[]>([]);
  const done = found.length > 0;
  useEffect(() => {
    if (done) return onConnected?.();
    let timer: ReturnType<typeof setTimeout>;
    const look = async () => {
      if (!document.hidden) setFound(callers(await credentials().catch(() => [])));
      timer = setTimeout(() => void look(), POLL_MS);
    };
    void look();
    return () => clearTimeout(timer);
  }, [done]);
  const names = found.map((it) => it.label || "an assistant").join(", ");
  return <p role="status">{done ? `✓ Connected: ${names}` : "Waiting for its first call…"}</p>;
}
