import { describe, expect, it } from "vitest";
import type { Source } from "../api/types";
import { moved, sourceForm, takesValues, withSource } from "./source";

// Fields that no form of this page knows must stay, too.
const chart = { repoURL: "https://charts.example.org", chart: "web", targetRevision: "1.0.0", helm: { values: "a: 1", version: "v3" }, plugin: { env: [] } } as Source;

describe("the form of a source", () => {
  it("changes nothing that nobody changed", () => {
    const kustomize = { replicas: [{ name: "web", count: "3" }], components: ["../tls"], patches: [{ patch: "x" }] };
    for (const source of [chart, { repoURL: "r", kustomize, directory: {} }, { repoURL: "r", ref: "values" }] as Source[]) expect(withSource(source, sourceForm(source))).toEqual(source);
  });
  it("keeps what it does not show", () => {
    const wanted = withSource(chart, { ...sourceForm(chart), revision: "1.1.0", releaseName: "shop", skipCrds: true });
    expect(wanted).toEqual({ ...chart, targetRevision: "1.1.0", helm: { values: "a: 1", version: "v3", releaseName: "shop", skipCrds: true } });
  });
  it("goes from a chart to a folder", () => {
    const wanted = withSource(chart, { ...sourceForm(chart), isChart: false, path: "deploy", revision: "" });
    expect(wanted).toEqual({ ...chart, chart: undefined, path: "deploy", targetRevision: "HEAD" });
    expect("chart" in wanted).toBe(false);
  });
  it("changes Helm's values, and removes them", () => {
    const alone: Source = { repoURL: "r", path: ".", helm: { values: "a: 1" } };
    expect(withSource(alone, { ...sourceForm(alone), values: "a: 2" }).helm).toEqual({ values: "a: 2" });
    expect(withSource(alone, { ...sourceForm(alone), values: " \n" }).helm).toBeUndefined();
  });
  it("changes Helm's values and parameters together", () =>
    expect(withSource(chart, { ...sourceForm(chart), values: "a: 2", parameters: "b=3" }).helm).toEqual({ values: "a: 2", version: "v3", parameters: [{ name: "b", value: "3" }] }));
  it("has options of Kustomize and of directories", () => {
    const made = withSource(undefined, { ...sourceForm(), repoURL: "r", replicas: "web=3\napi=2", components: "../tls", kustomizeNamespace: "n", recurse: true, include: "*.yaml" });
    expect(made).toEqual({
      repoURL: "r",
      path: ".",
      targetRevision: "HEAD",
      kustomize: { namespace: "n", replicas: [{ name: "web", count: 3 }, { name: "api", count: 2 }], components: ["../tls"] },
      directory: { recurse: true, include: "*.yaml" },
    });
    const cleared = withSource(made, { ...sourceForm(made), recurse: false, include: "", replicas: "web=3" });
    expect([cleared.directory, cleared.kustomize?.replicas]).toEqual([undefined, [{ name: "web", count: 3 }]]);
  });
  it("changes patches, and keeps what a row does not show of them", () => {
    const patch = { patch: "- op: add\n", target: { kind: "Deployment", name: "web" }, options: { allowNameChange: true } };
    const source: Source = { repoURL: "r", path: ".", kustomize: { namePrefix: "p-", patches: [patch, { path: "other.yaml" }] } };
    const form = sourceForm(source);
    expect(withSource(source, form)).toEqual(source);
    const [first = {}, second = {}] = form.patches;
    const rows = [{ ...first, "target.name": "", "target.labelSelector": "a=b" }, second, { patch: "" }];
    expect(withSource(source, { ...form, patches: rows }).kustomize).toEqual({ namePrefix: "p-", patches: [{ ...patch, target: { kind: "Deployment", labelSelector: "a=b" } }, { path: "other.yaml" }] });
    expect(withSource(source, { ...form, patches: [] }).kustomize).toEqual({ namePrefix: "p-" });
  });
  it("gives a plugin its name, variables and parameters of each kind", () => {
    const rows = [{ name: "t", kind: "text", value: "a b" }, { name: "l", kind: "list", value: "x\ny\n" }, { name: "m", kind: "map", value: "k=v" }, { name: " ", kind: "text", value: "" }];
    const made = withSource(undefined, { ...sourceForm(), repoURL: "r", pluginName: "cue", pluginEnv: "STAGE=prod\nEMPTY=", pluginParameters: rows });
    expect(made.plugin).toEqual({
      name: "cue",
      env: [{ name: "STAGE", value: "prod" }, { name: "EMPTY", value: "" }],
      parameters: [{ name: "t", string: "a b" }, { name: "l", array: ["x", "y"] }, { name: "m", map: { k: "v" } }],
    });
    expect(withSource(made, sourceForm(made))).toEqual(made);
  });
  it("keeps what no line can hold of a plugin's variables and parameters", () => {
    const plugin = { env: [{ name: "A", value: "1\n2" }, { name: "B", value: "b" }], parameters: [{ name: "odd", array: ["a\nb"] }, { name: "bare" }, { name: "two", string: "x", map: {} }] };
    const source: Source = { repoURL: "r", path: ".", plugin };
    const form = sourceForm(source);
    expect(withSource(source, form)).toEqual(source);
    const changed = withSource(source, { ...form, pluginEnv: "B=c", pluginParameters: [...form.pluginParameters, { name: "new", kind: "text", value: "" }] });
    expect(changed.plugin?.env).toEqual([{ name: "B", value: "c" }, { name: "A", value: "1\n2" }]);
    expect(changed.plugin?.parameters).toEqual([{ name: "bare" }, { name: "new", string: "" }, plugin.parameters[0], plugin.parameters[2]]);
    expect(withSource({ repoURL: "r", plugin: {} }, sourceForm({ repoURL: "r", plugin: {} })).plugin).toEqual({});
  });
  it("gives a source that only lends files no path", () =>
    expect(withSource(undefined, { ...sourceForm(), repoURL: "r", ref: "values" })).toEqual({ repoURL: "r", targetRevision: "HEAD", ref: "values" }));
  it("asks for values as a text, but not where they are an object", () =>
    expect([takesValues(chart, true), takesValues(undefined, true), takesValues(chart, false), takesValues({ repoURL: "r", helm: { valuesObject: {} } }, true)]).toEqual([true, true, false, false]));
});

it("moves within the list only", () => {
  expect([moved(["a", "b", "c"], 0, 1), moved(["a", "b", "c"], 2, -1)]).toEqual([["b", "a", "c"], ["a", "c", "b"]]);
  expect([moved(["a", "b"], 0, -1), moved(["a", "b"], 1, 1), moved(["a"], 4, -1)]).toEqual([["a", "b"], ["a", "b"], ["a"]]);
});
