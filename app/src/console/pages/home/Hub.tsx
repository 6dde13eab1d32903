/** How the hub is, for operators: what needs attention first, then what it uses. */
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Notice } from "../../../components/parts";
import { attempt, say, useLoad } from "../../data";
import { Section } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { Progress } from "../../parts/Progress";
import { bytes, counted, duration } from "../../parts/Time";
import { pathTo } from "../../router";
import { follow } from "../servers/hub";

/** Of a server that `/v1/servers` lists, what is looked at here. */
interface Server {
  namespace: string;
  state: string;
  why: string;
}

const QUOTAS: Record<string, string> = {
  mail: "Mail",
  rooms: "Rooms",
  memory_rooms: "Rooms in memory",
};
const OLD = 7 * 86_400;
const DOWN = new Set(["down", "broken"]);

export function Hub() {
  const status = useLoad<hub.HubStatus>("/v1/status", ["settings.changed"]);
  const servers = useLoad<{ backends: Server[] }>("/v1/servers", ["server.changed", "settings.changed"]);
  return (
    <Section title="The hub" beside={<a href="/servers">Servers</a>}>
      <Loaded load={servers}>{({ backends }) => <Servers all={backends} />}</Loaded>
      <Loaded load={status}>
        {({ version, uptime, quotas, disk }) => (
          <>
            <p class="soft">
              Version {version}, running for {duration(uptime)}
            </p>
            {Object.entries(quotas).map(([name, { used, limit }]) => (
              <Quota key={name} label={QUOTAS[name] ?? name} used={used} limit={limit} />
            ))}
            {disk && <Disk {...disk} />}
          </>
        )}
      </Loaded>
      <Backups />
    </Section>
  );
}

/** When the last backup was made, and a button for the next; a database that is no file has none. */
function Backups() {
  const load = useLoad<hub.KeptBackups>("/v1/backups");
  const [busy, setBusy] = useState(false);
  if (!load.data?.folder) return null;
  const { last_at, folder } = load.data;
  const back = async () => {
    setBusy(true);
    const done = await attempt(() => follow<hub.BackedUp>("/v1/backups", { body: {} }));
    setBusy(false);
    if (done) say(`Backed up ${bytes(done.size)} to ${folder}. Keep a copy elsewhere, and the master key apart from it.`);
    await load.reload();
  };
  const age = last_at === null ? null : Date.now() / 1000 - last_at;
  return (
    <div class="line">
      <p class={age === null || age > OLD ? "grow bad-text" : "grow"}>
        {age === null ? "No backup yet." : age < 60 ? "Backed up just now." : `Last backup ${duration(age)} ago.`}
      </p>
      <Button disabled={busy} onClick={() => void back()}>
        {busy ? "Backing up…" : "Back up now"}
      </Button>
    </div>
  );
}

function Servers({ all }: { all: Server[] }) {
  const down = all.filter((it) => DOWN.has(it.state));
  if (!all.length) return <p class="soft">No servers yet.</p>;
  if (!down.length) return <p>{counted(all.length, "server")} behind the hub, none is down.</p>;
  return (
    <Notice tone="danger">
      <p>
        {down.length} of {counted(all.length, "server")} {down.length === 1 ? "is" : "are"} down:
      </p>
      <ul>
        {down.map((it) => (
          <li key={it.namespace}>
            <a href={pathTo("servers", it.namespace)}>{it.namespace}</a>
            {it.why && `: ${it.why}`}
          </li>
        ))}
      </ul>
    </Notice>
  );
}

function Quota({ label, used, limit }: { label: string; used: number; limit: number }) {
  if (!limit) {
    return (
      <p>
        {label}: {bytes(used)}, no limit
      </p>
    );
  }
  return <Progress label={label} value={used} max={limit} text={`${bytes(used)} of ${bytes(limit)}`} />;
}

function Disk({ free, least }: hub.FreeDisk) {
  const words: ComponentChildren = `Disk: ${bytes(free)} free`;
  if (free > least * 2) return <p>{words}</p>;
  return (
    <Notice tone={free <= least ? "danger" : "warning"}>
      {words}. The hub stores nothing new once less than {bytes(least)} is free.
    </Notice>
  );
}
