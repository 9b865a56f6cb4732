// Calls about one object of an Application: its events, its logs, and what can be done with it.

import { app, type AppName, change, get, type Query, stream, url } from "./client";
import type { PlanSource } from "../model/plan";
import { positioned, type Revision } from "../model/revisions";
import type { DeepLink, Event, LogLine, ResourceAction, ResourceDiff, ResourceRef } from "./types";

export interface LogsWanted {
  container: string;
  previous: boolean;
  follow: boolean;
  filter: string;
  matchCase: boolean;
  lines: number;
  /** Only those of so many seconds; 0: all. */
  since: number;
}

const named = (id: AppName, r: ResourceRef): Query => ({
  appNamespace: id.namespace,
  group: r.group,
  version: r.version,
  kind: r.kind,
  namespace: r.namespace,
  resourceName: r.name,
});

/** A Pod is asked for by its name; the Pods of other kinds by the object that has them. */
export function logsQuery(id: AppName, r: ResourceRef, wanted: LogsWanted): Query {
  const of = r.kind === "Pod" ? { podName: r.name } : { group: r.group, kind: r.kind, resourceName: r.name };
  return {
    appNamespace: id.namespace,
    namespace: r.namespace,
    ...of,
    container: wanted.container,
    previous: wanted.previous ? "true" : undefined,
    follow: wanted.follow ? "true" : undefined,
    filter: wanted.filter,
    matchCase: wanted.matchCase && wanted.filter ? "true" : undefined,
    sinceSeconds: wanted.since ? String(wanted.since) : undefined,
    tailLines: wanted.lines ? String(wanted.lines) : undefined,
  };
}

/** The address of a file with the lines that there are now. */
export const logsFile = (id: AppName, r: ResourceRef, wanted: LogsWanted) =>
  url(`${app(id)}/logs`, { ...logsQuery(id, r, { ...wanted, follow: false }), download: "true" });

function atRevision(revision: Revision): Query {
  if (typeof revision === "string") return { revision };
  const { revisions, sourcePositions } = positioned(revision);
  return { revisions, sourcePositions: sourcePositions.map(String) };
}

/** Which manifests a plan needs. */
export interface PlanWanted {
  /** The revision to sync, or those of several sources; empty: the Application's own. */
  revision: Revision;
  /** What was compared; empty: the manifests to sync are taken for the compared ones. */
  compared: Revision;
  /** What a hydrator renders is not what is synced. */
  hydrated: boolean;
}

export const resources = {
  plan: async (id: AppName, { revision, compared, hydrated }: PlanWanted, signal?: AbortSignal): Promise<PlanSource> => {
    const manifests = async (revision: Revision) =>
      (await get<{ manifests?: string[] | null }>(`${app(id)}/manifests`, { appNamespace: id.namespace, ...atRevision(revision) }, signal)).manifests ?? [];
    const [managed, old, wanted] = await Promise.all([
      get<{ items?: ResourceDiff[] | null }>(`${app(id)}/managed-resources`, { appNamespace: id.namespace }, signal),
      compared.length > 0 && !hydrated ? manifests(compared) : undefined,
      hydrated ? undefined : manifests(revision),
    ]);
    return { managed: managed.items ?? [], compared: old, wanted };
  },
  /** Without an object: those of the Application itself. */
  events: async (id: AppName, r?: ResourceRef, signal?: AbortSignal) => {
    const of = r && { resourceNamespace: r.namespace, resourceName: r.name, resourceUID: r.uid };
    return (await get<{ items?: Event[] | null }>(`${app(id)}/events`, { appNamespace: id.namespace, ...of }, signal)).items ?? [];
  },
  /** Without an object: those of the Application itself. */
  links: async (id: AppName, r?: ResourceRef, signal?: AbortSignal) => {
    const found = r
      ? get<{ items?: DeepLink[] | null }>(`${app(id)}/resource/links`, named(id, r), signal)
      : get<{ items?: DeepLink[] | null }>(`${app(id)}/links`, { namespace: id.namespace }, signal);
    return (await found).items ?? [];
  },
  logs: (id: AppName, r: ResourceRef, wanted: LogsWanted, signal: AbortSignal, on: { open: () => void; message: (line: LogLine) => void }) =>
    stream<LogLine>(`${app(id)}/logs`, logsQuery(id, r, wanted), signal, on),
  actions: async (id: AppName, r: ResourceRef, signal?: AbortSignal) =>
    (await get<{ actions?: ResourceAction[] | null }>(`${app(id)}/resource/actions`, named(id, r), signal)).actions ?? [],
  run: (id: AppName, r: ResourceRef, action: string, parameters: { name: string; value: string }[]) =>
    change<object>("POST", `${app(id)}/resource/actions/v2`, { ...named(id, r), action, resourceActionParameters: parameters }),
  /** A merge patch. */
  patch: (id: AppName, r: ResourceRef, patch: string) =>
    change<{ manifest?: string }>("POST", `${app(id)}/resource`, patch, { ...named(id, r), patchType: "application/merge-patch+json" }),
  remove: (id: AppName, r: ResourceRef, how: { force: boolean; orphan: boolean }) =>
    change<object>("DELETE", `${app(id)}/resource`, {}, { ...named(id, r), force: String(how.force), orphan: String(how.orphan) }),
};
