// Logs as the page keeps them, and which containers have some.

import type { LogLine } from "../api/types";

/** The kinds that have Pods, or are one. */
const WITH_PODS = ["Pod", "Deployment", "ReplicaSet", "StatefulSet", "DaemonSet", "Job", "CronJob", "ReplicationController", "Rollout"];

export const hasLogs = (kind: string) => WITH_PODS.includes(kind);

/** Most lines that are kept; the oldest go first. */
export const MOST_LINES = 5000;

export function withLines(known: readonly LogLine[], more: readonly LogLine[]): LogLine[] {
  // The last message of a stream that ended has no text of its own.
  const all = [...known, ...more.filter((line) => !line.last)];
  return all.length > MOST_LINES ? all.slice(-MOST_LINES) : all;
}

interface PodSpec {
  initContainers?: { name: string }[];
  containers?: { name: string }[];
}

/** The containers that a live object describes, in JSON. The server chooses one of its own accord when none is named. */
export function containersOf(manifest: string): string[] {
  try {
    const { spec } = JSON.parse(manifest) as { spec?: PodSpec & { template?: { spec?: PodSpec }; jobTemplate?: { spec?: { template?: { spec?: PodSpec } } } } };
    const pod = spec?.containers ? spec : (spec?.jobTemplate?.spec ?? spec)?.template?.spec;
    return [...(pod?.containers ?? []), ...(pod?.initContainers ?? [])].map((container) => container.name);
  } catch {
    return [];
  }
}

/** Lines as text; the names of Pods only where there are several, and times where they are wanted. */
export function logsText(lines: readonly LogLine[], times = false): string {
  const several = new Set(lines.map((line) => line.podName)).size > 1;
  return lines.map((line) => [times && line.timeStampStr, several && line.podName, line.content ?? ""].filter((part) => part !== false && part !== undefined).join(" ")).join("\n");
}
