import { expect, it } from "vitest";
import type { Application } from "../api/types";
import { commitOf, historyOf, isAutomated, revisionOfRollback, revisionsOf, sourceChange, whatOf } from "./history";

const commit = "0123456789abcdef0123456789abcdef01234567";
const git = { repoURL: "https://git.example.org/shop.git", path: "deploy", targetRevision: "main" };

it("has the newest first", () => {
  const app: Application = { metadata: { name: "a" }, spec: {}, status: { history: [{ id: 0 }, { id: 1 }] } };
  expect(historyOf(app).map((entry) => entry.id)).toEqual([1, 0]);
  expect(app.status?.history?.map((entry) => entry.id)).toEqual([0, 1]);
});

it.each([
  ["a commit", { revision: commit, source: git }, commit],
  ["a chart", { revision: "1.0.0", source: { repoURL: "https://charts.example.org", chart: "web" } }, undefined],
  ["an artifact of a registry", { revision: commit, source: { ...git, repoURL: "oci://registry.example.org/a" } }, undefined],
  ["several sources", { revisions: [commit, commit], sources: [git, git] }, undefined],
])("the commit of %s", (_, entry, want) => expect(commitOf(entry)).toBe(want));

it("has a revision for each source", () => {
  expect(revisionsOf({ revision: "a" })).toEqual(["a"]);
  expect(revisionsOf({ revision: "", revisions: ["a", "b"] })).toEqual(["a", "b"]);
  expect(whatOf(git)).toBe("git.example.org/shop · deploy · main");
});

it("knows when the history cannot be gone back to", () => {
  const app = (syncPolicy: Application["spec"]["syncPolicy"]): Application => ({ metadata: { name: "a" }, spec: syncPolicy ? { syncPolicy } : {} });
  expect([app(undefined), app({}), app({ automated: {} }), app({ automated: { enabled: false } })].map(isAutomated)).toEqual([false, false, true, false]);
});

it("shows what a rollback changes of the source, and of nothing else", () => {
  const app: Application = { metadata: { name: "a" }, spec: { source: git } };
  expect(sourceChange(app, { revision: commit, source: { ...git } })).toBe(undefined);
  expect(sourceChange(app, { revision: commit })).toBe(undefined);
  const change = sourceChange(app, { revision: commit, source: { ...git, path: "old" } });
  expect([change?.before, change?.after].map((text) => /path: (\w+)/.exec(text ?? "")?.[1])).toEqual(["deploy", "old"]);
});

it("asks for the manifests of a rollback only where the server can render them", () => {
  const one: Application = { metadata: { name: "a" }, spec: { source: git } };
  const two: Application = { metadata: { name: "a" }, spec: { sources: [git, git] } };
  expect(revisionOfRollback(one, { revision: "r1", source: git })).toBe("r1");
  expect(revisionOfRollback(two, { revisions: ["r1", "r2"], sources: [git, git] })).toEqual(["r1", "r2"]);
  // It had another number of sources then.
  expect(revisionOfRollback(two, { revision: "r1", source: git })).toBe(undefined);
  expect(revisionOfRollback(one, { revisions: ["r1", "r2"], sources: [git, git] })).toBe(undefined);
  expect(revisionOfRollback({ ...one, spec: { sourceHydrator: {} } }, { revision: "r1", source: git })).toBe(undefined);
});
