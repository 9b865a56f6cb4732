// One Application as a tile.

import { memo } from "react";
import { healthOf, keyOf, sourcesOf, syncedAt, syncedRevision, syncOf } from "../model/applications";
import { ago, exact, shortRevision } from "../model/time";
import { shortRepo } from "../model/url";
import { applicationPath, Link } from "../router";
import { type Commands, idOf, Star } from "./app-menu";
import type { RowProps } from "./app-row";
import { Badge, toneOf } from "./status";

export const Tile = memo(function Tile({ app, now, picked, pick, position, total, favourite, act }: RowProps & Commands) {
  const { metadata, spec, status } = app;
  const { name } = metadata;
  const [source, ...others] = sourcesOf(app);
  const phase = status?.operationState?.phase ?? "";
  const synced = syncedAt(app);
  const cluster = spec.destination?.name || spec.destination?.server || "";
  return (
    <div role="listitem" aria-posinset={position} aria-setsize={total} className={`app-tile tone-${toneOf(healthOf(app))}`} data-app={name} data-item={keyOf(app)}>
      <div className="app-tile-head">
        <div className="app-name">
          <Link to={applicationPath(idOf(app))} className="cover">
            {name}
          </Link>
        </div>
        <span className="above">
          <Star app={app} favourite={favourite} act={act} />
        </span>
        <label className="app-pick above">
          <input type="checkbox" aria-label={`Choose ${name}`} checked={picked} onChange={() => pick(app)} />
        </label>
      </div>
      <div className="app-status">
        <Badge word={syncOf(app)} />
        <Badge word={healthOf(app)} title={status?.health?.message} />
        {["Running", "Terminating", "Failed", "Error"].includes(phase) && <Badge word={phase} title={status?.operationState?.message} />}
        {metadata.deletionTimestamp && <span className="badge tone-bad">Deleting</span>}
      </div>
      <dl>
        <dt>Project</dt>
        <dd className="clip">{spec.project}</dd>
        <dt>Source</dt>
        <dd className="clip" title={source?.repoURL}>
          {shortRepo(source?.repoURL ?? "–")}
          {others.length > 0 && ` and ${others.length} more`}
        </dd>
        <dt>{source?.chart ? "Chart" : "Path"}</dt>
        <dd className="clip">{source?.chart ?? source?.path ?? "–"}</dd>
        <dt>Revision</dt>
        <dd className="clip">
          {syncedRevision(app)} <code title={status?.sync?.revision}>{shortRevision(status?.sync?.revision)}</code>
        </dd>
        <dt>Cluster</dt>
        <dd className="clip" title={cluster}>
          {cluster.replace(/^https?:\/\//, "") || "–"}
        </dd>
        <dt>Namespace</dt>
        <dd className="clip">{spec.destination?.namespace || "–"}</dd>
        <dt>Last sync</dt>
        <dd title={exact(synced)}>{synced ? ago(synced, now) : "never"}</dd>
      </dl>
      <div className="app-tile-tools above">
        <button type="button" className="small" aria-label={`Sync ${name}`} data-deed="sync" onClick={() => act("sync", app)}>
          Sync…
        </button>
        <button type="button" className="small" aria-label={`Refresh ${name}`} data-deed="refresh" onClick={() => act("refresh", app)}>
          Refresh
        </button>
        <button type="button" className="small" aria-label={`Delete ${name}`} data-deed="delete" onClick={() => act("delete", app)}>
          Delete…
        </button>
      </div>
    </div>
  );
});
