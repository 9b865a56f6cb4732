// ApplicationSets, and what they generate.

import { change, get, type AppName, stream } from "./client";
import type { Application, Event, ObjectMeta, ResourceStatus } from "./types";

export interface SetCondition {
  type: string;
  status?: string;
  reason?: string;
  message?: string;
  lastTransitionTime?: string;
}

export interface ApplicationSet {
  metadata: ObjectMeta;
  spec: {
    generators?: Record<string, unknown>[];
    template?: { spec?: { project?: string } };
    syncPolicy?: { applicationsSync?: string; preserveResourcesOnDeletion?: boolean };
    preservedFields?: { annotations?: string[]; labels?: string[] };
    ignoreApplicationDifferences?: { name?: string; jsonPointers?: string[]; jqPathExpressions?: string[] }[];
    [field: string]: unknown;
  };
  status?: {
    conditions?: SetCondition[];
    /** Of a set that syncs step by step. */
    applicationStatus?: { application: string; status?: string; message?: string; step?: string }[];
    resources?: ResourceStatus[];
    resourcesCount?: number;
    health?: { status?: string; message?: string };
  };
}

const path = (id: AppName) => `/api/v1/applicationsets/${encodeURIComponent(id.name)}`;

export const sets = {
  list: async (signal?: AbortSignal) => (await get<{ items?: ApplicationSet[] | null }>("/api/v1/applicationsets", {}, signal)).items ?? [],
  one: (id: AppName, signal?: AbortSignal) => get<ApplicationSet>(path(id), { appsetNamespace: id.namespace }, signal),
  events: async (id: AppName, signal?: AbortSignal) => (await get<{ items?: Event[] | null }>(`${path(id)}/events`, { appsetNamespace: id.namespace }, signal)).items ?? [],
  /** What its generators and its template give now. */
  generate: async (applicationSet: ApplicationSet, signal?: AbortSignal) =>
    (await change<{ applications?: Application[] | null }>("POST", "/api/v1/applicationsets/generate", { applicationSet }, {}, signal)).applications ?? [],
  create: (set: ApplicationSet) => change<ApplicationSet>("POST", "/api/v1/applicationsets", set, {}),
  /** Replaces one that exists, only that of the `resourceVersion` if one is given: labels and annotations are only added then. */
  replace: (set: ApplicationSet, resourceVersion?: string) => change<ApplicationSet>("POST", "/api/v1/applicationsets", set, { upsert: "true", resourceVersion }),
  remove: (id: AppName) => change<object>("DELETE", path(id), {}, { appsetNamespace: id.namespace }),
  watch: (signal: AbortSignal, on: { open: () => void; message: () => void }) => stream<unknown>("/api/v1/stream/applicationsets", {}, signal, on),
};
