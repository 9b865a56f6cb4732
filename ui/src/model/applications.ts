// The list of Applications as the page knows it: what events and listings do to it, counting and filtering.

import type { Application, ApplicationEvent, ApplicationList } from "../api/types";

export type Applications = ReadonlyMap<string, Application>;

export const keyOf = (app: Application) => `${app.metadata.namespace ?? ""}/${app.metadata.name}`;

const version = (text: string | undefined) => Number(text ?? 0) || 0;

/** An older event never replaces what is newer. */
export function withEvents(apps: Applications, events: readonly ApplicationEvent[]): Applications {
  const next = new Map(apps);
  for (const { type, application } of events) {
    const key = keyOf(application);
    const known = next.get(key);
    if (known && version(known.metadata.resourceVersion) > version(application.metadata.resourceVersion)) continue;
    if (type === "DELETED") next.delete(key);
    else next.set(key, application);
  }
  return next;
}

/** A listing adds what is missing and removes what was deleted while no stream was open. */
export function withList(apps: Applications, list: ApplicationList): Applications {
  const at = version(list.metadata?.resourceVersion);
  const listed = new Map((list.items ?? []).map((app) => [keyOf(app), app]));
  const next = new Map<string, Application>();
  for (const [key, app] of apps) {
    const newer = version(app.metadata.resourceVersion) > at;
    if (listed.has(key) || newer) next.set(key, app);
  }
  return withEvents(next, [...listed.values()].map((application) => ({ type: "ADDED" as const, application })));
}

export interface Filter {
  text: string;
  sync: string;
  health: string;
}

export const syncOf = (app: Application) => app.status?.sync?.status || "Unknown";
export const healthOf = (app: Application) => app.status?.health?.status || "Unknown";

export function sourcesOf(app: Application) {
  return app.spec.sources?.length ? app.spec.sources : app.spec.source ? [app.spec.source] : [];
}

/** Every word must be somewhere in what a row shows. */
export function matches(app: Application, filter: Filter): boolean {
  if (filter.sync && syncOf(app) !== filter.sync) return false;
  if (filter.health && healthOf(app) !== filter.health) return false;
  const { destination, project } = app.spec;
  const places = sourcesOf(app).flatMap((s) => [s.repoURL, s.path, s.chart, s.targetRevision]);
  const words = [app.metadata.name, app.metadata.namespace, project, destination?.server, destination?.name, destination?.namespace];
  const text = [...words, ...places, app.status?.sync?.revision].filter(Boolean).join("\n").toLowerCase();
  return filter.text.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

export function count(apps: Iterable<Application>, of: (app: Application) => string): Map<string, number> {
  const counts = new Map<string, number>();
  for (const app of apps) counts.set(of(app), (counts.get(of(app)) ?? 0) + 1);
  return counts;
}
