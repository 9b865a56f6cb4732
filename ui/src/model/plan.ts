// What a sync would do, in its order: from the last comparison, and from the manifests of the revision that is to be synced.

import type { ResourceDiff, ResourceRef } from "../api/types";
import { refKey } from "./tree";

/** `keep`: Git no longer has it, and it stays. `leave`: it is not among the chosen ones. */
export type Effect = "create" | "change" | "prune" | "hook" | "keep" | "leave" | "same";

export interface Step {
  key: string;
  ref: ResourceRef;
  phase: string;
  wave: number;
  effect: Effect;
  why: string;
  /** In JSON; both are empty when there is nothing to compare. */
  before: string;
  after: string;
}

/** What the server says about it. */
export interface PlanSource {
  managed: ResourceDiff[];
  /** The manifests that were compared, and those that would be synced. Undefined: they are the same. */
  compared: string[] | undefined;
  /** Undefined: the server does not render them, so hooks are not known. */
  wanted: string[] | undefined;
}

/** What is chosen in the dialog. */
export interface PlanChoice {
  prune: boolean;
  hooks: boolean;
  syncOptions: readonly string[];
  /** Keys of the resources that are not chosen. */
  left: ReadonlySet<string>;
  /** The namespace of the manifests that name none. */
  namespace: string;
}

interface Manifest {
  apiVersion?: string;
  kind?: string;
  metadata?: { name?: string; generateName?: string; namespace?: string; annotations?: Record<string, string> };
}

const PHASES = ["PreSync", "Sync", "PostSync", "SyncFail"];
/** These come first, in this order. */
const KINDS = `
  Namespace NetworkPolicy ResourceQuota LimitRange PodSecurityPolicy PodDisruptionBudget ServiceAccount Secret SecretList ConfigMap StorageClass
  PersistentVolume PersistentVolumeClaim CustomResourceDefinition ClusterRole ClusterRoleList ClusterRoleBinding ClusterRoleBindingList Role RoleList
  RoleBinding RoleBindingList Service DaemonSet Pod ReplicationController ReplicaSet Deployment HorizontalPodAutoscaler StatefulSet Job CronJob
  IngressClass Ingress APIService
`.trim().split(/\s+/);
const HELM_HOOKS: Record<string, string> = { "pre-install": "PreSync", "pre-upgrade": "PreSync", "post-install": "PostSync", "post-upgrade": "PostSync" };

function parsed(json: string | undefined): Manifest | undefined {
  if (!json || json === "null") return undefined;
  try {
    return JSON.parse(json) as Manifest;
  } catch {
    return undefined;
  }
}

const annotation = (m: Manifest | undefined, name: string) => m?.metadata?.annotations?.[name] ?? "";
const list = (text: string) => text.split(",").map((part) => part.trim());

function refOf(m: Manifest): ResourceRef {
  const [group, version] = m.apiVersion?.includes("/") ? m.apiVersion.split("/") : ["", m.apiVersion];
  const { name, generateName, namespace } = m.metadata ?? {};
  return { group: group ?? "", version: version ?? "", kind: m.kind ?? "", namespace: namespace ?? "", name: name || `${generateName ?? ""}…` };
}

export function waveOf(m: Manifest | undefined): number {
  const found = ["argocd.argoproj.io/sync-wave", "helm.sh/hook-weight"].map((name) => annotation(m, name)).find((text) => /^[+-]?\d+$/.test(text));
  return Number(found ?? 0);
}

/** The phases in which a hook runs; undefined: it is no hook. Helm's annotation counts only without one of Argo CD. */
export function hookPhases(m: Manifest): string[] | undefined {
  const [own, helm] = [annotation(m, "argocd.argoproj.io/hook"), annotation(m, "helm.sh/hook")];
  const known = list(own).filter((type) => PHASES.includes(type));
  if (known.length > 0) return known;
  if (list(own).includes("Skip")) return [];
  if (!own && (!helm || helm === "crd-install")) return undefined;
  return [...new Set(list(helm).map((type) => HELM_HOOKS[type]).filter((phase) => phase !== undefined))];
}

/** The manifest of a resource: one without a namespace gets the Application's if its kind has namespaces. */
function finder(texts: string[] | undefined, namespace: string) {
  const found = new Map<string, { text: string; manifest: Manifest }>();
  for (const text of texts ?? []) {
    const manifest = parsed(text);
    if (manifest && !hookPhases(manifest)) found.set(refKey(refOf(manifest)), { text, manifest });
  }
  return {
    all: found,
    of: (ref: ResourceRef) => found.get(refKey(ref)) ?? (ref.namespace === namespace ? found.get(refKey({ ...ref, namespace: "" })) : undefined),
  };
}

