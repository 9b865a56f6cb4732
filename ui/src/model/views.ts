// How the list of Applications is drawn, and which of them somebody likes best. Names and values are those of Argo CD's addresses.

import type { Application } from "../api/types";
import { count, healthOf, keyOf, syncOf } from "./applications";
import { isAutomated } from "./history";

export const VIEWS = { tiles: "Tiles", list: "List", summary: "Summary" } as const;
export type View = keyof typeof VIEWS;

const isView = (text: string): text is View => Object.hasOwn(VIEWS, text);

/** The address says it, or else what was chosen the last time. */
export const viewOf = (asked: string, kept: string): View => [asked, kept].find(isView) ?? "list";

/** What the browser keeps: names in JSON. Anything else is none. */
export function favouritesIn(text: string): ReadonlySet<string> {
  try {
    const names: unknown = JSON.parse(text || "[]");
    return new Set(Array.isArray(names) ? names.filter((name) => typeof name === "string") : []);
  } catch {
    return new Set();
  }
}

/** The same with the Application, or without it. */
export function withFavourite(text: string, app: Application): string {
  const names = new Set(favouritesIn(text));
  if (!names.delete(keyOf(app))) names.add(keyOf(app));
  return names.size > 0 ? JSON.stringify([...names]) : "";
}

export interface Slice {
  word: string;
  count: number;
  /** Parts of the whole, from 0 to 1. */
  from: number;
  share: number;
}

/** In this order, then the others by name. */
export function slices(counts: ReadonlyMap<string, number>, order: readonly string[]): Slice[] {
  const total = [...counts.values()].reduce((sum, n) => sum + n, 0);
  const place = (word: string) => (order.includes(word) ? order.indexOf(word) : order.length);
  const words = [...counts].filter(([, n]) => n > 0).sort(([a], [b]) => place(a) - place(b) || (a < b ? -1 : 1));
  let before = 0;
  return words.map(([word, n]) => {
    const from = before / total;
    before += n;
    return { word, count: n, from, share: n / total };
  });
}

export interface Bar {
  name: string;
  count: number;
  /** How many of them are Synced and Healthy. */
  good: number;
}

const isGood = (app: Application) => syncOf(app) === "Synced" && healthOf(app) === "Healthy";

/** The name of the bar of those without a value: nothing filters by that. */
export const NO_NAME = "–";

/** The values of most Applications, so many of them. */
export function bars(apps: readonly Application[], of: (app: Application) => string, most: number): Bar[] {
  const all = new Map<string, Bar>();
  for (const app of apps) {
    const name = of(app) || NO_NAME;
    const bar = all.get(name) ?? { name, count: 0, good: 0 };
    bar.count++;
    if (isGood(app)) bar.good++;
    all.set(name, bar);
  }
  return [...all.values()].sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1)).slice(0, most);
}

export const clusterOf = ({ spec }: Application) => spec.destination?.name || spec.destination?.server || "";

/** The numbers above the charts. */
export function figures(apps: readonly Application[]): [string, number][] {
  const of = (value: (app: Application) => string | undefined) => new Set(apps.map(value).filter(Boolean)).size;
  return [
    ["Applications", apps.length],
    ["Synced", count(apps, syncOf).get("Synced") ?? 0],
    ["Healthy", count(apps, healthOf).get("Healthy") ?? 0],
    ["Automated sync", apps.filter(isAutomated).length],
    ["Projects", of(({ spec }) => spec.project)],
    ["Clusters", of(clusterOf)],
    ["Namespaces", of((app) => (app.spec.destination?.namespace ? `${clusterOf(app)} ${app.spec.destination.namespace}` : ""))],
    ["Repositories", new Set(apps.flatMap(({ spec }) => (spec.sources ?? [spec.source]).map((source) => source?.repoURL)).filter(Boolean)).size],
  ];
}
