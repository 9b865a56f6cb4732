import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { empty, formOf, manifestOf, withForm } from "./form";
import { moved, sourceForm } from "./source";

const app: Application = {
  metadata: {
    name: "shop",
    namespace: "argocd",
    annotations: { team: "x", "kubectl.kubernetes.io/last-applied-configuration": "{}" },
  },
  spec: {
    project: "default",
    source: { repoURL: "https://charts.example.org", chart: "web", targetRevision: "1.0.0", helm: { values: "a: 1" } },
    destination: { name: "in-cluster", namespace: "shop" },
    syncPolicy: { automated: { enabled: false, prune: true }, syncOptions: ["ServerSideApply=true"] },
  },
  status: { sync: { status: "Synced" } },
};

describe("the form of an Application", () => {
  it("changes nothing that nobody changed", () => expect(withForm(app, formOf(app))).toEqual(app));
  it("keeps what it does not show", () => {
    const { spec } = withForm(app, { ...formOf(app), sources: formOf(app).sources.map((source) => ({ ...source, revision: "1.1.0" })), createNamespace: true });
    expect(spec.source).toEqual({ ...app.spec.source, targetRevision: "1.1.0" });
    expect(spec.syncPolicy).toEqual({ automated: { enabled: false, prune: true }, syncOptions: ["ServerSideApply=true", "CreateNamespace=true"] });
    expect(spec.destination).toEqual(app.spec.destination);
  });
  it("switches automated sync on and off", () => {
    const on = withForm(app, { ...formOf(app), automated: true });
    expect(on.spec.syncPolicy?.automated).toEqual({ enabled: true, prune: true });
    expect(withForm(on, { ...formOf(on), automated: false }).spec.syncPolicy?.automated).toEqual({ enabled: false, prune: true });
    const short: Application = { ...app, spec: { ...app.spec, syncPolicy: { automated: { prune: true } } } };
    expect(withForm(short, { ...formOf(short), automated: false }).spec.syncPolicy).toEqual({});
  });
  it("makes a list of several sources, and keeps one that is a list", () => {
    const form = formOf(app);
    const values = { ...sourceForm(), repoURL: "https://git.example.org/values.git", ref: "values" };
    const two = withForm(app, { ...form, sources: [...form.sources, values] });
    expect(two.spec.source).toBeUndefined();
    expect(two.spec.sources).toEqual([app.spec.source, { repoURL: values.repoURL, targetRevision: "HEAD", ref: "values" }]);
    const again = formOf(two);
    const turned = withForm(two, { ...again, sources: moved(again.sources, 0, 1) });
    expect(turned.spec.sources).toEqual([...(two.spec.sources ?? [])].reverse());
    expect(withForm(two, { ...again, sources: again.sources.slice(0, 1) }).spec.sources).toEqual([app.spec.source]);
    expect(withForm(two, again)).toEqual(two);
  });
  it("changes what a hydrator renders and where it writes, and nothing else", () => {
    const sourceHydrator = { drySource: { repoURL: "r", path: "src", targetRevision: "main", helm: { releaseName: "a" } }, syncSource: { targetBranch: "env/dev", path: "apps/a" }, hydrateTo: { targetBranch: "env/dev-next" } };
    const dry: Application = { ...app, spec: { ...app.spec, sourceHydrator } };
    const form = formOf(dry);
    expect(withForm(dry, form)).toEqual(dry);
    expect(withForm(dry, { ...form, namespace: "other" }).spec).toEqual({ ...dry.spec, destination: { ...dry.spec.destination, namespace: "other" } });
    const changed = withForm(dry, { ...form, sources: form.sources.map((source) => ({ ...source, path: "lib" })), hydrator: { branch: "env/qa", folder: "apps/a", repoURL: "", to: "" } });
    expect(changed.spec).toEqual({ ...dry.spec, sourceHydrator: { drySource: { ...sourceHydrator.drySource, path: "lib" }, syncSource: { targetBranch: "env/qa", path: "apps/a" } } });
  });
  it("begins and ends to hydrate", () => {
    const app: Application = { metadata: { name: "a" }, spec: { project: "p", source: { repoURL: "https://git.example.org/a.git", path: "src", targetRevision: "main" } } };
    const form = formOf(app);
    const hydrated = withForm(app, { ...form, hydrator: { branch: "env/dev", folder: "apps/a", repoURL: "", to: "" } });
    expect([hydrated.spec.source, hydrated.spec.sources]).toEqual([undefined, undefined]);
    expect(hydrated.spec.sourceHydrator).toEqual({ drySource: app.spec.source, syncSource: { targetBranch: "env/dev", path: "apps/a" } });
    const back = withForm(hydrated, { ...formOf(hydrated), hydrator: undefined });
    expect(back.spec).toEqual(app.spec);
  });
  it("makes a new one", () => {
    const made = withForm(undefined, { ...empty(), name: "new", sources: [{ ...sourceForm(), repoURL: "https://git.example.org/a.git" }], namespace: "n" });
    expect(made.metadata).toEqual({ name: "new" });
    expect(made.spec).toEqual({
      project: "default",
      source: { repoURL: "https://git.example.org/a.git", path: ".", targetRevision: "HEAD" },
      destination: { server: "https://kubernetes.default.svc", namespace: "n" },
      syncPolicy: { syncOptions: ["CreateNamespace=true"] },
    });
  });
});

it("shows of a manifest what people enter", () => {
  expect(manifestOf(app).metadata).toEqual({ name: "shop", namespace: "argocd", annotations: { team: "x" } });
  expect(manifestOf({ ...app, metadata: { name: "a", annotations: { "argocd.argoproj.io/refresh": "hard" } } }).metadata).toEqual({ name: "a" });
});