function resources({ managed, compared, wanted }: PlanSource, choice: PlanChoice): Step[] {
  const [old, next] = [finder(compared, choice.namespace), finder(wanted, choice.namespace)];
  const steps: Step[] = [];
  const seen = new Set<string>();
  for (const item of managed) {
    if (item.hook) continue;
    const [live, target] = [parsed(item.liveState), parsed(item.targetState)];
    const [before, after] = [old.of(item), next.of(item)];
    if (after) seen.add(refKey(refOf(after.manifest)));
    const shown = [item.normalizedLiveState || item.liveState || "", item.predictedLiveState || item.targetState || ""] as const;
    const step = (effect: Effect, manifest: Manifest | undefined, texts: readonly [string, string] = ["", ""]): Step => {
      const { group, kind, namespace, name } = item;
      return { key: refKey(item), ref: { group, kind, namespace, name } as ResourceRef, phase: "Sync", wave: waveOf(manifest), effect, why: "", before: texts[0], after: texts[1] };
    };
    const moved = compared !== undefined && before?.text !== after?.text;
    const wants = moved ? after?.manifest : target;
    if (!wants) live && steps.push(step("prune", live, [shown[0], ""]));
    else if (!live) steps.push(step("create", wants, ["", moved ? (after?.text ?? "") : shown[1]]));
    else if (moved) steps.push(step("change", wants, [before?.text ?? shown[0], after?.text ?? ""]));
    else steps.push(item.modified ? step("change", wants, shown) : step("same", wants));
  }
  // What only the newer revision has, and what the comparison knows by another key.
  if (compared)
    for (const [key, { text, manifest }] of next.all) {
      const before = old.all.get(key)?.text;
      if (seen.has(key) || before === text) continue;
      const effect = before === undefined ? "create" : "change";
      steps.push({ key, ref: refOf(manifest), phase: "Sync", wave: waveOf(manifest), effect, why: "", before: before ?? "", after: text });
    }
  return steps;
}

function hooks(wanted: string[] | undefined): Step[] {
  return (wanted ?? []).flatMap((text, i) => {
    const manifest = parsed(text);
    return (manifest ? (hookPhases(manifest) ?? []) : []).map((phase) => {
      const why = phase === "SyncFail" ? "only if the sync fails" : "";
      const ref = refOf(manifest ?? {});
      return { key: `${phase} ${i} ${refKey(ref)}`, ref, phase, wave: waveOf(manifest), effect: "hook" as const, why, before: "", after: text };
    });
  });
}

/** Objects are pruned in the reverse order of their creation, and with PruneLast after all others. */
function placePrunes(steps: Step[], last: (step: Step) => boolean) {
  const prunes = steps.filter((step) => step.effect === "prune");
  const waves = [...new Set(prunes.map((step) => step.wave))].sort((a, b) => a - b);
  const mirrored = new Map(waves.map((wave, i) => [wave, waves.at(-1 - i) ?? wave]));
  for (const step of prunes) step.wave = mirrored.get(step.wave) ?? step.wave;
  const end = Math.max(...steps.filter((step) => step.phase === "Sync").map((step) => step.wave)) + 1;
  for (const step of prunes.filter(last)) step.wave = end;
}

const optionOf = (m: Manifest | undefined, choice: PlanChoice, name: string) => {
  const all = [...list(annotation(m, "argocd.argoproj.io/sync-options")), ...choice.syncOptions];
  return all.find((option) => option.startsWith(`${name}=`))?.slice(name.length + 1);
};

function rank({ ref }: Step): number {
  const at = KINDS.indexOf(ref.kind);
  return at < 0 ? KINDS.length : at;
}

export function planOf(source: PlanSource, choice: PlanChoice): Step[] {
  const live = new Map(source.managed.map((item) => [refKey(item), parsed(item.liveState)]));
  const steps = resources(source, choice);
  for (const step of steps) {
    const held = optionOf(live.get(step.key), choice, "Prune");
    if (choice.left.has(step.key)) Object.assign(step, { effect: "leave", why: "not chosen" });
    else if (step.effect === "prune" && held === "false") Object.assign(step, { effect: "keep", why: "Prune=false" });
    else if (step.effect === "prune" && !choice.prune) Object.assign(step, { effect: "keep", why: "without Prune it stays" });
    else if (step.effect === "prune" && held === "confirm") step.why = "when that is confirmed";
  }
  // A sync of some resources runs no hooks.
  if (choice.hooks && choice.left.size === 0) steps.push(...hooks(source.wanted));
  placePrunes(steps, (step) => optionOf(live.get(step.key), choice, "PruneLast") === "true");
  const order = (a: Step, b: Step) => PHASES.indexOf(a.phase) - PHASES.indexOf(b.phase) || a.wave - b.wave || rank(a) - rank(b) || (a.ref.name < b.ref.name ? -1 : 1);
  return steps.sort(order);
}

const WORDS: [Effect, string, string][] = [
  ["create", "created", "created"],
  ["change", "changed", "changed"],
  ["prune", "pruned", "pruned"],
  ["hook", "hook", "hooks"],
  ["keep", "kept", "kept"],
  ["leave", "left out", "left out"],
  ["same", "unchanged", "unchanged"],
];

/** "1 created, 2 hooks": in a line what the plan is. */
export function summary(steps: readonly Step[]): string {
  const parts = WORDS.map(([effect, one, many]) => {
    const n = steps.filter((step) => step.effect === effect).length;
    return n > 0 ? `${n} ${n === 1 ? one : many}` : "";
  });
  return parts.filter(Boolean).join(", ") || "nothing";
}
