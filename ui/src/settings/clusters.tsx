// Clusters: their state, what can be changed of them, and what is forgotten of them.

import { useState } from "react";
import { type Cluster, manage, settings } from "../api/settings";
import { useAsked } from "../asked";
import { clusterChange, clusterForm } from "../model/cluster";
import { Ask } from "../parts/ask";
import { Known } from "../parts/known";
import { useToast } from "../parts/shell";
import type { TableRow } from "../parts/table";
import { Check, Connection, Field, List, RowButton } from "./parts";

export function Clusters() {
  const asked = useAsked(settings.clusters);
  const toast = useToast();
  const [chosen, setChosen] = useState<{ what: "edit" | "remove"; cluster: Cluster }>();
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
        <span className="dim">
          <code>tiphys cluster add</code> adds one
        </span>
      </List>
      {chosen?.what === "edit" && <ClusterDialog cluster={chosen.cluster} onClose={close} />}
      {chosen?.what === "remove" && (
        <Ask title={`Remove ${chosen.cluster.name || chosen.cluster.server}`} confirm="Remove" danger act={() => manage.removeCluster(chosen.cluster)} onClose={close}>
          <p>Its credentials are deleted, and its Applications cannot be compared or synced any more. What runs in the cluster stays.</p>
        </Ask>
      )}
    </>
  );
}

function ClusterDialog({ cluster, onClose }: { cluster: Cluster; onClose: () => void }) {
  const toast = useToast();
  const projects = useAsked(settings.projects).value ?? [];
  // As it was when the dialog was opened.
  const [before] = useState(cluster);
  const [form, setForm] = useState(() => clusterForm(cluster));
  const set = (part: Partial<typeof form>) => setForm({ ...form, ...part });
  const act = async () => {
    await manage.changeCluster(before, clusterChange(before, form));
    toast(`${form.name} is changed`);
  };
  return (
    <Ask title={`Edit ${cluster.name || cluster.server}`} confirm="Save" wide act={act} onClose={onClose}>
      <p className="dim">{cluster.server}. Its credentials stay as they are.</p>
      <div className="two">
        <Field title="Name" name="name" required value={form.name} set={(name) => set({ name })} />
        <Known title="Project" name="project" placeholder="any" value={form.project} known={projects.map(({ metadata }) => metadata.name)} change={(project) => set({ project })} />
        <Field title="Only these namespaces, one a line" name="namespaces" rows={3} hint="Empty: all" value={form.namespaces} set={(namespaces) => set({ namespaces })} />
        <Field title="Labels, one a line" name="labels" rows={3} placeholder="env=prod" value={form.labels} set={(labels) => set({ labels })} />
        <Field title="Annotations, one a line" name="annotations" rows={3} hint="Those with line breaks are not shown, and stay" value={form.annotations} set={(annotations) => set({ annotations })} />
      </div>
      {form.namespaces.trim() !== "" && (
        <Check title="Cluster-wide resources, too" name="clusterResources" hint="Although only some namespaces are managed" on={form.clusterResources} set={(clusterResources) => set({ clusterResources })} />
      )}
    </Ask>
  );
}
