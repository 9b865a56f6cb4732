import { expect, it } from "vitest";
import type { Application } from "../api/types";
import { matches, sorted, sourcesOf } from "./applications";

const app = (name: string, version: number, health = "Healthy"): Application => ({
  metadata: { name, namespace: "argocd", resourceVersion: String(version) },
  spec: { project: "default", source: { repoURL: "https://git.example.org/shop.git", path: "deploy" }, destination: { namespace: "shop" } },
  status: { sync: { status: "Synced" }, health: { status: health } },
});

it.each([
  ["", true],
  ["SHOP deploy", true],
  ["shop nowhere", false],
  ["tier=web", true],
])("the words %j are found: %s", (words, want) => {
  const one = app("a", 1);
  one.metadata.labels = { tier: "web" };
  expect(matches(one, words)).toBe(want);
});

it("orders by name, by what is worst, and by the last sync", () => {
  const apps = [app("b", 1), app("a", 2), app("c", 3, "Degraded"), { ...app("d", 4), status: { health: { status: "Healthy" }, sync: { status: "OutOfSync" } } }];
  apps[0]!.status!.history = [{ deployedAt: "2026-01-02T00:00:00Z" }];
  apps[1]!.status!.history = [{ deployedAt: "2026-01-01T00:00:00Z" }];
  const order = (by: "" | "health" | "synced") => sorted(apps, by).map((a) => a.metadata.name).join("");
  expect([order(""), order("health"), order("synced")]).toEqual(["abcd", "cdab", "bacd"]);
});

it("has the sources of a hydrated one where it is rendered from", () => {
  const drySource = { repoURL: "https://git.example.org/dry.git", path: "src", targetRevision: "main" };
  const hydrated: Application = { metadata: { name: "h" }, spec: { sourceHydrator: { drySource, syncSource: { targetBranch: "env/dev", path: "apps/h" } } } };
  expect(sourcesOf(hydrated)).toEqual([drySource]);
  expect(matches(hydrated, "dry.git main")).toBe(true);
});
