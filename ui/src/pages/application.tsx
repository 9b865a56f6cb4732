// One Application: its state, its resource tree, and what the last operation did. All live.

import { useCallback, useMemo, useState } from "react";
import { api, type AppName, type SyncOptions } from "../api/client";
import { useStream } from "../api/live";
import type { Application, ApplicationTree } from "../api/types";
import { Rollback } from "../catalog/rollback-dialog";
import { useMedia, useNow, useTitle } from "../hooks";
import { healthOf, sourcesOf, syncOf } from "../model/applications";
import { ago, exact, shortRevision } from "../model/time";
import { buildTree, type TreeNode } from "../model/tree";
import { safeUrl, shortRepo } from "../model/url";
import { Operation } from "../parts/operation";
import { Panel } from "../parts/panel";
import { Empty, Failure, LiveDot, useToast } from "../parts/shell";
import { Badge } from "../parts/status";
import { SyncDialog } from "../parts/sync-dialog";
import { TreeList, TreeView } from "../parts/tree";
import { Link } from "../router";

function useApplication(id: AppName) {
  const [app, setApp] = useState<Application>();
  const [deleted, setDeleted] = useState(false);
  const key = `${id.namespace}/${id.name}`;
  const open = useCallback(
    async (signal: AbortSignal, opened: () => void) => {
      // Says at once when there is no such Application; a stream would wait for it.
      setApp(await api.application(id, signal));
      await api.watch(id, signal, {
        open: opened,
        message: ({ type, application }) => (setDeleted(type === "DELETED"), type !== "DELETED" && setApp(application)),
      });
    },
    [key],
  );
  return { app, deleted, ...useStream(`application ${key}`, open) };
}

function useTree(id: AppName) {
  const [tree, setTree] = useState<ApplicationTree>();
  const key = `${id.namespace}/${id.name}`;
  const open = useCallback((signal: AbortSignal, opened: () => void) => api.watchTree(id, signal, { open: opened, message: setTree }), [key]);
  return { tree, ...useStream(`tree ${key}`, open) };
}

function find(node: TreeNode, key: string): TreeNode | undefined {
  if (node.key === key) return node;
  for (const child of node.children) {
    const found = find(child, key);
    if (found) return found;
  }
  return undefined;
}

export function ApplicationPage({ id }: { id: AppName }) {
  useTitle(id.name);
  const { app, deleted, connection, error } = useApplication(id);
  const { tree, connection: treeConnection, error: treeError } = useTree(id);
  const now = useNow();
  const wide = useMedia("(min-width: 760px)");
  const [selected, setSelected] = useState<string>();
  const root = useMemo(() => app && buildTree(app, tree), [app, tree]);
  const close = useCallback(() => setSelected(undefined), []);
  const select = useCallback(
    (key: string) => setSelected((now) => (now === key || key === "application" ? undefined : key)),
    [],
  );
  if (deleted || error?.status === 404)
    return (
      <Empty title={deleted ? `${id.name} was deleted` : `There is no Application ${id.name}`}>
        <Link to="/applications">All Applications</Link>
      </Empty>
    );
  if (!app || !root)
    return (
      <div className="page app-head">
        <nav aria-label="Where you are">
          <Link to="/applications">← Applications</Link>
        </nav>
        {error ? <Failure error={error} what={`${id.name} cannot be read.`} /> : <div className="skeleton" role="status" aria-label="Loading" />}
      </div>
    );
  const node = selected ? find(root, selected) : undefined;
  const shape = { root, now, selected, onSelect: select };
  return (
    <div className={`page page-app${node ? " with-panel" : ""}`}>
      <Header app={app} id={id} now={now} why={root.healthMessage} live={<LiveDot connection={connection === "live" ? treeConnection : connection} error={error ?? treeError} />} />
      <Conditions app={app} />
      <Unreadable tree={tree} />
      <section aria-label="Resources">{wide ? <TreeView {...shape} /> : <TreeList {...shape} />}</section>
      <Operation app={app} now={now} />
      {node && <Panel key={node.key} app={id} node={node} onClose={close} />}
    </div>
  );
}

type HeaderProps = { app: Application; id: AppName; now: number; why: string | undefined; live: React.ReactNode };

