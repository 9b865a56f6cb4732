// What was synced before, and the way back to it.

import { useCallback, useState } from "react";
import { api, type AppName } from "../api/client";
import type { Application, Deployed } from "../api/types";
import { useAsked } from "../asked";
import { commitOf, historyOf, isAutomated, revisionOfRollback, revisionsOf, sourceChange, sourcesOfDeployed, whatOf } from "../model/history";
import { ago, exact, shortRevision } from "../model/time";
import { Ask } from "./ask";
import { DiffView } from "./diff";
import { Plan } from "./plan";
import { useToast } from "./shell";

export function History({ app, id, now }: { app: Application; id: AppName; now: number }) {
  const [asking, setAsking] = useState<Deployed>();
  const entries = historyOf(app);
  if (entries.length === 0) return <p className="dim">Nothing was synced yet.</p>;
  const isAuto = isAutomated(app);
  return (
    <>
      {isAuto && entries.length > 1 && <p className="dim">Automated sync follows Git. Switch it off before rolling back, or revert the commit in Git.</p>}
      <ul className="results history" aria-label="History">
        {entries.map((entry, at) => (
          <li key={entry.id ?? at} data-history={entry.id}>
            <Entry entry={entry} id={id} now={now} />
            {at === 0 ? (
              <span className="badge tone-good">Latest</span>
            ) : (
              <button type="button" className="small" disabled={isAuto} onClick={() => setAsking(entry)}>
                Roll back…
              </button>
            )}
          </li>
        ))}
      </ul>
      {asking && <Back app={app} id={id} to={asking} onClose={() => setAsking(undefined)} />}
    </>
  );
}

function Entry({ entry, id, now }: { entry: Deployed; id: AppName; now: number }) {
  const by = entry.initiatedBy;
  return (
    <div className="history-entry">
      <div>
        {revisionsOf(entry).map((revision, i) => (
          <code key={i} title={revision}>
            {shortRevision(revision)}
          </code>
        ))}
        <span className="dim" title={exact(entry.deployedAt)}>
          {[ago(entry.deployedAt, now), by?.automated ? "automatically" : by?.username && `by ${by.username}`].filter(Boolean).join(" · ")}
        </span>
      </div>
      <Commit id={id} revision={commitOf(entry)} />
      {sourcesOfDeployed(entry).map((source, i) => (
        <p key={i} className="dim">
          {whatOf(source)}
        </p>
      ))}
    </div>
  );
}

/** Its message and author. A revision that nobody finds any more has none. */
function Commit({ id, revision }: { id: AppName; revision: string | undefined }) {
  const { name, namespace } = id;
  const { value, error } = useAsked(
    useCallback(async (signal: AbortSignal) => (revision ? await api.revision({ name, namespace }, revision, signal) : undefined), [name, namespace, revision]),
  );
  if (error) return <p className="dim">Its commit cannot be read: {error.message}</p>;
  if (!value) return null;
  return (
    <p>
      {value.message?.split("\n")[0]} <span className="dim">{value.author?.replace(/ <.*>$/, "")}</span>
    </p>
  );
}

const NONE: ReadonlySet<string> = new Set();

function Back({ app, id, to, onClose }: { app: Application; id: AppName; to: Deployed; onClose: () => void }) {
  const toast = useToast();
  const [prune, setPrune] = useState(false);
  const [policy] = useState(() => app.spec.syncPolicy?.syncOptions ?? []);
  const act = async () => {
    await api.rollback(id, to.id ?? 0, prune);
    toast("Rolling back");
  };
  const source = sourceChange(app, to);
  const revision = revisionOfRollback(app, to);
  return (
    <Ask title={`Roll ${app.metadata.name} back`} confirm="Roll back" wide act={act} onClose={onClose}>
      <p>
        To {revisionsOf(to).map(shortRevision).join(", ")}, as it was synced {exact(to.deployedAt)}. The Application still points to{" "}
        {app.spec.source?.targetRevision || "HEAD"}, so it will be OutOfSync.
      </p>
      <label className="check">
        <input type="checkbox" name="prune" checked={prune} onChange={(e) => setPrune(e.target.checked)} />
        <span>
          Prune<small>Delete what that revision does not have</small>
        </span>
      </label>
      {source && (
        <section aria-label="What differs of the source">
          <p className="notice tone-warn">It was synced from another source than the present one. The manifests below are those of the present source at that revision.</p>
          <DiffView {...source} from="source now" to="source then" same="" />
        </section>
      )}
      {revision ? (
        <Plan app={app} id={id} revision={revision} choice={{ prune, hooks: true, syncOptions: policy, left: NONE }} />
      ) : (
        <p className="dim">What it would change in the cluster cannot be shown: the server does not render these sources any more.</p>
      )}
    </Ask>
  );
}
