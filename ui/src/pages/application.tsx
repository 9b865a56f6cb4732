// One Application: its state, its resource tree, and what the last operation did. All live.

import { useCallback, useMemo, useState } from "react";
import { api, type AppName } from "../api/client";
import { useStream } from "../api/live";
import type { Application, ApplicationTree } from "../api/types";
import { ActionParts, Flyout, StatusParts, useView, ViewPart } from "../extensions/parts";
import { isShown, useExtensions } from "../extensions/registry";
import { useMedia, useNow, useTitle } from "../hooks";
import { healthOf, sourcesOf, syncedRevision, syncOf } from "../model/applications";
import { ago, exact, shortRevision } from "../model/time";
import { buildTree, countNodes, filterTree, type TreeFilter, type TreeNode } from "../model/tree";
import { safeUrl, shortRepo } from "../model/url";
import { Actions } from "../parts/app-actions";
import { Details } from "../parts/details";
import { HydratorTile } from "../parts/hydrator";
import { Links } from "../parts/links";
import { NetworkView } from "../parts/network";
import { type NodeDeed, NodeDeedDialog, NodeMenu } from "../parts/node-menu";
import { Panel } from "../parts/panel";
import { Pods } from "../parts/pods";
import { Empty, Failure, LiveDot } from "../parts/shell";
import { Badge } from "../parts/status";
import { TreeList, TreeView } from "../parts/tree";
import { Link, setQuery, useQuery } from "../router";

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
  const selected = useQuery("node") || undefined;
  const [text, problems, orphaned] = [useQuery("res"), useQuery("problems") !== "", useQuery("orphaned") === "true"];
  const root = useMemo(() => app && buildTree(app, tree, orphaned), [app, tree, orphaned]);
  const filtered = useMemo(() => root && filterTree(root, { text, problems }), [root, text, problems]);
  const close = useCallback(() => {
    // Where one was before the panel opened.
    const before = document.querySelector<HTMLElement>(":is(.node, .pod, .pod-group-name)[aria-pressed=true]");
    // Behind a panel with the whole window nothing is drawn.
    (before ?? document.querySelector<HTMLElement>("#main"))?.focus();
    setQuery({ node: "", tab: "", container: "", full: "" });
  }, []);
  const select = useCallback((key: string) => setQuery({ node: key === selected || key === "application" ? "" : key, tab: "", container: "" }), [selected]);
  const [deed, setDeed] = useState<NodeDeed>();
  const { name, namespace } = id;
  const menu = useMemo(() => {
    // The same for all nodes, so that none is drawn again without need.
    const app = { name, namespace };
    return (node: TreeNode) => <NodeMenu app={app} node={node} open={openNode} ask={setDeed} />;
  }, [name, namespace]);
  // Argo CD's addresses have the views of extensions in `view`.
  const [asked, alsoAsked] = [useQuery("tree"), useQuery("view")];
  const view = useView(app, asked || alsoAsked)?.title;
  const drawn = drawnOf(asked);
  const wantsFull = useQuery("full") !== "";
  if (deleted || error?.status === 404)
    return (
      <Empty title={deleted ? `${id.name} was deleted` : `There is no Application ${id.name}`}>
        <Link to="/applications">All Applications</Link>
      </Empty>
    );
  if (!app || !root || !filtered)
    return (
      <div className="page app-head">
        <nav aria-label="Where you are">
          <Link to="/applications">← Applications</Link>
        </nav>
        {error ? <Failure error={error} what={`${id.name} cannot be read.`} /> : <div className="skeleton" role="status" aria-label="Loading" />}
      </div>
    );
  const node = selected ? find(root, selected) : undefined;
  // A panel with the whole window is alone in it. It stays the same panel: its logs and its terminal go on.
  const full = wantsFull && node !== undefined;
  const shape = { root: filtered, now, selected, onSelect: select, menu };
  return (
    <div className={`page page-app${full ? " page-full" : node ? " with-panel" : ""}`}>
      {!full && (
        <>
          <Header app={app} id={id} now={now} why={root.healthMessage} tree={tree} live={<LiveDot connection={connection === "live" ? treeConnection : connection} error={error ?? treeError} />} />
          <Conditions app={app} />
          <Unreadable tree={tree} />
          <TreeTools filter={{ text, problems }} all={countNodes(root) - 1} shown={countNodes(filtered) - 1} orphans={tree?.orphanedNodes?.length ?? 0} orphaned={orphaned} app={app} view={view} drawn={drawn} wide={wide} />
          <section aria-label="Resources">
            {view !== undefined ? <ViewPart title={view} app={app} tree={tree} /> : drawn === "pods" ? <Pods root={filtered} hosts={tree?.hosts ?? []} selected={selected} onSelect={select} /> : drawn === "network" ? <NetworkView {...shape} /> : wide && drawn === "tree" ? <TreeView {...shape} /> : <TreeList {...shape} />}
          </section>
          <Details app={app} id={id} now={now} />
          <Flyout app={app} tree={tree} />
        </>
      )}
      {deed && <NodeDeedDialog app={app} id={id} deed={deed} onClose={() => setDeed(undefined)} />}
      {node && <Panel key={node.key} app={id} of={app} tree={tree} node={node} now={now} full={full} onClose={close} />}
    </div>
  );
}

