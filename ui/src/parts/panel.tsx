// The side panel of one resource: what it is, its live manifest, and how it differs from Git.

import { useEffect, useRef, useState } from "react";
import { api, ApiError, type AppName } from "../api/client";
import type { ResourceDiff } from "../api/types";
import { diffLines, fold } from "../model/diff";
import { exact } from "../model/time";
import type { TreeNode } from "../model/tree";
import { safeUrl } from "../model/url";
import { manifestYaml } from "../model/yaml";
import { applicationPath, Link } from "../router";
import { kindHue, kindLetters } from "./node";
import { Failure } from "./shell";
import { Badge } from "./status";

type Tab = "summary" | "manifest" | "diff";

interface Loaded {
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
      ([manifest, diff]) => setLoaded({ manifest: manifestYaml(manifest), diff, error: undefined }),
      (e: unknown) => {
        if (!stop.signal.aborted) setLoaded({ manifest: "", diff: undefined, error: e instanceof ApiError ? e : new ApiError(0, String(e)) });
      },
    );
    return () => stop.abort();
  }, [app.name, app.namespace, changed]);
  return loaded;
}

export function Panel({ app, node, onClose }: { app: AppName; node: TreeNode; onClose: () => void }) {
  const loaded = useResource(app, node);
  const [tab, setTab] = useState<Tab>(node.sync === "OutOfSync" ? "diff" : "summary");
  const panel = useRef<HTMLElement>(null);
  useEffect(() => panel.current?.focus(), []);
  useEffect(() => {
    const close = (e: KeyboardEvent) => e.key === "Escape" && onClose();
    window.addEventListener("keydown", close);
    return () => window.removeEventListener("keydown", close);
  }, [onClose]);
  const tabs: [Tab, string][] = [["summary", "Summary"], ["manifest", "Live manifest"], ["diff", "Diff"]];
  const available = tabs.filter(([name]) => name !== "diff" || node.sync !== undefined);
  const shown = available.some(([name]) => name === tab) ? tab : "summary";
  return (
    <aside className="panel" ref={panel} tabIndex={-1} aria-label={`${node.ref.kind} ${node.ref.name}`}>
      <header className="panel-head">
        <span className="kind" style={{ "--hue": kindHue(node.ref.kind) } as React.CSSProperties} aria-hidden="true">
          {kindLetters(node.ref.kind)}
        </span>
        <div className="panel-title">
          <h2>{node.ref.name}</h2>
          <span className="dim">{node.ref.kind}</span>
        </div>
        <button type="button" className="quiet" aria-label="Close the panel" onClick={onClose}>
          ✕
        </button>
      </header>
      <div className="tabs" role="tablist">
        {available.map(([name, title]) => (
          <button key={name} type="button" role="tab" aria-selected={shown === name} onClick={() => setTab(name)}>
            {title}
          </button>
        ))}
      </div>
      <div className="panel-body" role="tabpanel">
        {loaded?.error && <Failure error={loaded.error} what="The resource cannot be read." />}
        {shown === "summary" && <Summary node={node} />}
        {shown === "manifest" && <Manifest loaded={loaded} />}
        {shown === "diff" && <Diff loaded={loaded} />}
      </div>
    </aside>
  );
}

function Summary({ node }: { node: TreeNode }) {
  const { ref, live } = node;
  const links = (live?.networkingInfo?.externalURLs ?? []).map(safeUrl).filter((url) => url !== undefined);
  const child = ref.group === "argoproj.io" && ref.kind === "Application" && live?.uid;
  return (
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
      {links.map((url) => (
        <Fact key={url} name="Address">
          <a href={url} target="_blank" rel="noreferrer">
            {url}
          </a>
        </Fact>
      ))}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children: React.ReactNode }) {
  return (
    <div>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </div>
  );
}

function Manifest({ loaded }: { loaded: Loaded | undefined }) {
  if (!loaded) return <p className="dim">Loading</p>;
  if (!loaded.manifest) return loaded.error ? null : <p className="dim">This resource is not in the cluster.</p>;
  return (
    <pre className="code" tabIndex={0} aria-label="Live manifest">
      {loaded.manifest}
    </pre>
  );
}

function Diff({ loaded }: { loaded: Loaded | undefined }) {
  if (!loaded) return <p className="dim">Loading</p>;
  const { diff, error } = loaded;
  if (!diff) return error ? null : <p className="dim">There is no comparison of this resource yet.</p>;
  const live = manifestYaml(diff.normalizedLiveState || diff.liveState);
  const target = diff.targetState && diff.targetState !== "null" ? manifestYaml(diff.predictedLiveState || diff.targetState) : "";
  const hunks = fold(diffLines(live, target));
  if (!hunks.some((h) => "lines" in h)) return <p className="dim">The live object is what Git describes.</p>;
  return (
    <>
      <p className="legend">
        <span className="removed">− live</span> <span className="added">+ desired, from Git</span>
      </p>
      <div className="code diff" tabIndex={0} role="group" aria-label="Differences">
        {hunks.map((hunk, i) =>
          "folded" in hunk ? (
            <div key={i} className="folded">
              {hunk.folded} unchanged line{hunk.folded === 1 ? "" : "s"}
            </div>
          ) : (
            hunk.lines.map((line, j) => (
              <div key={`${i}.${j}`} className={line.kind}>
                <span className="sign">{{ same: " ", added: "+", removed: "−" }[line.kind]}</span>
                {line.text}
              </div>
            ))
          ),
        )}
      </div>
    </>
  );
}
