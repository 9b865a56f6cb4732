import { describe, expect, it } from "vitest";
import type { Application, ApplicationDelta } from "../api/types";
import { Followed, patched } from "./deltas";

const app = (name: string, more: Partial<Application> = {}): Application => ({ metadata: { name, namespace: "n", resourceVersion: "1" }, spec: {}, ...more });
const event = (type: ApplicationDelta["type"], application: Application, resume = "", changed: string[] = []): ApplicationDelta => ({ type, application, delta: { resume, changed } });
const bookmark = (resume: string) => event("BOOKMARK", {} as Application, resume);
const names = (followed: Followed) => followed.all && [...followed.all.keys()].sort();

/** Has everything of a first state. */
function followed(...apps: string[]): Followed {
  const one = new Followed();
  for (const name of apps) one.take(event("ADDED", app(name)));
  one.take(bookmark("t1"));
  return one;
}

describe("a change", () => {
  it("replaces what it names, keeps a null, and removes what it does not have", () => {
    const before = app("a", { spec: { project: "p", source: { repoURL: "r", path: "old" } }, status: { health: { status: "Degraded", message: "m" }, conditions: [] }, operation: { sync: {} } });
    const part = { metadata: { name: "a", namespace: "n", resourceVersion: "2", labels: null }, spec: { source: { repoURL: "r" } }, status: { health: { status: "Healthy" } } } as unknown as Application;
    const after = patched(before, part, ["metadata.resourceVersion", "metadata.labels", "spec.source", "status.health", "status.conditions", "operation"]);
    expect(after).toEqual({
      metadata: { name: "a", namespace: "n", resourceVersion: "2", labels: null },
      spec: { project: "p", source: { repoURL: "r" } },
      status: { health: { status: "Healthy" } },
    });
    expect(before.status?.health?.message).toBe("m");
  });
  it("reaches into what was not there before", () => {
    expect(patched(app("a"), app("a", { status: { sync: { status: "Synced" } } }), ["status.sync"]).status).toEqual({ sync: { status: "Synced" } });
  });
});

describe("what is known", () => {
  it("is shown when it has come in whole", () => {
    const one = new Followed();
    one.take(event("ADDED", app("a")));
    expect(one.all).toBeUndefined();
    one.take(event("ADDED", app("b")));
    one.take(bookmark("t1"));
    expect([names(one), one.resume]).toEqual([["n/a", "n/b"], "t1"]);
  });
  it("goes on only from an event that has a token", () => {
    const one = followed("a");
    one.take(event("MODIFIED", app("a", { metadata: { name: "a", namespace: "n", resourceVersion: "2" } }), "", ["metadata.resourceVersion"]));
    expect(one.resume).toBe("");
    one.take(event("DELETED", app("a"), "t2"));
    expect([names(one), one.resume]).toEqual([[], "t2"]);
  });
  it("is forgotten when the server says so, and was deleted only when the new state is whole", () => {
    const one = followed("gone", "kept");
    one.take(event("EXPIRED", {} as Application));
    expect([one.all, one.resume]).toEqual([undefined, ""]);
    one.take(event("ADDED", app("kept")));
    one.take(bookmark("t3"));
    expect([names(one), one.resume]).toEqual([["n/kept"], "t3"]);
  });
  it("begins anew after a change of what it does not know", () => {
    const one = followed("a");
    expect(() => one.take(event("MODIFIED", app("b"), "t2", ["spec"]))).toThrow("b");
    expect([one.all, one.resume]).toEqual([undefined, ""]);
  });
  it("does not change what was handed out", () => {
    const one = followed("a");
    const before = one.all;
    one.take(event("DELETED", app("a"), "t2"));
    expect(before?.size).toBe(1);
  });
});
