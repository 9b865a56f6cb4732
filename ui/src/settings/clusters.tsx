// Clusters: their state, and how they are added, changed, read again and removed.

import { useState } from "react";
import { type Cluster, manage, settings } from "../api/settings";
import { useAsked } from "../asked";
import { type AccessForm, accessForm, accessOf, accessProblem, clusterChange, clusterForm } from "../model/cluster";
import { Ask } from "../parts/ask";
import { Check, Field } from "../parts/fields";
import { Known } from "../parts/known";
import { useToast } from "../parts/shell";
import type { TableRow } from "../parts/table";
import { Connection, List, RowButton } from "./parts";

export function Clusters() {
  const asked = useAsked(settings.clusters);
  const toast = useToast();
  const [chosen, setChosen] = useState<{ what: "add" } | { what: "edit" | "remove"; cluster: Cluster }>();
  const invalidate = async (cluster: Cluster) => {
    try {
      await manage.invalidate(cluster);
      toast(`${cluster.name || cluster.server} is read again`);
      asked.again();
    } catch (e) {
      toast(e instanceof Error ? e.message : String(e), true);
    }
  };
  const row = (cluster: Cluster): TableRow => {
    const name = cluster.name || cluster.server;
    return {
      key: cluster.server,
      cells: [
        <>
          {name}
          {cluster.project && <div className="dim">project {cluster.project}</div>}
        </>,
        <>
          {cluster.server}
          {cluster.namespaces && cluster.namespaces.length > 0 && <div className="dim">only {cluster.namespaces.join(", ")}</div>}
        </>,
        cluster.info?.serverVersion || cluster.serverVersion,
        cluster.info?.applicationsCount ?? 0,
        <Connection state={cluster.info?.connectionState ?? cluster.connectionState} />,
        <span className="tools">
          <RowButton title="Edit…" of={name} onClick={() => setChosen({ what: "edit", cluster })} />
          <RowButton title="Read again" of={name} onClick={() => void invalidate(cluster)} />
          <RowButton title="Remove…" of={name} danger onClick={() => setChosen({ what: "remove", cluster })} />
        </span>,
      ],
    };
  };
  const close = () => (setChosen(undefined), asked.again());
  return (
    <>
      <List title="Clusters" asked={asked} heads={["Name", "Server", "Version", "Applications", "Connection", "Change"]} row={row}>
        <button type="button" className="primary" onClick={() => setChosen({ what: "add" })}>
          Add a cluster…
        </button>
      </List>
      {chosen?.what === "add" && <ClusterDialog cluster={undefined} onClose={close} />}
      {chosen?.what === "edit" && <ClusterDialog cluster={chosen.cluster} onClose={close} />}
      {chosen?.what === "remove" && (
        <Ask title={`Remove ${chosen.cluster.name || chosen.cluster.server}`} confirm="Remove" danger act={() => manage.removeCluster(chosen.cluster)} onClose={close}>
          <p>Its credentials are deleted, and its Applications cannot be compared or synced any more. What runs in the cluster stays.</p>
        </Ask>
      )}
    </>
  );
}

const NEW: Cluster = { server: "" };

