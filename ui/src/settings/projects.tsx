// Projects: all of them, and one with its roles' tokens.

import { useCallback, useState } from "react";
import { manage, type Project, settings, type Token } from "../api/settings";
import { useAsked } from "../asked";
import { useNow } from "../hooks";
import { Ask } from "../parts/ask";
import { EventList } from "../parts/events";
import { Fact } from "../parts/facts";
import { Failure, useToast } from "../parts/shell";
import type { TableRow } from "../parts/table";
import { Table } from "../parts/table";
import { Link, setQuery } from "../router";
import { moment, TokenDialog } from "./accounts";
import { List, NewToken, RowButton } from "./parts";
import { ProjectDialog } from "./project-dialog";

const lines = (texts: string[]) =>
  texts.length === 0
    ? "–"
    : texts.map((text, i) => (
        <div key={i} className="clip" title={text}>
          {text}
        </div>
      ));

const destinations = ({ spec }: Project) => (spec.destinations ?? []).map((d) => `${d.namespace || "*"} in ${d.name || d.server || "*"}`);
const windows = ({ spec }: Project) => (spec.syncWindows ?? []).map((w) => `${w.kind} ${w.schedule} for ${w.duration}`);
const signatures = ({ spec }: Project) => (spec.sourceIntegrity?.git?.policies ?? []).map(({ repos, gpg }) => `${gpg?.mode || "none"} for ${(repos ?? []).map(({ url }) => url).join(", ")} by ${(gpg?.keys ?? []).join(", ") || "nobody"}`);

function row(project: Project): TableRow {
  const { metadata, spec } = project;
  const name = (
    <>
      <Link to={`/settings?project=${encodeURIComponent(metadata.name)}`}>{metadata.name}</Link>
      <div className="dim">{spec.description}</div>
    </>
  );
  return { key: metadata.name, cells: [name, lines(spec.sourceRepos ?? []), lines(destinations(project)), lines((spec.roles ?? []).map((role) => role.name)), lines(windows(project))] };
}

export function Projects() {
  const asked = useAsked(settings.projects);
  const [creating, setCreating] = useState(false);
  const close = (name?: string) => {
    setCreating(false);
    asked.again();
    if (name) setQuery({ project: name });
  };
  return (
    <>
      <List title="Projects" asked={asked} heads={["Name", "Sources", "Destinations", "Roles", "Sync windows"]} row={row}>
        <button type="button" className="primary" onClick={() => setCreating(true)}>
          New project…
        </button>
      </List>
      {creating && <ProjectDialog onClose={close} />}
    </>
  );
}

type Chosen = { what: "edit" | "remove" } | { what: "token"; role: string } | { what: "revoke"; role: string; token: Token };

