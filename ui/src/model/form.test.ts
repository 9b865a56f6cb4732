import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { EMPTY, formOf, manifestOf, takesValues, withForm } from "./form";

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
    const { spec } = withForm(app, { ...formOf(app), revision: "1.1.0", createNamespace: true });
    expect(spec.source).toEqual({ ...app.spec.source, targetRevision: "1.1.0" });
    expect(spec.syncPolicy).toEqual({ automated: { enabled: false, prune: true }, syncOptions: ["ServerSideApply=true", "CreateNamespace=true"] });
    expect(spec.destination).toEqual(app.spec.destination);
  });
  it("switches automated sync on and off", () => {
    const on = withForm(app, { ...formOf(app), automated: true });
    expect(on.spec.syncPolicy?.automated).toEqual({ prune: true, selfHeal: false });
    expect(withForm(on, { ...formOf(on), automated: false }).spec.syncPolicy?.automated).toBeUndefined();
  });
  it("goes from a chart to a folder", () => {
    const { source } = withForm(app, { ...formOf(app), isChart: false, path: "deploy", revision: "" }).spec;
    expect(source).toEqual({ repoURL: "https://charts.example.org", path: "deploy", targetRevision: "HEAD", helm: { values: "a: 1" } });
  });
  it("changes Helm's values, and removes them", () => {
    expect(withForm(app, { ...formOf(app), values: "a: 2\n" }).spec.source?.helm).toEqual({ values: "a: 2\n" });
    expect(withForm(app, { ...formOf(app), values: " " }).spec.source).not.toHaveProperty("helm");
  });
  it("changes Helm's values and parameters together", () =>
    expect(withForm(app, { ...formOf(app), values: "a: 2", parameters: "b=3" }).spec.source?.helm).toEqual({ values: "a: 2", parameters: [{ name: "b", value: "3" }] }));
  it("asks for values where there are some, but not for those that are an object", () => {
    const object = { ...app, spec: { source: { repoURL: "r", chart: "web", helm: { valuesObject: { a: 1 } } } } };
    expect([takesValues(app, formOf(app)), takesValues(undefined, EMPTY), takesValues(object, formOf(object))]).toEqual([true, false, false]);
  });
  it("makes a new one", () => {
    const made = withForm(undefined, { ...EMPTY, name: "new", repoURL: "https://git.example.org/a.git", namespace: "n" });
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
