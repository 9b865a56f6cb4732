// All Applications, live.

import { useCallback, useDeferredValue, useMemo, useState } from "react";
import { api } from "../api/client";
import { useStream } from "../api/live";
import type { Application, ApplicationEvent } from "../api/types";
import { useNow, useTitle } from "../hooks";
import { type Applications, count, healthOf, keyOf, matches, sourcesOf, syncOf, withEvents, withList } from "../model/applications";
import { ago, exact, shortRevision } from "../model/time";
import { safeUrl, shortRepo } from "../model/url";
import { Empty, Failure, LiveDot } from "../parts/shell";
import { Badge, StateIcon, toneOf } from "../parts/status";
import { applicationPath, Link } from "../router";

const SYNC = ["Synced", "OutOfSync", "Unknown"];
const HEALTH = ["Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"];
const STEP = 200;
/** Events that come together are drawn together. */
const GATHER = 60;

function useApplications() {
  const [apps, setApps] = useState<Applications>();
  const open = useCallback(async (signal: AbortSignal, opened: () => void) => {
    let waiting: ApplicationEvent[] = [];
    let timer: ReturnType<typeof setTimeout> | undefined;
    const flush = () => {
      timer = undefined;
      const events = waiting;
      waiting = [];
      setApps((now) => withEvents(now ?? new Map(), events));
    };
    const message = (event: ApplicationEvent) => {
      waiting.push(event);
      timer ??= setTimeout(flush, GATHER);
    };
    // The stream is opened first, so that nothing falls between it and the list.
    const listed = async () => {
      const list = await api.list(signal);
      setApps((now) => withList(now ?? new Map(), list));
    };
    let listing: Promise<void> | undefined;
    try {
      const on = { open: () => (opened(), (listing = listed().catch(() => undefined)), undefined), message };
      await api.watchAll(signal, on);
    } finally {
      clearTimeout(timer);
      await listing;
    }
  }, []);
  return { apps, ...useStream("applications", open) };
}

export function ListPage() {
  useTitle("Applications");
  const { apps, connection, error } = useApplications();
  const [text, setText] = useState("");
  const [sync, setSync] = useState("");
  const [health, setHealth] = useState("");
  const [limit, setLimit] = useState(STEP);
  const words = useDeferredValue(text);
  const now = useNow();
  const all = useMemo(
    () => [...(apps?.values() ?? [])].sort((a, b) => a.metadata.name.localeCompare(b.metadata.name) || keyOf(a).localeCompare(keyOf(b))),
    [apps],
  );
  const shown = useMemo(() => all.filter((app) => matches(app, { text: words, sync, health })), [all, words, sync, health]);
  const clear = () => (setText(""), setSync(""), setHealth(""));
  return (
    <div className="page">
      <div className="page-head">
        <h1>Applications</h1>
        {apps && <span className="total">{all.length}</span>}
        <span className="grow" />
        <LiveDot connection={connection} error={error} />
      </div>
      <div className="counts">
        <Counts title="Sync" words={SYNC} counts={count(all, syncOf)} chosen={sync} choose={setSync} />
        <Counts title="Health" words={HEALTH} counts={count(all, healthOf)} chosen={health} choose={setHealth} />
        <input
          type="search"
          className="filter"
          placeholder="Filter by name, project, repository, namespace"
          aria-label="Filter Applications"
          value={text}
          onChange={(e) => setText(e.target.value)}
        />
      </div>
      {error && !apps && <Failure error={error} what="The Applications cannot be listed." />}
      {!apps && !error && <Skeleton />}
      {apps && all.length === 0 && (
        <Empty title="No Applications yet">
          <p>Create one with the command line:</p>
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
  const synced = status?.history?.at(-1)?.deployedAt ?? status?.operationState?.finishedAt;
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
