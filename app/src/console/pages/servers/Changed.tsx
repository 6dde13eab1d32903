/** Tools that changed or were added: what is different, to accept it exactly as it was read. */
import { useState } from "preact/hooks";

import type * as hub from "../../../api/schema";
import { Button, Notice } from "../../../components/parts";
import { attempt, send, useLoad } from "../../data";
import { Card } from "../../parts/Card";
import { visible } from "../../parts/compare";
import { ObjectDiff } from "../../parts/Diff";
import { Section } from "../../parts/PageHead";
import { Loaded } from "../../parts/Problem";
import { counted, Time } from "../../parts/Time";

export function Changed({ namespace }: { namespace: string }) {
  const query = new URLSearchParams({ namespace });
  const load = useLoad<hub.ChangedTools>(`/v1/pins?${query}`, ["pins.changed", "server.changed"]);
  return (
    <Section
      title="To review"
      hint="These are neither listed nor callable until you accept them. Read them as a model would: a description can be written to mislead one."
    >
      <Loaded load={load}>
        {({ tools, count }) => (
          <>
            {tools.map((tool) => (
              <Review key={`${tool.name} ${tool.changed_hash}`} tool={tool} onDone={load.reload} />
            ))}
            {count > tools.length && (
              <p class="small soft">{counted(count - tools.length, "more")} after these.</p>
            )}
          </>
        )}
      </Loaded>
    </Section>
  );
}

/** One tool to accept; also among what waits for decisions. */
export function Review({ tool, risk, onDone }: { tool: hub.ChangedTool; risk?: hub.Ask["risk"]; onDone: () => Promise<void> }) {
  const [busy, setBusy] = useState(false);
  const { namespace, name, canonical, changed_hash } = tool;
  const accept = async () => {
    setBusy(true);
    const tools = [{ namespace, name, changed_hash }];
    const done = await attempt(() => send<hub.AcceptedTools>("POST", "/v1/pins/accept", { tools }));
    setBusy(false);
    if (done) {
      await attempt(
        onDone,
        done.accepted.length ? `Accepted ${canonical}.` : `${canonical} has changed again. Read it once more.`,
      );
    }
  };
  return (
    <Card
      title={`${tool.new ? "New tool" : "Changed tool"} ${visible(canonical)}`}
      risk={risk}
      beside={
        <span class="small soft">
          seen <Time at={tool.since} />
        </span>
      }
    >
      {tool.findings.length > 0 && (
        <Notice tone="danger">Its description has suspicious content: {tool.findings.join(", ")}.</Notice>
      )}
      {tool.changed ? (
        <ObjectDiff before={tool.pinned} after={tool.changed} />
      ) : (
        <pre class="json" tabIndex={0}>
          {tool.lines.join("\n")}
        </pre>
      )}
      <div class="line decisions">
        <Button kind="primary" disabled={busy} onClick={() => void accept()}>
          Accept {visible(canonical)}
        </Button>
      </div>
    </Card>
  );
}
