// The side panel of one resource: what it is, how it differs from Git, its manifests, events and logs, and what can be done with it.

import { type ReactNode, useEffect, useRef, useState } from "react";
import { api, ApiError, type AppName } from "../api/client";
import type { Application, ApplicationTree, ResourceDiff } from "../api/types";
import { useAsked } from "../asked";
import { ResourceTab } from "../extensions/parts";
import { tabsFor, useExtensions } from "../extensions/registry";
import { endedByEscape, fullQuery } from "../model/full";
import { containersOf, hasLogs } from "../model/logs";
import { runningContainers } from "../model/terminal";
import { exact } from "../model/time";
import type { TreeNode } from "../model/tree";
import { manifestYaml } from "../model/yaml";
import { ROOT } from "../root";
import { applicationPath, Link, setQuery, useAddress, useQuery } from "../router";
import { Copy } from "./copy";
import { DiffView } from "./diff";
import { EditLive } from "./edit-live";
import { Events } from "./events";
import { Fact } from "./facts";
import { Later, later } from "./later";
import { Links } from "./links";
import { Logs } from "./logs";
import { kindHue, kindLetters } from "./node";
import { ResourceActions } from "./resource-actions";
import { Failure } from "./shell";
import { Badge } from "./status";
import { Tabs } from "./tabs";

const TABS = { summary: "Summary", diff: "Diff", live: "Live", desired: "Desired", events: "Events", logs: "Logs", terminal: "Terminal" };
type Tab = keyof typeof TABS;

const Terminal = later(() => import("./terminal"));

interface Loaded {
  /** In JSON. */
  manifest: string;
  diff: ResourceDiff | undefined;
  error: ApiError | undefined;
}

/** Reads both sides again whenever the live object or its comparison has changed. */
function useResource(app: AppName, node: TreeNode): Loaded | undefined {
  const [loaded, setLoaded] = useState<Loaded>();
  const changed = [node.key, node.live?.uid, node.live?.resourceVersion, node.sync].join(" ");
  useEffect(() => {
    const stop = new AbortController();
    const { ref, live } = node;
    const isManaged = node.sync !== undefined || node.requiresPruning;
    Promise.all([
      live?.uid ? api.resource(app, ref, stop.signal) : "",
      isManaged ? api.managed(app, ref, stop.signal) : undefined,
    ]).then(
      ([manifest, diff]) => setLoaded({ manifest, diff, error: undefined }),
      (e: unknown) => {
        if (!stop.signal.aborted) setLoaded({ manifest: "", diff: undefined, error: e instanceof ApiError ? e : new ApiError(0, String(e)) });
      },
    );
    return () => stop.abort();
  }, [app.name, app.namespace, changed]);
  return loaded;
}

/** The tabs that have something to show. */
function tabsOf(node: TreeNode, hasTerminals: boolean): Tab[] {
  const isLive = Boolean(node.live?.uid);
  const has: Record<Tab, boolean> = {
    summary: true,
    diff: node.sync !== undefined,
    live: true,
    desired: node.sync !== undefined,
    events: isLive,
    logs: isLive && hasLogs(node.ref.kind),
    terminal: isLive && hasTerminals && !node.ref.group && node.ref.kind === "Pod",
  };
  return (Object.keys(TABS) as Tab[]).filter((tab) => has[tab]);
}

interface Props {
  app: AppName;
  of: Application;
  tree: ApplicationTree | undefined;
  node: TreeNode;
  now: number;
  /** It has the whole window. */
  full: boolean;
  onClose: () => void;
}

