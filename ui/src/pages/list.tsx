// All Applications, live.

import { useCallback, useDeferredValue, useEffect, useMemo, useRef, useState } from "react";
import { follower } from "../api/applications";
import { api } from "../api/client";
import { useStream } from "../api/live";
import type { Application } from "../api/types";
import { useNow, useTitle } from "../hooks";
import { keep, kept, useKept } from "../kept";
import { type Applications, count, healthOf, keyOf, matches, type Order, ORDERS, sorted, syncOf } from "../model/applications";
import { chosenIn, FACETS, isChosen, queryOf, toggled } from "../model/facets";
import { NO_PICKS, pickOf, stillShown, withPick } from "../model/picks";
import { favouritesIn, type View, viewOf, VIEWS, withFavourite } from "../model/views";
import { AppDialog } from "../parts/app-dialog";
import { type Command, idOf } from "../parts/app-menu";
import { Row } from "../parts/app-row";
import { Tile } from "../parts/app-tile";
import { BulkDialog, BulkTools, type Deed } from "../parts/bulk";
import { Chunks } from "../parts/chunks";
import { Facets } from "../parts/facets";
import { Empty, Failure, LiveDot, useToast } from "../parts/shell";
import { StateIcon, toneOf } from "../parts/status";
import { Summary } from "../parts/summary";
import { setQuery, useAddress, useQuery } from "../router";

const SYNC = ["Synced", "OutOfSync", "Unknown"];
const HEALTH = ["Healthy", "Progressing", "Degraded", "Suspended", "Missing", "Unknown"];
const ORDERS_OF = { sync: SYNC, health: HEALTH };

function useApplications(annotations: boolean) {
  const [told, setTold] = useState<{ apps: Applications; annotations: boolean }>();
  const open = useMemo(() => follower((apps) => setTold({ apps, annotations }), annotations), [annotations]);
  // Without their annotations, a filter by them would find nothing, or too much.
  const apps = annotations && !told?.annotations ? undefined : told?.apps;
  return { apps, ...useStream(annotations ? "applications with annotations" : "applications", open) };
}

/** Those that are chosen to do something with. What the filter hides is not among them, and another filter begins with none. */
function usePicked(shown: readonly Application[], filter: string) {
  const [picks, setPicks] = useState(NO_PICKS);
  useEffect(() => setPicks(NO_PICKS), [filter]);
  useEffect(() => setPicks((now) => stillShown(now, shown)), [shown]);
  const pick = useCallback((app: Application) => setPicks((now) => withPick(now, app)), []);
  const picked = useMemo(() => (picks.size > 0 ? shown.filter((app) => picks.has(pickOf(app))) : []), [picks, shown]);
  const pickAll = () => setPicks(new Set(shown.map(pickOf)));
  const pickNone = () => setPicks(NO_PICKS);
  return { picks, picked, pick, pickAll, pickNone };
}

interface Asking {
  deed: Deed;
  apps: readonly Application[];
}

/** What one row asks for. A refresh needs no question. */
function useCommands(ask: (asking: Asking) => void) {
  const toast = useToast();
  return useCallback(
    (command: Command, app: Application) => {
      const { name } = app.metadata;
      if (command === "favourite") return keep("favourites", withFavourite(kept("favourites"), app));
      if (command === "sync" || command === "delete") return ask({ deed: command, apps: [app] });
      api.refresh(idOf(app), command === "hard" ? "hard" : "normal").then(
        () => toast(`${name} is refreshed`),
        (e: unknown) => toast(`${name}: ${e instanceof Error ? e.message : String(e)}`, true),
      );
    },
    [ask, toast],
  );
}

/** Which way of drawing was chosen, here or the last time. */
function useView(): [View, (view: View) => void] {
  const view = viewOf(useQuery("view"), useKept("view"));
  const choose = (view: View) => {
    keep("view", view);
    setQuery({ view });
  };
  return [view, choose];
}

