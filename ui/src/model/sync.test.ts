import { describe, expect, it } from "vitest";
import type { Application } from "../api/types";
import { chosenResources, optionsOf, syncable } from "./sync";
import { refKey } from "./tree";

describe("the options of a sync", () => {
  const policy = ["CreateNamespace=true", "PrunePropagationPolicy=background"];
  it("are those of the policy, unless something else is chosen", () => expect(optionsOf(policy, new Set(["CreateNamespace=true"]))).toBeUndefined());
  it("keep those of the policy that are not offered", () =>
    expect(optionsOf(policy, new Set(["CreateNamespace=true", "Replace=true"]))).toEqual(["PrunePropagationPolicy=background", "CreateNamespace=true", "Replace=true"]));
  it("can be fewer than those of the policy", () => expect(optionsOf(["CreateNamespace=true"], new Set())).toEqual([]));
  it("replace their opposite", () => expect(optionsOf(["Validate=true"], new Set(["Validate=false"]))).toEqual(["Validate=false"]));
});

describe("the resources of a sync", () => {
  const [a, b] = [{ kind: "ConfigMap", namespace: "n", name: "a" }, { kind: "ConfigMap", namespace: "n", name: "b" }] as const;
  it("are not named when all are meant", () => expect(chosenResources([a, b], new Set())).toBeUndefined());
  it("are named when some are left out", () => expect(chosenResources([a, b], new Set([refKey(a)]))).toEqual([b]));
  it("are no hooks", () => {
    const app: Application = { metadata: { name: "x" }, spec: {}, status: { resources: [a, { ...b, hook: true }] } };
    expect(syncable(app)).toEqual([a]);
  });
});
