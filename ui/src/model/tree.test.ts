import { describe, expect, it } from "vitest";
import type { Application, ResourceNode } from "../api/types";
import { buildTree, countNodes, edge, filterTree, layout, type TreeNode } from "./tree";

const size = { width: 100, height: 40, gapX: 20, gapY: 10 };
const node = (kind: string, name: string, owner?: [string, string]): ResourceNode => ({
  kind,
  name,
  namespace: "n",
  uid: `${kind}-${name}`,
  ...(owner && { parentRefs: [{ kind: owner[0], name: owner[1], namespace: "n", uid: owner.join("-") }] }),
});
const app = (resources: NonNullable<NonNullable<Application["status"]>["resources"]>): Application => ({
  metadata: { name: "a", namespace: "argocd" },
  spec: {},
  status: { sync: { status: "Synced" }, health: { status: "Healthy" }, resources },
});
const outline = (n: TreeNode): unknown => (n.children.length ? { [n.ref.name]: n.children.map(outline) } : n.ref.name);

const nodes = [
  node("Pod", "p1", ["ReplicaSet", "rs"]),
  node("Pod", "p2", ["ReplicaSet", "rs"]),
  node("ReplicaSet", "rs", ["Deployment", "d"]),
  node("Deployment", "d"),
  node("Service", "s"),
];

describe("buildTree", () => {
  it("says what keeps a resource from being healthy, and the Application", () => {
    const why = "Deployment d 0/1: pod p1 ImagePullBackOff";
    const stuck = { ...node("Deployment", "d"), health: { status: "Progressing", message: "Waiting" }, info: [{ name: "Reason", value: why }] };
    const told = (live: ResourceNode) => {
      const root = buildTree(app([]), { nodes: [node("Service", "s"), live] });
      return [root.healthMessage, root.children.find((n) => n.ref.name === "d")?.healthMessage];
    };
    expect(told(stuck)).toEqual([why, why]);
    expect(told({ ...stuck, info: [] })).toEqual([undefined, "Waiting"]);
  });
  it("hangs nodes below their owners and joins states", () => {
    const root = buildTree(
      app([
        { kind: "Deployment", name: "d", namespace: "n", status: "OutOfSync", syncWave: 2 },
        { kind: "Service", name: "s", namespace: "n", status: "Synced" },
        { kind: "ConfigMap", name: "absent", namespace: "n", status: "OutOfSync", health: { status: "Missing" } },
      ]),
      { nodes },
    );
    expect(outline(root)).toEqual({ a: ["absent", "s", { d: [{ rs: ["p1", "p2"] }] }] });
    const [absent, , deployment] = root.children;
    expect([absent?.live, absent?.health, absent?.sync]).toEqual([undefined, "Missing", "OutOfSync"]);
    expect([deployment?.sync, deployment?.wave, deployment?.live?.uid]).toEqual(["OutOfSync", 2, "Deployment-d"]);
  });

  it("draws nodes of an unknown owner, and owners that own each other", () => {
    const root = buildTree(app([]), { nodes: [node("A", "1", ["B", "2"]), node("B", "2", ["A", "1"]), node("C", "3", ["D", "4"])] });
    const all = layout(root, size).nodes.map((p) => p.node.ref.name);
    expect(all.sort()).toEqual(["1", "2", "3", "a"]);
  });

  it("is only the Application before anything is known", () => {
    expect(outline(buildTree(app([]), undefined))).toBe("a");
  });
});

describe("layout", () => {
  const placed = layout(buildTree(app([]), { nodes }), size);
  const at = (name: string) => {
    const found = placed.nodes.find((p) => p.node.ref.name === name);
    return found && [found.x, found.y];
  };

  it("puts layers side by side and parents in the middle", () => {
    expect([at("p1"), at("p2"), at("rs"), at("d"), at("s")]).toEqual([[360, 0], [360, 50], [240, 25], [120, 25], [120, 100]]);
    expect([placed.width, placed.height]).toEqual([460, 140]);
  });

  it("never lets two nodes overlap", () => {
    for (const a of placed.nodes)
      for (const b of placed.nodes) if (a !== b && a.x === b.x) expect(Math.abs(a.y - b.y)).toBeGreaterThanOrEqual(size.height);
  });

  it("draws straight and bent lines", () => {
    const [d, rs, p1] = ["d", "rs", "p1"].map((name) => placed.nodes.find((p) => p.node.ref.name === name)!);
    expect(edge(d!, rs!, size)).toBe("M220 45H240");
    expect(edge(rs!, p1!, size)).toMatch(/^M340 45H342Q350 45 350 37V28Q350 20 358 20H360$/);
  });
});

describe("the filter of the tree", () => {
  const bad = { ...node("Pod", "p2", ["ReplicaSet", "rs"]), health: { status: "Degraded" } };
  const root = buildTree(app([]), { nodes: nodes.map((n) => (n.name === "p2" ? bad : n)) });
  const shown = (text: string, problems = false) => outline(filterTree(root, { text, problems }));
  it("keeps what matches, what it hangs on, and what hangs on it", () => {
    expect(shown("RS")).toEqual({ a: [{ d: [{ rs: ["p1", "p2"] }] }] });
    expect(shown("pod p1")).toEqual({ a: [{ d: [{ rs: ["p1"] }] }] });
    expect(shown("service")).toEqual({ a: ["s"] });
  });
  it("finds by fields, of which one of several is enough", () => {
    expect(shown("kind:Service kind:ReplicaSet")).toEqual({ a: [{ d: [{ rs: ["p1", "p2"] }] }, "s"] });
    expect(shown("kind:Pod health:Degraded")).toEqual({ a: [{ d: [{ rs: ["p2"] }] }] });
    expect(shown("kind:Pod p1")).toEqual({ a: [{ d: [{ rs: ["p1"] }] }] });
    expect(shown("kind:Po")).toEqual("a");
  });
  it("finds what is not as it should be", () => {
    expect(shown("", true)).toEqual({ a: [{ d: [{ rs: ["p2"] }] }] });
    expect(shown("p1", true)).toEqual("a");
  });
  it("leaves the tree alone without a word", () => {
    expect(filterTree(root, { text: " ", problems: false })).toBe(root);
    expect(countNodes(root)).toBe(6);
  });
});

it("has orphans where they are wanted, after all else", () => {
  const tree = { nodes: [node("Service", "z")], orphanedNodes: [node("ConfigMap", "left"), node("ReplicaSet", "o"), node("Pod", "p", ["ReplicaSet", "o"])] };
  expect(outline(buildTree(app([]), tree))).toEqual({ a: ["z"] });
  const shown = buildTree(app([]), tree, true);
  expect(outline(shown)).toEqual({ a: ["z", "left", { o: ["p"] }] });
  expect(shown.children.map(({ orphaned }) => orphaned)).toEqual([false, true, true]);
});
