// The resource tree as it is drawn: the server's nodes joined with the Application's resource states, and their places.

import type { Application, ApplicationTree, ResourceNode, ResourceRef } from "../api/types";

export interface TreeNode {
  key: string;
  ref: ResourceRef;
  /** Undefined for what is not in the cluster, and for the Application itself. */
  live: ResourceNode | undefined;
  isRoot: boolean;
  /** Only resources that Git describes have one. */
  sync: string | undefined;
  health: string | undefined;
  healthMessage: string | undefined;
  wave: number | undefined;
  hook: boolean;
  requiresPruning: boolean;
  /** It is in the Application's namespace, and belongs to none. */
  orphaned: boolean;
  children: TreeNode[];
}

export const refKey = (r: ResourceRef) => [r.group ?? "", r.kind, r.namespace ?? "", r.name].join("/");

function bare(ref: ResourceRef): TreeNode {
  return {
    key: refKey(ref),
    ref,
    live: undefined,
    isRoot: false,
    sync: undefined,
    health: undefined,
    healthMessage: undefined,
    wave: undefined,
    hook: false,
    requiresPruning: false,
    orphaned: false,
    children: [],
  };
}

/** What keeps a resource from being healthy, if that is known to be an object that it owns. */
const reason = (live: ResourceNode) => live.info?.find((item) => item.name === "Reason")?.value;

/** The tree below the Application. Nodes whose owner is not in the tree hang directly below it; so do orphans, where they are wanted. */
export function buildTree(app: Application, tree: ApplicationTree | undefined, orphans = false): TreeNode {
  const nodes = new Map<string, TreeNode>();
  const byUid = new Map<string, TreeNode>();
  const take = (live: ResourceNode, orphaned: boolean) => {
    const node = { ...bare(live), live, health: live.health?.status, healthMessage: reason(live) ?? live.health?.message, orphaned };
    if (orphaned && nodes.has(node.key)) return;
    nodes.set(node.key, node);
    if (live.uid) byUid.set(live.uid, node);
  };
  for (const live of tree?.nodes ?? []) take(live, false);
  if (orphans) for (const live of tree?.orphanedNodes ?? []) take(live, true);
  for (const state of app.status?.resources ?? []) {
    const key = refKey(state);
    const node = nodes.get(key) ?? bare(state);
    nodes.set(key, node);
    node.sync = state.status;
    node.health ??= state.health?.status;
    node.healthMessage ??= state.health?.message;
    node.wave = state.syncWave;
    node.hook = state.hook ?? false;
    node.requiresPruning = state.requiresPruning ?? false;
  }
  const root: TreeNode = {
    ...bare({ group: "argoproj.io", kind: "Application", namespace: app.metadata.namespace ?? "", name: app.metadata.name }),
    key: "application",
    isRoot: true,
    sync: app.status?.sync?.status,
    health: app.status?.health?.status,
    healthMessage: tree?.nodes?.map(reason).find(Boolean) ?? app.status?.health?.message,
  };
  const parents = new Map<TreeNode, TreeNode>();
  for (const node of nodes.values()) {
    const owner = (node.live?.parentRefs ?? []).map((r) => byUid.get(r.uid ?? "") ?? nodes.get(refKey(r))).find((p) => p && p !== node);
    if (owner && !isAbove(node, owner, parents)) parents.set(node, owner);
  }
  for (const node of nodes.values()) (parents.get(node) ?? root).children.push(node);
  sort(root);
  return root;
}

/** Owners that own each other would never be drawn. */
function isAbove(node: TreeNode, other: TreeNode, parents: Map<TreeNode, TreeNode>): boolean {
  for (let at: TreeNode | undefined = other; at; at = parents.get(at)) if (at === node) return true;
  return false;
}

function compare(a: TreeNode, b: TreeNode): number {
  const order = Number(a.orphaned) - Number(b.orphaned) || (a.wave ?? 0) - (b.wave ?? 0) || a.ref.kind.localeCompare(b.ref.kind);
  // The newest ReplicaSet or Pod first: it is the one that matters.
  const newest = a.live?.createdAt && b.live?.createdAt && a.live.parentRefs ? b.live.createdAt.localeCompare(a.live.createdAt) : 0;
  return order || newest || a.key.localeCompare(b.key);
}

