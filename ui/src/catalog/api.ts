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
  addRepository: (r: NewRepository) => change<object>("POST", `${BASE}/repositories`, r),
  removeRepository: (r: ChartRepository) => change<object>("DELETE", `${BASE}/repositories/${part(r.namespace)}/${part(r.name)}`),
  updates: async (signal?: AbortSignal) => (await get<{ items?: Update[] }>(`${BASE}/updates`, {}, signal)).items ?? [],
  previewInstall: (request: InstallRequest) => change<{ application: Application; manifests?: string; notes?: string[] }>("POST", `${BASE}/install`, request),
  create: (application: Application) => change<Application>("POST", "/api/v1/applications", application),
  previewUpgrade: (request: UpgradeRequest) => change<Upgrade>("POST", `${BASE}/upgrade`, request),
  application: (name: string, appNamespace: string, signal?: AbortSignal) => get<Application>(`/api/v1/applications/${part(name)}`, { appNamespace }, signal),
  /** Refused with 409 unless the Application still has this version. */
  update: (application: Application, resourceVersion?: string) =>
    change<Application>("PUT", `/api/v1/applications/${part(application.metadata.name)}`, application, { resourceVersion }),
};

/** What users enter of an Application, part by part. */
const entered = ({ metadata, spec }: Application): Record<string, unknown> => {
  // The control plane asks for refreshes with an annotation.
  const annotations = Object.entries(metadata.annotations ?? {}).filter(([key]) => !key.startsWith("argocd.argoproj.io/refresh"));
  return { source: spec.source, sources: spec.sources, spec, labels: metadata.labels ?? {}, annotations: annotations.sort() };
};

/** What users changed; the status changes all the time. */
export const changedParts = (before: Application, now: Application) => {
  const [old, current] = [entered(before), entered(now)];
  return Object.keys(old).filter((key) => JSON.stringify(old[key]) !== JSON.stringify(current[key]));
};

const TRIES = 10;

/**
 * Writes an Application as it was shown, if nobody changed what it was made of. `look` shows that again, and what it shows is the version that
 * is written: a change after it is never overwritten.
 */
export async function write(before: Application, wanted: Application, look: () => Promise<Application>, update = catalog.update) {
  for (let tries = 1; ; tries++) {
    const now = await look();
    const changed = changedParts(before, now);
    if (changed.length > 0) throw new Error(`${before.metadata.name} was changed meanwhile (${changed.join(", ")}): look again`);
    try {
      return await update(wanted, now.metadata.resourceVersion);
    } catch (e) {
      // Mostly its status: the next look says.
      if (!(e instanceof ApiError && e.status === 409) || tries >= TRIES) throw e;
    }
  }
}
