// The network of an Application: addresses, Ingresses, Services, Pods.

import { useMemo } from "react";
import { network } from "../model/network";
import { edge } from "../model/tree";
import { NodeButton } from "./node";
import { SIZE, type TreeProps } from "./tree";

export function NetworkView({ root, now, selected, onSelect, menu }: TreeProps) {
  const { places, edges, width, height } = useMemo(() => network(root, SIZE), [root]);
  if (places.length === 0) return <p className="dim">Nothing of it is reached over the network.</p>;
  return (
    <div className="tree" tabIndex={0} role="group" aria-label="Network">
      <div className="tree-area" style={{ width, height }}>
        <svg width={width} height={height} aria-hidden="true">
          {edges.map(([from, to]) => (
            <path key={`${from.key} ${to.key}`} data-edge={`${from.node?.ref.name ?? from.address} ${to.node?.ref.name ?? ""}`} d={edge(from, to, SIZE)} />
          ))}
        </svg>
        {places.map(({ key, node, address, x, y }) => (
          <div key={key} className="tree-place node-place" style={{ width: SIZE.width, height: SIZE.height, transform: `translate(${x}px, ${y}px)` }}>
            {node ? (
              <>
                <NodeButton node={node} now={now} selected={node.key === selected} onSelect={onSelect} />
                {menu(node)}
              </>
            ) : (
              <div className="network-outside clip" title={address}>
                {address}
              </div>
            )}
          </div>
        ))}
      </div>
    </div>
  );
}
