// An Application has more than its form shows: whatever one field is changed to, all else stays as it was.

import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { type AppForm, formOf, hydrating, manifestOf, withForm } from "./form";
import type { SourceForm } from "./source";

const git = { repoURL: "https://git.example.org/a.git", path: "apps/a" };

const helm = {
  repoURL: "https://charts.example.org",
  chart: "web",
  targetRevision: "1.0.0",
  name: "chart",
  helm: {
    valueFiles: ["$values/prod.yaml"],
    valuesObject: { replicas: 2, empty: {} },
    parameters: [{ name: "image.tag", value: "v1", forceString: true }, { name: "unset" }, { name: "lines", value: "a\nb" }],
    fileParameters: [{ name: "config", path: "files/config.json" }],
    releaseName: "web",
    passCredentials: false,
    version: "v3",
    kubeVersion: "",
    apiVersions: [],
    skipTests: true,
    future: { a: [] },
  },
};

const kustomize = {
  ...git,
  targetRevision: "main",
  kustomize: {
    images: ["web:v1"],
    commonLabels: { team: "shop", odd: " a=b\n" },
    commonAnnotations: { owner: "" },
    forceCommonLabels: false,
    labelWithoutSelector: true,
    replicas: [{ name: "web", count: "3", future: 1 }, { name: "api", count: 2 }],
    components: ["../tls"],
    ignoreMissingComponents: true,
    patches: [{ patch: "- op: remove\n  path: /a", target: { kind: "Deployment", future: "a" }, options: { allowNameChange: true } }],
    version: "",
    apiVersions: [],
    future: {},
  },
};

const directory = { ...git, directory: { recurse: true, jsonnet: { extVars: [{ name: "a", value: "b", code: true }], libs: ["vendor"] }, include: "*.yaml", future: "" } };

const plugin = {
  ...git,
  plugin: {
    name: "render",
    env: [{ name: "STAGE", value: "prod" }, { name: "TEXT", value: "a\nb" }],
    parameters: [{ name: "a", string: "" }, { name: "b", map: { c: "d\ne" } }, { name: "f", array: ["g"], future: true }],
    future: 1,
  },
};

const ref = { repoURL: "https://git.example.org/values.git", ref: "values", targetRevision: "main", future: { tags: [] } };

const policy = {
  automated: { prune: true, selfHeal: true, allowEmpty: true },
  syncOptions: ["ServerSideApply=true", "CreateNamespace=true", "Future=yes"],
  managedNamespaceMetadata: { labels: { a: "b" }, annotations: {} },
  retry: { limit: 3, backoff: { duration: "5s", factor: 2 } },
};

const rest = {
  project: "shop",
  destination: { server: "https://cluster.example.org", namespace: "a", future: "x" },
  syncPolicy: policy,
  ignoreDifferences: [{ group: "apps", kind: "Deployment", jsonPointers: ["/spec/replicas"] }],
  revisionHistoryLimit: 0,
  info: [{ name: "url", value: "" }],
  future: { deep: [{}] },
};

const metadata = { name: "a", namespace: "argocd", labels: { a: "b" }, annotations: { c: "" }, finalizers: ["resources-finalizer.argocd.argoproj.io"], ownerReferences: [{ kind: "ApplicationSet", name: "s" }] };
const appOf = (spec: object) => ({ metadata, spec: { ...rest, ...spec }, status: { future: 1 } }) as unknown as Application;

const hydrator = {
  drySource: { ...kustomize, targetRevision: "main", future: "a" },
  syncSource: { targetBranch: "env/a", path: "a", future: "b" },
  hydrateTo: { targetBranch: "env/a-next", future: "c" },
  future: "d",
};

const APPS: Record<string, Application> = {
  "a chart": appOf({ source: helm }),
  Kustomize: appOf({ source: kustomize }),
  "a directory": appOf({ source: directory }),
  "a plugin": appOf({ source: plugin }),
  "several sources": appOf({ sources: [helm, ref, kustomize, directory, plugin] }),
  "several sources, and one that does not count": appOf({ source: git, sources: [ref, plugin] }),
  "a hydrator": appOf({ sourceHydrator: hydrator }),
  "a hydrator that hides a source": appOf({ source: helm, sourceHydrator: hydrator }),
  "a hydrator that hides several": appOf({ sources: [helm, ref, plugin], sourceHydrator: hydrator }),
  "a destination with a name": appOf({ source: git, destination: { name: "prod" } }),
  "nothing but a source": { metadata: { name: "a" }, spec: { source: git } },
};

