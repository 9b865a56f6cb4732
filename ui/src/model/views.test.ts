import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { bars, favouritesIn, figures, slices, viewOf, withFavourite } from "./views";

const app = (name: string, sync: string, health: string, spec: Partial<Application["spec"]> = {}): Application => ({
  metadata: { name, namespace: "argocd" },
  spec: { project: "shop", destination: { server: "https://one", namespace: "n" }, ...spec },
  status: { sync: { status: sync }, health: { status: health } },
});
const apps = [
  app("a", "Synced", "Healthy"),
  app("b", "OutOfSync", "Healthy", { project: "bank", destination: { name: "two", server: "https://two", namespace: "n" } }),
  app("c", "Synced", "Degraded", { syncPolicy: { automated: {} } }),
];

it("the address counts more than what was chosen before, and what is no view counts for nothing", () => {
  expect(viewOf("tiles", "summary")).toBe("tiles");
  expect(viewOf("", "summary")).toBe("summary");
  expect(viewOf("pods", "toString")).toBe("list");
});

describe("favourites", () => {
  it("are kept with their namespace, and taken away again", () => {
    const [one, other] = [app("a", "", ""), { ...app("a", "", ""), metadata: { name: "a", namespace: "team" } }];
    const both = withFavourite(withFavourite("", one), other);
    expect([...favouritesIn(both)]).toEqual(["argocd/a", "team/a"]);
    expect([...favouritesIn(withFavourite(both, one))]).toEqual(["team/a"]);
    expect(withFavourite(withFavourite("", one), one)).toBe("");
  });
  it("are none where the browser keeps something else", () => {
    for (const text of ["{", "{}", "7", "[1, null]"]) expect(favouritesIn(text).size).toBe(0);
    expect([...favouritesIn('["argocd/a", 3]')]).toEqual(["argocd/a"]);
  });
});

it("a chart's slices follow each other and make a whole", () => {
  const found = slices(new Map([["Odd", 1], ["OutOfSync", 1], ["Synced", 2], ["Unknown", 0]]), ["Synced", "OutOfSync", "Unknown"]);
  expect(found.map(({ word }) => word)).toEqual(["Synced", "OutOfSync", "Odd"]);
  expect(found.map(({ from }) => from)).toEqual([0, 0.5, 0.75]);
  expect(found.reduce((sum, { share }) => sum + share, 0)).toBe(1);
  expect(slices(new Map(), [])).toEqual([]);
});

it("bars show the largest first, with those that are as they should be", () => {
  expect(bars(apps, ({ spec }) => spec.project ?? "", 10)).toEqual([
    { name: "shop", count: 2, good: 1 },
    { name: "bank", count: 1, good: 0 },
  ]);
  expect(bars(apps, () => "", 10)).toEqual([{ name: "–", count: 3, good: 1 }]);
  expect(bars(apps, ({ metadata }) => metadata.name, 2).length).toBe(2);
});

it("figures count namespaces of each cluster by themselves", () => {
  expect(Object.fromEntries(figures(apps))).toMatchObject({ Applications: 3, Synced: 2, Healthy: 2, "Automated sync": 1, Projects: 2, Clusters: 2, Namespaces: 2, Repositories: 0 });
});