export function OneProject({ name }: { name: string }) {
  const toast = useToast();
  const { value, error, again } = useAsked(useCallback((signal: AbortSignal) => manage.project(name, signal), [name]));
  const [chosen, setChosen] = useState<Chosen>();
  const [typed, setTyped] = useState("");
  const [token, setToken] = useState("");
  const close = () => (setChosen(undefined), again());
  const remove = async () => {
    await manage.removeProject(name);
    toast(`${name} was deleted`);
    setQuery({ project: "" });
  };
  const roles = value?.spec.roles ?? [];
  const kinds = (items: { group?: string; kind?: string; name?: string }[] | undefined) => lines((items ?? []).map(({ group, kind, name }) => [group || "core", kind, name].filter(Boolean).join("/")));
  return (
    <section aria-label={`Project ${name}`}>
      <nav aria-label="Where you are" className="way">
        <Link to="/settings">← Projects</Link>
      </nav>
      <div className="section-head">
        <h2>{name}</h2>
        <span className="dim">{value?.spec.description}</span>
        <span className="grow" />
        <Link to={`/applications?proj=${encodeURIComponent(name)}`}>Its Applications</Link>
        <button type="button" disabled={!value} onClick={() => (setTyped(""), setChosen({ what: "remove" }))}>
          Delete…
        </button>
        <button type="button" className="primary" disabled={!value} onClick={() => setChosen({ what: "edit" })}>
          Edit…
        </button>
      </div>
      {error && <Failure error={error} what="The project cannot be read." />}
      {!value && !error && <div className="skeleton" role="status" aria-label="Loading" />}
      {token && <NewToken token={token} onClose={() => setToken("")} />}
      {value && (
        <>
          <dl className="facts">
            <Fact name="Repositories">{lines(value.spec.sourceRepos ?? [])}</Fact>
            <Fact name="Destinations">{lines(destinations(value))}</Fact>
            <Fact name="Cluster-wide kinds allowed">{kinds(value.spec.clusterResourceWhitelist)}</Fact>
            <Fact name="Cluster-wide kinds denied">{kinds(value.spec.clusterResourceBlacklist)}</Fact>
            <Fact name="Kinds in namespaces allowed">{value.spec.namespaceResourceWhitelist ? kinds(value.spec.namespaceResourceWhitelist) : "all"}</Fact>
            <Fact name="Kinds in namespaces denied">{kinds(value.spec.namespaceResourceBlacklist)}</Fact>
            <Fact name="Sync windows">{lines(windows(value))}</Fact>
            <Fact name="Orphaned resources">{value.spec.orphanedResources ? `shown${value.spec.orphanedResources.warn === false ? "" : ", with a warning"}` : "not looked for"}</Fact>
            <Fact name="Signatures of commits">{lines(signatures(value))}</Fact>
            <Fact name="Keys that must have signed">{lines((value.spec.signatureKeys ?? []).map(({ keyID }) => keyID ?? ""))}</Fact>
          </dl>
          <h3>Roles</h3>
          {roles.length === 0 && <p className="dim">There are none. Edit… adds one, for groups of people and for tokens of pipelines.</p>}
          {roles.length > 0 && (
            <Table
              title="Roles"
              heads={["Name", "Policies", "Groups", "Tokens"]}
              rows={roles.map((role) => ({
                key: role.name,
                cells: [
                  <>
                    {role.name}
                    <div className="dim">{role.description}</div>
                  </>,
                  lines(role.policies ?? []),
                  lines(role.groups ?? []),
                  <>
                    {(role.jwtTokens ?? []).map((token) => (
                      <div key={`${token.iat} ${token.id}`} className="tools">
                        <span>
                          {token.id || moment(token.iat, "–")} <span className="dim">until {moment(token.exp, "it is revoked")}</span>
                        </span>
                        <RowButton title="Revoke…" of={`token ${token.id || token.iat} of ${role.name}`} danger onClick={() => setChosen({ what: "revoke", role: role.name, token })} />
                      </div>
                    ))}
                    <RowButton title="New token…" of={`of ${role.name}`} onClick={() => setChosen({ what: "token", role: role.name })} />
                  </>,
                ],
              }))}
            />
          )}
        </>
      )}
      {value && (
        <>
          <h3>Events</h3>
          <ProjectEvents name={name} changed={value.metadata.resourceVersion ?? ""} />
        </>
      )}
      {chosen?.what === "edit" && value && <ProjectDialog before={value} onClose={close} />}
      {chosen?.what === "remove" && (
        <Ask title={`Delete the project ${name}`} confirm="Delete" danger disabled={typed !== name} act={remove} onClose={close}>
          <p>The server refuses it while Applications are in it.</p>
          <label>
            Its name, to confirm
            <input name="confirm" autoComplete="off" value={typed} onChange={(e) => setTyped(e.target.value)} />
          </label>
        </Ask>
      )}
      {chosen?.what === "token" && (
        <TokenDialog of={`${name}:${chosen.role}`} act={(id, expires) => manage.createRoleToken(name, chosen.role, id, expires).then(({ token }) => setToken(token))} onClose={close} />
      )}
      {chosen?.what === "revoke" && (
        <Ask title={`Revoke a token of ${chosen.role}`} confirm="Revoke" danger act={() => manage.removeRoleToken(name, chosen.role, chosen.token)} onClose={close}>
          <p>What uses the token {chosen.token.id || String(chosen.token.iat)} is refused from now on.</p>
        </Ask>
      )}
    </section>
  );
}

function ProjectEvents({ name, changed }: { name: string; changed: string }) {
  return <EventList ask={useCallback((signal: AbortSignal) => manage.projectEvents(name, signal), [name, changed])} now={useNow()} />;
}