/** Paths of what differs; a list counts as one thing when its length differs. */
function differences(a: unknown, b: unknown, at = ""): string[] {
  if (JSON.stringify(a) === JSON.stringify(b)) return [];
  const isPlain = (value: unknown) => typeof value === "object" && value !== null;
  if (!isPlain(a) || !isPlain(b) || Array.isArray(a) !== Array.isArray(b)) return [at];
  if (Array.isArray(a) && a.length !== (b as unknown[]).length) return [at];
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  return [...new Set([...Object.keys(left), ...Object.keys(right)])].flatMap((key) => differences(left[key], right[key], at ? `${at}.${key}` : key));
}

/** A change of one field of the form, and the fields of the Application's spec that may differ after it. */
const FIELDS: [string, (form: AppForm) => Partial<AppForm>, RegExp][] = [
  ["project", () => ({ project: "other" }), /^project$/],
  ["cluster", () => ({ cluster: "https://other.example.org" }), /^destination(\.server|\.name)?$/],
  ["cluster by name", () => ({ cluster: "other" }), /^destination(\.server|\.name)?$/],
  ["namespace", () => ({ namespace: "other" }), /^destination(\.namespace)?$/],
  ["automated", ({ automated }) => ({ automated: !automated }), /^syncPolicy(\.automated(\.enabled|\.prune|\.selfHeal)?)?$/],
  ["prune", ({ prune }) => ({ automated: true, prune: !prune }), /^syncPolicy(\.automated(\.prune|\.selfHeal)?)?$/],
  ["selfHeal", ({ selfHeal }) => ({ automated: true, selfHeal: !selfHeal }), /^syncPolicy(\.automated(\.selfHeal|\.prune)?)?$/],
  ["createNamespace", ({ createNamespace }) => ({ createNamespace: !createNamespace }), /^syncPolicy(\.syncOptions)?$/],
  ["branch of the hydrator", ({ hydrator }) => ({ hydrator: hydrator && { ...hydrator, branch: "env/b" } }), /^sourceHydrator\.syncSource\.targetBranch$/],
  ["folder of the hydrator", ({ hydrator }) => ({ hydrator: hydrator && { ...hydrator, folder: "b" } }), /^sourceHydrator\.syncSource\.path$/],
  ["repository of the hydrator", ({ hydrator }) => ({ hydrator: hydrator && { ...hydrator, repoURL: "https://git.example.org/b.git" } }), /^sourceHydrator\.syncSource\.repoURL$/],
  ["where the hydrator writes", ({ hydrator }) => ({ hydrator: hydrator && { ...hydrator, to: "env/c" } }), /^sourceHydrator\.hydrateTo\.targetBranch$/],
];

