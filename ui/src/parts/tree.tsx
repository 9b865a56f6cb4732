// The resource tree: drawn from left to right where there is room, an indented list where there is not.

import { useMemo } from "react";
import { edge, layout, type Size, type TreeNode } from "../model/tree";
import { NodeButton } from "./node";

const SIZE: Size = { width: 264, height: 58, gapX: 44, gapY: 14 };

interface Props {
  root: TreeNode;
  now: number;
  selected: string | undefined;
  onSelect: (key: string) => void;
}

export function TreeView({ root, now, selected, onSelect }: Props) {
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
            className="tree-place"
            style={{ width: SIZE.width, height: SIZE.height, transform: `translate(${p.x}px, ${p.y}px)` }}
          >
            <NodeButton node={p.node} now={now} selected={p.node.key === selected} onSelect={onSelect} />
          </div>
        ))}
      </div>
    </div>
  );
}

export function TreeList({ root, now, selected, onSelect }: Props) {
  return (
    <ul className="tree-list" aria-label="Resource tree">
      <Branch node={root} now={now} selected={selected} onSelect={onSelect} />
    </ul>
  );
}

function Branch({ node, now, selected, onSelect }: Omit<Props, "root"> & { node: TreeNode }) {
  return (
    <li>
      <NodeButton node={node} now={now} selected={node.key === selected} onSelect={onSelect} />
      {node.children.length > 0 && (
        <ul>
          {node.children.map((child) => (
            <Branch key={child.key} node={child} now={now} selected={selected} onSelect={onSelect} />
          ))}
        </ul>
      )}
    </li>
  );
}
