// Projects, repositories, clusters, keys and accounts: their types and calls. Fields that are not named here stay as they are.

import type { AppDetails } from "../model/parameters";
import { change, get } from "./client";
import type { Application, Event, ObjectMeta, Source } from "./types";

export interface GroupKind {
  group?: string;
  kind?: string;
  name?: string;
}

export interface Token {
  id?: string;
  iat?: number | string;
  exp?: number | string;
}

export interface Role {
  name: string;
  description?: string;
  policies?: string[];
  groups?: string[];
  jwtTokens?: Token[];
}

export interface Window {
  kind?: string;
  schedule?: string;
  duration?: string;
  timeZone?: string;
  applications?: string[];
  namespaces?: string[];
  clusters?: string[];
  manualSync?: boolean;
  description?: string;
}

/** How the commits of some repositories are checked. */
export interface SourcePolicy {
  repos?: { url?: string }[];
  gpg?: { mode?: string; keys?: string[] };
}

export interface SourceIntegrity {
  git?: { policies?: SourcePolicy[] };
}

export interface ProjectSpec {
  description?: string;
  sourceRepos?: string[];
  sourceNamespaces?: string[];
  destinations?: { server?: string; name?: string; namespace?: string }[];
  clusterResourceWhitelist?: GroupKind[];
  clusterResourceBlacklist?: GroupKind[];
  /** None: all. */
  namespaceResourceWhitelist?: GroupKind[] | undefined;
  namespaceResourceBlacklist?: GroupKind[];
  orphanedResources?: { warn?: boolean; ignore?: GroupKind[] } | undefined;
  roles?: Role[];
  syncWindows?: Window[];
  signatureKeys?: { keyID?: string }[];
  sourceIntegrity?: SourceIntegrity | undefined;
  permitOnlyProjectScopedClusters?: boolean;
  [field: string]: unknown;
}

export interface Project {
  metadata: ObjectMeta;
  spec: ProjectSpec;
  status?: unknown;
}

export interface ConnectionState {
  status?: string;
  message?: string;
}

/** Of a repository or of a template. Secrets are sent, and never come back. */
export interface Credentials {
  type?: string;
  username?: string;
  password?: string;
  bearerToken?: string;
  sshPrivateKey?: string;
  tlsClientCertData?: string;
  tlsClientCertKey?: string;
  githubAppPrivateKey?: string;
  githubAppID?: number | string;
  githubAppInstallationID?: number | string;
  githubAppEnterpriseBaseUrl?: string;
  gcpServiceAccountKey?: string;
  useAzureWorkloadIdentity?: boolean;
  azureServicePrincipalClientId?: string;
  azureServicePrincipalClientSecret?: string;
  azureServicePrincipalTenantId?: string;
  azureActiveDirectoryEndpoint?: string;
  forceHttpBasicAuth?: boolean;
  enableOCI?: boolean;
  insecureOCIForceHttp?: boolean;
  proxy?: string;
  noProxy?: string;
}

export interface Repository extends Credentials {
  repo: string;
  name?: string;
  project?: string;
  insecure?: boolean;
  enableLfs?: boolean;
  inheritedCreds?: boolean;
  connectionState?: ConnectionState;
}

export interface Template extends Credentials {
  url: string;
}

/** How the control plane signs in to a cluster. Secrets are sent, and never come back; bytes are in base64. */
export interface ClusterConfig {
  username?: string;
  password?: string;
  bearerToken?: string;
  tlsClientConfig?: { insecure?: boolean; serverName?: string; certData?: string; keyData?: string; caData?: string };
  proxyUrl?: string;
  /** What no form shows, such as the way to sign in at AWS. */
  [field: string]: unknown;
}

export interface Cluster {
  server: string;
  config?: ClusterConfig;
  name?: string;
  namespaces?: string[];
  clusterResources?: boolean;
  project?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  connectionState?: ConnectionState;
  serverVersion?: string;
  info?: { applicationsCount?: number; serverVersion?: string; connectionState?: ConnectionState };
}

export interface Certificate {
  serverName: string;
  certType: string;
  certSubType?: string;
  /** In base64. */
  certData?: string;
  certInfo?: string;
}

export interface SigningKey {
  keyID: string;
  fingerprint?: string;
  owner?: string;
  trust?: string;
  subType?: string;
}

