import { describe, expect, it } from "vitest";
import type { ResourceDiff } from "../api/types";
import { hookPhases, planOf, type PlanChoice, type PlanSource, type Step, summary, waveOf } from "./plan";
import { refKey } from "./tree";

const choice: PlanChoice = { prune: true, hooks: true, syncOptions: [], left: new Set(), namespace: "shop" };
const manifest = (kind: string, name: string, annotations: Record<string, string> = {}, data = "1") => ({ apiVersion: "v1", kind, metadata: { name, annotations }, data });
type Made = ReturnType<typeof manifest> | undefined;
const item = (target: Made, live: Made, modified = false): ResourceDiff => {
  const { kind, metadata } = (target ?? live) as NonNullable<Made>;
  const text = (m: Made) => (m ? JSON.stringify(m) : "null");
  return { kind, namespace: "shop", name: metadata.name, targetState: text(target), liveState: text(live), modified };
};
const source = (managed: ResourceDiff[], wanted: object[] = [], compared?: object[]): PlanSource => ({
  managed,
  wanted: wanted.map((m) => JSON.stringify(m)),
  compared: compared?.map((m) => JSON.stringify(m)),
});
const line = ({ phase, wave, effect, ref }: Step) => `${phase} ${wave} ${effect} ${ref.kind}/${ref.name}`;
const wave = (n: number) => ({ "argocd.argoproj.io/sync-wave": String(n) });
const hook = (types: string) => ({ "argocd.argoproj.io/hook": types });
const a = manifest("ConfigMap", "a");