/** Adds one, or changes one. */
function ClusterDialog({ cluster, onClose }: { cluster: Cluster | undefined; onClose: () => void }) {
  const toast = useToast();
  const projects = useAsked(settings.projects).value ?? [];
  // As it was when the dialog was opened.
  const [before] = useState(cluster ?? NEW);
  const [server, setServer] = useState(before.server);
  const [form, setForm] = useState(() => clusterForm(before));
  const [access, setAccess] = useState(() => accessForm(before.config));
  const [replaces, setReplaces] = useState(false);
  const set = (part: Partial<typeof form>) => setForm({ ...form, ...part });
  const act = async () => {
    const problem = cluster && !replaces ? undefined : accessProblem(access);
    if (problem) throw new Error(problem);
    const fields = clusterChange(before, form);
    if (cluster) await manage.changeCluster(before, replaces ? { ...fields, config: accessOf(before.config, access) } : fields);
    else await manage.addCluster({ ...fields, server: server.trim(), config: accessOf(undefined, access) });
    toast(`${form.name || server} is ${cluster ? "changed" : "added"}`);
  };
  return (
    <Ask title={cluster ? `Edit ${cluster.name || cluster.server}` : "Add a cluster"} confirm={cluster ? "Save" : "Add"} wide act={act} onClose={onClose}>
      {cluster ? (
        <p className="dim">{cluster.server}</p>
      ) : (
        <Field title="Address of its API server" name="server" required pattern="https?://.+" hint="Begins with https://, as in a kubeconfig" placeholder="https://10.0.0.1:6443" value={server} set={setServer} />
      )}
      <div className="two">
        <Field title="Name" name="name" required={cluster !== undefined} placeholder={server} value={form.name} set={(name) => set({ name })} />
        <Known title="Project" name="project" placeholder="any" value={form.project} known={projects.map(({ metadata }) => metadata.name)} change={(project) => set({ project })} />
        <Field title="Only these namespaces, one a line" name="namespaces" rows={3} hint="Empty: all" value={form.namespaces} set={(namespaces) => set({ namespaces })} />
        <Field title="Labels, one a line" name="labels" rows={3} placeholder="env=prod" value={form.labels} set={(labels) => set({ labels })} />
        <Field title="Annotations, one a line" name="annotations" rows={3} hint={cluster && "Those with line breaks are not shown, and stay"} value={form.annotations} set={(annotations) => set({ annotations })} />
      </div>
      {form.namespaces.trim() !== "" && (
        <Check title="Cluster-wide resources, too" name="clusterResources" hint="Although only some namespaces are managed" on={form.clusterResources} set={(clusterResources) => set({ clusterResources })} />
      )}
      {cluster && <Check title="Replace its credentials" name="replaces" hint="Otherwise they stay as they are" on={replaces} set={setReplaces} />}
      {cluster && replaces && (
        <div className="notice tone-warn">
          <strong>Secrets are never shown.</strong>
          <span>Saving replaces all that is stored, also a certificate authority, and a program that gives tokens: what is empty is removed.</span>
        </div>
      )}
      {(!cluster || replaces) && <Access form={access} set={(part) => setAccess({ ...access, ...part })} />}
    </Ask>
  );
}

/** How the control plane signs in. */
function Access({ form, set }: { form: AccessForm; set: (part: Partial<AccessForm>) => void }) {
  const field = (title: string, key: Exclude<keyof AccessForm, "insecure">, more: object = {}) => <Field title={title} name={key} value={form[key]} set={(value) => set({ [key]: value })} {...more} />;
  const certificate = { rows: 4, placeholder: "-----BEGIN CERTIFICATE-----" };
  return (
    <>
      {field("Bearer token", "bearerToken", { secret: true, hint: "Of a service account that may manage what Applications have" })}
      {field("Certificate authority of the server", "ca", { ...certificate, hint: "Empty: those that the system trusts" })}
      <Check title="Do not check the server's certificate" name="insecure" hint="Anybody on the way could pretend to be it" on={form.insecure} set={(insecure) => set({ insecure })} />
      <details>
        <summary>More ways to sign in, TLS and proxy</summary>
        <div className="two">
          {field("Client certificate", "cert", certificate)}
          {field("Client key", "key", { rows: 4, placeholder: "-----BEGIN PRIVATE KEY-----" })}
          {field("User name", "username")}
          {field("Password", "password", { secret: true })}
          {field("Name in the server's certificate", "serverName", { hint: "If it is another one than that of the address" })}
          {field("Proxy", "proxyUrl", { placeholder: "http://proxy.example.org:3128" })}
        </div>
      </details>
    </>
  );
}
