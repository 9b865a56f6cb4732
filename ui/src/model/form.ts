// What is entered of an Application: the fields of the form, and what they make of one.

import type { Application } from "../api/types";
import { sourcesOf } from "./applications";
import { isAutomated } from "./history";
import { type HydratorForm, hydratorForm, withHydrator } from "./hydrator";
import { type SourceForm, sourceForm, withSource } from "./source";

export interface AppForm {
  name: string;
  project: string;
  /** In their order. With a hydrator, the one that it renders. */
  sources: SourceForm[];
  /** Undefined: the sources are synced as they are. */
  hydrator: HydratorForm | undefined;
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

export const empty = (): AppForm => ({
  name: "",
  project: "default",
  sources: [sourceForm()],
  hydrator: undefined,
  cluster: IN_CLUSTER,
  namespace: "",
  automated: false,
  prune: false,
  selfHeal: false,
  createNamespace: true,
});

export function formOf(app: Application): AppForm {
  const { destination, syncPolicy, project } = app.spec;
  return {
    name: app.metadata.name,
    project: project ?? "",
    sources: sourcesOf(app).map(sourceForm),
    hydrator: app.spec.sourceHydrator && hydratorForm(app.spec.sourceHydrator),
    cluster: destination?.server || destination?.name || "",
    namespace: destination?.namespace ?? "",
    automated: isAutomated(app),
    prune: syncPolicy?.automated?.prune ?? false,
    selfHeal: syncPolicy?.automated?.selfHeal ?? false,
    createNamespace: syncPolicy?.syncOptions?.includes(CREATE_NAMESPACE) ?? false,
  };
}

/** One source stays one, and several stay a list: each has fields of its own in the API. */
function withSources(spec: Application["spec"], app: Application | undefined, form: AppForm) {
  const old = app ? sourcesOf(app) : [];
  const wanted = form.sources.map((source) => withSource(source.at === undefined ? undefined : old[source.at], source));
  const [only] = wanted;
  const had = app?.spec;
  if (form.hydrator && only) {
    spec.sourceHydrator = withHydrator(had?.sourceHydrator, only, form.hydrator);
    // What else is there of one that was hydrated before is not what the form shows.
    if (had?.sourceHydrator) return;
    delete spec.source;
    delete spec.sources;
    return;
  }
  const several = wanted.length !== 1 || Boolean(had?.sources?.length && !had.sourceHydrator);
  delete spec.sourceHydrator;
  // Beside several it counts for nothing, and no form shows it.
  if (!several || !had?.sources?.length || had.sourceHydrator) delete spec.source;
  delete spec.sources;
  if (several) spec.sources = wanted;
  else if (only) spec.source = only;
}

/** Only what was changed in the form is changed in the Application: it has more than the form shows. */
export function withForm(app: Application | undefined, form: AppForm): Application {
  const before = app && formOf(app);
  const spec = structuredClone(app?.spec ?? {});
  const differs = (...keys: (keyof AppForm)[]) => !before || keys.some((key) => before[key] !== form[key]);
  if (differs("project")) spec.project = form.project;
  if (form.sources.length > 0) withSources(spec, app, form);
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