export function Panel({ app, of, tree, node, now, full, onClose }: Props) {
  const loaded = useResource(app, node);
  const wanted = useQuery("tab");
  const panel = useRef<HTMLElement>(null);
  const [editing, setEditing] = useState<string>();
  useEffect(() => panel.current?.focus(), []);
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      if (e.key !== "Escape") return;
      const ended = endedByEscape({ dialog: document.querySelector("dialog[open]") !== null, full });
      if (ended === "panel") onClose();
      if (ended === "full") setQuery({ full: "" });
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [onClose, full]);
  const extensions = tabsFor(useExtensions(), node.ref.group ?? "", node.ref.kind);
  const available: [string, string][] = tabsOf(node, useAsked(api.settings).value?.execEnabled ?? false).map((tab) => [tab, TABS[tab]]);
  // As Argo CD's addresses name them.
  if (node.live?.uid) for (const [at, { title }] of extensions.entries()) available.push([`extension-${at}`, title]);
  const first = node.sync === "OutOfSync" ? "diff" : "summary";
  const shown = available.find(([tab]) => tab === wanted)?.[0] ?? first;
  const extension = extensions[Number(/^extension-(\d+)$/.exec(shown)?.[1] ?? -1)];
  return (
    <aside className={full ? "panel panel-full" : "panel"} ref={panel} tabIndex={-1} aria-label={`${node.ref.kind} ${node.ref.name}`}>
      <header className="panel-head">
        <span className="kind" style={{ "--hue": kindHue(node.ref.kind) } as React.CSSProperties} aria-hidden="true">
          {kindLetters(node.ref.kind)}
        </span>
        <div className="panel-title">
          <h2>{node.ref.name}</h2>
          <span className="dim">{node.ref.kind}</span>
        </div>
        <FullScreen full={full} tab={shown} />
        <button type="button" className="quiet" aria-label="Close the panel" onClick={onClose}>
          ✕
        </button>
      </header>
      {node.live?.uid && <ResourceActions app={app} node={node} />}
      <Tabs label="Resource" className="panel-body" tabs={available} chosen={shown} choose={(tab) => setQuery({ tab })}>
        {loaded?.error && <Failure error={loaded.error} what="The resource cannot be read." />}
        {shown === "summary" && <Summary app={app} node={node} />}
        {shown === "live" && (
          <Manifest loaded={loaded} title="Live manifest" text={manifestYaml(loaded?.manifest)} none="This resource is not in the cluster.">
            <button type="button" className="small" onClick={() => setEditing(loaded?.manifest)}>
              Edit…
            </button>
          </Manifest>
        )}
        {shown === "desired" && <Manifest loaded={loaded} title="Desired manifest" text={manifestYaml(loaded?.diff?.targetState)} none="Git does not describe this resource." />}
        {shown === "diff" && <Diff loaded={loaded} />}
        {shown === "events" && <Events app={app} of={node.ref} now={now} changed={node.live?.resourceVersion ?? ""} />}
        {shown === "logs" && <Logs app={app} of={node.ref} containers={containersOf(loaded?.manifest ?? "")} />}
        {extension && <ResourceTab extension={extension} app={of} tree={tree} manifest={loaded?.manifest} />}
        {shown === "terminal" && (
          <Later fallback={<p className="dim">Loading…</p>}>
            {loaded && <Terminal of={of} pod={node.ref} containers={runningContainers(loaded.manifest)} />}
          </Later>
        )}
      </Tabs>
      {editing && <EditLive app={app} node={node} manifest={editing} onClose={() => setEditing(undefined)} />}
    </aside>
  );
}

/** The whole window for what is shown, here or in a tab of the browser. */
function FullScreen({ full, tab }: { full: boolean; tab: string }) {
  const { pathname, search } = new URL(useAddress(), location.origin);
  return (
    <>
      {!full && (
        <a className="small" href={ROOT + pathname + fullQuery(search, tab)} target="_blank" rel="noreferrer" aria-label="Full screen in a new tab" title="Full screen in a new tab">
          <span aria-hidden="true">↗</span>
        </a>
      )}
      <button type="button" className="small" data-full aria-pressed={full} title={full ? "Escape leaves it" : undefined} onClick={() => setQuery(full ? { full: "" } : { full: "1", tab })}>
        Full screen
      </button>
    </>
  );
}

function Summary({ app, node }: { app: AppName; node: TreeNode }) {
  const { ref, live } = node;
  const child = ref.group === "argoproj.io" && ref.kind === "Application" && live?.uid;
  return (
    <>
      <dl className="facts">
        {child && (
          <Fact name="Application">
            <Link to={applicationPath({ name: ref.name, namespace: ref.namespace ?? "" })}>Open {ref.name}</Link>
          </Fact>
        )}
        {node.sync && <Fact name="Sync">{<Badge word={node.sync} />}</Fact>}
        {node.health && <Fact name="Health">{<Badge word={node.health} />}</Fact>}
        {node.healthMessage && <Fact name="Health message">{node.healthMessage}</Fact>}
        {node.requiresPruning && <Fact name="Pruning">Git no longer has it. A sync with prune deletes it.</Fact>}
        <Fact name="Kind">{[ref.group, ref.version, ref.kind].filter(Boolean).join("/")}</Fact>
        <Fact name="Namespace">{ref.namespace || "none (cluster-wide)"}</Fact>
        {node.wave !== undefined && <Fact name="Sync wave">{node.wave}</Fact>}
        <Fact name="Created">{live?.createdAt ? exact(live.createdAt) : "not in the cluster"}</Fact>
        {(live?.info ?? []).map((i) => (
          <Fact key={i.name} name={i.name}>
            {i.value}
          </Fact>
        ))}
        {(live?.images ?? []).map((image) => (
          <Fact key={image} name="Image">
            <code>{image}</code>
          </Fact>
        ))}
      </dl>
      {live?.uid && <Links app={app} of={ref} known={live.networkingInfo?.externalURLs} />}
    </>
  );
}

function Manifest({ loaded, title, text, none, children }: { loaded: Loaded | undefined; title: string; text: string; none: string; children?: ReactNode }) {
  if (!loaded) return <p className="dim">Loading…</p>;
  if (!text) return loaded.error ? null : <p className="dim">{none}</p>;
  return (
    <>
      <div className="tools">
        {children}
        <span className="grow" />
        <Copy text={text} />
      </div>
      <pre className="code" tabIndex={0} aria-label={title}>
        {text}
      </pre>
    </>
  );
}

function Diff({ loaded }: { loaded: Loaded | undefined }) {
  if (!loaded) return <p className="dim">Loading…</p>;
  const { diff, error } = loaded;
  if (!diff) return error ? null : <p className="dim">There is no comparison of this resource yet.</p>;
  const live = manifestYaml(diff.normalizedLiveState || diff.liveState);
  const target = diff.targetState && diff.targetState !== "null" ? manifestYaml(diff.predictedLiveState || diff.targetState) : "";
  return <DiffView before={live} after={target} from="live" same="The live object is what Git describes." />;
}
