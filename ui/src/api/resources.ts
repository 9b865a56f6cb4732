// Calls about one object of an Application: its events, its logs, and what can be done with it.

import { app, type AppName, change, get, type Query, stream } from "./client";
import type { PlanSource } from "../model/plan";
import type { Event, LogLine, ResourceAction, ResourceDiff, ResourceRef } from "./types";

export interface LogsWanted {
  container: string;
  previous: boolean;
  follow: boolean;
  filter: string;
  lines: number;
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
    tailLines: String(wanted.lines),
  };
}

/** Which manifests a plan needs. */
export interface PlanWanted {
  /** The revision to sync; empty: the Application's own. */
  revision: string;
  /** The revision that was compared; empty: the manifests to sync are taken for the compared ones. */
  compared: string;
  /** What a hydrator renders is not what is synced. */
  hydrated: boolean;
}

export const resources = {
  plan: async (id: AppName, { revision, compared, hydrated }: PlanWanted, signal?: AbortSignal): Promise<PlanSource> => {
    const manifests = async (revision: string) =>
      (await get<{ manifests?: string[] | null }>(`${app(id)}/manifests`, { appNamespace: id.namespace, revision }, signal)).manifests ?? [];
    const [managed, old, wanted] = await Promise.all([
      get<{ items?: ResourceDiff[] | null }>(`${app(id)}/managed-resources`, { appNamespace: id.namespace }, signal),
      compared && !hydrated ? manifests(compared) : undefined,
      hydrated ? undefined : manifests(revision),
    ]);
    return { managed: managed.items ?? [], compared: old, wanted };
  },
  /** Without an object: those of the Application itself. */
  events: async (id: AppName, r?: ResourceRef, signal?: AbortSignal) => {
    const of = r && { resourceNamespace: r.namespace, resourceName: r.name, resourceUID: r.uid };
    return (await get<{ items?: Event[] | null }>(`${app(id)}/events`, { appNamespace: id.namespace, ...of }, signal)).items ?? [];
  },
  logs: (id: AppName, r: ResourceRef, wanted: LogsWanted, signal: AbortSignal, on: { open: () => void; message: (line: LogLine) => void }) =>
    stream<LogLine>(`${app(id)}/logs`, logsQuery(id, r, wanted), signal, on),
  actions: async (id: AppName, r: ResourceRef, signal?: AbortSignal) =>
    (await get<{ actions?: ResourceAction[] | null }>(`${app(id)}/resource/actions`, named(id, r), signal)).actions ?? [],
  run: (id: AppName, r: ResourceRef, action: string, parameters: { name: string; value: string }[]) =>
    change<object>("POST", `${app(id)}/resource/actions/v2`, { ...named(id, r), action, resourceActionParameters: parameters }),
  remove: (id: AppName, r: ResourceRef, how: { force: boolean; orphan: boolean }) =>
    change<object>("DELETE", `${app(id)}/resource`, {}, { ...named(id, r), force: String(how.force), orphan: String(how.orphan) }),
};
