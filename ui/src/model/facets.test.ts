import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { type Chosen, chosenIn, isChosen, isPicked, proposals, queryOf, toggled } from "./facets";

const app: Application = {
  metadata: { name: "shop", namespace: "argocd", labels: { tier: "web", team: "red" }, annotations: { "example.org/owner": "anna=a", long: "x".repeat(200) } },
  spec: {
    project: "store",
    sources: [{ repoURL: "https://git.example.org/a.git", targetRevision: "v1" }, { repoURL: "https://git.example.org/b.git" }],
    destination: { name: "prod-eu", namespace: "shop-prod" },
    syncPolicy: { automated: { prune: true } },
  },
  status: { sync: { status: "OutOfSync" }, health: { status: "Degraded" }, operationState: { phase: "Failed" } },
};

describe("what is chosen", () => {
  it.each<[Chosen, boolean]>([
    [{}, true],
    [{ sync: [] }, true],
    [{ sync: ["Synced"] }, false],
    [{ sync: ["Synced", "OutOfSync"], health: ["Degraded"] }, true],
    [{ sync: ["OutOfSync"], health: ["Healthy"] }, false],
    [{ proj: ["store"] }, true],
    [{ labels: ["tier=web", "team"] }, true],
    [{ labels: ["tier=web", "team=blue"] }, false],
    [{ labels: ["team!=blue"] }, true],
    [{ labels: ["tier=*"] }, true],
    [{ labels: ["toString"] }, false],
    [{ labels: ["!other", "team in (blue, red)"] }, true],
    [{ labels: ["!team"] }, false],
    [{ labels: ["team notin (red)"] }, false],
    [{ cluster: ["prod-eu (https://cluster.example.org)"] }, true],
    [{ operation: ["Sync failed"] }, true],
    [{ operation: ["Sync OK"] }, false],
    [{ cluster: ["prod-*"] }, true],
    [{ cluster: ["prod"] }, false],
    [{ namespace: ["*-prod"] }, true],
    [{ namespace: ["shop-*-prod"] }, false],
    [{ namespace: ["s*p-p*d"] }, true],
    [{ repo: ["https://git.example.org/b.git"] }, true],
    [{ targetRevision: ["HEAD"] }, true],
    [{ targetRevision: ["v2"] }, false],
    [{ annotations: ["example.org/owner", "!other"] }, true],
    [{ annotations: ["example.org/owner=anna=*"] }, true],
    [{ annotations: ["example.org/owner=ann?=a", "example.org/owner=bob"] }, false],
    [{ annotations: ["tier=web"] }, false],
    [{ namespace: ["shop-{prod,stage}"] }, true],
    [{ proj: ["[a-r]tore"] }, false],
    [{ autoSync: ["Enabled"] }, true],
    [{ autoSync: ["Disabled"] }, false],
    [{ operation: ["Failed", "Error"] }, true],
  ])("%j: %s", (chosen, want) => expect(isChosen(app, chosen)).toBe(want));
});

it("is read from Argo CD's addresses, and written so that it is read again", () => {
  const found = chosenIn("?sync=OutOfSync,Unknown&proj=&labels=tier%253Dweb%2Ca&search=x&view=tiles&showFavorites=false");
  expect(found).toEqual({ sync: ["OutOfSync", "Unknown"], labels: ["tier=web", "a"] });
  const odd = ["a,b", "50%", "x=y"];
  expect(chosenIn(`?${new URLSearchParams({ repo: queryOf(odd) })}`)).toEqual({ repo: odd });
  expect(chosenIn("?repo=50%25")).toEqual({ repo: ["50%"] });
});

it("toggles a value", () => {
  expect(toggled(undefined, "a")).toEqual(["a"]);
  expect(toggled(["a", "b"], "a")).toEqual(["b"]);
});

it("proposes what most have first, and not too much", () => {
  const many = Array.from({ length: 1000 }, (_, n): Application => ({ metadata: { name: `a${n}` }, spec: { destination: { namespace: n % 3 ? "common" : `n${n}` } } }));
  const found = proposals(many, "namespace");
  expect([found[0], found.length]).toEqual(["common", 200]);
});

it("a phase is no field of every object", () => expect(isChosen(app, { operation: ["constructor"] })).toBe(false));

it("filters by annotations, and proposes none with a long value", () => {
  expect(chosenIn("?annotations=team%3Dred&labels=a%3Db")).toEqual({ annotations: ["team=red"], labels: ["a=b"] });
  expect(proposals([app], "annotations")).toEqual(["example.org/owner=anna=a", "long"]);
});

it("only a proposal that was picked is a filter at once", () => {
  expect([undefined, "", "insertReplacementText"].filter((type) => !isPicked(type))).toEqual([]);
  expect(["insertText", "insertFromPaste", "deleteContentBackward"].filter(isPicked)).toEqual([]);
});