function Header({ app, id, now, why, live }: HeaderProps) {
  const { status, spec } = app;
  const source = sourcesOf(app)[0];
  const operation = status?.operationState;
  const phase = app.operation ? "Running" : operation?.phase;
  const repo = safeUrl(source?.repoURL);
  const synced = status?.history?.at(-1)?.deployedAt;
  return (
    <div className="app-head">
      <nav aria-label="Where you are">
        <Link to="/applications">← Applications</Link>
      </nav>
      <div className="page-head">
        <h1>{app.metadata.name}</h1>
        {live}
        <span className="grow" />
        <Actions app={app} id={id} phase={phase} />
      </div>
      <dl className="tiles">
        <div>
          <dt>Health</dt>
          <dd>
            <Badge word={healthOf(app)} />
          </dd>
          {why && (
            <dd className="small" title={why}>
              {why}
            </dd>
          )}
        </div>
        <div>
          <dt>Sync</dt>
          <dd>
            <Badge word={syncOf(app)} />
          </dd>
          <dd className="small">
            {source?.targetRevision || "HEAD"} <code title={status?.sync?.revision}>{shortRevision(status?.sync?.revision)}</code>
          </dd>
        </div>
        <div className="tile-wide">
          <dt>Last operation</dt>
          <dd>{phase ? <Badge word={phase} /> : <span className="dim">none yet</span>}</dd>
          {operation?.message && (
            <dd className="small" title={operation.message}>
              {operation.message}
            </dd>
          )}
        </div>
        <div className="tile-wide">
          <dt>Source</dt>
          <dd className="clip" title={source?.repoURL}>
            {repo ? (
              <a href={repo} target="_blank" rel="noreferrer">
                {shortRepo(repo)}
              </a>
            ) : (
              shortRepo(source?.repoURL ?? "–")
            )}
          </dd>
          <dd className="small">{source?.chart ?? source?.path}</dd>
        </div>
        <div>
          <dt>Destination</dt>
          <dd className="clip">{spec.destination?.namespace || "–"}</dd>
          <dd className="small clip">{(spec.destination?.name || spec.destination?.server || "").replace(/^https?:\/\//, "")}</dd>
        </div>
        <div>
          <dt>Last sync</dt>
          <dd title={exact(synced)}>{ago(synced, now) || "never"}</dd>
          <dd className="small">{spec.syncPolicy?.automated && spec.syncPolicy.automated.enabled !== false ? "automatic" : "by hand"}</dd>
        </div>
      </dl>
    </div>
  );
}

function Actions({ app, id, phase }: { app: Application; id: AppName; phase: string | undefined }) {
  const toast = useToast();
  const [asking, setAsking] = useState(false);
  const [busy, setBusy] = useState(false);
  const run = async (done: string, call: () => Promise<unknown>) => {
    setBusy(true);
    try {
      await call();
      toast(done);
    } catch (e) {
      toast(e instanceof Error ? e.message : String(e), true);
    } finally {
      setBusy(false);
    }
  };
  const sync = (options: SyncOptions) => {
    setAsking(false);
    void run(options.dryRun ? "Dry run started" : "Sync started", () => api.sync(id, options));
  };
  return (
    <div className="actions">
      {phase === "Running" && (
        <button type="button" disabled={busy} onClick={() => void run("The operation is ending", () => api.terminate(id))}>
          Terminate
        </button>
      )}
      <Rollback app={app} />
      <button type="button" disabled={busy} onClick={() => void run("Refreshed", () => api.refresh(id))}>
        Refresh
      </button>
      <button type="button" className="primary" disabled={busy} onClick={() => setAsking(true)}>
        Sync
      </button>
      {asking && (
        <SyncDialog name={id.name} revision={sourcesOf(app)[0]?.targetRevision || "HEAD"} onSync={sync} onClose={() => setAsking(false)} />
      )}
    </div>
  );
}

// The kinds of which objects may be missing from the tree.
function Unreadable({ tree }: { tree: ApplicationTree | undefined }) {
  const kinds = tree?.unreadableKinds ?? [];
  if (kinds.length === 0) return null;
  return (
    <ul className="conditions" aria-label="Kinds that could not be read">
      {kinds.map((kind) => (
        <li key={`${kind.kind}.${kind.group ?? ""}`} className="notice tone-warn">
          <strong>{kind.group ? `${kind.kind}.${kind.group}` : kind.kind}</strong>
          <span>could not be read, so its objects may be missing: {kind.message}</span>
        </li>
      ))}
    </ul>
  );
}

function Conditions({ app }: { app: Application }) {
  const conditions = app.status?.conditions ?? [];
  if (conditions.length === 0) return null;
  return (
    <ul className="conditions" aria-label="Conditions">
      {conditions.map((c, i) => (
        <li key={i} className={`notice tone-${c.type.endsWith("Error") ? "bad" : "warn"}`}>
          <strong>{c.type}</strong>
          <span>{c.message}</span>
        </li>
      ))}
    </ul>
  );
}
