// One node of the resource tree as a button; the same in the drawn tree and in the list.

import { memo } from "react";
import type { TreeNode } from "../model/tree";
import { age, exact } from "../model/time";
import { StateIcon, toneOf } from "./status";

/** The letters people know from the command line, where there are some. */
const SHORT: Record<string, string> = {
  Application: "app",
  ConfigMap: "cm",
  CronJob: "cj",
  CustomResourceDefinition: "crd",
  DaemonSet: "ds",
  Deployment: "deploy",
  Endpoints: "ep",
  EndpointSlice: "eps",
  HorizontalPodAutoscaler: "hpa",
  Ingress: "ing",
  Job: "job",
  Namespace: "ns",
  NetworkPolicy: "netp",
  PersistentVolume: "pv",
  PersistentVolumeClaim: "pvc",
  Pod: "pod",
  ReplicaSet: "rs",
  Role: "role",
  RoleBinding: "rb",
  Secret: "sec",
  Service: "svc",
  ServiceAccount: "sa",
  StatefulSet: "sts",
};

/** For other kinds their capital letters. */
export function kindLetters(kind: string): string {
  return SHORT[kind] ?? (kind.replace(/[^A-Z]/g, "").slice(0, 4).toLowerCase() || kind.slice(0, 3).toLowerCase());
}

const HUES: Record<string, number> = { Application: 190, Deployment: 215, StatefulSet: 255, DaemonSet: 275, ReplicaSet: 225, Pod: 205, Service: 160, Ingress: 140, Job: 35, CronJob: 25, ConfigMap: 50, Secret: 340, Namespace: 300 };

/** Kinds without a colour of their own get one from their name. */
export const kindHue = (kind: string) => HUES[kind] ?? [...kind].reduce((sum, c) => (sum * 31 + c.charCodeAt(0)) % 360, 7);

export function describe(node: TreeNode): string {
  const states = [node.sync, node.health, node.requiresPruning ? "requires pruning" : "", node.hook ? "hook" : "", node.orphaned ? "orphaned" : ""];
  return [`${node.ref.kind} ${node.ref.name}`, ...states.filter(Boolean)].join(", ");
}

interface Props {
  node: TreeNode;
  now: number;
  selected: boolean;
  onSelect: (key: string) => void;
}

export const NodeButton = memo(function NodeButton({ node, now, selected, onSelect }: Props) {
  const { ref, live } = node;
  const info = (name: string) => live?.info?.find((i) => i.name === name)?.value;
  const facts = [info("Containers"), info("Status Reason") !== "Running" && info("Status Reason"), info("Revision")];
  return (
    <button
      type="button"
      className={`node edge-${toneOf(node.health ?? node.sync)}${node.sync === "OutOfSync" ? " node-off" : ""}`}
      aria-pressed={selected}
      aria-label={describe(node)}
      data-kind={ref.kind}
      data-name={ref.name}
      onClick={() => onSelect(node.key)}
    >
      <span className="kind" style={{ "--hue": kindHue(ref.kind) } as React.CSSProperties} aria-hidden="true">
        {kindLetters(ref.kind)}
      </span>
      <span className="node-text">
        <span className="node-name" title={ref.name}>
          {ref.name}
        </span>
        <span className="node-facts">
          <span className="node-kind">{ref.kind}</span>
          {facts.filter(Boolean).map((fact, i) => (
            <span key={i} className="fact">
              {fact}
            </span>
          ))}
          {node.wave !== undefined && node.wave !== 0 && <span className="fact">wave {node.wave}</span>}
          {node.hook && <span className="fact">hook</span>}
          {node.orphaned && <span className="fact">orphaned</span>}
          {node.requiresPruning && <span className="fact tone-warn">prune</span>}
        </span>
      </span>
      <span className="node-side">
        <span className="node-icons">
          {node.sync && <StateIcon word={node.sync} />}
          {node.health && <StateIcon word={node.health} label={node.healthMessage ? `${node.health}: ${node.healthMessage}` : node.health} />}
        </span>
        <span className="node-age" title={exact(live?.createdAt)}>
          {age(live?.createdAt, now)}
        </span>
      </span>
    </button>
  );
});
