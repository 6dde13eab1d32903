/** Whether the reader is signed in to servers that want it of each person, and the way to do so. */
import type * as hub from "../../../api/schema";
import { Button } from "../../../components/parts";
import { attempt, send, useLoad } from "../../data";
import { Confirm } from "../../parts/Confirm";

const PATH = "/v1/me/connections";

/** What is shown of a server's sign-in, by its namespace; null for one that wants none. */
export function useSignIns() {
  const load = useLoad<hub.ConnectionList>(PATH, ["connections.changed"]);
  const known = new Map(load.data?.connections.map((it) => [it.namespace, it]));
  return (namespace: string) => {
    const found = known.get(namespace);
    return found ? <SignIn connection={found} onChange={() => void load.reload()} /> : null;
  };
}

function SignIn({ connection, onChange }: { connection: hub.Connection; onChange: () => void }) {
  const { namespace, state, shared, may_sign_in: may } = connection;
  const begin = async () => {
    const begun = await attempt(() => send<hub.ConnectionBegun>("POST", PATH, { namespace }));
    if (begun) location.assign(begun.url);
  };
  const forget = async () => {
    await attempt(() => send("DELETE", `${PATH}/${encodeURIComponent(namespace)}`), `Signed out of ${namespace}.`);
    onChange();
    return true;
  };
  const whose = shared ? " for everyone" : "";
  if (state === "live") {
    return (
      <div class="line">
        <span class="small">Signed in{whose}</span>
        {may && (
          <Confirm label="Forget" question={`Sign out of ${namespace}${whose}?`} onConfirm={forget} />
        )}
      </div>
    );
  }
  if (!may) return <span class="small soft">An operator has to sign in</span>;
  return (
    <div>
      {state === "lapsed" && <p class="small bad-text">Your sign-in has ended.</p>}
      <Button onClick={() => void begin()}>Sign in{whose}</Button>
    </div>
  );
}
