import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { rolledBack, versionsBefore } from "./rollback";

const source = (targetRevision: string, more: object = {}) => ({ repoURL: "https://charts.example", chart: "web", targetRevision, ...more });

const app = (history: NonNullable<Application["status"]>["history"], spec: object = {}): Application => ({
  metadata: { name: "shop", annotations: { "catalog.tiphys.dev/digest": "ab", "catalog.tiphys.dev/version": "2.0.0", other: "stays" } },
  spec: { project: "p", source: source("2.0.0"), ...spec },
  status: { history },
});

describe("versionsBefore", () => {
  const values = { helm: { values: "colour: blue\n" } };
  const history = [
    { revision: "1.0.0", source: source("1.x", values), deployedAt: "2026-01-01T00:00:00Z" },
    { revision: "9.0.0", source: { repoURL: "https://charts.example", chart: "other" } },
    { revision: "1.1.0", source: source("1.1.0") },
    { revision: "1.0.0", source: source("1.0.0") },
    { revision: "2.0.0", source: source("2.0.0") },
    {},
  ];
  it("names each once, the newest first", () => expect(versionsBefore(app(history)).map((b) => b.version)).toEqual(["1.0.0", "1.1.0"]));
  it.each<[string, object]>([
    ["Git", { source: { repoURL: "https://git.example", path: "a" } }],
    ["several sources", { sources: [source("2.0.0")] }],
    ["no source", { source: undefined }],
  ])("has none of %s", (_, spec) => expect(versionsBefore(app(history, spec))).toEqual([]));
  it("has none without a history", () => expect(versionsBefore(app(undefined))).toEqual([]));

  it("goes back with the values of then", () => {
    const [before] = versionsBefore(app(history.slice(0, 1)));
    const written = rolledBack(app(history), before!);
    expect(written.spec).toEqual({ project: "p", source: { ...source("1.0.0"), ...values } });
    expect(written.metadata.annotations).toEqual({ "catalog.tiphys.dev/version": "1.0.0", other: "stays" });
  });
});
