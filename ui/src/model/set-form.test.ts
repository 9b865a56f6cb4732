import { describe, expect, it } from "vitest";
import type { ApplicationSet } from "../api/sets";
import { EXAMPLE, readSet, readYaml, setText } from "./set-form";

const before: ApplicationSet = {
  metadata: { name: "teams", namespace: "argocd", resourceVersion: "7", labels: { a: "b" }, annotations: { "kubectl.kubernetes.io/last-applied-configuration": "{}" } },
  spec: { goTemplate: true, generators: [{ list: { elements: [{ team: "no", on: "2026-01-01", multi: "a\nb\n" }] } }], strategy: { type: "RollingSync" } },
};

describe("an ApplicationSet as a text", () => {
  it("comes back as it was, with what no form shows", async () => {
    const { metadata, spec } = await readSet(setText(before), before);
    expect(metadata).toEqual({ name: "teams", namespace: "argocd", labels: { a: "b" } });
    expect(spec).toEqual(before.spec);
  });
  it("has an example that can be read", async () => expect((await readSet(EXAMPLE)).spec.generators).toHaveLength(1));
  it("is without what the control plane notes for itself", () => {
    const asked = { "argocd.argoproj.io/application-set-refresh": "true", "argocd.argoproj.io/application-set-refresh-timestamp": "1", team: "red" };
    expect(setText({ ...before, metadata: { ...before.metadata, annotations: asked } })).not.toContain("refresh");
    expect(setText({ ...before, metadata: { ...before.metadata, annotations: asked } })).toContain("team: red");
  });
  it("is new without what belongs to the one it was copied from", async () => {
    const copy = "kind: ApplicationSet\nmetadata: {name: a, resourceVersion: '7', uid: u, managedFields: [{manager: m}], labels: {a: b}}\nspec: {goTemplate: true}\nstatus: {conditions: []}";
    expect(await readSet(copy)).toEqual({ kind: "ApplicationSet", metadata: { name: "a", labels: { a: "b" } }, spec: { goTemplate: true } });
  });
  it("stays the same set", async () => {
    await expect(readSet(setText(before).replace("name: teams", "name: other"), before)).rejects.toThrow("metadata.name: the set is called teams");
    await expect(readSet(setText(before).replace("namespace: argocd", "namespace: other"), before)).rejects.toThrow("metadata.namespace: the set is in argocd");
  });
  it("names what is wrong", async () => {
    await expect(readSet("kind: ApplicationSet\nspec: {")).rejects.toThrow(/line 2/);
    await expect(readSet("kind: Application")).rejects.toThrow('kind: "Application" is not ApplicationSet.');
    await expect(readSet("- a")).rejects.toThrow("no manifest");
    await expect(readSet("kind: ApplicationSet\nspec: {}")).rejects.toThrow("metadata.name: an ApplicationSet needs a name.");
    await expect(readSet("kind: ApplicationSet\nmetadata: {name: a}")).rejects.toThrow("spec: is missing.");
  });
});

it("reads numbers only where Kubernetes does", async () => expect(await readYaml("[., e1, .e1, .5, 1.5e3, -.5, .nan]")).toEqual([".", "e1", ".e1", 0.5, 1500, -0.5, NaN]));

it("reads YAML as Kubernetes does", async () => expect(await readYaml("a: yes\nb: 2026-01-01\nc: 0755\nbase: &b {x: 1}\nd: {<<: *b}")).toEqual({ a: true, b: "2026-01-01", c: 493, base: { x: 1 }, d: { x: 1 } }));
