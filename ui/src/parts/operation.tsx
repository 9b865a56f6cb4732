// What the last operation did, resource by resource.

import type { Application } from "../api/types";
import { ago, exact, shortRevision } from "../model/time";
import { refKey } from "../model/tree";
import { Badge } from "./status";

export function Operation({ app, now }: { app: Application; now: number }) {
  const operation = app.status?.operationState;
  if (!operation) return <p className="dim">There has been no sync yet.</p>;
  const results = operation.syncResult?.resources ?? [];
  const by = operation.operation?.initiatedBy;
  const who = by?.automated ? "automatically" : by?.username ? `by ${by.username}` : "";
  return (
    <>
      <div className="section-head">
        <Badge word={operation.phase} />
        <span className="dim" title={exact(operation.startedAt)}>
          {[operation.operation?.sync?.dryRun ? "dry run" : "", who, ago(operation.startedAt, now)].filter(Boolean).join(" · ")}
        </span>
        {operation.syncResult?.revision && <code title={operation.syncResult.revision}>{shortRevision(operation.syncResult.revision)}</code>}
      </div>
      {operation.message && <p className="operation-message">{operation.message}</p>}
      {results.length > 0 && (
        <ul className="results" aria-label="Results">
          {results.map((r, i) => (
            <li key={`${refKey(r)} ${i}`}>
              <span className="result-phase dim">{r.hookType || r.syncPhase}</span>
              <span className="result-what">
                <b>{r.kind}</b> {r.name}
              </span>
              <Badge word={r.hookType ? r.hookPhase : r.status || r.hookPhase} />
              <span className="dim result-message">{r.message}</span>
            </li>
          ))}
        </ul>
      )}
    </>
  );
}
