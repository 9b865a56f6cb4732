// The Pods of an Application by node, or by what has them: one square for each.

import { useMemo } from "react";
import { groupingOf, GROUPINGS, podGroups, requests } from "../model/pods";
import type { TreeNode } from "../model/tree";
import { setQuery, useQuery } from "../router";
import { describe, kindHue, kindLetters } from "./node";
import { StateIcon, toneOf } from "./status";

interface Props {
  root: TreeNode;
  selected: string | undefined;
  onSelect: (key: string) => void;
}

export function Pods({ root, selected, onSelect }: Props) {
  const by = groupingOf(useQuery("podSortMode"));
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
      <div className="pod-groups">
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