const SOURCE_FIELDS: [keyof SourceForm, (form: SourceForm) => Partial<SourceForm>, RegExp][] = [
  ["repoURL", () => ({ repoURL: "https://git.example.org/other.git" }), /^repoURL$/],
  ["path", ({ isChart }) => ({ path: isChart ? "other" : "apps/b" }), /^(path|chart)$/],
  ["revision", () => ({ revision: "2.0.0" }), /^targetRevision$/],
  ["ref", () => ({ ref: "other" }), /^(ref|path)$/],
  ["valueFiles", ({ valueFiles }) => ({ valueFiles: `${valueFiles}\nmore.yaml` }), /^helm(\.valueFiles)?$/],
  ["values", () => ({ values: "a: 1" }), /^helm(\.values)?$/],
  ["parameters", ({ parameters }) => ({ parameters: parameters.replace("v1", "v2") }), /^helm\.parameters\.0\.value$/],
  ["releaseName", () => ({ releaseName: "other" }), /^helm(\.releaseName)?$/],
  ["skipCrds", () => ({ skipCrds: true }), /^helm(\.skipCrds)?$/],
  ["ignoreMissingValueFiles", () => ({ ignoreMissingValueFiles: true }), /^helm(\.ignoreMissingValueFiles)?$/],
  ["images", ({ images }) => ({ images: `${images}\napi:v2` }), /^kustomize(\.images)?$/],
  ["namePrefix", () => ({ namePrefix: "a-" }), /^kustomize(\.namePrefix)?$/],
  ["nameSuffix", () => ({ nameSuffix: "-a" }), /^kustomize(\.nameSuffix)?$/],
  ["commonLabels", ({ commonLabels }) => ({ commonLabels: commonLabels.replace("shop", "other") }), /^kustomize\.commonLabels\.team$/],
  ["kustomizeNamespace", () => ({ kustomizeNamespace: "b" }), /^kustomize(\.namespace)?$/],
  ["replicas", ({ replicas }) => ({ replicas: replicas.replace("api=2", "api=4") }), /^kustomize\.replicas\.1\.count$/],
  ["components", ({ components }) => ({ components: `${components}\n../more` }), /^kustomize(\.components)?$/],
  ["patches", ({ patches }) => ({ patches: patches.map((row) => ({ ...row, "target.name": "web" })) }), /^kustomize\.patches\.0\.target\.name$/],
  ["recurse", ({ recurse }) => ({ recurse: !recurse }), /^directory(\.recurse)?$/],
  ["include", () => ({ include: "*.json" }), /^directory(\.include)?$/],
  ["exclude", () => ({ exclude: "b" }), /^directory(\.exclude)?$/],
  ["skipTests", ({ skipTests }) => ({ skipTests: !skipTests }), /^helm(\.skipTests)?$/],
  ["skipSchemaValidation", () => ({ skipSchemaValidation: true }), /^helm(\.skipSchemaValidation)?$/],
  ["passCredentials", () => ({ passCredentials: true }), /^helm(\.passCredentials)?$/],
  ["helmNamespace", () => ({ helmNamespace: "b" }), /^helm(\.namespace)?$/],
  ["helmVersion", () => ({ helmVersion: "v4" }), /^helm(\.version)?$/],
  ["helmKubeVersion", () => ({ helmKubeVersion: "1.31" }), /^helm(\.kubeVersion)?$/],
  ["helmApiVersions", () => ({ helmApiVersions: "apps/v1" }), /^helm(\.apiVersions)?$/],
  ["fileParameters", ({ fileParameters }) => ({ fileParameters: fileParameters.replace("config.json", "b.json") }), /^helm\.fileParameters\.0\.path$/],
  ["commonAnnotations", ({ commonAnnotations }) => ({ commonAnnotations: `${commonAnnotations}\na=b` }), /^kustomize(\.commonAnnotations(\.a)?)?$/],
  ["commonAnnotationsEnvsubst", () => ({ commonAnnotationsEnvsubst: true }), /^kustomize(\.commonAnnotationsEnvsubst)?$/],
  ["forceCommonLabels", () => ({ forceCommonLabels: true }), /^kustomize(\.forceCommonLabels)?$/],
  ["forceCommonAnnotations", () => ({ forceCommonAnnotations: true }), /^kustomize(\.forceCommonAnnotations)?$/],
  ["labelWithoutSelector", ({ labelWithoutSelector }) => ({ labelWithoutSelector: !labelWithoutSelector }), /^kustomize(\.labelWithoutSelector)?$/],
  ["labelIncludeTemplates", () => ({ labelIncludeTemplates: true }), /^kustomize(\.labelIncludeTemplates)?$/],
  ["ignoreMissingComponents", ({ ignoreMissingComponents }) => ({ ignoreMissingComponents: !ignoreMissingComponents }), /^kustomize(\.ignoreMissingComponents)?$/],
  ["kustomizeVersion", () => ({ kustomizeVersion: "v5" }), /^kustomize(\.version)?$/],
  ["kustomizeKubeVersion", () => ({ kustomizeKubeVersion: "1.31" }), /^kustomize(\.kubeVersion)?$/],
  ["kustomizeApiVersions", () => ({ kustomizeApiVersions: "apps/v1" }), /^kustomize(\.apiVersions)?$/],
  ["extVars", ({ extVars }) => ({ extVars: extVars.map((row) => ({ ...row, value: "c" })) }), /^directory\.jsonnet\.extVars\.0\.value$/],
  ["tlas", () => ({ tlas: [{ name: "a", value: "b" }] }), /^directory(\.jsonnet(\.tlas)?)?$/],
  ["libs", ({ libs }) => ({ libs: `${libs}\nlib` }), /^directory(\.jsonnet(\.libs)?)?$/],
  ["pluginName", () => ({ pluginName: "other" }), /^plugin(\.name)?$/],
  ["pluginEnv", ({ pluginEnv }) => ({ pluginEnv: pluginEnv.replace("prod", "test") }), /^plugin\.env\.0\.value$/],
  ["pluginParameters", ({ pluginParameters }) => ({ pluginParameters: pluginParameters.map((row) => (row["name"] === "a" ? { ...row, value: "b" } : row)) }), /^plugin\.parameters\.0\.string$/],
];

