// Creates a project, or changes one: each section is a list.

import { useRef, useState } from "react";
import { manage, type Project, type ProjectSpec, settings } from "../api/settings";
import { useAsked } from "../asked";
import { MODES, policyRows, withPolicyRows } from "../model/integrity";
import { cleaned, emptyProject, type Row, withPolicies } from "../model/project";
import { toYaml } from "../model/yaml";
import { Ask } from "../parts/ask";
import { Copy } from "../parts/copy";
import { Check, type Column, Field, Rows } from "../parts/fields";
import { useToast } from "../parts/shell";

const KIND: Column[] = [
  { key: "group", title: "Group", placeholder: "apps, * or nothing for the core group" },
  { key: "kind", title: "Kind", placeholder: "Deployment, or *", required: true },
];
const NAMED: Column[] = [...KIND, { key: "name", title: "Name", placeholder: "any" }];

const ALLOWED = "Kinds in namespaces that are allowed";
const INTEGRITY = "Signatures of commits";
const KIND_ROW: Row = { group: "", kind: "" };

const WINDOW: Column[] = [
  { key: "kind", title: "Kind", options: ["allow", "deny"] },
  { key: "schedule", title: "Schedule (cron)", placeholder: "0 22 * * *", required: true },
  { key: "duration", title: "Duration", placeholder: "1h", required: true },
  { key: "timeZone", title: "Time zone", placeholder: "UTC" },
  { key: "applications", title: "Applications", kind: "lines", placeholder: "*" },
  { key: "namespaces", title: "Namespaces", kind: "lines" },
  { key: "clusters", title: "Clusters", kind: "lines" },
  { key: "description", title: "Description" },
  { key: "manualSync", title: "Syncs by hand are allowed", kind: "check" },
  { key: "andOperator", title: "All three lists must match", kind: "check" },
  { key: "syncOverrun", title: "A running sync may go on", kind: "check" },
];

const ROLE: Column[] = [
  { key: "name", title: "Name", required: true },
  { key: "description", title: "Description" },
  { key: "policies", title: "Policies", kind: "lines", placeholder: "applications, sync, shop/*, allow" },
  { key: "groups", title: "Groups of the identity provider", kind: "lines" },
];

const POLICY: Column[] = [
  { key: "repos", title: "Repositories", kind: "lines", placeholder: "https://git.example.org/team/*", hint: "* is any; a ! before it leaves it out" },
  { key: "mode", title: "What must be signed", options: MODES },
  { key: "keys", title: "Keys that count", kind: "lines", placeholder: "4AEE18F83AFDEB23", hint: "Ids or fingerprints" },
];

const asRows = (list: unknown) => (list ?? []) as Row[];
const text = (list: string[] | undefined) => (list ?? []).join("\n");
const list = (text: string) => (text === "" ? [] : text.split("\n"));

