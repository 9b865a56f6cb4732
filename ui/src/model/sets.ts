// An ApplicationSet's Applications, and how what it generates differs from them.

import type { ApplicationSet } from "../api/sets";
import type { Application } from "../api/types";
import { toYaml } from "./yaml";

/** Why it does not generate what it should; undefined: it does. */
export const errorOf = (set: ApplicationSet) => set.status?.conditions?.find(({ type, status }) => type === "ErrorOccurred" && status === "True")?.message;

export function toneOfCondition({ type, status }: { type: string; status?: string }): "good" | "bad" | "busy" | "off" {
  if (type === "ErrorOccurred") return status === "True" ? "bad" : "good";
  if (type === "RolloutProgressing") return status === "True" ? "busy" : "off";
  return status === "True" ? "good" : "bad";
}

export const isOwned = (app: Application, { metadata }: ApplicationSet) =>
  (app.metadata.namespace ?? "") === (metadata.namespace ?? "") &&
  (app.metadata.ownerReferences ?? []).some((owner) => owner.controller === true && owner.kind === "ApplicationSet" && owner.name === metadata.name);

export interface Difference {
  name: string;
  effect: "create" | "change" | "delete" | "keep" | "same";
  why: string;
  /** In YAML. */
  before: string;
  after: string;
}

/** What others write on an Application of a set, and the set leaves alone. */
const OTHERS = [
  "notified.notifications.argoproj.io",
  "argocd.argoproj.io/refresh",
  "argocd.argoproj.io/hydrate",
  "tiphys.dev/sync-progress",
  "tiphys.dev/last-healthy",
  "tiphys.dev/failed-hooks",
];
const HOOK_FINALIZERS = ["pre-delete-finalizer.argocd.argoproj.io", "post-delete-finalizer.argocd.argoproj.io"];

/** Keys in order, without what is empty: two servers' forms of one thing become the same. */
function normal(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(normal);
  if (typeof value !== "object" || value === null) return value;
  const entries = Object.entries(value).map(([key, part]) => [key, normal(part)] as const);
  const isEmpty = (part: unknown) => part === null || part === "" || (typeof part === "object" && Object.keys(part).length === 0);
  return Object.fromEntries(entries.filter(([, part]) => !isEmpty(part)).sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Removes what a JSON pointer leads to. */
export function without(value: unknown, pointer: string): unknown {
  const [first, ...rest] = pointer.replace(/^\//, "").split("/");
  const key = (first ?? "").replaceAll("~1", "/").replaceAll("~0", "~");
  if (typeof value !== "object" || value === null || !Object.hasOwn(value, key)) return value;
  const inner = (value as Record<string, unknown>)[key];
  if (Array.isArray(value)) {
    const at = Number(key);
    return rest.length > 0 ? value.with(at, without(inner, rest.join("/"))) : value.toSpliced(at, 1);
  }
  const { [key]: _gone, ...others } = value as Record<string, unknown>;
  return rest.length > 0 ? { ...others, [key]: without(inner, rest.join("/")) } : others;
}

/** What the set decides of an Application. */
function decided(app: Application, set: ApplicationSet): string {
  const { preservedFields = {}, ignoreApplicationDifferences = [] } = set.spec;
  const kept = (of: Record<string, string> | undefined, names: string[]) => Object.fromEntries(Object.entries(of ?? {}).filter(([name]) => !names.includes(name)));
  const { labels, annotations, finalizers } = app.metadata;
  let value: unknown = {
    metadata: {
      labels: kept(labels, preservedFields.labels ?? []),
      annotations: kept(annotations, [...OTHERS, ...(preservedFields.annotations ?? [])]),
      finalizers: (finalizers ?? []).filter((name) => !HOOK_FINALIZERS.some((prefix) => name.startsWith(prefix))),
    },
    spec: app.spec,
  };
  const pointers = ignoreApplicationDifferences.filter(({ name }) => !name || name === app.metadata.name).flatMap(({ jsonPointers }) => jsonPointers ?? []);
  for (const pointer of pointers) value = without(value, pointer);
  return toYaml(normal(value));
}

/** Every Application that exists or would, by name. The set's policy may forbid a change. */
export function differences(set: ApplicationSet, generated: readonly Application[], existing: readonly Application[]): Difference[] {
  const policy = set.spec.syncPolicy?.applicationsSync ?? "sync";
  const held = (allowed: string) => (["sync", "", allowed].includes(policy) ? "" : `the policy is ${policy}`);
  const old = new Map(existing.map((app) => [app.metadata.name, app]));
  const wanted = new Set(generated.map((app) => app.metadata.name));
  const found = generated.map((app): Difference => {
    const { name } = app.metadata;
    const live = old.get(name);
    const after = decided(app, set);
    if (!live) return { name, effect: "create", why: "", before: "", after };
    const before = decided(live, set);
    if (before === after) return { name, effect: "same", why: "", before, after };
    const isTaken = !isOwned(live, set) && live.metadata.ownerReferences?.some((owner) => owner.controller === true);
    const why = isTaken ? "it belongs to something else" : held("create-update");
    return { name, effect: why ? "keep" : "change", why, before, after };
  });
  for (const app of existing) {
    if (wanted.has(app.metadata.name) || !isOwned(app, set)) continue;
    const why = held("create-delete");
    found.push({ name: app.metadata.name, effect: why ? "keep" : "delete", why, before: decided(app, set), after: "" });
  }
  return found.sort((a, b) => (a.name < b.name ? -1 : 1));
}
