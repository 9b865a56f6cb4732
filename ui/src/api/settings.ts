// Projects, repositories and clusters, as the page shows them.

import type { AppDetails } from "../model/parameters";
import { change, get } from "./client";
import type { Application, ObjectMeta, Source, SyncWindow } from "./types";

export interface Project {
  metadata: ObjectMeta;
  spec: {
    description?: string;
    sourceRepos?: string[];
    destinations?: { server?: string; name?: string; namespace?: string }[];
    roles?: { name: string }[];
    syncWindows?: SyncWindow[];
  };
}

export interface ConnectionState {
  status?: string;
  message?: string;
}

export interface Repository {
  repo: string;
  name?: string;
  type?: string;
  project?: string;
  connectionState?: ConnectionState;
}

export interface Cluster {
  server: string;
  name?: string;
  namespaces?: string[];
  project?: string;
  connectionState?: ConnectionState;
  serverVersion?: string;
  info?: { applicationsCount?: number; serverVersion?: string; connectionState?: ConnectionState };
}

interface List<T> {
  items?: T[] | null;
}

const list =
  <T>(path: string) =>
  async (signal?: AbortSignal) =>
    (await get<List<T>>(path, {}, signal)).items ?? [];

export const settings = {
  projects: list<Project>("/api/v1/projects"),
  repositories: list<Repository>("/api/v1/repositories"),
  clusters: list<Cluster>("/api/v1/clusters"),
  /** What a source of an Application offers: the parameters of its chart, its images. */
  details: ({ metadata, spec }: Application, source: Source, sourceIndex: number, signal?: AbortSignal) => {
    const body = { source, appName: metadata.name, appProject: spec.project, sourceIndex };
    return change<AppDetails>("POST", `/api/v1/repositories/${encodeURIComponent(source.repoURL)}/appdetails`, body, {}, signal);
  },
};
