// What a sync asks for, in the terms of Argo CD.

import type { Application, ResourceRef } from "../api/types";
import { refKey } from "./tree";

/** The sync options that are offered, with what they do. */
export const OFFERED: [string, string][] = [
  ["CreateNamespace=true", "Create the namespace if it is missing"],
  ["ServerSideApply=true", "Let the API server merge, with field managers"],
  ["ApplyOutOfSyncOnly=true", "Leave alone what is in sync"],
  ["PruneLast=true", "Delete only when all else is healthy"],
  ["RespectIgnoreDifferences=true", "Leave the fields of ignoreDifferences as they are"],
  ["Replace=true", "Replace objects instead of patching them"],
  ["Validate=false", "Skip the validation of schemas"],
];

/** How what is pruned goes along with what it owns: one of them. */
export const PROPAGATION = ["foreground", "background", "orphan"].map((policy) => `PrunePropagationPolicy=${policy}`);

const ALL = [...OFFERED.map(([option]) => option), ...PROPAGATION];

/** Those of the policy that can be chosen. */
export const offeredOf = (policy: readonly string[]) => ALL.filter((option) => policy.includes(option));

/** Another way to prune, or that of the control plane. */
export const withPropagation = (chosen: ReadonlySet<string>, option: string): ReadonlySet<string> =>
  new Set([...chosen].filter((one) => !PROPAGATION.includes(one)).concat(option || []));

/** The waits between the tries are those of Argo CD's page. */
export const retryOf = (limit: number) => (limit > 0 ? { limit, backoff: { duration: "5s", maxDuration: "3m0s", factor: 2 } } : undefined);

/** Undefined when nothing differs from the policy: the server takes that then. */
export function optionsOf(policy: readonly string[], chosen: ReadonlySet<string>): string[] | undefined {
  if (ALL.every((option) => chosen.has(option) === policy.includes(option))) return undefined;
  // Those that are not offered stay, but for the opposite of one that is chosen.
  const names = new Set([...chosen].map((option) => option.split("=")[0]));
  const others = policy.filter((option) => !ALL.includes(option) && !names.has(option.split("=")[0]));
  return [...others, ...ALL.filter((option) => chosen.has(option))];
}

/** What a sync would apply: hooks are no part of a choice. */
export const syncable = (app: Application) => (app.status?.resources ?? []).filter((resource) => !resource.hook);

/** Undefined when all are chosen: the server also applies what Git has only by then. Not so when `only` some were meant from the beginning. */
export function chosenResources(all: readonly ResourceRef[], left: ReadonlySet<string>, only = false): ResourceRef[] | undefined {
  const some = all.filter((resource) => !left.has(refKey(resource)));
  return some.length === all.length && !only ? undefined : some;
}
