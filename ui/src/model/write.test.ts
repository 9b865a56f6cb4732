import { describe, expect, it } from "vitest";
import { ApiError } from "../api/client";
import type { Application } from "../api/types";
import type { ApplicationSet } from "../api/sets";
import { changedParts, write, writeSet } from "./write";

const app = (metadata: object, revision = "1.0.0", status = "Synced"): Application => ({
  metadata: { name: "shop", ...metadata },
  spec: { source: { repoURL: "https://charts.example", chart: "web", targetRevision: revision } },
  status: { sync: { status } },
});

describe("changedParts", () => {
  const before = app({ resourceVersion: "1", annotations: { a: "1", b: "2" } });
  it.each<[string, Application, string[]]>([
    ["the status", app({ resourceVersion: "2", annotations: { b: "2", a: "1" } }, "1.0.0", "OutOfSync"), []],
    ["a refresh", app({ annotations: { a: "1", b: "2", "argocd.argoproj.io/refresh": "hard" } }), []],
    ["the version", app({ annotations: { a: "1", b: "2" } }, "1.1.0"), ["source", "spec"]],
    ["an annotation", app({ annotations: { a: "1", b: "3" } }), ["annotations"]],
    ["a label", app({ labels: { team: "x" }, annotations: { a: "1", b: "2" } }), ["labels"]],
    ["a finalizer", app({ finalizers: ["resources-finalizer.argocd.argoproj.io"], annotations: { a: "1", b: "2" } }), ["finalizers"]],
  ])("%s", (_, now, want) => expect(changedParts(before, now)).toEqual(want));
});

describe("write", () => {
  const before = app({ resourceVersion: "1" });
  const conflict = new ApiError(409, "changed meanwhile");
  /** What is written to which versions, and how it ends. */
  const run = async (looks: Application[], answers: (ApiError | null)[]) => {
    const versions: (string | undefined)[] = [];
    const look = async () => looks.shift() as Application;
    const update = async (wanted: Application, version?: string) => {
      versions.push(version);
      const answer = answers.shift();
      if (answer) throw answer;
      return wanted;
    };
    const ended = await write(before, before, look, update).then(
      () => "written",
      (e: Error) => e.message,
    );
    return { versions, ended };
  };
  const newer = app({ resourceVersion: "2" }, "1.0.0", "OutOfSync");
  const others = app({ resourceVersion: "3" }, "2.0.0");
  it.each<[string, Application[], (ApiError | null)[], object]>([
    ["at once", [before], [null], { versions: ["1"], ended: "written" }],
    ["after a change of the status", [before, newer], [conflict, null], { versions: ["1", "2"], ended: "written" }],
    ["never over others", [before, others], [conflict], { versions: ["1"], ended: "shop was changed meanwhile (source, spec): look again" }],
    ["not when refused", [before], [new ApiError(403, "no")], { versions: ["1"], ended: "no" }],
  ])("%s", async (_, looks, answers, want) => expect(await run(looks, answers)).toEqual(want));
});

describe("writeSet", () => {
  const asked = (set: ApplicationSet): ApplicationSet => ({ ...set, metadata: { ...set.metadata, annotations: { "argocd.argoproj.io/application-set-refresh": "true", "argocd.argoproj.io/application-set-refresh-timestamp": "1" } } });
  const noted = (set: ApplicationSet): ApplicationSet => ({ ...set, metadata: { ...set.metadata, annotations: { team: "red" } } });
  const set = (resourceVersion: string, goTemplate = false, labels = {}): ApplicationSet => ({ metadata: { name: "teams", resourceVersion, labels }, spec: { goTemplate } });
  const conflict = new ApiError(409, "changed meanwhile");
  it.each<[string, ApplicationSet[], (ApiError | null)[], object]>([
    ["at once", [set("1")], [null], { versions: ["1"], ended: "written" }],
    ["after a change of the status", [set("1"), set("2")], [conflict, null], { versions: ["1", "2"], ended: "written" }],
    ["when a refresh was asked for", [asked(set("2"))], [null], { versions: ["2"], ended: "written" }],
    ["not over others' annotations", [noted(set("2"))], [], { versions: [], ended: "teams was changed meanwhile (annotations): look again" }],
    ["never over others", [set("1"), set("2", true)], [conflict], { versions: ["1"], ended: "teams was changed meanwhile (spec): look again" }],
    ["not over others' labels", [set("2", false, { a: "b" })], [], { versions: [], ended: "teams was changed meanwhile (labels): look again" }],
  ])("%s", async (_, looks, answers, want) => {
    const versions: (string | undefined)[] = [];
    const save = async (wanted: ApplicationSet, version?: string) => {
      versions.push(version);
      const answer = answers.shift();
      if (answer) throw answer;
      return wanted;
    };
    // The manifest that was entered has no version.
    const wanted: ApplicationSet = { metadata: { name: "teams" }, spec: { goTemplate: true } };
    const ended = await writeSet(set("1"), wanted, async () => looks.shift() as ApplicationSet, save).then(
      () => "written",
      (e: Error) => e.message,
    );
    expect({ versions, ended }).toEqual(want);
  });
});
