// The version of the server, as people read it.

const NAMES: [string, string][] = [
  ["Version", "Tiphys"],
  ["BuildDate", "Built"],
  ["GitCommit", "Commit"],
  ["Platform", "Platform"],
  ["KustomizeVersion", "Kustomize"],
  ["HelmVersion", "Helm"],
  ["KubectlVersion", "Kubernetes client"],
  ["JsonnetVersion", "jsonnet"],
];

/** What the server says, and no more. */
export const versionFacts = (version: Readonly<Record<string, unknown>>): [string, string][] =>
  NAMES.flatMap(([key, name]) => {
    const value = version[key];
    return typeof value === "string" && value !== "" ? [[name, value]] : [];
  });
