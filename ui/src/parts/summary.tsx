// All Applications in numbers and charts. A part of a chart is a button that filters by it.

import { useMemo } from "react";
import type { Application } from "../api/types";
import { count, healthOf, syncOf } from "../model/applications";
import { type Bar, bars, clusterOf, figures, NO_NAME, type Slice, slices } from "../model/views";
import { StateIcon, toneOf } from "./status";

export type Charted = "sync" | "health" | "operation" | "proj" | "cluster";

interface Props {
  apps: readonly Application[];
  orders: { sync: readonly string[]; health: readonly string[] };
  choose: (facet: Charted, value: string) => void;
}

/** No operation was there yet: nothing filters by that. */
const NONE = "None yet";
/** So many bars are drawn. */
const MOST = 10;

export function Summary({ apps, orders, choose }: Props) {
  const found = useMemo(
    () => ({
      figures: figures(apps),
      sync: slices(count(apps, syncOf), orders.sync),
      health: slices(count(apps, healthOf), orders.health),
      operation: slices(count(apps, (app) => app.status?.operationState?.phase || NONE), ["Succeeded", "Running"]),
      projects: bars(apps, ({ spec }) => spec.project ?? "", MOST),
      clusters: bars(apps, clusterOf, MOST),
    }),
    [apps, orders],
  );
  return (
    <div className="summary">
      <dl className="figures">
        {found.figures.map(([title, number]) => (
          <div key={title}>
            <dt>{title}</dt>
            <dd>{number}</dd>
          </div>
        ))}
      </dl>
      <Donut title="Sync" all={found.sync} choose={(word) => choose("sync", word)} />
      <Donut title="Health" all={found.health} choose={(word) => choose("health", word)} />
      <Donut title="Last operation" all={found.operation} without={NONE} choose={(word) => choose("operation", word)} />
      <Bars title="Projects" all={found.projects} choose={(name) => choose("proj", name)} />
      <Bars title="Clusters" all={found.clusters} choose={(name) => choose("cluster", name)} />
    </div>
  );
}

/** A circle of this radius is 100 long, so a share is a length. */
const RADIUS = 100 / (2 * Math.PI);

interface DonutProps {
  title: string;
  all: readonly Slice[];
  /** A word that is no filter. */
  without?: string;
  choose: (word: string) => void;
}

function Donut({ title, all, without, choose }: DonutProps) {
  const total = all.reduce((sum, slice) => sum + slice.count, 0);
  return (
    <section className="chart" aria-label={title} data-chart={title}>
      <h2>{title}</h2>
      <svg viewBox="0 0 40 40" className="donut" role="img" aria-label={all.map(({ word, count }) => `${count} ${word}`).join(", ")}>
        {all.map(({ word, from, share }) => (
          <circle key={word} className={`tone-${toneOf(word)}`} cx="20" cy="20" r={RADIUS} strokeDasharray={`${share * 100} ${100 - share * 100}`} strokeDashoffset={25 - from * 100} />
        ))}
        <text x="20" y="22.5">{total}</text>
      </svg>
      <ul>
        {all.map(({ word, count, share }) => (
          <li key={word}>
            <button type="button" className="quiet" data-word={word} disabled={word === without} onClick={() => choose(word)}>
              <StateIcon word={word} label="" />
              <b>{count}</b> {word} <span className="dim">{Math.round(share * 100)} %</span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Bars({ title, all, choose }: { title: string; all: readonly Bar[]; choose: (name: string) => void }) {
  const largest = all[0]?.count ?? 1;
  return (
    <section className="chart bars" aria-label={title} data-chart={title}>
      <h2>{title}</h2>
      <ul>
        {all.map(({ name, count, good }) => (
          <li key={name}>
            <button type="button" className="quiet" data-word={name} disabled={name === NO_NAME} onClick={() => choose(name)}>
              <span className="clip">{name.replace(/^https?:\/\//, "")}</span>
              <svg viewBox="0 0 100 6" preserveAspectRatio="none" aria-hidden="true">
                <rect className="bar-all" width={(count / largest) * 100} height="6" />
                <rect className="bar-good" width={(good / largest) * 100} height="6" />
              </svg>
              <span>
                <b>{count}</b> <span className="dim">{good === count ? "all as they should be" : `${count - good} not as they should be`}</span>
              </span>
            </button>
          </li>
        ))}
      </ul>
    </section>
  );
}