export function ListPage() {
  useTitle("Applications");
  const { search } = new URL(useAddress(), location.origin);
  const chosen = useMemo(() => chosenIn(search), [search]);
  const annotated = chosen.annotations !== undefined;
  const { apps, connection, error } = useApplications(annotated);
  const text = useQuery("search");
  const wanted = useQuery("sort");
  const order = (Object.hasOwn(ORDERS, wanted) ? wanted : "") as Order;
  const [creating, setCreating] = useState(false);
  const [asking, setAsking] = useState<Asking>();
  const act = useCommands(setAsking);
  const [view, chooseView] = useView();
  const marked = useKept("favourites");
  const favourites = useMemo(() => favouritesIn(marked), [marked]);
  const onlyFavourites = useQuery("showFavorites") === "true";
  const input = useRef<HTMLInputElement>(null);
  useSlash(input);
  const words = useDeferredValue(text);
  const now = useNow();
  const all = useMemo(() => sorted(apps?.values() ?? [], order), [apps, order]);
  const shown = useMemo(() => all.filter((app) => (!onlyFavourites || favourites.has(keyOf(app))) && isChosen(app, chosen) && matches(app, words)), [all, words, chosen, onlyFavourites, favourites]);
  const filter = useMemo(() => JSON.stringify([words, chosen, onlyFavourites]), [words, chosen, onlyFavourites]);
  const { picks, picked, pick, pickAll, pickNone } = usePicked(shown, filter);
  const clear = () => setQuery({ search: "", showFavorites: "", ...Object.fromEntries(Object.keys(FACETS).map((facet) => [facet, ""])) });
  const states = (facet: "sync" | "health") => ({ chosen: chosen[facet] ?? [], choose: (word: string) => setQuery({ [facet]: queryOf(toggled(chosen[facet], word)) }) });
  const rowOf = (app: Application, position: number) => {
    const key = keyOf(app);
    return { app, now, picked: picks.has(pickOf(app)), pick, position, total: shown.length, favourite: favourites.has(key), act };
  };
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
        <Views view={view} choose={chooseView} />
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New Application…
        </button>
      </div>
      {creating && <AppDialog onClose={() => setCreating(false)} />}
      {asking && <BulkDialog {...asking} onClose={() => setAsking(undefined)} />}
      <div className="counts">
        <Counts title="Sync" words={SYNC} counts={count(all, syncOf)} {...states("sync")} />
        <Counts title="Health" words={HEALTH} counts={count(all, healthOf)} {...states("health")} />
        <button type="button" className="count tone-warn" data-count="favourites" aria-pressed={onlyFavourites} onClick={() => setQuery({ showFavorites: onlyFavourites ? "" : "true" })}>
          <span aria-hidden="true">★</span> <b>{all.filter((app) => favourites.has(keyOf(app))).length}</b> Favourites
        </button>
        <div className="find">
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
      {(all.length > 0 || (annotated && !apps)) && <Facets apps={all} chosen={chosen} choose={(facet, values) => setQuery({ [facet]: queryOf(values) })} />}
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
      {picked.length > 0 && view !== "summary" && <BulkTools apps={picked} total={shown.length} ask={(deed) => setAsking({ deed, apps: picked })} clear={pickNone} all={pickAll} />}
      {shown.length > 0 && view === "summary" && <Summary apps={shown} orders={ORDERS_OF} choose={(facet, value) => setQuery({ [facet]: queryOf([value]) })} />}
      {shown.length > 0 && view === "tiles" && <Chunks key="tiles" className="app-tiles" title="Applications" items={shown} name={keyOf} row={(app, position) => <Tile key={keyOf(app)} {...rowOf(app, position)} />} />}
      {shown.length > 0 && view === "list" && (
        <div className="apps">
          <div className="app-row app-titles" aria-hidden="true">
            <span />
            <span>Application</span>
            <span>Status</span>
            <span>Source</span>
            <span>Destination</span>
            <span>Last sync</span>
            <span />
          </div>
          <Chunks title="Applications" items={shown} name={keyOf} row={(app, position) => <Row key={keyOf(app)} {...rowOf(app, position)} />} />
        </div>
      )}
    </div>
  );
}

function Views({ view, choose }: { view: View; choose: (view: View) => void }) {
  return (
    <div className="views" role="group" aria-label="How they are shown">
      {(Object.entries(VIEWS) as [View, string][]).map(([name, title]) => (
        <button key={name} type="button" data-view={name} aria-pressed={name === view} onClick={() => choose(name)}>
          {title}
        </button>
      ))}
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

function Counts(p: { title: string; words: string[]; counts: Map<string, number>; chosen: readonly string[]; choose: (word: string) => void }) {
  return (
    <div className="count-group" role="group" aria-label={`Filter by ${p.title.toLowerCase()}`}>
      <span className="count-title">{p.title}</span>
      {p.words
        .filter((word) => p.counts.has(word) || p.chosen.includes(word))
        .map((word) => (
          <button
            key={word}
            type="button"
            className={`count tone-${toneOf(word)}`}
            aria-pressed={p.chosen.includes(word)}
            onClick={() => p.choose(word)}
          >
            <StateIcon word={word} label="" />
            <b>{p.counts.get(word) ?? 0}</b> {word}
          </button>
        ))}
    </div>
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
