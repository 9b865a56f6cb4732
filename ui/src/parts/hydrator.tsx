// What the hydrator of an Application does: from which commit it rendered, into which branch, and what went wrong.

import type { Application } from "../api/types";
import { shortRevision } from "../model/time";
import { Badge } from "./status";

export function HydratorTile({ app }: { app: Application }) {
  const { sourceHydrator: hydrator } = app.spec;
  if (!hydrator) return null;
  const { currentOperation: now, lastSuccessfulOperation: last } = app.status?.sourceHydrator ?? {};
  const { syncSource, hydrateTo } = hydrator;
  const to = hydrateTo?.targetBranch || syncSource?.targetBranch;
  const [dry, hydrated] = [now?.drySHA ?? last?.drySHA, now?.hydratedSHA ?? last?.hydratedSHA];
  return (
    <div className="tile-wide" data-hydrator>
      <dt>Hydrator</dt>
      <dd>{now?.phase ? <Badge word={now.phase} /> : <span className="dim">not yet</span>}</dd>
      <dd className="small" title={now?.message}>
        {now?.phase === "Failed" && now.message ? now.message : `${to ?? "–"} · ${syncSource?.path || "/"}`}
        {dry && (
          <>
            {" "}
            <code title={dry}>{shortRevision(dry)}</code> → {hydrated ? <code title={hydrated}>{shortRevision(hydrated)}</code> : "nothing to commit"}
          </>
        )}
      </dd>
    </div>
  );
}
