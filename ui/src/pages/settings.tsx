// Projects, repositories and clusters: what there is, and whether it can be reached. They are changed with the command line, or in Git.

import { type Cluster, type ConnectionState, type Project, type Repository, settings } from "../api/settings";
import { useAsked } from "../asked";
import { useTitle } from "../hooks";
import { Failure } from "../parts/shell";
import { Badge } from "../parts/status";
import { Table, type TableRow } from "../parts/table";
import { Link } from "../router";

export function SettingsPage() {
  useTitle("Settings");
  return (
    <div className="page">
      <div className="page-head">
        <h1>Settings</h1>
      </div>
      <Part title="Projects" ask={settings.projects} heads={["Name", "Sources", "Destinations", "Roles", "Sync windows"]} verb="tiphys proj" row={project} />
      <Part title="Repositories" ask={settings.repositories} heads={["Address", "Kind", "Project", "Connection"]} verb="tiphys repo" row={repository} />
      <Part title="Clusters" ask={settings.clusters} heads={["Name", "Server", "Version", "Applications", "Connection"]} verb="tiphys cluster" row={cluster} />
    </div>
  );
}

interface PartProps<T> {
  title: string;
  ask: (signal: AbortSignal) => Promise<T[]>;
  heads: string[];
  verb: string;
  row: (item: T) => TableRow;
}

function Part<T>({ title, ask, heads, verb, row }: PartProps<T>) {
  const asked = useAsked(ask);
  const rows = asked.value?.map(row);
  return (
    <section className="settings-part" aria-label={title} aria-busy={asked.busy}>
      <div className="section-head">
        <h2>{title}</h2>
        {rows && <span className="total">{rows.length}</span>}
        <span className="grow" />
        <span className="dim">
          Change them with <code>{verb}</code>
        </span>
      </div>
      {asked.error && <Failure error={asked.error} what={`${title} cannot be listed.`} />}
      {!rows && !asked.error && <div className="skeleton" role="status" aria-label="Loading" />}
      {rows?.length === 0 && <p className="dim">There are none.</p>}
      {rows && rows.length > 0 && <Table title={title} heads={heads} rows={rows} />}
    </section>
  );
}

const lines = (texts: string[]) =>
  texts.length === 0
    ? "–"
    : texts.map((text, i) => (
        <div key={i} className="clip" title={text}>
          {text}
        </div>
      ));

function project({ metadata, spec }: Project): TableRow {
  const destinations = (spec.destinations ?? []).map((d) => `${d.namespace || "*"} in ${d.name || d.server || "*"}`);
  const windows = (spec.syncWindows ?? []).map((w) => `${w.kind} ${w.schedule} for ${w.duration}`);
  const name = (
    <>
      <Link to={`/applications?proj=${encodeURIComponent(metadata.name)}`}>{metadata.name}</Link>
      <div className="dim">{spec.description}</div>
    </>
  );
  return { key: metadata.name, cells: [name, lines(spec.sourceRepos ?? []), lines(destinations), lines((spec.roles ?? []).map((role) => role.name)), lines(windows)] };
}

function repository({ repo, name, type, project, connectionState }: Repository): TableRow {
  const address = (
    <>
      {repo}
      <div className="dim">{name}</div>
    </>
  );
  return { key: `${project ?? ""} ${repo}`, cells: [address, type || "git", project || "any", <Connection key="c" state={connectionState} />] };
}

function cluster({ server, name, info, serverVersion, connectionState }: Cluster): TableRow {
  const state = info?.connectionState ?? connectionState;
  return { key: server, cells: [name, server, info?.serverVersion || serverVersion, info?.applicationsCount ?? 0, <Connection key="c" state={state} />] };
}

function Connection({ state }: { state: ConnectionState | undefined }) {
  return (
    <>
      <Badge word={state?.status} />
      {state?.message && <div className="dim">{state.message}</div>}
    </>
  );
}