const openNode = (node: string, tab: string) => setQuery({ node, tab, container: "" });

const DRAWN = { tree: "Tree", list: "List", pods: "Pods", network: "Network" } as const;
type Drawn = keyof typeof DRAWN;

const drawnOf = (asked: string): Drawn => (Object.hasOwn(DRAWN, asked) ? (asked as Drawn) : "tree");

/** So many resources can be overlooked without a filter. */
const FEW = 8;

interface ToolsProps {
  filter: TreeFilter;
  all: number;
  shown: number;
  /** How many there are. */
  orphans: number;
  /** Whether they are shown. */
  orphaned: boolean;
  app: Application;
  /** The view of an extension, instead of those of the page. */
  view: string | undefined;
  drawn: Drawn;
  /** Where there is little room, the tree is a list. */
  wide: boolean;
}

function TreeTools(p: ToolsProps) {
  const { filter, all, orphans, app, view } = p;
  const { views } = useExtensions();
  return (
    <div className="tools tree-tools">
      <div className="views" role="group" aria-label="How the resources are shown">
        {(Object.entries(DRAWN) as [Drawn, string][]).filter(([name]) => p.wide || name !== "list").map(([name, title]) => (
          <button key={name} type="button" className="small" data-view={name} aria-pressed={view === undefined && name === p.drawn} onClick={() => setQuery({ tree: name === "tree" ? "" : name, ...(view !== undefined && { view: "" }) })}>
            {title}
          </button>
        ))}
        {views.filter((one) => isShown(one, app)).map(({ title }) => (
          <button key={title} type="button" className="small" data-view={title} aria-pressed={title === view} onClick={() => setQuery({ tree: title })}>
            {title}
          </button>
        ))}
      </div>
      {(all > FEW || filter.text || filter.problems || orphans > 0) && <TreeFilters {...p} />}
    </div>
  );
}

function TreeFilters({ filter, all, shown, orphans, orphaned }: ToolsProps) {
  return (
    <div className="tools" role="search" aria-label="Filter resources">
      <input
        type="search"
        aria-label="Filter resources by kind, name, namespace or state"
        placeholder="Filter resources"
        value={filter.text}
        onChange={(e) => setQuery({ res: e.target.value })}
      />
      <label className="inline">
        <input type="checkbox" checked={filter.problems} onChange={(e) => setQuery({ problems: e.target.checked ? "1" : "" })} /> Only problems
      </label>
      {(orphans > 0 || orphaned) && (
        <label className="inline">
          <input type="checkbox" checked={orphaned} onChange={(e) => setQuery({ orphaned: e.target.checked ? "true" : "" })} /> {orphans} orphaned
        </label>
      )}
      <span className="dim" role="status">
        {shown < all ? `${shown} of ${all}` : all} resources
      </span>
    </div>
  );
}

type HeaderProps = { app: Application; id: AppName; now: number; why: string | undefined; tree: ApplicationTree | undefined; live: React.ReactNode };

function Header({ app, id, now, why, tree, live }: HeaderProps) {
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
        {app.metadata.deletionTimestamp && <span className="badge tone-bad">Deleting</span>}
        <span className="grow" />
        <ActionParts app={app} tree={tree} />
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
            {syncedRevision(app)} <code title={status?.sync?.revision}>{shortRevision(status?.sync?.revision)}</code>
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
        <HydratorTile app={app} />
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
        <StatusParts app={app} />
      </dl>
      <Links app={id} known={status?.summary?.externalURLs} />
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
