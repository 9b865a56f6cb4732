import { expect, it } from "vitest";
import type { Application, ResourceNode } from "../api/types";
import { network } from "./network";
import { buildTree } from "./tree";

const size = { width: 100, height: 40, gapX: 20, gapY: 10 };
const node = (kind: string, name: string, networkingInfo?: ResourceNode["networkingInfo"], namespace = "n"): ResourceNode => ({ kind, name, namespace, uid: `${kind} ${name}`, ...(networkingInfo && { networkingInfo }) });
const app: Application = { metadata: { name: "a", namespace: "argocd" }, spec: {} };
const drawn = (...nodes: ResourceNode[]) => {
  const found = network(buildTree(app, { nodes }), size);
  const title = ({ node, address }: (typeof found.places)[number]) => node?.ref.name ?? address;
  return { columns: Object.fromEntries(found.places.map((place) => [title(place), place.x / 120])), edges: found.edges.map(([from, to]) => `${title(from)} > ${title(to)}`).sort(), found };
};

it("leads from an address through an Ingress and a Service to the Pods with its labels", () => {
  const { columns, edges, found } = drawn(
    node("Ingress", "ing", { targetRefs: [{ kind: "Service", name: "svc", namespace: "n" }], ingress: [{ ip: "10.0.0.1" }] }),
    node("Service", "svc", { targetLabels: { app: "web" } }),
    node("Pod", "p1", { labels: { app: "web", more: "x" } }),
    node("Pod", "p2", { labels: { app: "web" } }),
    node("Pod", "other", { labels: { app: "db" } }),
    node("Pod", "elsewhere", { labels: { app: "web" } }, "m"),
    node("ConfigMap", "cm"),
  );
  expect(edges).toEqual(["10.0.0.1 > ing", "ing > svc", "svc > p1", "svc > p2"]);
  expect(columns).toEqual({ "10.0.0.1": 0, ing: 1, svc: 2, p1: 3, p2: 3, other: 1, elsewhere: 1 });
  expect(new Set(found.places.map(({ x, y }) => `${x} ${y}`)).size).toBe(found.places.length);
  expect(found.width).toBe(4 * 120 - 20);
});

it("draws a Pod of two Services once, and ends in a circle", () => {
  const two = drawn(node("Service", "s1", { targetLabels: { app: "web" } }), node("Service", "s2", { targetLabels: { app: "web" } }), node("Service", "none", { targetLabels: {} }), node("Pod", "p", { labels: { app: "web" } }));
  expect(two.edges).toEqual(["s1 > p", "s2 > p"]);
  expect(two.found.places.length).toBe(4);
  const circle = drawn(node("Service", "a", { targetRefs: [{ kind: "Service", name: "b", namespace: "n" }] }), node("Service", "b", { targetRefs: [{ kind: "Service", name: "a", namespace: "n" }] }));
  expect(circle.edges).toEqual(["a > b", "b > a"]);
  expect(drawn().found).toMatchObject({ places: [], width: 0, height: 0 });
});
