// Options of Helm, Kustomize and jsonnet that few Applications have, as they are entered.

import type { JsonnetVar, Source } from "../api/types";
import { changed, fits, lines, mapLines, mapOf, pair } from "./parameters";
import type { Row } from "./project";

export interface OptionForm {
  skipTests: boolean;
  skipSchemaValidation: boolean;
  passCredentials: boolean;
  helmNamespace: string;
  helmVersion: string;
  helmKubeVersion: string;
  /** As lines. */
  helmApiVersions: string;
  /** As lines `name=path`. */
  fileParameters: string;
  /** As lines `key=value`. */
  commonAnnotations: string;
  commonAnnotationsEnvsubst: boolean;
  forceCommonLabels: boolean;
  forceCommonAnnotations: boolean;
  labelWithoutSelector: boolean;
  labelIncludeTemplates: boolean;
  ignoreMissingComponents: boolean;
  kustomizeVersion: string;
  kustomizeKubeVersion: string;
  /** As lines. */
  kustomizeApiVersions: string;
  /** Variables of jsonnet, and arguments of what a file gives: each with a name, a value, and whether that is code. */
  extVars: Row[];
  tlas: Row[];
  /** As lines. */
  libs: string;
}

type FileParameters = NonNullable<NonNullable<Source["helm"]>["fileParameters"]>;

const isFile = ({ name, path }: FileParameters[number]) => fits({ name, value: path ?? "" });
const rows = (vars: readonly JsonnetVar[] | undefined): Row[] => (vars ?? []).map((one) => ({ ...one }));

export function optionForm(source: Source | undefined): OptionForm {
  const { helm, kustomize, directory } = source ?? {};
  return {
    skipTests: helm?.skipTests ?? false,
    skipSchemaValidation: helm?.skipSchemaValidation ?? false,
    passCredentials: helm?.passCredentials ?? false,
    helmNamespace: helm?.namespace ?? "",
    helmVersion: helm?.version ?? "",
    helmKubeVersion: helm?.kubeVersion ?? "",
    helmApiVersions: (helm?.apiVersions ?? []).join("\n"),
    fileParameters: (helm?.fileParameters ?? []).filter(isFile).map(({ name, path }) => `${name}=${path ?? ""}`).join("\n"),
    commonAnnotations: mapLines(kustomize?.commonAnnotations),
    commonAnnotationsEnvsubst: kustomize?.commonAnnotationsEnvsubst ?? false,
    forceCommonLabels: kustomize?.forceCommonLabels ?? false,
    forceCommonAnnotations: kustomize?.forceCommonAnnotations ?? false,
    labelWithoutSelector: kustomize?.labelWithoutSelector ?? false,
    labelIncludeTemplates: kustomize?.labelIncludeTemplates ?? false,
    ignoreMissingComponents: kustomize?.ignoreMissingComponents ?? false,
    kustomizeVersion: kustomize?.version ?? "",
    kustomizeKubeVersion: kustomize?.kubeVersion ?? "",
    kustomizeApiVersions: (kustomize?.apiVersions ?? []).join("\n"),
    extVars: rows(directory?.jsonnet?.extVars),
    tlas: rows(directory?.jsonnet?.tlas),
    libs: (directory?.jsonnet?.libs ?? []).join("\n"),
  };
}

/** What no line can hold stays, unless a line has its name. */
function fileParameters(text: string, old: FileParameters): FileParameters {
  const entered = lines(text).map((line) => {
    const [name, path] = pair(line);
    return { ...old.find((parameter) => parameter.name === name), name, path };
  });
  return [...entered, ...old.filter((parameter) => !isFile(parameter) && !entered.some(({ name }) => name === parameter.name))];
}

/** A row without a name is none. */
const vars = (entered: readonly Row[]) => entered.filter(({ name }) => typeof name === "string" && name.trim() !== "") as unknown as JsonnetVar[];

/** Only what was changed in the form is changed in the source. */
export function withOptions(source: Source, form: OptionForm): Source {
  const before = optionForm(source);
  const wanted = { ...source };
  const { helm: oldHelm, kustomize: oldKustomize } = source;
  const differing = <T extends object>(parts: Partial<Record<keyof OptionForm, T>>) =>
    Object.entries(parts).flatMap(([key, part]) => {
      const name = key as keyof OptionForm;
      return JSON.stringify(before[name]) === JSON.stringify(form[name]) ? [] : [part as T];
    });
  const helm: Record<string, Partial<NonNullable<Source["helm"]>>> = {
    skipTests: { skipTests: form.skipTests },
    skipSchemaValidation: { skipSchemaValidation: form.skipSchemaValidation },
    passCredentials: { passCredentials: form.passCredentials },
    helmNamespace: { namespace: form.helmNamespace.trim() },
    helmVersion: { version: form.helmVersion.trim() },
    helmKubeVersion: { kubeVersion: form.helmKubeVersion.trim() },
    helmApiVersions: { apiVersions: lines(form.helmApiVersions) },
    fileParameters: { fileParameters: fileParameters(form.fileParameters, oldHelm?.fileParameters ?? []) },
  };
  const kustomize: Record<string, Partial<NonNullable<Source["kustomize"]>>> = {
    commonAnnotations: { commonAnnotations: mapOf(form.commonAnnotations, oldKustomize?.commonAnnotations) },
    commonAnnotationsEnvsubst: { commonAnnotationsEnvsubst: form.commonAnnotationsEnvsubst },
    forceCommonLabels: { forceCommonLabels: form.forceCommonLabels },
    forceCommonAnnotations: { forceCommonAnnotations: form.forceCommonAnnotations },
    labelWithoutSelector: { labelWithoutSelector: form.labelWithoutSelector },
    labelIncludeTemplates: { labelIncludeTemplates: form.labelIncludeTemplates },
    ignoreMissingComponents: { ignoreMissingComponents: form.ignoreMissingComponents },
    kustomizeVersion: { version: form.kustomizeVersion.trim() },
    kustomizeKubeVersion: { kubeVersion: form.kustomizeKubeVersion.trim() },
    kustomizeApiVersions: { apiVersions: lines(form.kustomizeApiVersions) },
  };
  const jsonnet: Record<string, Partial<NonNullable<NonNullable<Source["directory"]>["jsonnet"]>>> = {
    extVars: { extVars: vars(form.extVars) },
    tlas: { tlas: vars(form.tlas) },
    libs: { libs: lines(form.libs) },
  };
  for (const part of differing(helm)) wanted.helm = changed(wanted.helm, part);
  for (const part of differing(kustomize)) wanted.kustomize = changed(wanted.kustomize, part);
  for (const part of differing(jsonnet)) wanted.directory = changed(wanted.directory, { jsonnet: changed(wanted.directory?.jsonnet, part) });
  for (const tool of ["helm", "kustomize", "directory"] as const) if (!wanted[tool]) delete wanted[tool];
  return wanted;
}
