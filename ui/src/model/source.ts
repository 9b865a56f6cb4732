// What is entered of one source of an Application, and what it makes of the source that was there.

import type { KustomizeSource, Source } from "../api/types";
import { changed, lines, pair, type ParameterForm, parameterForm, withParameters } from "./parameters";
import { patchesOf, patchRows } from "./patches";
import { type PluginForm, pluginForm, withPlugin } from "./plugin";
import type { Row } from "./project";
import { type OptionForm, optionForm, withOptions } from "./tool-options";

export interface SourceForm extends ParameterForm, PluginForm, OptionForm {
  /** Its place in the Application as it was; undefined: it is new. */
  at: number | undefined;
  /** Which one it is, wherever it is moved to. */
  key: number;
  repoURL: string;
  /** A folder in Git, or the name of a chart. */
  path: string;
  isChart: boolean;
  revision: string;
  /** By this name other sources take files from it. */
  ref: string;
  /** Of Helm, in YAML. */
  values: string;
  releaseName: string;
  skipCrds: boolean;
  ignoreMissingValueFiles: boolean;
  kustomizeNamespace: string;
  /** As lines `name=count`. */
  replicas: string;
  /** As lines. */
  components: string;
  /** Of Kustomize. */
  patches: Row[];
  recurse: boolean;
  include: string;
  exclude: string;
}

let last = 0;

export function sourceForm(source?: Source, at?: number): SourceForm {
  const { helm, kustomize, directory } = source ?? {};
  return {
    at,
    key: ++last,
    repoURL: source?.repoURL ?? "",
    path: source?.chart ?? source?.path ?? "",
    isChart: Boolean(source?.chart),
    revision: source?.targetRevision ?? "",
    ref: source?.ref ?? "",
    values: helm?.values ?? "",
    releaseName: helm?.releaseName ?? "",
    skipCrds: helm?.skipCrds ?? false,
    ignoreMissingValueFiles: helm?.ignoreMissingValueFiles ?? false,
    kustomizeNamespace: kustomize?.namespace ?? "",
    replicas: (kustomize?.replicas ?? []).map(({ name, count }) => `${name}=${count ?? ""}`).join("\n"),
    components: (kustomize?.components ?? []).join("\n"),
    patches: patchRows(kustomize?.patches),
    recurse: directory?.recurse ?? false,
    include: directory?.include ?? "",
    exclude: directory?.exclude ?? "",
    ...pluginForm(source?.plugin),
    ...parameterForm(source),
    ...optionForm(source),
  };
}

/** Values as an object count before those in a text, and there is no text to edit. */
export const takesValues = (source: Source | undefined, isHelm: boolean) => isHelm && source?.helm?.valuesObject === undefined;

const count = (text: string): number | string => (/^\d+$/.test(text) ? Number(text) : text);

function place(form: SourceForm): Partial<Source> {
  if (form.isChart) return { chart: form.path };
  // Others take files from it, and nothing of it is rendered.
  if (form.ref && !form.path) return {};
  return { path: form.path || "." };
}

/** A count that was not changed stays as it was written: as a number or as a text. */
function replicasOf(text: string, old: NonNullable<KustomizeSource["replicas"]>): NonNullable<KustomizeSource["replicas"]> {
  return lines(text).map((line) => {
    const [name, value] = pair(line);
    return old.find((replica) => replica.name === name && String(replica.count ?? "") === value) ?? { ...old.find((replica) => replica.name === name), name, count: count(value) };
  });
}

/** Only what was changed in the form is changed in the source: it has more than the form shows. */
export function withSource(source: Source | undefined, form: SourceForm): Source {
  const before = sourceForm(source);
  const differs = (...keys: (keyof SourceForm)[]) => !source || keys.some((key) => before[key] !== form[key]);
  let wanted: Source = structuredClone(source ?? { repoURL: "" });
  if (differs("repoURL")) wanted.repoURL = form.repoURL;
  // Without a path the name decides whether anything is rendered.
  if (differs("path", "isChart") || (differs("ref") && !form.path)) {
    const { path: _path, chart: _chart, ...others } = wanted;
    wanted = { ...others, ...place(form) };
  }
  if (differs("revision") || (differs("isChart") && !form.revision)) wanted.targetRevision = form.revision || (form.isChart ? "*" : "HEAD");
  if (differs("ref")) {
    if (form.ref) wanted.ref = form.ref;
    else delete wanted.ref;
  }
  const { values, releaseName, skipCrds, ignoreMissingValueFiles, recurse, include, exclude } = form;
  if (differs("values")) wanted.helm = changed(wanted.helm, { values: values.trim() ? values : "" });
  if (differs("releaseName")) wanted.helm = changed(wanted.helm, { releaseName });
  if (differs("skipCrds")) wanted.helm = changed(wanted.helm, { skipCrds });
  if (differs("ignoreMissingValueFiles")) wanted.helm = changed(wanted.helm, { ignoreMissingValueFiles });
  if (differs("kustomizeNamespace")) wanted.kustomize = changed(wanted.kustomize, { namespace: form.kustomizeNamespace });
  if (differs("replicas")) wanted.kustomize = changed(wanted.kustomize, { replicas: replicasOf(form.replicas, wanted.kustomize?.replicas ?? []) });
  if (differs("components")) wanted.kustomize = changed(wanted.kustomize, { components: lines(form.components) });
  if (JSON.stringify(before.patches) !== JSON.stringify(form.patches)) wanted.kustomize = changed(wanted.kustomize, { patches: patchesOf(form.patches) });
  const plugin = withPlugin(wanted.plugin, form);
  if (plugin) wanted.plugin = plugin;
  if (differs("recurse")) wanted.directory = changed(wanted.directory, { recurse });
  if (differs("include")) wanted.directory = changed(wanted.directory, { include });
  if (differs("exclude")) wanted.directory = changed(wanted.directory, { exclude });
  for (const tool of ["helm", "kustomize", "directory"] as const) if (!wanted[tool]) delete wanted[tool];
  return withOptions(withParameters(wanted, form), form);
}

/** The list with one of its entries moved by one place. */
export function moved<T>(list: readonly T[], from: number, by: 1 | -1): T[] {
  const to = from + by;
  const item = list[from];
  if (item === undefined || to < 0 || to >= list.length) return [...list];
  return list.toSpliced(from, 1).toSpliced(to, 0, item);
}
