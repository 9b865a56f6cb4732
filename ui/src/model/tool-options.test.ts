import { expect, it } from "vitest";
import type { Source } from "../api/types";
import { sourceForm, withSource } from "./source";

const git: Source = { repoURL: "r", path: "." };

it("gives Helm, Kustomize and jsonnet what was entered", () => {
  const made = withSource(git, {
    ...sourceForm(git),
    skipTests: true,
    skipSchemaValidation: true,
    passCredentials: true,
    helmNamespace: " n ",
    helmVersion: "v3",
    helmKubeVersion: "1.31.0",
    helmApiVersions: "apps/v1\n\n batch/v1",
    fileParameters: "config=files/a.json\nempty",
    commonAnnotations: "owner=${ARGOCD_APP_NAME}",
    commonAnnotationsEnvsubst: true,
    forceCommonLabels: true,
    forceCommonAnnotations: true,
    labelWithoutSelector: true,
    labelIncludeTemplates: true,
    ignoreMissingComponents: true,
    kustomizeVersion: "v5.7.0",
    kustomizeKubeVersion: "1.31.0",
    kustomizeApiVersions: "apps/v1",
    extVars: [{ name: "a", value: "1", code: true }, { name: " ", value: "no" }],
    tlas: [{ name: "b", value: "x\ny" }],
    libs: "vendor\nlib",
  });
  expect(made).toEqual({
    ...git,
    helm: {
      skipTests: true,
      skipSchemaValidation: true,
      passCredentials: true,
      namespace: "n",
      version: "v3",
      kubeVersion: "1.31.0",
      apiVersions: ["apps/v1", "batch/v1"],
      fileParameters: [{ name: "config", path: "files/a.json" }, { name: "empty", path: "" }],
    },
    kustomize: {
      commonAnnotations: { owner: "${ARGOCD_APP_NAME}" },
      commonAnnotationsEnvsubst: true,
      forceCommonLabels: true,
      forceCommonAnnotations: true,
      labelWithoutSelector: true,
      labelIncludeTemplates: true,
      ignoreMissingComponents: true,
      version: "v5.7.0",
      kubeVersion: "1.31.0",
      apiVersions: ["apps/v1"],
    },
    directory: { jsonnet: { extVars: [{ name: "a", value: "1", code: true }], tlas: [{ name: "b", value: "x\ny" }], libs: ["vendor", "lib"] } },
  });
  // And back: nothing is left of a tool without options.
  const same = withSource(made, sourceForm(made));
  expect(same).toEqual(made);
  expect(withSource(made, { ...sourceForm(git), at: undefined })).toEqual(git);
});

it("keeps file parameters that no line can hold, and all else of one that is changed", () => {
  const fileParameters = [{ name: "a", path: "x", future: 1 }, { name: "odd", path: " b\nc" }];
  const source = { ...git, helm: { fileParameters } } as Source;
  const form = sourceForm(source);
  expect(form.fileParameters).toBe("a=x");
  expect(withSource(source, { ...form, fileParameters: "a=y\nnew=z" }).helm?.fileParameters).toEqual([{ name: "a", path: "y", future: 1 }, { name: "new", path: "z" }, fileParameters[1]]);
  expect(withSource(source, { ...form, fileParameters: "odd=z" }).helm?.fileParameters).toEqual([{ name: "odd", path: "z" }]);
});
