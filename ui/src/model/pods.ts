// The Pods of an Application, put together by where they run or by what has them. The names of the ways are those of Argo CD's addresses.

import type { TreeNode } from "./tree";

export const GROUPINGS = { node: "Node", parentResource: "Parent", topLevelResource: "Top resource" } as const;
export type Grouping = keyof typeof GROUPINGS;

export const groupingOf = (asked: string): Grouping => (Object.hasOwn(GROUPINGS, asked) ? (asked as Grouping) : "node");

export interface PodGroup {
  key: string;
  /** Undefined: the node of a cluster. */
  of: TreeNode | undefined;
  name: string;
  pods: TreeNode[];
}

/** As Argo CD calls the place of Pods that run nowhere yet. */
const NOWHERE = "Unschedulable";

const info = (pod: TreeNode, name: string) => pod.live?.info?.find((item) => item.name === name)?.value;
const isPod = ({ ref, live }: TreeNode) => ref.kind === "Pod" && !ref.group && live !== undefined;

/** Sorted by name; those that run nowhere come first: somebody should look at them. */
export function podGroups(root: TreeNode, by: Grouping): PodGroup[] {
  const groups = new Map<string, PodGroup>();
  const add = (pod: TreeNode, key: string, name: string, of: TreeNode | undefined) => {
    const group = groups.get(key) ?? { key, name, of, pods: [] };
    groups.set(key, group);
    group.pods.push(pod);
  };
  const walk = (node: TreeNode, above: TreeNode[]) => {
    if (isPod(node)) {
      const place = info(node, "Node") || NOWHERE;
      const owner = (by === "parentResource" ? above.at(-1) : above[1]) ?? root;
      if (by === "node") add(node, place, place, undefined);
      else add(node, owner.key, owner.ref.name, owner);
    }
    for (const child of node.children) walk(child, [...above, node]);
  };
  walk(root, []);
  const last = (group: PodGroup) => (group.key === NOWHERE && !group.of ? 0 : 1);
  return [...groups.values()].sort((a, b) => last(a) - last(b) || (a.name < b.name ? -1 : a.name > b.name ? 1 : a.key < b.key ? -1 : 1));
}

/** The server tells thousandths, of bytes too. */
const sum = (pods: readonly TreeNode[], name: string) => pods.reduce((total, pod) => total + (Number(info(pod, name)) || 0), 0) / 1000;

/** What the Pods have asked for; empty where nothing is known of it. */
export function requests(pods: readonly TreeNode[]): string {
  const [cpu, memory] = [sum(pods, "cpu"), sum(pods, "memory") / 2 ** 20];
  const rounded = (n: number) => String(Math.round(n * 100) / 100);
  return [cpu > 0 && `${rounded(cpu)} CPU`, memory > 0 && `${rounded(memory)} MiB`].filter(Boolean).join(" · ");
}
