// One Application in the list.

import { memo } from "react";
import type { Application } from "../api/types";
import { healthOf, keyOf, sourcesOf, syncedAt, syncOf } from "../model/applications";
import { ago, exact, shortRevision } from "../model/time";
import { safeUrl, shortRepo } from "../model/url";
import { applicationPath, Link } from "../router";
import { AppMenu, type Commands, Star } from "./app-menu";
import { Badge, toneOf } from "./status";

export interface RowProps {
  app: Application;
  now: number;
  picked: boolean;
  pick: (app: Application) => void;
  position: number;
  total: number;
}

export const Row = memo(function Row({ app, now, picked, pick, position, total, favourite, act }: RowProps & Commands) {
  const { metadata, spec, status } = app;
  const sources = sourcesOf(app);
  const source = sources[0];
  const phase = status?.operationState?.phase ?? "";
  const busy = phase === "Running" || phase === "Terminating";
  const failed = phase === "Failed" || phase === "Error";
  const synced = syncedAt(app);
  const destination = spec.destination?.name || spec.destination?.server || "";
  const repo = safeUrl(source?.repoURL);
  const path = source?.chart ?? source?.path;
  return (
    <div role="listitem" aria-posinset={position} aria-setsize={total} className={`app-row tone-${toneOf(healthOf(app))}`} data-app={metadata.name} data-item={keyOf(app)}>
      <label className="app-pick above">
        <input type="checkbox" aria-label={`Choose ${metadata.name}`} checked={picked} onChange={() => pick(app)} />
      </label>
      <div className="app-name">
        <Link to={applicationPath({ name: metadata.name, namespace: metadata.namespace ?? "" })} className="cover">
          {metadata.name}
        </Link>
        <span className="dim">{spec.project}</span>
      </div>
      <div className="app-status">
        <Badge word={syncOf(app)} />
        <Badge word={healthOf(app)} title={status?.health?.message} />
        {(busy || failed) && <Badge word={phase} title={status?.operationState?.message} />}
        {metadata.deletionTimestamp && <span className="badge tone-bad">Deleting</span>}
      </div>
      <div className="app-source">
        <span className="clip" title={source?.repoURL}>
          {repo ? (
            <a className="above" href={repo} target="_blank" rel="noreferrer">
              {shortRepo(repo)}
            </a>
          ) : (
            shortRepo(source?.repoURL ?? "")
          )}
        </span>
        <span className="dim clip">
          {path && <span>{path} · </span>}
          {source?.targetRevision || "HEAD"}
          {status?.sync?.revision && <code title={status.sync.revision}>{shortRevision(status.sync.revision)}</code>}
          {sources.length > 1 && ` and ${sources.length - 1} more`}
        </span>
      </div>
      <div className="app-destination">
        <span className="clip">{spec.destination?.namespace || "–"}</span>
        <span className="dim clip" title={destination}>
          {destination.replace(/^https?:\/\//, "") || "–"}
        </span>
      </div>
      <div className="app-time" title={exact(synced)}>
        {synced ? ago(synced, now) : <span className="dim">never</span>}
      </div>
      <div className="app-tools above">
        <Star app={app} favourite={favourite} act={act} />
        <AppMenu app={app} favourite={favourite} act={act} />
      </div>
    </div>
  );
});