export function ProjectDialog({ before, onClose }: { before?: Project; onClose: (name?: string) => void }) {
  const toast = useToast();
  const [form, setForm] = useState<Project>(before ?? emptyProject);
  const { spec } = form;
  const set = (part: Partial<ProjectSpec>) => setForm({ ...form, spec: { ...spec, ...part } });
  const wanted: Project = { ...form, spec: cleaned(withPolicies(form)) };
  const saved = useRef<string>(undefined);
  const act = async () => {
    const made = await (before ? manage.changeProject(wanted) : manage.createProject(wanted));
    saved.current = made.metadata.name;
    toast(`${made.metadata.name} is ${before ? "changed" : "created"}`);
  };
  const part = (title: string, count: number, children: React.ReactNode) => (
    <details>
      <summary>
        {title} {count > 0 && <span className="total">{count}</span>}
      </summary>
      {children}
    </details>
  );
  const rows = (title: string, one: string, key: keyof ProjectSpec & string, columns: Column[], fresh: Row = {}) =>
    part(title, asRows(spec[key]).length, <Rows title={title} one={one} columns={columns} rows={asRows(spec[key])} change={(rows) => set({ [key]: rows })} fresh={fresh} />);
  const repositories = useAsked(settings.repositories).value ?? [];
  const keys = spec.signatureKeys ?? [];
  const policies = policyRows(spec.sourceIntegrity);
  const allowed = spec.namespaceResourceWhitelist;
  return (
    <Ask title={before ? `Edit the project ${before.metadata.name}` : "New project"} confirm={before ? "Save" : "Create"} wide act={act} onClose={() => onClose(saved.current)}>
      <div className="two">
        {!before && <Field title="Name" name="name" required pattern="[a-z0-9]([a-z0-9.\-]*[a-z0-9])?" hint="Small letters, digits, - and ." value={form.metadata.name} set={(name) => setForm({ ...form, metadata: { ...form.metadata, name } })} />}
        <Field title="Description" name="description" value={spec.description ?? ""} set={(description) => set({ description })} />
      </div>
      <Field
        title="Repositories, one a line"
        name="sourceRepos"
        rows={3}
        hint={`* is any; a ! before it denies it. ${repositories.length > 0 ? `There are: ${repositories.slice(0, 5).map(({ repo }) => repo).join(", ")}` : ""}`}
        value={text(spec.sourceRepos)}
        set={(value) => set({ sourceRepos: list(value) })}
      />
      {rows("Destinations", "destination", "destinations", [
        { key: "server", title: "Server", placeholder: "https://kubernetes.default.svc" },
        { key: "name", title: "or cluster name", placeholder: "in-cluster" },
        { key: "namespace", title: "Namespace", placeholder: "shop-*" },
      ])}
      {rows("Cluster-wide kinds that are allowed", "kind", "clusterResourceWhitelist", NAMED, KIND_ROW)}
      {rows("Cluster-wide kinds that are denied", "kind", "clusterResourceBlacklist", NAMED, KIND_ROW)}
      {part(
        ALLOWED,
        asRows(allowed).length,
        <>
          <Check title="All kinds" name="allKinds" hint="Without it, only those of the list: an empty one allows none" on={!allowed} set={(on) => set({ namespaceResourceWhitelist: on ? undefined : [] })} />
          {allowed && <Rows title={ALLOWED} one="kind" columns={KIND} rows={asRows(allowed)} change={(rows) => set({ namespaceResourceWhitelist: rows })} fresh={KIND_ROW} />}
        </>,
      )}
      {rows("Kinds in namespaces that are denied", "kind", "namespaceResourceBlacklist", KIND, KIND_ROW)}
      {rows("Roles", "role", "roles", ROLE, { name: "" })}
      {rows("Sync windows", "window", "syncWindows", WINDOW, { kind: "allow", schedule: "", duration: "1h", applications: ["*"] })}
      {part(
        "Orphaned resources",
        spec.orphanedResources?.ignore?.length ?? 0,
        <>
          <Check
            title="Show what no Application describes"
            name="orphaned"
            hint="In the namespaces that are destinations"
            on={spec.orphanedResources !== undefined && spec.orphanedResources !== null}
            set={(on) => set({ orphanedResources: on ? { warn: false } : undefined })}
          />
          {spec.orphanedResources && (
            <>
              <Check title="Warn of them" name="warn" hint="With a condition of the Application" on={spec.orphanedResources.warn ?? true} set={(warn) => set({ orphanedResources: { ...spec.orphanedResources, warn } })} />
              <Rows title="Left out" one="pattern" columns={NAMED.map((column) => ({ ...column, required: false }))} rows={asRows(spec.orphanedResources.ignore)} change={(ignore) => set({ orphanedResources: { ...spec.orphanedResources, ignore } })} />
            </>
          )}
        </>,
      )}
      {part(
        INTEGRITY,
        policies.length,
        <>
          <p className="dim">head: the tag or commit that is deployed; strict: all commits before it, too. What no policy names is not checked.</p>
          <Rows title={INTEGRITY} one="policy" columns={POLICY} rows={policies} change={(rows) => set({ sourceIntegrity: withPolicyRows(spec.sourceIntegrity, rows) })} fresh={{ repos: [], mode: "head", keys: [] }} />
        </>,
      )}
      {part(
        "Keys that must have signed commits",
        keys.length,
        <Field title="Keys, one a line" name="signatureKeys" rows={2} hint="Of every repository. Newer: policies of signatures, above" placeholder="4AEE18F83AFDEB23" value={text(keys.map(({ keyID }) => keyID ?? ""))} set={(value) => set({ signatureKeys: list(value).map((keyID) => ({ keyID })) })} />,
      )}
      {part(
        "Namespaces with Applications",
        spec.sourceNamespaces?.length ?? 0,
        <Field title="Namespaces, one a line" name="sourceNamespaces" rows={2} value={text(spec.sourceNamespaces)} set={(value) => set({ sourceNamespaces: list(value) })} />,
      )}
      <Check
        title="Only clusters of this project"
        name="permitOnlyProjectScopedClusters"
        hint="Others are no destinations, whatever the list says"
        on={spec.permitOnlyProjectScopedClusters ?? false}
        set={(on) => set({ permitOnlyProjectScopedClusters: on })}
      />
      <details>
        <summary>As a file for Git</summary>
        <pre className="code" tabIndex={0}>
          {manifest(wanted)}
        </pre>
        <Copy text={`${manifest(wanted)}\n`} />
      </details>
    </Ask>
  );
}

/** What people enter of it. Tokens are the server's. */
function manifest({ metadata: { name, namespace, labels }, spec }: Project): string {
  const metadata = Object.fromEntries(Object.entries({ name, namespace, labels }).filter(([, value]) => value));
  const roles = spec.roles?.map(({ jwtTokens: _tokens, ...role }) => role);
  return toYaml({ apiVersion: "argoproj.io/v1alpha1", kind: "AppProject", metadata, spec: roles ? { ...spec, roles } : spec });
}