describe.each(Object.entries(APPS))("of an Application with %s", (_, app) => {
  it("nothing differs when nothing was changed", () => {
    expect(differences(app, withForm(app, formOf(app)))).toEqual([]);
    expect(manifestOf(withForm(app, formOf(app)))).toEqual(manifestOf(app));
  });

  it.each(FIELDS)("only %s differs", (_, change, allowed) => {
    const form = formOf(app);
    const wanted = { ...form, ...change(form) };
    const found = differences(app, withForm(app, wanted)).map((path) => path.replace(/^spec\./, ""));
    expect(found.filter((path) => !allowed.test(path))).toEqual([]);
    if (JSON.stringify(wanted) !== JSON.stringify(form)) expect(found).not.toEqual([]);
  });

  it.each(SOURCE_FIELDS)("only %s of each source differs", (_, change, allowed) => {
    const form = formOf(app);
    form.sources.forEach((source, at) => {
      const wanted = { ...source, ...change(source) };
      const found = differences(app, withForm(app, { ...form, sources: form.sources.with(at, wanted) }));
      const below = app.spec.sourceHydrator ? "spec.sourceHydrator.drySource." : app.spec.sources?.length ? `spec.sources.${at}.` : "spec.source.";
      expect(found.filter((path) => !(path.startsWith(below) && allowed.test(path.slice(below.length))))).toEqual([]);
      if (JSON.stringify(wanted) !== JSON.stringify(source)) expect(found).not.toEqual([]);
    });
  });
});

describe("a hydrator that is switched off", () => {
  it.each(["a hydrator that hides a source", "a hydrator that hides several"])("shows what it hid, and leaves it as it was: %s", (which) => {
    const app = APPS[which] as Application;
    const form = hydrating(app, formOf(app), false);
    const { sourceHydrator: _sourceHydrator, ...others } = app.spec;
    expect(form.sources.map(({ repoURL }) => repoURL)).toEqual((others.sources ?? [others.source]).map((source) => source?.repoURL));
    expect(withForm(app, form).spec).toEqual(others);
    const moved = withForm(app, { ...form, sources: form.sources.with(0, { ...(form.sources[0] as SourceForm), revision: "2.0.0" }) });
    expect(differences(withForm(app, form), moved)).toEqual([others.sources ? "spec.sources.0.targetRevision" : "spec.source.targetRevision"]);
    // And on again, before anything is written.
    expect(withForm(app, hydrating(app, form, true))).toEqual(app);
  });
  it.each(["a hydrator", "a hydrator that hides several"])("and on again, has what was entered: %s", (which) => {
    const app = APPS[which] as Application;
    const first = formOf(app);
    const typed: AppForm = { ...first, hydrator: first.hydrator && { ...first.hydrator, branch: "typed" }, sources: first.sources.map((source) => ({ ...source, revision: "typed" })) };
    const off = hydrating(app, typed, false);
    const there = { ...off, sources: off.sources.map((source) => ({ ...source, path: "beside" })) };
    const on = hydrating(app, there, true);
    expect(on.hydrator?.branch).toBe("typed");
    expect(on.sources.map(({ revision }) => revision)).toEqual(["typed"]);
    expect(hydrating(app, on, false).sources.map(({ path }) => path)).toEqual(there.sources.map(() => "beside"));
  });
  it("leaves its dry source when it hid none", () => {
    const app = APPS["a hydrator"] as Application;
    const { sourceHydrator, ...others } = app.spec;
    expect(withForm(app, hydrating(app, formOf(app), false)).spec).toEqual({ ...others, source: sourceHydrator?.drySource });
    expect(withForm(app, hydrating(app, hydrating(app, formOf(app), false), true))).toEqual(app);
  });
});
