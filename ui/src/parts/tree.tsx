// The resource tree: drawn from left to right where there is room, an indented list where there is not.

import { type ReactNode, useMemo } from "react";
import { edge, layout, type Size, type TreeNode } from "../model/tree";
import { useKeptFocus } from "./kept-focus";
import { NodeButton } from "./node";

export const SIZE: Size = { width: 264, height: 58, gapX: 44, gapY: 14 };

export interface TreeProps {
  root: TreeNode;
  now: number;
  selected: string | undefined;
  onSelect: (key: string) => void;
  /** Beside each node but the Application's own. */
  menu: (node: TreeNode) => ReactNode;
}

export function TreeView({ root, now, selected, onSelect, menu }: TreeProps) {
  const placed = useMemo(() => layout(root, SIZE), [root]);
  return (
    <div className="tree" tabIndex={0} role="group" aria-label="Resource tree">
      <div className="tree-area" style={{ width: placed.width, height: placed.height }}>
        <svg width={placed.width} height={placed.height} aria-hidden="true">
          {placed.nodes.map((p) => p.parent && <path key={p.node.key} d={edge(p.parent, p, SIZE)} />)}
        </svg>
        {placed.nodes.map((p) => (
          <div
            key={p.node.key}
            className="tree-place node-place"
            style={{ width: SIZE.width, height: SIZE.height, transform: `translate(${p.x}px, ${p.y}px)` }}
          >
            <NodeButton node={p.node} now={now} selected={p.node.key === selected} onSelect={onSelect} />
            {!p.node.isRoot && menu(p.node)}
          </div>
        ))}
      </div>
    </div>
  );
}

export function TreeList({ root, now, selected, onSelect, menu }: TreeProps) {
  // Elsewhere in the tree, it is another element.
  const { box, on } = useKeptFocus<HTMLUListElement>();
  return (
    <ul ref={box} className="tree-list" aria-label="Resource tree" {...on}>
      <Branch node={root} now={now} selected={selected} onSelect={onSelect} menu={menu} />
    </ul>
  );
}

function Branch({ node, now, selected, onSelect, menu }: Omit<TreeProps, "root"> & { node: TreeNode }) {
  return (
    <li>
      <div className="node-place" data-item={node.key}>
        <NodeButton node={node} now={now} selected={node.key === selected} onSelect={onSelect} />
        {!node.isRoot && menu(node)}
      </div>
      {node.children.length > 0 && (
        <ul>
          {node.children.map((child) => (
            <Branch key={child.key} node={child} now={now} selected={selected} onSelect={onSelect} menu={menu} />
          ))}
        </ul>
      )}
    </li>
  );
}
