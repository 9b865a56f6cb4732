import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { chosenResources, optionsOf, syncable, offeredOf, retryOf, withPropagation } from "./sync";
import { refKey } from "./tree";

describe("the options of a sync", () => {
  const policy = ["CreateNamespace=true", "FailOnSharedResource=true"];
  it("are those of the policy, unless something else is chosen", () => expect(optionsOf(policy, new Set(["CreateNamespace=true"]))).toBeUndefined());
  it("keep those of the policy that are not offered", () =>
    expect(optionsOf(policy, new Set(["CreateNamespace=true", "Replace=true"]))).toEqual(["FailOnSharedResource=true", "CreateNamespace=true", "Replace=true"]));
  it("can be fewer than those of the policy", () => expect(optionsOf(["CreateNamespace=true"], new Set())).toEqual([]));
  it("replace their opposite", () => expect(optionsOf(["Validate=true"], new Set(["Validate=false"]))).toEqual(["Validate=false"]));
});

describe("the resources of a sync", () => {
  const [a, b] = [{ kind: "ConfigMap", namespace: "n", name: "a" }, { kind: "ConfigMap", namespace: "n", name: "b" }] as const;
  it("are not named when all are meant", () => expect(chosenResources([a, b], new Set())).toBeUndefined());
  it("are named when only one was meant, and there is no other", () => expect(chosenResources([a], new Set(), true)).toEqual([a]));
  it("are named when some are left out", () => expect(chosenResources([a, b], new Set([refKey(a)]))).toEqual([b]));
  it("are no hooks", () => {
    const app: Application = { metadata: { name: "x" }, spec: {}, status: { resources: [a, { ...b, hook: true }] } };
    expect(syncable(app)).toEqual([a]);
  });
});

it("has one way to prune, and that of the policy first", () => {
  const policy = ["PrunePropagationPolicy=orphan", "Other=1"];
  const chosen = new Set(offeredOf(policy));
  expect(optionsOf(policy, chosen)).toBeUndefined();
  expect(optionsOf(policy, withPropagation(chosen, "PrunePropagationPolicy=background"))).toEqual(["Other=1", "PrunePropagationPolicy=background"]);
  expect(optionsOf(policy, withPropagation(chosen, ""))).toEqual(["Other=1"]);
});

it("tries again as often as it is told, and otherwise as the Application says", () => {
  expect(retryOf(0)).toBeUndefined();
  expect(retryOf(3)).toEqual({ limit: 3, backoff: { duration: "5s", maxDuration: "3m0s", factor: 2 } });
});
