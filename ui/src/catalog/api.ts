// Calls of the chart catalogue. What they preview is written with the calls of Applications.

import { ApiError, change, get } from "../api/client";
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
  problems?: ChartProblem[];
}

export interface ChartProblem {
  chart: string;
  version?: string;
  kind: string;
  reason: string;
}

export interface ChartRepository {
  namespace: string;
  name: string;
  url?: string;
  charts?: number;
  skipped?: number;
  problems?: ChartProblem[];
  syncedAt?: number;
  error?: string;
}

/** An AppRepository that is made. */
export interface NewRepository {
  name: string;
  url: string;
  type: string;
  ociRepositories: string[];
  username: string;
  password: string;
  interval: string;
}

export interface InstallRequest {
  chart: ChartName & { version: string };
  name: string;
  project: string;
  destServer: string;
  destNamespace: string;
  values: string;
  autoSync: boolean;
}

export interface InstallPreview {
  application: Application;
  manifests?: string;
  notes?: string[];
  /** Between the cluster and what would be applied. */
  difference?: string;
  compared?: boolean;
}

export interface Update {
  namespace: string;
  application: string;
  chart: string;
  version: string;
  newest?: string;
  originGone?: boolean;
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
  /** Those that the Application would have. */
  values?: string;
  versions?: string[];
  /** Of the new version; none if it cannot be rendered. */
  manifests?: string;
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

type Post = (path: string, body: object) => Promise<InstallPreview>;
const post: Post = (path, body) => change("POST", path, body);

/** What is in the cluster is only for those who may see the Application; the others get the manifests alone. */
export async function previewInstall(request: InstallRequest, ask: Post = post): Promise<InstallPreview> {
  try {
    return await ask(`${BASE}/install`, { ...request, compare: true });
  } catch (e) {
    if (!(e instanceof ApiError && e.status === 403)) throw e;
    const preview = await ask(`${BASE}/install`, request);
    return { ...preview, notes: [...(preview.notes ?? []), `What it would change is not known: ${e.message}`] };
  }
}

export const catalog = {
  search: (f: Filter, pageToken: string, signal?: AbortSignal) => {
    const query = { query: f.query, repositories: f.repository, categories: f.category, keywords: f.keyword, pageToken };
    return get<Found>(`${BASE}/charts`, query, signal);
  },
  chart: (c: ChartName, version: string, signal?: AbortSignal) =>
    get<ChartDetails>(`${BASE}/charts/${part(c.namespace)}/${part(c.repository)}/${part(c.path)}`, { version }, signal),
  repositories: async (signal?: AbortSignal) => (await get<{ items?: ChartRepository[] }>(`${BASE}/repositories`, {}, signal)).items ?? [],
  sync: (r: ChartRepository) => change<object>("POST", `${BASE}/repositories/${part(r.namespace)}/${part(r.name)}/sync`),
  addRepository: (r: NewRepository) => change<object>("POST", `${BASE}/repositories`, r),
  removeRepository: (r: ChartRepository) => change<object>("DELETE", `${BASE}/repositories/${part(r.namespace)}/${part(r.name)}`),
  updates: async (signal?: AbortSignal) => (await get<{ items?: Update[] }>(`${BASE}/updates`, {}, signal)).items ?? [],
  previewUpgrade: (request: UpgradeRequest) => change<Upgrade>("POST", `${BASE}/upgrade`, request),
  application: (name: string, appNamespace: string, signal?: AbortSignal) => get<Application>(`/api/v1/applications/${part(name)}`, { appNamespace }, signal),
};
