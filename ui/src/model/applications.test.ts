import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { type Applications, matches, withEvents, withList } from "./applications";

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
  const all = { text: "", sync: "", health: "" };
  it.each([
    [{ ...all }, true],
    [{ ...all, text: "SHOP deploy" }, true],
    [{ ...all, text: "shop nowhere" }, false],
    [{ ...all, health: "Degraded" }, false],
    [{ ...all, sync: "Synced", health: "Healthy" }, true],
  ])("%j", (filter, want) => expect(matches(app("a", 1), filter)).toBe(want));
});
