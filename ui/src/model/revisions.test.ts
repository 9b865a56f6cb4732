import { expect, it } from "vitest";
import { api } from "../api/client";
import type { Application } from "../api/types";
import { entered, listedSources, positioned } from "./revisions";

const source = (repoURL: string) => ({ repoURL, path: "." });
const app = (spec: Application["spec"]): Application => ({ metadata: { name: "a" }, spec });

it("names the sources that get another revision by their position", () => {
  expect(positioned(["v1", "", "main"])).toEqual({ revisions: ["v1", "main"], sourcePositions: [1, 3] });
  expect(positioned(["", ""])).toEqual({ revisions: [], sourcePositions: [] });
});

it("asks for one revision of a single source, and for one of each in a list", () => {
  expect(entered(app({ source: source("r") }), " v1 ", ["no"])).toBe("v1");
  const two = app({ sources: [source("r"), source("s")] });
  expect(entered(two, "no", ["", " v2 "])).toEqual(["", "v2"]);
  expect(entered(two, "no", ["", " "])).toBe("");
  expect(entered(app({ sources: [source("r")] }), "no", ["v1"])).toEqual(["v1"]);
});

it("takes a hydrated Application for one with a single source, whatever it hides", () => {
  const hydrated = app({ sources: [source("r"), source("s")], sourceHydrator: { drySource: source("r") } });
  expect([listedSources(hydrated), entered(hydrated, "v1", ["v2"])]).toEqual([undefined, "v1"]);
});

it("sends them with a sync", async () => {
  const bodies: Record<string, unknown>[] = [];
  const before = globalThis.fetch;
  globalThis.fetch = async (_, init) => (bodies.push(JSON.parse(String(init?.body)) as Record<string, unknown>), new Response("{}"));
  const options = { prune: false, dryRun: false, force: false, applyOnly: false, syncOptions: undefined, resources: undefined, retries: 0 };
  try {
    for (const revision of ["v1", "", ["", "v2"]]) await api.sync({ name: "a", namespace: "" }, { ...options, revision });
  } finally {
    globalThis.fetch = before;
  }
  expect(bodies.map(({ revision, revisions, sourcePositions }) => [revision, revisions, sourcePositions])).toEqual([
    ["v1", undefined, undefined],
    [undefined, undefined, undefined],
    [undefined, ["v2"], [2]],
  ]);
});
