import { describe, expect, it } from "vitest";
import type { Source } from "../api/types";
import { imageName, imagesOf, parameterForm, parametersOf, toolOf, withParameters } from "./parameters";

const helm: Source = {
  repoURL: "r",
  path: "chart",
  helm: { releaseName: "shop", valueFiles: ["a.yaml", "b.yaml"], skipCrds: true, parameters: [{ name: "tag", value: "v=1", forceString: true }, { name: "text", value: "one\ntwo" }] },
};
const kustomize: Source = { repoURL: "r", path: "k", kustomize: { namePrefix: "x-", commonLabels: { team: "a" }, images: ["web:v2"], namespace: "n" } };

describe("the parameters of a source", () => {
  it("are those of the chart, with what the Application says instead", () => {
    const details = { helm: { parameters: [{ name: "replicas", value: "1" }, { name: "tag" }] } };
    expect(parametersOf(helm, details)).toEqual([
      { name: "tag", offered: "", set: "v=1" },
      { name: "text", offered: undefined, set: "one\ntwo" },
      { name: "replicas", offered: "1", set: undefined },
    ]);
  });
  it("are images, too", () => {
    expect(["web:v1", "web@sha256:0", "host:5000/web", "host:5000/web:v1", "web=other:v1"].map(imageName)).toEqual(["web", "web", "host:5000/web", "host:5000/web", "web"]);
    expect(imagesOf(kustomize, { kustomize: { images: ["web:v1", "db:1"] } })).toEqual([{ image: "web:v1", set: "web:v2" }, { image: "db:1", set: undefined }]);
    expect(imagesOf(kustomize, undefined)).toEqual([{ image: "web", set: "web:v2" }]);
  });
  it("are of the tool that the source names, or that the repository is made for", () => {
    const folder = { repoURL: "r", path: "." };
    expect([toolOf(helm, undefined), toolOf({ repoURL: "r", chart: "c" }, undefined), toolOf(kustomize, { type: "Helm" })]).toEqual(["helm", "helm", "kustomize"]);
    expect([toolOf(folder, { type: "Kustomize" }), toolOf(folder, { type: "Directory" }), toolOf(folder, undefined)]).toEqual(["kustomize", "directory", undefined]);
  });
});

describe("the parameters of the form", () => {
  it("change nothing that nobody changed", () => {
    expect(withParameters(helm, parameterForm(helm))).toEqual(helm);
    expect(withParameters(kustomize, parameterForm(kustomize))).toEqual(kustomize);
  });
  it("keep what a line cannot say", () => {
    expect(parameterForm(helm).parameters).toBe("tag=v=1");
    const changed = withParameters(helm, { ...parameterForm(helm), parameters: "tag=v=2\n\n replicas = 3" });
    expect(changed.helm).toEqual({
      ...helm.helm,
      parameters: [{ name: "tag", value: "v=2", forceString: true }, { name: "replicas", value: "3" }, { name: "text", value: "one\ntwo" }],
    });
  });
  it("change value files and leave the rest", () =>
    expect(withParameters(helm, { ...parameterForm(helm), valueFiles: "c.yaml\n" }).helm).toEqual({ ...helm.helm, valueFiles: ["c.yaml"] }));
  it("change and remove what Kustomize gets", () => {
    const form = parameterForm(kustomize);
    expect(withParameters(kustomize, { ...form, images: "web:v3\ndb=db:2", commonLabels: "team=b", namePrefix: "" }).kustomize).toEqual({ namespace: "n", images: ["web:v3", "db=db:2"], commonLabels: { team: "b" } });
    const only = { repoURL: "r", kustomize: { images: ["web:v2"] } };
    expect(withParameters(only, { ...parameterForm(only), images: "" })).toEqual({ repoURL: "r" });
  });
});

it("a parameter that is entered is not hidden by one of its name that no line can hold", () => {
  const of = (parameters: string) => withParameters(helm, { ...parameterForm(helm), parameters }).helm?.parameters;
  expect(of("tag=v=1\ntext=new")).toEqual([{ name: "tag", value: "v=1", forceString: true }, { name: "text", value: "new" }]);
  // One that was there beside it changes nothing.
  const both: Source = { repoURL: "r", helm: { parameters: [{ name: "a", value: "1" }, { name: "a", value: "one\ntwo" }] } };
  expect(withParameters(both, { ...parameterForm(both), parameters: "a=1\nb=2" }).helm?.parameters).toEqual([{ name: "a", value: "1" }, { name: "b", value: "2" }, { name: "a", value: "one\ntwo" }]);
});