describe("what a sync would do", () => {
  it("creates, changes, prunes, and leaves alone", () => {
    const steps = planOf(source([item(a, undefined), item(manifest("Secret", "b"), manifest("Secret", "b"), true), item(undefined, manifest("ConfigMap", "c")), item(manifest("ConfigMap", "d"), a)]), choice);
    expect(steps.map(line)).toEqual(["Sync 0 change Secret/b", "Sync 0 create ConfigMap/a", "Sync 0 prune ConfigMap/c", "Sync 0 same ConfigMap/d"]);
    expect(summary(steps)).toBe("1 created, 1 changed, 1 pruned, 1 unchanged");
    expect(steps[1]).toMatchObject({ before: "", after: expect.stringContaining('"name":"a"') as string });
    expect(steps[2]).toMatchObject({ after: "" });
  });
  it("has phases, waves and kinds in the order of the sync", () => {
    const managed = [item(manifest("Service", "s", wave(1)), undefined), item(manifest("Widget", "w"), undefined), item(manifest("Namespace", "n"), undefined), item(manifest("ConfigMap", "early", wave(-1)), undefined)];
    const steps = planOf(source(managed, [manifest("Job", "after", hook("PostSync")), manifest("Job", "before", hook("PreSync,SyncFail"))]), choice);
    expect(steps.map(line)).toEqual([
      "PreSync 0 hook Job/before",
      "Sync -1 create ConfigMap/early",
      "Sync 0 create Namespace/n",
      "Sync 0 create Widget/w",
      "Sync 1 create Service/s",
      "PostSync 0 hook Job/after",
      "SyncFail 0 hook Job/before",
    ]);
    expect(new Set(steps.map((step) => step.key)).size).toBe(steps.length);
  });
  it("prunes only when that is asked for and allowed", () => {
    const kept = { "argocd.argoproj.io/sync-options": "Replace=true, Prune=false" };
    const managed = [item(undefined, a), item(undefined, manifest("ConfigMap", "b", kept))];
    expect(planOf(source(managed), choice).map(line)).toEqual(["Sync 0 prune ConfigMap/a", "Sync 0 keep ConfigMap/b"]);
    expect(planOf(source(managed), { ...choice, prune: false }).map((step) => step.effect)).toEqual(["keep", "keep"]);
    expect(planOf(source(managed), { ...choice, syncOptions: ["Prune=false"] }).map((step) => step.effect)).toEqual(["keep", "keep"]);
  });
  it("prunes in the reverse order, or last", () => {
    const managed = [item(undefined, manifest("ConfigMap", "first", wave(1))), item(undefined, manifest("ConfigMap", "second", wave(2))), item(manifest("ConfigMap", "x", wave(5)), undefined)];
    const steps = (syncOptions: string[]) => planOf(source(managed), { ...choice, syncOptions }).map(line);
    expect(steps([])).toEqual(["Sync 1 prune ConfigMap/second", "Sync 2 prune ConfigMap/first", "Sync 5 create ConfigMap/x"]);
    expect(steps(["PruneLast=true"]).slice(1)).toEqual(["Sync 6 prune ConfigMap/first", "Sync 6 prune ConfigMap/second"]);
  });
  it("runs no hooks when only some resources are chosen, or when they are skipped", () => {
    const some = { ...choice, left: new Set([refKey({ kind: "ConfigMap", namespace: "shop", name: "a" })]) };
    const from = source([item(a, undefined)], [manifest("Job", "h", hook("PreSync"))]);
    expect(planOf(from, some).map(line)).toEqual(["Sync 0 leave ConfigMap/a"]);
    expect(planOf(from, { ...choice, hooks: false }).map(line)).toEqual(["Sync 0 create ConfigMap/a"]);
  });
  it("does not take the hooks in the cluster for resources", () => expect(planOf(source([{ ...item(undefined, a), hook: true }]), choice)).toEqual([]));
  it("compares with another revision", () => {
    const [b, c, d] = ["b", "c", "d"].map((name) => manifest("ConfigMap", name)) as [typeof a, typeof a, typeof a];
    const newer = manifest("ConfigMap", "b", {}, "2");
    const steps = planOf(source([item(a, a), item(b, b), item(c, c)], [a, newer, d], [a, b, c]), choice);
    expect(steps.map(line)).toEqual(["Sync 0 same ConfigMap/a", "Sync 0 change ConfigMap/b", "Sync 0 prune ConfigMap/c", "Sync 0 create ConfigMap/d"]);
    expect(steps[1]).toMatchObject({ before: expect.stringContaining('"data":"1"') as string, after: expect.stringContaining('"data":"2"') as string });
  });
  it("does not take for new what the comparison knows by another key", () => {
    const inNamespace = (data: string) => ({ ...manifest("ClusterRole", "r", {}, data), metadata: { name: "r", namespace: "elsewhere" } });
    const role = { ...item(manifest("ClusterRole", "r"), manifest("ClusterRole", "r")), namespace: "" };
    expect(planOf(source([role], [inNamespace("1")], [inNamespace("1")]), choice).map(line)).toEqual(["Sync 0 same ClusterRole/r"]);
    expect(planOf(source([role], [inNamespace("2")], [inNamespace("1")]), choice).map(line)).toContain("Sync 0 change ClusterRole/r");
  });
  it("says when nothing is done", () => expect(summary(planOf(source([]), choice))).toBe("nothing"));
});

describe("hooks and waves", () => {
  const phases = (annotations: Record<string, string>) => hookPhases(manifest("Job", "j", annotations));
  it("are Argo CD's or Helm's", () => {
    expect(phases(hook("PreSync, PostSync"))).toEqual(["PreSync", "PostSync"]);
    expect(phases({ "helm.sh/hook": "pre-install,pre-upgrade" })).toEqual(["PreSync"]);
    expect(phases({ ...hook("Sync"), "helm.sh/hook": "post-install" })).toEqual(["Sync"]);
  });
  it("do not run on every sync", () => {
    expect([phases(hook("Skip")), phases(hook("PostDelete")), phases({ "helm.sh/hook": "test" })]).toEqual([[], [], []]);
    expect([phases({}), phases({ "helm.sh/hook": "crd-install" })]).toEqual([undefined, undefined]);
  });
  it("count Helm's weight only without a wave", () => {
    const of = (annotations: Record<string, string>) => waveOf(manifest("Job", "j", annotations));
    expect([of({ "helm.sh/hook-weight": "-5" }), of({ ...wave(3), "helm.sh/hook-weight": "1" }), of({ "argocd.argoproj.io/sync-wave": "soon" })]).toEqual([-5, 3, 0]);
  });
});
