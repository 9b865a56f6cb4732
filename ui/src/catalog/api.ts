// Calls of the chart catalogue. What they preview is written with the calls of Applications.

import { change, get } from "../api/client";
import type { Application } from "../api/types";
import type { ChartName } from "../router";

export interface ChartSummary extends ChartName {
  name: string;
  version: string;
  appVersion?: string;
  description?: string;
  category?: string;
  keywords?: string[];
  deprecated?: boolean;
  versions?: number;
  /** PNG, in base64. */
  icon?: string;
}

export interface Facet {
  value: string;
  count: number;
}

export interface Found {
  items?: ChartSummary[];
  total?: number;
  repositories?: Facet[];
  categories?: Facet[];
  keywords?: Facet[];
  nextPageToken?: string;
}

export interface Filter {
  query: string;
  repository: string;
  category: string;
  keyword: string;
}

export interface Version {
  version: string;
  appVersion?: string;
  created?: string;
  digest?: string;
}

export interface ChartDetails {
  chart: ChartSummary;
  repoUrl?: string;
  home?: string;
  sources?: string[];
  maintainers?: string[];
  versions?: Version[];
  shown: Version;
  readme?: string;
  values?: string;
  schema?: string;
  additionalValues?: { name: string; content: string }[];
  missing?: string;
}

export interface ChartRepository {
  namespace: string;
  name: string;
  url?: string;
  charts?: number;
  skipped?: number;
  syncedAt?: number;
  error?: string;
}

export interface InstallRequest {
  chart: ChartName & { version: string };
  name: string;
  project: string;
  destNamespace: string;
  values: string;
  autoSync: boolean;
}

export interface Update {
  namespace: string;
  application: string;
  chart: string;
  version: string;
  newest: string;
}

export interface Conflict {
  path: string;
  old?: string;
  ours?: string;
  theirs?: string;
  decided?: boolean;
}

export interface Upgrade {
  application: Application;
  from: string;
  to: string;
  conflicts?: Conflict[];
  takenFromNew?: string[];
  gone?: string[];
  removedInChart?: string[];
  unknownToChart?: string[];
  notes?: string[];
  difference?: string;
  compared?: boolean;
  values?: string;
  versions?: string[];
}

export interface UpgradeRequest {
  name: string;
  appNamespace: string;
  version: string;
  prefer: string;
  values: string;
}

const BASE = "/api/v1/catalog";
const part = encodeURIComponent;

export const catalog = {
  search: (f: Filter, pageToken: string, signal?: AbortSignal) => {
    const query = { query: f.query, repositories: f.repository, categories: f.category, keywords: f.keyword, pageToken };
    return get<Found>(`${BASE}/charts`, query, signal);
  },
  chart: (c: ChartName, version: string, signal?: AbortSignal) =>
    get<ChartDetails>(`${BASE}/charts/${part(c.namespace)}/${part(c.repository)}/${part(c.path)}`, { version }, signal),
  repositories: async (signal?: AbortSignal) => (await get<{ items?: ChartRepository[] }>(`${BASE}/repositories`, {}, signal)).items ?? [],
  sync: (r: ChartRepository) => change<object>("POST", `${BASE}/repositories/${part(r.namespace)}/${part(r.name)}/sync`),
  updates: async (signal?: AbortSignal) => (await get<{ items?: Update[] }>(`${BASE}/updates`, {}, signal)).items ?? [],
  previewInstall: (request: InstallRequest) => change<{ application: Application; manifests?: string }>("POST", `${BASE}/install`, request),
  create: (application: Application) => change<Application>("POST", "/api/v1/applications", application),
  previewUpgrade: (request: UpgradeRequest) => change<Upgrade>("POST", `${BASE}/upgrade`, request),
  application: (name: string, appNamespace: string, signal?: AbortSignal) => get<Application>(`/api/v1/applications/${part(name)}`, { appNamespace }, signal),
  update: (application: Application) => change<Application>("PUT", `/api/v1/applications/${part(application.metadata.name)}`, application),
};

const entered = ({ metadata, spec }: Application) => {
  // The control plane asks for refreshes with an annotation.
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => !key.startsWith("argocd.argoproj.io/refresh"));
  return JSON.stringify([metadata.labels ?? {}, annotations.sort(), spec]);
};

/** Whether what users enter is the same; the status changes all the time. */
export const isUnchanged = (before: Application, now: Application) => entered(before) === entered(now);
