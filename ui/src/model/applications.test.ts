import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { type Applications, matches, sorted, withEvents, withList } from "./applications";

const app = (name: string, version: number, health = "Healthy"): Application => ({
  metadata: { name, namespace: "argocd", resourceVersion: String(version) },
  spec: { project: "default", source: { repoURL: "https://git.example.org/shop.git", path: "deploy" }, destination: { namespace: "shop" } },
  status: { sync: { status: "Synced" }, health: { status: health } },
});
const names = (apps: Applications) => [...apps.values()].map((a) => `${a.metadata.name}@${a.metadata.resourceVersion}`).sort();

describe("the list", () => {
  it("keeps the newest version, whatever the order", () => {
    const apps = withEvents(new Map(), [
      { type: "ADDED", application: app("a", 5) },
      { type: "MODIFIED", application: app("a", 3) },
      { type: "ADDED", application: app("b", 4) },
      { type: "DELETED", application: app("b", 6) },
    ]);
    expect(names(apps)).toEqual(["a@5"]);
  });

  it("forgets what a listing no longer has, but not what came after it", () => {
    const known = withEvents(new Map(), ["gone", "kept", "new"].map((n, i) => ({ type: "ADDED", application: app(n, [3, 4, 12][i]!) })));
    const after = withList(known, { metadata: { resourceVersion: "10" }, items: [app("kept", 9), app("other", 8)] });
    expect(names(after)).toEqual(["kept@9", "new@12", "other@8"]);
  });
});

describe("the filter", () => {
  const all = { text: "", sync: "", health: "", project: "" };
  it.each([
    [{ ...all }, true],
    [{ ...all, text: "SHOP deploy" }, true],
    [{ ...all, text: "shop nowhere" }, false],
    [{ ...all, health: "Degraded" }, false],
    [{ ...all, sync: "Synced", health: "Healthy" }, true],
    [{ ...all, project: "default" }, true],
    [{ ...all, project: "team" }, false],
    [{ ...all, text: "tier=web" }, true],
  ])("%j", (filter, want) => {
    const one = app("a", 1);
    one.metadata.labels = { tier: "web" };
    expect(matches(one, filter)).toBe(want);
  });
});

it("orders by name, by what is worst, and by the last sync", () => {
  const apps = [app("b", 1), app("a", 2), app("c", 3, "Degraded"), { ...app("d", 4), status: { health: { status: "Healthy" }, sync: { status: "OutOfSync" } } }];
  apps[0]!.status!.history = [{ deployedAt: "2026-01-02T00:00:00Z" }];
  apps[1]!.status!.history = [{ deployedAt: "2026-01-01T00:00:00Z" }];
  const order = (by: "" | "health" | "synced") => sorted(apps, by).map((a) => a.metadata.name).join("");
  expect([order(""), order("health"), order("synced")]).toEqual(["abcd", "cdab", "bacd"]);
});
