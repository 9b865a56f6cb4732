import { describe, expect, it } from "vitest";
import type { ApplicationSet } from "../api/sets";
import type { Application } from "../api/types";
import { differences, errorOf, isOwned, toneOfCondition, without } from "./sets";

const set: ApplicationSet = { metadata: { name: "teams", namespace: "argocd" }, spec: {} };
const made = (name: string, revision = "main"): Application => ({
  metadata: { name, namespace: "argocd" },
  spec: { project: "default", source: { repoURL: "r", targetRevision: revision } },
});
const live = (app: Application, metadata: Partial<Application["metadata"]> = {}): Application => ({
  ...app,
  metadata: { ...app.metadata, ownerReferences: [{ kind: "ApplicationSet", name: "teams", controller: true }], ...metadata },
});
const effects = (of: ApplicationSet, generated: Application[], existing: Application[]) => differences(of, generated, existing).map(({ name, effect }) => `${effect} ${name}`);
const withSpec = (spec: ApplicationSet["spec"]) => ({ ...set, spec });

describe("what a set generates", () => {
  it("is compared with what exists", () => {
    const found = differences(set, [made("a"), made("b", "v2"), made("c")], [live(made("b")), live(made("c")), live(made("d")), made("alien")]);
    expect(found.map(({ name, effect }) => `${effect} ${name}`)).toEqual(["create a", "change b", "same c", "delete d"]);
    expect(found[1]).toMatchObject({ before: expect.stringContaining("targetRevision: main") as string, after: expect.stringContaining("targetRevision: v2") as string });
    expect(found[3]).toMatchObject({ after: "" });
  });
  it("is held back by the set's policy", () => {
    const of = (applicationsSync: string) => effects(withSpec({ syncPolicy: { applicationsSync } }), [made("b", "v2"), made("new")], [live(made("b")), live(made("d"))]);
    expect(of("create-only")).toEqual(["keep b", "keep d", "create new"]);
    expect(of("create-update")).toEqual(["change b", "keep d", "create new"]);
    expect(of("create-delete")).toEqual(["keep b", "delete d", "create new"]);
    expect(of("sync")).toEqual(["change b", "delete d", "create new"]);
  });
  it("does not take an Application from another set", () => {
    const theirs = live(made("a"), { ownerReferences: [{ kind: "ApplicationSet", name: "others", controller: true }] });
    expect(effects(set, [made("a", "v2")], [theirs])).toEqual(["keep a"]);
    expect(effects(set, [made("a", "v2")], [made("a")])).toEqual(["change a"]);
  });
  it("leaves alone what others write, and what only looks different", () => {
    const others = live(made("a"), { annotations: { "argocd.argoproj.io/refresh": "normal" }, finalizers: ["post-delete-finalizer.argocd.argoproj.io/cleanup"], labels: {} });
    const { source, project } = others.spec;
    expect(effects(set, [made("a")], [{ ...others, spec: { source, destination: {}, project } as Application["spec"] }])).toEqual(["same a"]);
    expect(effects(set, [made("a")], [live(made("a"), { labels: { mine: "x" } })])).toEqual(["change a"]);
    expect(effects(withSpec({ preservedFields: { labels: ["mine"] } }), [made("a")], [live(made("a"), { labels: { mine: "x" } })])).toEqual(["same a"]);
  });
  it("ignores the differences that the set ignores", () => {
    const ignoring = (name: string) => withSpec({ ignoreApplicationDifferences: [{ name, jsonPointers: ["/spec/source/targetRevision"] }] });
    expect(effects(ignoring(""), [made("a", "v2")], [live(made("a"))])).toEqual(["same a"]);
    expect(effects(ignoring("b"), [made("a", "v2")], [live(made("a"))])).toEqual(["change a"]);
  });
});

it("removes what a pointer leads to", () => {
  expect(without({ a: { "b/c": 1, d: 2 } }, "/a/b~1c")).toEqual({ a: { d: 2 } });
  expect(without({ a: [{ b: 1 }, { b: 2 }] }, "/a/1/b")).toEqual({ a: [{ b: 1 }, {}] });
  expect(without({ a: [1, 2] }, "/a/0")).toEqual({ a: [2] });
  expect(without({ a: 1 }, "/b/c")).toEqual({ a: 1 });
});

it("knows its Applications by their controller", () => {
  const owner = { kind: "ApplicationSet", name: "teams" };
  expect([live(made("a")), live(made("a"), { namespace: "other" }), live(made("a"), { ownerReferences: [owner] }), made("a")].map((app) => isOwned(app, set))).toEqual([true, false, false, false]);
});

it("says what went wrong", () => {
  const of = (status: string): ApplicationSet => ({ ...set, status: { conditions: [{ type: "ErrorOccurred", status, message: "no such repository" }] } });
  expect([errorOf(of("True")), errorOf(of("False")), errorOf(set)]).toEqual(["no such repository", undefined, undefined]);
  const tones = (["ErrorOccurred", "ResourcesUpToDate"] as const).flatMap((type) => ["True", "False"].map((status) => toneOfCondition({ type, status })));
  expect(tones).toEqual(["bad", "good", "good", "bad"]);
});
