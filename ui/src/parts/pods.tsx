// The Pods of an Application by node, or by what has them: one square for each.

import { useMemo } from "react";
import type { HostInfo } from "../api/types";
import { described, shares } from "../model/hosts";
import { groupingOf, GROUPINGS, podGroups, requests } from "../model/pods";
import type { TreeNode } from "../model/tree";
import { setQuery, useQuery } from "../router";
import { useKeptFocus } from "./kept-focus";
import { describe, kindHue, kindLetters } from "./node";
import { StateIcon, toneOf } from "./status";

interface Props {
  root: TreeNode;
  hosts: readonly HostInfo[];
  selected: string | undefined;
  onSelect: (key: string) => void;
}

export function Pods({ root, hosts, selected, onSelect }: Props) {
  const by = groupingOf(useQuery("podSortMode"));
  // A Pod that gets a node is in another group.
  const { box, on } = useKeptFocus<HTMLDivElement>();
  const groups = useMemo(() => podGroups(root, by), [root, by]);
  return (
    <>
      <label className="inline pods-by">
        Together by
        <select aria-label="Pods together by" value={by} onChange={(e) => setQuery({ podSortMode: e.target.value === "node" ? "" : e.target.value })}>
          {Object.entries(GROUPINGS).map(([value, title]) => (
            <option key={value} value={value}>
              {title}
            </option>
          ))}
        </select>
      </label>
      {groups.length === 0 && <p className="dim">There are no Pods.</p>}
      <div ref={box} className="pod-groups" {...on}>
        {groups.map(({ key, of, name, pods }) => (
          <section key={key} className="pod-group" aria-label={`${of?.ref.kind ?? "Node"} ${name}`} data-group={name}>
            <div className="pod-group-head">
              <span className="kind" style={{ "--hue": kindHue(of?.ref.kind ?? "Node") } as React.CSSProperties} aria-hidden="true">
                {kindLetters(of?.ref.kind ?? "Node")}
              </span>
              <div>
                {of && !of.isRoot ? (
                  <button type="button" className="quiet pod-group-name" aria-pressed={of.key === selected} onClick={() => onSelect(of.key)}>
                    {name}
                  </button>
                ) : (
                  <b>{name}</b>
                )}
                <div className="dim">{[`${pods.length} ${pods.length === 1 ? "Pod" : "Pods"}`, requests(pods)].filter(Boolean).join(" · ")}</div>
              </div>
            </div>
            {!of && <Capacity host={hosts.find((host) => host.name === name)} />}
            <div className="pod-squares">
              {pods.map((pod) => (
                <button
                  key={pod.key}
                  type="button"
                  className={`pod tone-${toneOf(pod.health)}`}
                  aria-pressed={pod.key === selected}
                  aria-label={describe(pod)}
                  title={[pod.ref.name, pod.healthMessage || pod.health].filter(Boolean).join(": ")}
                  data-pod={pod.ref.name}
                  data-item={pod.key}
                  onClick={() => onSelect(pod.key)}
                >
                  <StateIcon word={pod.health ?? "Unknown"} label="" />
                </button>
              ))}
            </div>
          </section>
        ))}
      </div>
    </>
  );
}

/** What the node has, and what is left of it. */
function Capacity({ host }: { host: HostInfo | undefined }) {
  const all = shares(host);
  if (all.length === 0) return null;
  return (
    <ul className="pod-capacity" aria-label={`Capacity of ${host?.name ?? ""}`}>
      {all.map((share) => (
        <li key={share.name} title={described(share)}>
          <span className="dim">{share.name}</span>
          <span className="pod-bar" role="img" aria-label={described(share)}>
            <span className="pod-bar-app" style={{ width: `${share.appPercent}%` }} />
            <span className="pod-bar-others" style={{ width: `${share.othersPercent}%` }} />
          </span>
          <span className="dim">{share.capacity}</span>
        </li>
      ))}
    </ul>
  );
}