export interface Account {
  name: string;
  enabled?: boolean;
  capabilities?: string[];
  tokens?: { id: string; issuedAt?: number | string; expiresAt?: number | string }[];
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
  templates: list<Template>("/api/v1/repocreds"),
  certificates: list<Certificate>("/api/v1/certificates"),
  signingKeys: list<SigningKey>("/api/v1/gpgkeys"),
  accounts: list<Account>("/api/v1/account"),
  /** The names of the config management plugins that are there. */
  plugins: async (signal?: AbortSignal) => ((await get<{ plugins?: { name?: string }[] | null }>("/api/v1/settings/plugins", {}, signal)).plugins ?? []).map(({ name }) => name ?? "").filter(Boolean),
  /** What a source of an Application offers: the parameters of its chart, its images. */
  details: ({ metadata, spec }: Application, source: Source, sourceIndex: number, signal?: AbortSignal) => {
    const body = { source, appName: metadata.name, appProject: spec.project, sourceIndex };
    return change<AppDetails>("POST", `/api/v1/repositories/${encodeURIComponent(source.repoURL)}/appdetails`, body, {}, signal);
  },
};

const at = (path: string, ...parts: string[]) => [path, ...parts.map(encodeURIComponent)].join("/");
const REPOSITORIES = "/api/v1/repositories";
const TEMPLATES = "/api/v1/repocreds";
const PROJECTS = "/api/v1/projects";
const CLUSTERS = "/api/v1/clusters";
const ACCOUNTS = "/api/v1/account";

/** What the page changes. */
export const manage = {
  /** The server connects to it first. */
  connect: (repository: Repository) => change<Repository>("POST", REPOSITORIES, repository),
  changeRepository: (repository: Repository) => change<Repository>("PUT", at(REPOSITORIES, repository.repo), repository),
  disconnect: ({ repo, project }: Repository) => change<object>("DELETE", at(REPOSITORIES, repo), {}, { appProject: project }),
  /** Connects again, whatever was found before. */
  test: async ({ repo, project }: Repository) => (await get<Repository>(at(REPOSITORIES, repo), { appProject: project, forceRefresh: "true" })).connectionState,
  createTemplate: (template: Template) => change<Template>("POST", TEMPLATES, template),
  changeTemplate: (template: Template) => change<Template>("PUT", at(TEMPLATES, template.url), template),
  removeTemplate: ({ url }: Template) => change<object>("DELETE", at(TEMPLATES, url)),
  /** The server connects to it first. */
  addCluster: (cluster: Cluster) => change<Cluster>("POST", CLUSTERS, cluster),
  /** Only these fields. Without any the server would replace the whole cluster, so nothing is sent then. */
  changeCluster: async ({ server }: Cluster, fields: Partial<Cluster>) => {
    const updatedFields = Object.keys(fields);
    if (updatedFields.length > 0) await change<Cluster>("PUT", at(CLUSTERS, server), { ...fields, server }, { updatedFields });
  },
  removeCluster: ({ server }: Cluster) => change<object>("DELETE", at(CLUSTERS, server)),
  invalidate: ({ server }: Cluster) => change<Cluster>("POST", `${at(CLUSTERS, server)}/invalidate-cache`),
  project: (name: string, signal?: AbortSignal) => get<Project>(at(PROJECTS, name), {}, signal),
  projectEvents: async (name: string, signal?: AbortSignal) => (await get<{ items?: Event[] | null }>(at(PROJECTS, name, "events"), {}, signal)).items ?? [],
  createProject: (project: Project) => change<Project>("POST", PROJECTS, { project }),
  changeProject: (project: Project) => change<Project>("PUT", at(PROJECTS, project.metadata.name), { project }),
  removeProject: (name: string) => change<object>("DELETE", at(PROJECTS, name)),
  createRoleToken: (project: string, role: string, id: string, expiresIn: number) => change<{ token: string }>("POST", `${at(PROJECTS, project, "roles", role)}/token`, { project, role, id, expiresIn }),
  removeRoleToken: (project: string, role: string, { iat, id }: Token) => change<object>("DELETE", at(PROJECTS, project, "roles", role, "token", String(iat ?? 0)), {}, { id }),
  trust: (items: Certificate[]) => change<unknown>("POST", "/api/v1/certificates", { items }),
  distrust: ({ serverName, certType, certSubType }: Certificate) =>
    // All certificates of a server are one entry.
    change<unknown>("DELETE", "/api/v1/certificates", {}, { hostNamePattern: serverName, certType, certSubType: certType === "ssh" ? certSubType : undefined }),
  addSigningKeys: (keyData: string) => change<{ created?: { items?: SigningKey[] }; skipped?: string[] }>("POST", "/api/v1/gpgkeys", { keyData }),
  removeSigningKey: (keyID: string) => change<object>("DELETE", "/api/v1/gpgkeys", {}, { keyID }),
  changePassword: (name: string, currentPassword: string, newPassword: string) => change<object>("PUT", `${ACCOUNTS}/password`, { name, currentPassword, newPassword }),
  createToken: (name: string, id: string, expiresIn: number) => change<{ token: string }>("POST", `${at(ACCOUNTS, name)}/token`, { name, id, expiresIn }),
  removeToken: (name: string, id: string) => change<object>("DELETE", at(ACCOUNTS, name, "token", id)),
};
