// What is entered of an Application: the fields of the form, and what they make of one.

import type { Application, Source } from "../api/types";
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
  /** The sources are those that a hydrator hid. */
  unhidden?: boolean;
  /** What was entered with a hydrator while there is none, or the other way round. */
  aside?: { hydrator: HydratorForm | undefined; sources: SourceForm[] };
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

/** What a hydrated Application has beside its dry source. It counts again when nothing hydrates it. */
export function hiddenSources(app: Application | undefined): Source[] {
  if (!app?.spec.sourceHydrator) return [];
  const { source, sources } = app.spec;
  return sources?.length ? sources : source ? [source] : [];
}

/**
 * The form with a hydrator, or without one. Without it the sources are those that the hydrator hid, if there are some: they are shown before
 * they count. With it again, the sources are the dry one.
 */
export function hydrating(app: Application | undefined, form: AppForm, on: boolean): AppForm {
  if (on === (form.hydrator !== undefined)) return form;
  const { aside } = form;
  const hydrator = on ? (aside?.hydrator ?? hydratorForm(app?.spec.sourceHydrator)) : undefined;
  const switched = { ...form, hydrator, aside: { hydrator: form.hydrator, sources: form.sources } };
  const hidden = hiddenSources(app);
  if (!app || hidden.length === 0) return switched;
  return { ...switched, sources: aside?.sources ?? (on ? sourcesOf(app) : hidden).map(sourceForm), unhidden: !on };
}

/** The sources that those in the form have been. */
export const oldSources = (app: Application | undefined, form: AppForm): Source[] => (form.unhidden ? hiddenSources(app) : app ? sourcesOf(app) : []);

/** One source stays one, and several stay a list: each has fields of its own in the API. */
function withSources(spec: Application["spec"], app: Application | undefined, form: AppForm) {
  const had = app?.spec;
  const old = oldSources(app, form);
  const wanted = form.sources.map((source) => withSource(source.at === undefined ? undefined : old[source.at], source));
  const [only] = wanted;
  if (form.hydrator && only) {
    spec.sourceHydrator = withHydrator(had?.sourceHydrator, only, form.hydrator);
    // What else is there of one that was hydrated before is not what the form shows.
    if (had?.sourceHydrator) return;
    delete spec.source;
    delete spec.sources;
    return;
  }
  delete spec.sourceHydrator;
  const wasList = Boolean(had?.sources?.length && (form.unhidden || !had.sourceHydrator));
  if (wanted.length === 1 && !wasList) {
    if (only) spec.source = only;
    delete spec.sources;
    return;
  }
  // Beside several it counts for nothing, and no form shows it.
  if (!wasList) delete spec.source;
  spec.sources = wanted;
}

type Destination = NonNullable<Application["spec"]["destination"]>;

function destinationOf(old: Destination | undefined, form: AppForm, before: AppForm | undefined): Destination {
  const { name, server, ...others } = old ?? {};
  const wanted: Destination = { ...others };
  if (before && before.cluster === form.cluster) Object.assign(wanted, name !== undefined && { name }, server !== undefined && { server });
  else if (/^https?:\/\//.test(form.cluster)) wanted.server = form.cluster;
  else wanted.name = form.cluster;
  if (!before || before.namespace !== form.namespace) wanted.namespace = form.namespace;
  return wanted;
}

type Automated = NonNullable<NonNullable<Application["spec"]["syncPolicy"]>["automated"]>;

/** Switched off it stays, where it says more than the form shows: what it says counts again when it is switched on. */
function automatedOf(old: Automated | undefined, form: AppForm, before: AppForm | undefined): Automated | undefined {
  const { enabled, prune: _prune, selfHeal: _selfHeal, ...others } = old ?? {};
  if (!form.automated) return Object.keys(others).length > 0 || enabled !== undefined ? { ...old, enabled: false } : undefined;
  const wanted: Automated = { ...old };
  if (enabled !== undefined) wanted.enabled = true;
  if (!old || before?.prune !== form.prune) wanted.prune = form.prune;
  if (!old || before?.selfHeal !== form.selfHeal) wanted.selfHeal = form.selfHeal;
  return wanted;
}

function syncOptionsOf(old: readonly string[], createNamespace: boolean): string[] | undefined {
  const options = old.filter((option) => !option.startsWith("CreateNamespace="));
  if (createNamespace) options.push(CREATE_NAMESPACE);
  return options.length > 0 ? options : undefined;
}

/** Only what was changed in the form is changed in the Application: it has more than the form shows. */
export function withForm(app: Application | undefined, form: AppForm): Application {
  const before = app && formOf(app);
  const spec = structuredClone(app?.spec ?? {});
  const differs = (...keys: (keyof AppForm)[]) => !before || keys.some((key) => before[key] !== form[key]);
  if (differs("project")) spec.project = form.project;
  if (form.sources.length > 0) withSources(spec, app, form);
  if (differs("cluster", "namespace")) spec.destination = destinationOf(spec.destination, form, before);
  const policy = { ...spec.syncPolicy };
  if (differs("automated", "prune", "selfHeal")) set(policy, "automated", automatedOf(policy.automated, form, before));
  if (differs("createNamespace")) set(policy, "syncOptions", syncOptionsOf(policy.syncOptions ?? [], form.createNamespace));
  if (spec.syncPolicy || Object.keys(policy).length > 0) spec.syncPolicy = policy;
  return app ? { ...app, spec } : { metadata: { name: form.name }, spec };
}

function set<T extends object, K extends keyof T>(object: T, key: K, value: T[K] | undefined) {
  if (value === undefined) delete object[key];
  else object[key] = value;
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
