// The charts of the catalogue: search as one types, facets, cards; and which Applications have a newer version.

import { useCallback, useDeferredValue, useState } from "react";
import { useTitle } from "../hooks";
import { Empty, Failure, useToast } from "../parts/shell";
import { chartPath, Link } from "../router";
import { catalog, type ChartSummary, type Facet, type Filter, type Update } from "./api";
import { useAsked } from "../asked";
import { Icon } from "./parts";
import { AddRepository, Repositories } from "./repositories";
import { UpgradeDialog } from "./upgrade";

const NOTHING: Filter = { query: "", repository: "", category: "", keyword: "" };
/** A question is asked when nobody has typed for so long. */
const PAUSE = 150;
const FACETS = 12;

export function CatalogPage() {
  useTitle("Catalogue");
  const [filter, setFilter] = useState(NOTHING);
  const [more, setMore] = useState<{ of: Filter; items: ChartSummary[]; next: string }>();
  const [adding, setAdding] = useState(false);
  const [upgrading, setUpgrading] = useState<Update>();
  const wanted = useDeferredValue(filter);
  const found = useAsked(
    useCallback((signal: AbortSignal) => catalog.search(wanted, "", signal), [wanted]),
    PAUSE,
  );
  const repositories = useAsked(catalog.repositories);
  const updates = useAsked(catalog.updates);
  const toast = useToast();
  const page = found.value;
  const added = more?.of === wanted ? more : undefined;
  const charts = [...(page?.items ?? []), ...(added?.items ?? [])];
  const next = added ? added.next : (page?.nextPageToken ?? "");
  const showMore = () =>
    void catalog.search(wanted, next).then(
      (page) => setMore({ of: wanted, items: [...(added?.items ?? []), ...(page.items ?? [])], next: page.nextPageToken ?? "" }),
      (e: Error) => toast(e.message, true),
    );
  const changed = () => {
    repositories.again();
    found.again();
  };
  const set = (part: Partial<Filter>) => setFilter({ ...filter, ...part });
  return (
    <div className="page">
      <div className="page-head">
        <h1>Catalogue</h1>
        {page && (
          <span className="total" role="status">
            {page.total ?? 0}
          </span>
        )}
        <button type="button" className="add-repository" onClick={() => setAdding(true)}>
          Add repository…
        </button>
      </div>
      <input
        type="search"
        className="filter catalog-search"
        placeholder="Search charts"
        aria-label="Search charts"
        value={filter.query}
        onChange={(e) => set({ query: e.target.value })}
      />
      {found.error && <Failure error={found.error} what="The catalogue cannot be read." />}
      <Updates updates={updates.value ?? []} onUpgrade={setUpgrading} />
      <div className="catalog">
        <aside aria-label="Narrow the search">
          <Facets title="Repository" facets={page?.repositories} chosen={filter.repository} choose={(repository) => set({ repository })} />
          <Facets title="Category" facets={page?.categories} chosen={filter.category} choose={(category) => set({ category })} />
          <Facets title="Keyword" facets={page?.keywords} chosen={filter.keyword} choose={(keyword) => set({ keyword })} />
          <Repositories repositories={repositories.value ?? []} onChanged={changed} />
        </aside>
        <div>
          <ul className="cards" aria-label="Charts" aria-busy={found.busy}>
            {charts.map((chart) => (
              <Card key={chartPath(chart)} chart={chart} />
            ))}
          </ul>
          {page && charts.length === 0 && !found.busy && <Nothing filtered={filter !== NOTHING} />}
          {next && (
            <button type="button" className="more" onClick={showMore}>
              Show more
            </button>
          )}
        </div>
      </div>
      {adding && <AddRepository onAdded={changed} onClose={() => setAdding(false)} />}
      {upgrading && (
        <UpgradeDialog name={upgrading.application} namespace={upgrading.namespace} onDone={updates.again} onClose={() => setUpgrading(undefined)} />
      )}
    </div>
  );
}

function Nothing({ filtered }: { filtered: boolean }) {
  if (filtered) return <Empty title="No chart matches" />;
  return (
    <Empty title="The catalogue is empty">
      <p>Add a chart repository above, or describe one as an AppRepository in Git.</p>
    </Empty>
  );
}

function Card({ chart }: { chart: ChartSummary }) {
  return (
    <li className="card" data-chart={chart.name}>
      <Icon icon={chart.icon} name={chart.name} />
      <div>
        <h2>
          <Link to={chartPath(chart)} className="cover">
            {chart.name}
          </Link>
        </h2>
        <p className="dim">
          {chart.version} · {chart.namespace}/{chart.repository}
          {chart.deprecated && <span className="badge tone-warn">Deprecated</span>}
        </p>
        <p className="card-text">{chart.description}</p>
      </div>
    </li>
  );
}

function Facets(p: { title: string; facets: Facet[] | undefined; chosen: string; choose: (value: string) => void }) {
  const facets = p.facets ?? [];
  if (facets.length === 0 && !p.chosen) return null;
  return (
    <div className="facets" role="group" aria-label={p.title}>
      <h2>{p.title}</h2>
      {facets.slice(0, FACETS).map(({ value, count }) => (
        <button key={value} type="button" className="quiet" aria-pressed={p.chosen === value} onClick={() => p.choose(p.chosen === value ? "" : value)}>
          {value} <span className="dim">{count}</span>
        </button>
      ))}
    </div>
  );
}

function Updates({ updates, onUpgrade }: { updates: Update[]; onUpgrade: (update: Update) => void }) {
  if (updates.length === 0) return null;
  return (
    <section className="updates" aria-label="Updates">
      <h2>Newer versions</h2>
      <ul>
        {updates.map((update) => (
          <li key={`${update.namespace}/${update.application}/${update.chart}`} data-update={update.application}>
            <b>{update.application}</b> <span className="dim">{update.chart}</span> {update.version} {update.originGone ? "(origin gone)" : `→ ${update.newest}`}
            {!update.originGone && (
              <button type="button" onClick={() => onUpgrade(update)}>
                Upgrade…
              </button>
            )}
          </li>
        ))}
      </ul>
    </section>
  );
}