function sort(node: TreeNode) {
  node.children.sort(compare);
  node.children.forEach(sort);
}

export interface TreeFilter {
  text: string;
  /** Only what is not as it should be. */
  problems: boolean;
}

const isProblem = ({ sync, health, requiresPruning }: TreeNode) =>
  requiresPruning || (sync !== undefined && sync !== "Synced") || (health !== undefined && health !== "Healthy");

/** A word such as `kind:pod`. Of several with the same field one is enough. */
function fieldIn(word: string): { field: string; value: string } | undefined {
  const [, field, value] = /^(kind|name|namespace|sync|health):(.+)$/.exec(word) ?? [];
  return field && value ? { field, value } : undefined;
}

/** What matches, with what it hangs on and what hangs on it. The Application itself always stays. */
export function filterTree(root: TreeNode, filter: TreeFilter): TreeNode {
  const all = filter.text.toLowerCase().split(/\s+/).filter(Boolean);
  if (all.length === 0 && !filter.problems) return root;
  const words = all.filter((word) => !fieldIn(word));
  const fields = all.map(fieldIn).filter((found) => found !== undefined);
  const matches = (node: TreeNode) => {
    const has: Record<string, string | undefined> = { kind: node.ref.kind, name: node.ref.name, namespace: node.ref.namespace, sync: node.sync, health: node.health };
    const text = Object.values(has).join("\n").toLowerCase();
    const fits = ({ field, value }: { field: string; value: string }) => has[field]?.toLowerCase() === value;
    const isOne = fields.every(({ field }) => fields.some((wanted) => wanted.field === field && fits(wanted)));
    return words.every((word) => text.includes(word)) && isOne && (!filter.problems || isProblem(node));
  };
  const kept = (node: TreeNode): TreeNode | undefined => {
    if (matches(node) && !filter.problems) return node;
    const children = node.children.map(kept).filter((child) => child !== undefined);
    return matches(node) || children.length > 0 ? { ...node, children } : undefined;
  };
  return { ...root, children: root.children.map(kept).filter((child) => child !== undefined) };
}

export const countNodes = (node: TreeNode): number => 1 + node.children.reduce((sum, child) => sum + countNodes(child), 0);

export interface Size {
  width: number;
  height: number;
  gapX: number;
  gapY: number;
}

export interface Placed {
  node: TreeNode;
  parent: Placed | undefined;
  depth: number;
  x: number;
  y: number;
}

type Point = Pick<Placed, "x" | "y">;

export interface Layout {
  nodes: Placed[];
  width: number;
  height: number;
}

/** Left to right in layers: every leaf has its own row, a parent stands in the middle of its children. */
export function layout(root: TreeNode, size: Size): Layout {
  const nodes: Placed[] = [];
  let rows = 0;
  let depths = 0;
  const place = (node: TreeNode, depth: number, parent: Placed | undefined): Placed => {
    const placed: Placed = { node, parent, depth, x: depth * (size.width + size.gapX), y: 0 };
    nodes.push(placed);
    depths = Math.max(depths, depth + 1);
    const below = node.children.map((child) => place(child, depth + 1, placed));
    const [first, last] = [below[0], below.at(-1)];
    placed.y = first && last ? (first.y + last.y) / 2 : rows++ * (size.height + size.gapY);
    return placed;
  };
  place(root, 0, undefined);
  return {
    nodes,
    width: depths * size.width + (depths - 1) * size.gapX,
    height: rows * size.height + (rows - 1) * size.gapY,
  };
}

/** The line from a parent's right side to a child's left side, with rounded corners. */
export function edge(from: Point, to: Point, size: Size): string {
  const [x1, y1] = [from.x + size.width, from.y + size.height / 2];
  const [x2, y2] = [to.x, to.y + size.height / 2];
  if (Math.abs(y2 - y1) < 0.5) return `M${x1} ${y1}H${x2}`;
  const middle = x1 + size.gapX / 2;
  const r = Math.min(8, size.gapX / 2, Math.abs(y2 - y1) / 2);
  const down = Math.sign(y2 - y1);
  return `M${x1} ${y1}H${middle - r}Q${middle} ${y1} ${middle} ${y1 + r * down}V${y2 - r * down}Q${middle} ${y2} ${middle + r} ${y2}H${x2}`;
}
