// A cluster as it is edited.

import type { Cluster } from "../api/settings";
import { lines, mapLines, mapOf } from "./parameters";

/** As texts. */
export interface ClusterForm {
  name: string;
  namespaces: string;
  labels: string;
  annotations: string;
  project: string;
  clusterResources: boolean;
}

export type ClusterPart = Pick<Cluster, keyof ClusterForm>;

export const clusterForm = (cluster: Cluster): ClusterForm => ({
  name: cluster.name ?? "",
  namespaces: (cluster.namespaces ?? []).join("\n"),
  labels: mapLines(cluster.labels),
  annotations: mapLines(cluster.annotations),
  project: cluster.project ?? "",
  clusterResources: cluster.clusterResources ?? false,
});

/** Only what was changed in the form: what others change meanwhile stays. */
export function clusterChange(cluster: Cluster, form: ClusterForm): ClusterPart {
  const before = clusterForm(cluster);
  const wanted: Required<ClusterPart> = {
    name: form.name,
    namespaces: lines(form.namespaces),
    labels: mapOf(form.labels, cluster.labels),
    annotations: mapOf(form.annotations, cluster.annotations),
    project: form.project,
    clusterResources: form.clusterResources,
  };
  const differs = (key: string) => before[key as keyof ClusterForm] !== form[key as keyof ClusterForm];
  return Object.fromEntries(Object.entries(wanted).filter(([key]) => differs(key)));
}
