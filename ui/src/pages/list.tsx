// All Applications, live.

import { useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { follower } from "../api/applications";
import { useStream } from "../api/live";
import type { Application } from "../api/types";
import { useNow, useTitle } from "../hooks";
import { type Applications, count, healthOf, keyOf, matches, type Order, ORDERS, sorted, sourcesOf, syncedAt, syncOf } from "../model/applications";
import { ago, exact, shortRevision } from "../model/time";
import { safeUrl, shortRepo } from "../model/url";
import { AppDialog } from "../parts/app-dialog";
import { Empty, Failure, LiveDot } from "../parts/shell";
import { Badge, StateIcon, toneOf } from "../parts/status";
import { applicationPath, Link, setQuery, useQuery } from "../router";

const SYNC = ["Synced", "OutOfSync", "Unknown"];
const HEALTH = ["Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"];
const STEP = 200;

function useApplications() {
  const [apps, setApps] = useState<Applications>();
  const open = useMemo(() => follower(setApps), []);
  return { apps, ...useStream("applications", open) };
}

export function ListPage() {
  useTitle("Applications");
  const { apps, connection, error } = useApplications();
  const [text, sync, health, project] = [useQuery("search"), useQuery("sync"), useQuery("health"), useQuery("proj")];
  const wanted = useQuery("sort");
  const order = (wanted in ORDERS ? wanted : "") as Order;
  const [limit, setLimit] = useState(STEP);
  const [creating, setCreating] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  useSlash(input);
  const words = useDeferredValue(text);
  const now = useNow();
  const all = useMemo(() => sorted(apps?.values() ?? [], order), [apps, order]);
  const shown = useMemo(() => all.filter((app) => matches(app, { text: words, sync, health, project })), [all, words, sync, health, project]);
  const projects = useMemo(() => [...new Set(all.map((app) => app.spec.project ?? "").filter(Boolean))].sort(), [all]);
  const clear = () => setQuery({ search: "", sync: "", health: "", proj: "" });
  return (
    <div className="page">
      <div className="page-head">
        <h1>Applications</h1>
        {apps && (
          <span className="total" role="status">
            {shown.length < all.length ? `${shown.length} of ${all.length}` : all.length}
          </span>
        )}
        <span className="grow" />
        <LiveDot connection={connection} error={error} />
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New Application…
        </button>
      </div>
      {creating && <AppDialog onClose={() => setCreating(false)} />}
      <div className="counts">
        <Counts title="Sync" words={SYNC} counts={count(all, syncOf)} chosen={sync} choose={(sync) => setQuery({ sync })} />
        <Counts title="Health" words={HEALTH} counts={count(all, healthOf)} chosen={health} choose={(health) => setQuery({ health })} />
        <div className="find">
          {(projects.length > 1 || project) && (
            <select aria-label="Project" value={project} onChange={(e) => setQuery({ proj: e.target.value })}>
              <option value="">all projects</option>
              {(projects.includes(project) || !project ? projects : [project, ...projects]).map((name) => (
                <option key={name}>{name}</option>
              ))}
            </select>
          )}
          <select aria-label="Order" value={order} onChange={(e) => setQuery({ sort: e.target.value })}>
            {Object.entries(ORDERS).map(([value, title]) => (
              <option key={value} value={value}>
                {title}
              </option>
            ))}
          </select>
          <input
            ref={input}
            type="search"
            className="filter"
            placeholder="Filter by name, label, repository…  ( / )"
            aria-label="Filter Applications"
            aria-keyshortcuts="/"
            value={text}
            onChange={(e) => setQuery({ search: e.target.value })}
          />
        </div>
      </div>
      {error && !apps && <Failure error={error} what="The Applications cannot be listed." />}
      {!apps && !error && <Skeleton />}
      {apps && all.length === 0 && (
        <Empty title="No Applications yet">
          <p>Create one with the button above, or with the command line:</p>
          <code>tiphys app create guestbook --repo URL --path PATH --dest-namespace NAMESPACE --dest-server https://kubernetes.default.svc</code>
        </Empty>
      )}
      {all.length > 0 && shown.length === 0 && (
        <Empty title="Nothing matches">
          <button type="button" onClick={clear}>
            Clear the filter
          </button>
        </Empty>
      )}
      {shown.length > 0 && (
        <div className="apps">
          <div className="app-row app-titles" aria-hidden="true">
            <span>Application</span>
            <span>Status</span>
            <span>Source</span>
            <span>Destination</span>
            <span>Last sync</span>
          </div>
          <ul aria-label="Applications">
            {shown.slice(0, limit).map((app) => (
              <Row key={keyOf(app)} app={app} now={now} />
            ))}
          </ul>
        </div>
      )}
      {shown.length > limit && (
        <button type="button" className="more" onClick={() => setLimit(limit + STEP)}>
          Show {Math.min(STEP, shown.length - limit)} more of {shown.length}
        </button>
      )}
    </div>
  );
}

/** The key / leads to the filter, unless somebody is typing. */
function useSlash(input: React.RefObject<HTMLInputElement | null>) {
  useEffect(() => {
    const press = (e: KeyboardEvent) => {
      const isTyping = e.target instanceof HTMLElement && e.target.matches("input, textarea, select");
      if (e.key !== "/" || isTyping || e.ctrlKey || e.metaKey || e.altKey) return;
      e.preventDefault();
      input.current?.focus();
    };
    window.addEventListener("keydown", press);
    return () => window.removeEventListener("keydown", press);
  }, [input]);
}

function Counts(p: { title: string; words: string[]; counts: Map<string, number>; chosen: string; choose: (word: string) => void }) {
  return (
    <div className="count-group" role="group" aria-label={`Filter by ${p.title.toLowerCase()}`}>
      <span className="count-title">{p.title}</span>
      {p.words
        .filter((word) => p.counts.has(word) || p.chosen === word)
        .map((word) => (
          <button
            key={word}
            type="button"
            className={`count tone-${toneOf(word)}`}
            aria-pressed={p.chosen === word}
            onClick={() => p.choose(p.chosen === word ? "" : word)}
          >
            <StateIcon word={word} label="" />
            <b>{p.counts.get(word) ?? 0}</b> {word}
          </button>
        ))}
    </div>
  );
}

function Row({ app, now }: { app: Application; now: number }) {
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
    <li className={`app-row tone-${toneOf(healthOf(app))}`} data-app={metadata.name}>
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
    </li>
  );
}

function Skeleton() {
  return (
    <div className="skeletons" aria-label="Loading" role="status">
      {[0, 1, 2].map((i) => (
        <div key={i} className="skeleton" />
      ))}
    </div>
  );
}
