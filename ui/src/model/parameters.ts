// What a source gives to Helm and Kustomize: how it is shown, and how it is entered as lines.

import type { HelmSource, Source } from "../api/types";

/** What the repository offers. */
export interface AppDetails {
  type?: string;
  helm?: { valueFiles?: string[]; parameters?: { name: string; value?: string }[]; values?: string };
  kustomize?: { images?: string[] };
  plugin?: { parametersAnnouncement?: { name?: string }[] };
}

export interface Parameter {
  name: string;
  /** What the chart has with the value files. */
  offered: string | undefined;
  /** What the Application says instead. */
  set: string | undefined;
}

/** Those that the Application sets first. */
export function parametersOf(source: Source, details: AppDetails | undefined): Parameter[] {
  const offered = new Map((details?.helm?.parameters ?? []).map(({ name, value }) => [name, value ?? ""]));
  const set = new Map((source.helm?.parameters ?? []).map(({ name, value }) => [name, value ?? ""]));
  const names = [...set.keys(), ...[...offered.keys()].filter((name) => !set.has(name))];
  return names.map((name) => ({ name, offered: offered.get(name), set: set.get(name) }));
}

/** The name of an image in `name=other:tag`, `name:tag` or `name@digest`; a registry's port is no tag. */
export function imageName(image: string): string {
  const [before = ""] = image.split("=");
  const [name = ""] = before.split("@");
  const tag = name.lastIndexOf(":");
  return tag > name.lastIndexOf("/") ? name.slice(0, tag) : name;
}

/** Images that the repository has, and what the Application takes instead. */
export function imagesOf(source: Source, details: AppDetails | undefined): { image: string; set: string | undefined }[] {
  const set = new Map((source.kustomize?.images ?? []).map((image) => [imageName(image), image]));
  const offered = details?.kustomize?.images ?? [];
  const rest = [...set].filter(([name]) => !offered.some((image) => imageName(image) === name));
  return [...offered.map((image) => ({ image, set: set.get(imageName(image)) })), ...rest.map(([image, set]) => ({ image, set }))];
}

export type Tool = "helm" | "kustomize" | "directory" | "plugin" | undefined;

/** What renders it: the source itself says, or what is in the repository. */
export function toolOf(source: Source | undefined, details: AppDetails | undefined): Tool {
  if (source?.chart || source?.helm) return "helm";
  if (source?.kustomize) return "kustomize";
  if (source?.plugin) return "plugin";
  if (source?.directory) return "directory";
  return ({ Helm: "helm", Kustomize: "kustomize", Directory: "directory", Plugin: "plugin" } as const)[details?.type ?? ""];
}

/** As lines, or as one text. */
export interface ParameterForm {
  valueFiles: string;
  parameters: string;
  images: string;
  namePrefix: string;
  nameSuffix: string;
  commonLabels: string;
}

/** Without empty ones. */
export const lines = (text: string) => text.split("\n").map((line) => line.trim()).filter(Boolean);

/** A line without `=` has no value. */
export function pair(line: string): [string, string] {
  const at = line.indexOf("=");
  return at < 0 ? [line, ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
}

/** What a line cannot hold stays as it is. */
export const fits = ({ name, value }: { name: string; value?: string }) => name !== "" && !/[\n\r=]|^\s|\s$/.test(name) && !/[\n\r]|^\s|\s$/.test(value ?? "");

/** The lines `key=value` of a map, without what a line cannot hold. */
export const mapLines = (map: Record<string, string> | undefined) =>
  Object.entries(map ?? {})
    .filter(([name, value]) => fits({ name, value }))
    .map(([name, value]) => `${name}=${value}`)
    .join("\n");

/** What was entered as lines. What a line cannot hold of the map before stays, unless a line has its name. */
export const mapOf = (text: string, before: Record<string, string> | undefined): Record<string, string> => ({
  ...Object.fromEntries(Object.entries(before ?? {}).filter(([name, value]) => !fits({ name, value }))),
  ...Object.fromEntries(lines(text).map(pair)),
});

export function parameterForm(source: Source | undefined): ParameterForm {
  const { helm, kustomize } = source ?? {};
  return {
    valueFiles: (helm?.valueFiles ?? []).join("\n"),
    parameters: (helm?.parameters ?? []).filter(fits).map(({ name, value }) => `${name}=${value ?? ""}`).join("\n"),
    images: (kustomize?.images ?? []).join("\n"),
    namePrefix: kustomize?.namePrefix ?? "",
    nameSuffix: kustomize?.nameSuffix ?? "",
    commonLabels: mapLines(kustomize?.commonLabels),
  };
}

/** With some of its parts replaced; what is empty of them is left out, and undefined when nothing is left. */
export function changed<T extends object>(old: T | undefined, part: Partial<T>): T | undefined {
  const isEmpty = (value: unknown) => value === undefined || value === "" || value === false || (typeof value === "object" && value !== null && Object.keys(value).length === 0);
  const others = Object.entries({ ...old }).filter(([key]) => !Object.hasOwn(part, key));
  const entries = [...others, ...Object.entries(part).filter(([, value]) => !isEmpty(value))];
  return entries.length > 0 ? (Object.fromEntries(entries) as T) : undefined;
}

type HelmParameters = NonNullable<HelmSource["parameters"]>;

/** A line says what there is of a parameter but whether it is a text. What no line can hold stays, unless a new line has its name. */
function helmParameters(text: string, old: HelmParameters): HelmParameters {
  const entered = lines(text).map((line) => {
    const [name, value] = pair(line);
    const named = old.filter((parameter) => parameter.name === name);
    return named.find((was) => (was.value ?? "") === value) ?? { ...named[0], name, value };
  });
  // Helm takes the last one of a name: that would hide what was entered.
  const isReplaced = ({ name }: { name: string }) => entered.some((parameter) => parameter.name === name && !old.includes(parameter));
  return [...entered, ...old.filter((parameter) => !fits(parameter) && !isReplaced(parameter))];
}

/** Only what was changed in the form is changed in the source. */
export function withParameters(source: Source, form: ParameterForm): Source {
  const before = parameterForm(source);
  const differs = (key: keyof ParameterForm) => before[key] !== form[key];
  const wanted = { ...source };
  if (differs("valueFiles")) wanted.helm = changed(wanted.helm, { valueFiles: lines(form.valueFiles) });
  if (differs("parameters")) wanted.helm = changed(wanted.helm, { parameters: helmParameters(form.parameters, wanted.helm?.parameters ?? []) });
  if (differs("images")) wanted.kustomize = changed(wanted.kustomize, { images: lines(form.images) });
  if (differs("namePrefix")) wanted.kustomize = changed(wanted.kustomize, { namePrefix: form.namePrefix });
  if (differs("nameSuffix")) wanted.kustomize = changed(wanted.kustomize, { nameSuffix: form.nameSuffix });
  if (differs("commonLabels")) wanted.kustomize = changed(wanted.kustomize, { commonLabels: mapOf(form.commonLabels, wanted.kustomize?.commonLabels) });
  if (!wanted.helm) delete wanted.helm;
  if (!wanted.kustomize) delete wanted.kustomize;
  return wanted;
}
