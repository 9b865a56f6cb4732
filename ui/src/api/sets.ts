// ApplicationSets, and what they generate.

import { change, get, type AppName, stream } from "./client";
import type { Application, ApplicationList, Event, ObjectMeta, ResourceStatus } from "./types";

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

export interface SetEvent {
  type: "ADDED" | "MODIFIED" | "DELETED";
  applicationSet: ApplicationSet;
}

/** What a list shows of a set, whose status has all of its Applications. */
const inLists = (path: string) =>
  [
    ...["name", "namespace", "resourceVersion"].map((name) => `metadata.${name}`),
    ...["generators", "template.spec.project"].map((name) => `spec.${name}`),
    ...["health", "conditions", "resourcesCount"].map((name) => `status.${name}`),
  ].map((field) => `${path}.${field}`);

/** What the page of a set shows of its Applications. */
const OF_SET = ["metadata", "spec", "status.sync.status", "status.health"].map((field) => `items.${field}`).join(",");

const STREAM = "/api/v1/stream/applicationsets";

const path = (id: AppName) => `/api/v1/applicationsets/${encodeURIComponent(id.name)}`;

export const sets = {
  list: async (signal?: AbortSignal) => (await get<{ items?: ApplicationSet[] | null }>("/api/v1/applicationsets", { fields: inLists("items").join(",") }, signal)).items ?? [],
  one: (id: AppName, signal?: AbortSignal) => get<ApplicationSet>(path(id), { appsetNamespace: id.namespace }, signal),
  /** The Applications of the set's namespace. */
  applications: async (id: AppName, signal?: AbortSignal) => (await get<ApplicationList>("/api/v1/applications", { appNamespace: id.namespace, fields: OF_SET }, signal)).items ?? [],
  events: async (id: AppName, signal?: AbortSignal) => (await get<{ items?: Event[] | null }>(`${path(id)}/events`, { appsetNamespace: id.namespace }, signal)).items ?? [],
  /** What its generators and its template give now. */
  generate: async (applicationSet: ApplicationSet, signal?: AbortSignal) =>
    (await change<{ applications?: Application[] | null }>("POST", "/api/v1/applicationsets/generate", { applicationSet }, {}, signal)).applications ?? [],
  create: (set: ApplicationSet) => change<ApplicationSet>("POST", "/api/v1/applicationsets", set, {}),
  /** Replaces one that exists, only that of the `resourceVersion` if one is given: labels and annotations are only added then. */
  replace: (set: ApplicationSet, resourceVersion?: string) => change<ApplicationSet>("POST", "/api/v1/applicationsets", set, { upsert: "true", resourceVersion }),
  remove: (id: AppName) => change<object>("DELETE", path(id), {}, { appsetNamespace: id.namespace }),
  /** What changes from now on, with what a list shows. */
  watch: (signal: AbortSignal, on: { open: () => void; message: (event: SetEvent) => void }) =>
    stream<SetEvent>(STREAM, { fields: ["result.type", ...inLists("result.applicationSet")].join(",") }, signal, on),
  /** Tells when one changes or is deleted, but not what changes. */
  watchOne: (id: AppName, signal: AbortSignal, on: { open: () => void; message: (event: { type?: string }) => void }) =>
    stream<{ type?: string }>(STREAM, { name: id.name, appSetNamespace: id.namespace, fields: "result.type" }, signal, on),
};
