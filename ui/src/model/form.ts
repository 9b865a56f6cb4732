// What is entered of an Application: the fields of the form, and what they make of one.

import type { Application } from "../api/types";
import { isAutomated } from "./history";
import { type ParameterForm, parameterForm, withParameters } from "./parameters";

export interface AppForm extends ParameterForm {
  name: string;
  project: string;
  repoURL: string;
  /** A folder in Git, or the name of a chart. */
  path: string;
  isChart: boolean;
  revision: string;
  /** Of Helm, in YAML. */
  values: string;
  /** An address or a name. */
  cluster: string;
  namespace: string;
  automated: boolean;
  prune: boolean;
  selfHeal: boolean;
  createNamespace: boolean;
}

export const IN_CLUSTER = "https://kubernetes.default.svc";
const CREATE_NAMESPACE = "CreateNamespace=true";

export const EMPTY: AppForm = {
  name: "",
  project: "default",
  repoURL: "",
  path: "",
  isChart: false,
  revision: "",
  values: "",
  cluster: IN_CLUSTER,
  namespace: "",
  automated: false,
  prune: false,
  selfHeal: false,
  createNamespace: true,
  ...parameterForm(undefined),
};

export function formOf(app: Application): AppForm {
  const { source, destination, syncPolicy, project } = app.spec;
  return {
    name: app.metadata.name,
    project: project ?? "",
    repoURL: source?.repoURL ?? "",
    path: source?.chart ?? source?.path ?? "",
    isChart: Boolean(source?.chart),
    revision: source?.targetRevision ?? "",
    values: source?.helm?.values ?? "",
    cluster: destination?.server || destination?.name || "",
    namespace: destination?.namespace ?? "",
    automated: isAutomated(app),
    prune: syncPolicy?.automated?.prune ?? false,
    selfHeal: syncPolicy?.automated?.selfHeal ?? false,
    createNamespace: syncPolicy?.syncOptions?.includes(CREATE_NAMESPACE) ?? false,
    ...parameterForm(source),
  };
}

/** Values as an object count before those in a text, and there is no text to edit. */
export const takesValues = (app: Application | undefined, form: AppForm) =>
  (form.isChart || app?.spec.source?.helm !== undefined) && app?.spec.source?.helm?.valuesObject === undefined;

/** Only what was changed in the form is changed in the Application: it has more than the form shows. */
export function withForm(app: Application | undefined, form: AppForm): Application {
  const before = app && formOf(app);
  const spec = structuredClone(app?.spec ?? {});
  const differs = (...keys: (keyof AppForm)[]) => !before || keys.some((key) => before[key] !== form[key]);
  if (differs("project")) spec.project = form.project;
  if (differs("repoURL", "path", "isChart", "revision")) {
    const { path: _path, chart: _chart, ...others } = spec.source ?? { repoURL: "" };
    const place = form.isChart ? { chart: form.path } : { path: form.path || "." };
    spec.source = { ...others, repoURL: form.repoURL, ...place, targetRevision: form.revision || (form.isChart ? "*" : "HEAD") };
  }
  if (differs("values") && spec.source) {
    const { values: _values, ...helm } = spec.source.helm ?? {};
    spec.source.helm = form.values.trim() ? { ...helm, values: form.values } : helm;
    if (Object.keys(spec.source.helm).length === 0) delete spec.source.helm;
  }
  if (spec.source) spec.source = withParameters(spec.source, form);
  if (differs("cluster", "namespace")) {
    const cluster = /^https?:\/\//.test(form.cluster) ? { server: form.cluster } : { name: form.cluster };
    spec.destination = { ...cluster, namespace: form.namespace };
  }
  if (differs("automated", "prune", "selfHeal")) {
    const { automated, ...others } = spec.syncPolicy ?? {};
    const { enabled: _enabled, ...more } = automated ?? {};
    spec.syncPolicy = form.automated ? { ...others, automated: { ...more, prune: form.prune, selfHeal: form.selfHeal } } : others;
  }
  if (differs("createNamespace")) {
    const options = (spec.syncPolicy?.syncOptions ?? []).filter((option) => option !== CREATE_NAMESPACE);
    if (form.createNamespace) options.push(CREATE_NAMESPACE);
    spec.syncPolicy = { ...spec.syncPolicy, syncOptions: options };
  }
  return app ? { ...app, spec } : { metadata: { name: form.name }, spec };
}

/** What kubectl notes for itself, and how the control plane is asked to look again. */
const NOTED = ["kubectl.kubernetes.io/last-applied-configuration", "argocd.argoproj.io/refresh"];

/** What people enter of it, as it is kept in Git. */
export function manifestOf(app: Application) {
  const { name, namespace, labels, annotations, finalizers } = app.metadata;
  const entered = Object.fromEntries(Object.entries(annotations ?? {}).filter(([key]) => !NOTED.includes(key)));
  const parts = { name, namespace, labels, annotations: Object.keys(entered).length > 0 ? entered : undefined, finalizers };
  const metadata = Object.fromEntries(Object.entries(parts).filter(([, value]) => value));
  return { apiVersion: "argoproj.io/v1alpha1", kind: "Application", metadata, spec: app.spec };
}
