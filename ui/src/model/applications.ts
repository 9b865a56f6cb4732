// The list of Applications as the page knows it: counting, filtering and sorting.

import type { Application, Source } from "../api/types";

export type Applications = ReadonlyMap<string, Application>;

export const keyOf = (app: Application) => `${app.metadata.namespace ?? ""}/${app.metadata.name}`;

export const syncOf = (app: Application) => app.status?.sync?.status || "Unknown";
export const healthOf = (app: Application) => app.status?.health?.status || "Unknown";

/** Of a hydrated one: where its manifests are rendered from. */
export function sourcesOf(app: Application): Source[] {
  const hydrator = app.spec.sourceHydrator;
  if (hydrator) return [hydrator.drySource ?? { repoURL: "" }];
  return app.spec.sources?.length ? app.spec.sources : app.spec.source ? [app.spec.source] : [];
}

/** What is synced of its first source: a hydrator syncs the branch that it writes. */
export const syncedRevision = (app: Application) => (app.spec.sourceHydrator ? app.spec.sourceHydrator.syncSource?.targetBranch : sourcesOf(app)[0]?.targetRevision) || "HEAD";

/** Every word must be somewhere in what a row shows. */
export function matches(app: Application, words: string): boolean {
  const { destination, project } = app.spec;
  const places = sourcesOf(app).flatMap((s) => [s.repoURL, s.path, s.chart, s.targetRevision]);
  const labels = Object.entries(app.metadata.labels ?? {}).map(([key, value]) => `${key}=${value}`);
  const names = [...labels, app.metadata.name, app.metadata.namespace, project, destination?.server, destination?.name, destination?.namespace];
  const text = [...names, ...places, app.status?.sync?.revision].filter(Boolean).join("\n").toLowerCase();
  return words.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export function count(apps: Iterable<Application>, of: (app: Application) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const app of apps) counts.set(of(app), (counts.get(of(app)) ?? 0) + 1);
  return counts;
}

/** When it was synced last, or tried to. */
export const syncedAt = (app: Application) => app.status?.history?.at(-1)?.deployedAt ?? app.status?.operationState?.finishedAt;

export const ORDERS = { "": "by name", health: "worst first", synced: "last synced first" };
export type Order = keyof typeof ORDERS;

const WORST = ["Degraded", "Missing", "Unknown", "Progressing", "Suspended", "Healthy"];

/** How urgently somebody should look at it: the lower, the more. */
function urgency(app: Application): number {
  const at = WORST.indexOf(healthOf(app));
  const isSynced = syncOf(app) === "Synced";
  return (at < 0 ? WORST.length : at) * 2 + (isSynced ? 1 : 0);
}

/** Of ten thousand names, asking for the rules of the language each time takes most of the time. */
const byName = new Intl.Collator().compare;

const byTime = (a: string, b: string) => (a < b ? -1 : a > b ? 1 : 0);

/** Those that are equal stay in the order of their names. */
export function sorted(apps: Iterable<Application>, order: Order): Application[] {
  const names = [...apps].sort((a, b) => byName(a.metadata.name, b.metadata.name) || byName(keyOf(a), keyOf(b)));
  if (order === "health") return names.sort((a, b) => urgency(a) - urgency(b));
  if (order === "synced") return names.sort((a, b) => byTime(syncedAt(b) ?? "", syncedAt(a) ?? ""));
  return names;
}
