// The way of a request: from addresses outside through Ingresses and Services to Pods.

import type { ResourceNode } from "../api/types";
import { refKey, type Size, type TreeNode } from "./tree";

export interface NetworkPlace {
  key: string;
  /** Undefined: an address outside the cluster. */
  node: TreeNode | undefined;
  address: string;
  x: number;
  y: number;
}

export interface Network {
  places: NetworkPlace[];
  edges: [NetworkPlace, NetworkPlace][];
  width: number;
  height: number;
}

type Networking = NonNullable<ResourceNode["networkingInfo"]>;

const networkingOf = (node: TreeNode): Networking | undefined => node.live?.networkingInfo;

/** Those that it names, and those of its namespace with all of its labels. */
function targetsOf(node: TreeNode, all: readonly TreeNode[]): TreeNode[] {
  const { targetRefs, targetLabels } = networkingOf(node) ?? {};
  const refs = new Set((targetRefs ?? []).map(refKey));
  const wanted = Object.entries(targetLabels ?? {});
  if (refs.size === 0 && wanted.length === 0) return [];
  const fits = (other: TreeNode) => {
    const labels = networkingOf(other)?.labels;
    return wanted.length > 0 && labels !== undefined && other.ref.namespace === node.ref.namespace && wanted.every(([key, value]) => labels[key] === value);
  };
  return all.filter((other) => other !== node && (refs.has(other.key) || fits(other)));
}

function networked(root: TreeNode): TreeNode[] {
  const found: TreeNode[] = [];
  const walk = (node: TreeNode) => {
    if (networkingOf(node)) found.push(node);
    node.children.forEach(walk);
  };
  walk(root);
  return found;
}

const addressesOf = (node: TreeNode) => (networkingOf(node)?.ingress ?? []).map(({ hostname, ip }) => hostname || ip || "").filter(Boolean);

/** In columns from left to right; an object stands right of all that lead to it. */
export function network(root: TreeNode, size: Size): Network {
  const all = networked(root);
  const next = new Map(all.map((node) => [node, targetsOf(node, all)]));
  const isTarget = new Set([...next.values()].flat());
  const columns = new Map<TreeNode, number>();
  const put = (node: TreeNode, column: number, path: readonly TreeNode[]) => {
    // What leads in a circle ends here.
    if (path.includes(node) || (columns.get(node) ?? -1) >= column) return;
    columns.set(node, column);
    for (const target of next.get(node) ?? []) put(target, column + 1, [...path, node]);
  };
  const entries = all.filter((node) => !isTarget.has(node));
  const hasAddress = entries.some((node) => addressesOf(node).length > 0);
  for (const node of entries) put(node, hasAddress ? 1 : 0, []);
  // A circle that nothing leads to.
  for (const node of all) if (!columns.has(node)) put(node, hasAddress ? 1 : 0, []);
  const rows: number[] = [];
  const place = (key: string, node: TreeNode | undefined, address: string, column: number): NetworkPlace => {
    const row = rows[column] ?? 0;
    rows[column] = row + 1;
    return { key, node, address, x: column * (size.width + size.gapX), y: row * (size.height + size.gapY) };
  };
  const outside = new Map<string, NetworkPlace>();
  for (const address of new Set(entries.flatMap(addressesOf))) outside.set(address, place(`outside ${address}`, undefined, address, 0));
  const places = new Map(all.map((node) => [node, place(node.key, node, "", columns.get(node) ?? 0)]));
  const edges: Network["edges"] = [];
  const join = (from: NetworkPlace | undefined, to: NetworkPlace | undefined) => from && to && edges.push([from, to]);
  for (const node of entries) for (const address of addressesOf(node)) join(outside.get(address), places.get(node));
  for (const [node, targets] of next) for (const target of targets) join(places.get(node), places.get(target));
  const width = rows.length * (size.width + size.gapX) - size.gapX;
  return { places: [...outside.values(), ...places.values()], edges, width: Math.max(0, width), height: Math.max(0, ...rows) * (size.height + size.gapY) };
}
