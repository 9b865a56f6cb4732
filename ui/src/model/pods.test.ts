import { expect, it } from "vitest";
import type { Application, ResourceNode } from "../api/types";
import { groupingOf, podGroups, requests } from "./pods";
import { buildTree } from "./tree";

const node = (kind: string, name: string, owner?: string, info: Record<string, string> = {}): ResourceNode => ({
  kind,
  name,
  namespace: "n",
  uid: name,
  info: Object.entries(info).map(([name, value]) => ({ name, value })),
  ...(owner && { parentRefs: [{ kind: "", name: owner, uid: owner }] }),
});
const app: Application = { metadata: { name: "a", namespace: "argocd" }, spec: {} };
const root = buildTree(app, {
  nodes: [
    node("Deployment", "web"),
    node("ReplicaSet", "web-1", "web"),
    node("ReplicaSet", "web-2", "web"),
    node("Pod", "p1", "web-1", { Node: "worker-b", cpu: "250", memory: String(64 * 2 ** 20 * 1000) }),
    node("Pod", "p2", "web-2", { Node: "worker-a", cpu: "500", memory: String(64 * 2 ** 20 * 1000) }),
    node("Pod", "waits", "web-2"),
    node("Pod", "alone", undefined, { Node: "worker-a" }),
    // Only one of the core is what runs.
    { ...node("Pod", "other"), group: "example.org" },
  ],
});
const shape = (by: Parameters<typeof podGroups>[1]) => Object.fromEntries(podGroups(root, by).map(({ name, pods }) => [name, pods.map(({ ref }) => ref.name).sort()]));

it("puts Pods together by node, those that run nowhere first", () => {
  expect(shape("node")).toEqual({ Unschedulable: ["waits"], "worker-a": ["alone", "p2"], "worker-b": ["p1"] });
  expect(podGroups(root, "node")[0]?.name).toBe("Unschedulable");
});

it("puts Pods together by what has them, and by what is at the top", () => {
  expect(shape("parentResource")).toEqual({ a: ["alone"], "web-1": ["p1"], "web-2": ["p2", "waits"] });
  expect(shape("topLevelResource")).toEqual({ a: ["alone"], web: ["p1", "p2", "waits"] });
});

it("adds up what Pods have asked for", () => {
  const pods = podGroups(root, "topLevelResource").find(({ name }) => name === "web")?.pods ?? [];
  expect(requests(pods)).toBe("0.75 CPU · 128 MiB");
  expect(requests([])).toBe("");
});

it("takes a way that it does not know for the first one", () => expect(["topLevelResource", "", "toString"].map(groupingOf)).toEqual(["topLevelResource", "node", "node"]));
