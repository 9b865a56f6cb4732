// What a sync asks for, in the terms of Argo CD.

import type { Application, ResourceRef } from "../api/types";
import { refKey } from "./tree";

/** The sync options that are offered, with what they do. */
export const OFFERED: [string, string][] = [
  ["CreateNamespace=true", "Create the namespace if it is missing"],
  ["ServerSideApply=true", "Let the API server merge, with field managers"],
  ["ApplyOutOfSyncOnly=true", "Leave alone what is in sync"],
  ["PruneLast=true", "Delete only when all else is healthy"],
  ["Replace=true", "Replace objects instead of patching them"],
  ["Validate=false", "Skip the validation of schemas"],
];

/** Undefined when nothing differs from the policy: the server takes that then. */
export function optionsOf(policy: readonly string[], chosen: ReadonlySet<string>): string[] | undefined {
  const offered = OFFERED.map(([option]) => option);
  if (offered.every((option) => chosen.has(option) === policy.includes(option))) return undefined;
  // Those that are not offered stay, but for the opposite of one that is chosen.
  const names = new Set([...chosen].map((option) => option.split("=")[0]));
  const others = policy.filter((option) => !offered.includes(option) && !names.has(option.split("=")[0]));
  return [...others, ...offered.filter((option) => chosen.has(option))];
}

/** What a sync would apply: hooks are no part of a choice. */
export const syncable = (app: Application) => (app.status?.resources ?? []).filter((resource) => !resource.hook);

/** Undefined when all are chosen: the server also applies what Git has only by then. */
export function chosenResources(all: readonly ResourceRef[], left: ReadonlySet<string>): ResourceRef[] | undefined {
  const some = all.filter((resource) => !left.has(refKey(resource)));
  return some.length === all.length ? undefined : some;
}
