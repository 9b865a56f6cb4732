// Calls of the API. The session is an HttpOnly cookie of the server, so the page never holds a token.

import { EventParser, type Message } from "./lines";
import { positioned, type Revision } from "../model/revisions";
import { retryOf } from "../model/sync";
import { ROOT } from "../root";
import type { Application, ApplicationDelta, ApplicationEvent, ApplicationList, ApplicationTree, ResourceDiff, ResourceRef, RevisionMetadata, SyncWindows } from "./types";

export class ApiError extends Error {
  readonly status: number;
  constructor(status: number, message: string) {
    super(message);
    this.status = status;
  }
}

/** A list is a field that is there several times. */
export type Query = Record<string, string | readonly string[] | undefined>;

/** An Application is known by its name and its own namespace; an empty namespace is the control plane's. */
export interface AppName {
  name: string;
  namespace: string;
}

let onSignedOut: () => void = () => {};

/** Called whenever the server says that there is no session. */
export function setSignedOutHandler(handler: () => void) {
  onSignedOut = handler;
}

export function url(path: string, query: Query): string {
  const set = Object.entries(query).flatMap(([name, value]) => [value ?? []].flat().filter(Boolean).map((one) => [name, one]));
  return ROOT + (set.length > 0 ? `${path}?${new URLSearchParams(set)}` : path);
}

async function failure(response: Response): Promise<ApiError> {
  const text = await response.text().catch(() => "");
  let message = text.slice(0, 500).trim() || response.statusText || `HTTP ${response.status}`;
  try {
    const body = JSON.parse(text) as { message?: string; error?: string };
    message = body.message || body.error || message;
  } catch {
    // Not JSON: the text itself says it.
  }
  return new ApiError(response.status, message);
}

async function send(path: string, query: Query, init: RequestInit): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url(path, query), { ...init, credentials: "same-origin" });
  } catch (e) {
    if (init.signal?.aborted) throw e;
    throw new ApiError(0, "The server does not answer.");
  }
  if (response.ok) return response;
  const error = await failure(response);
  if (response.status === 401 && path !== "/api/v1/session") onSignedOut();
  throw error;
}

export async function get<T>(path: string, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const response = await send(path, query, { signal: signal ?? null });
  return (await response.json()) as T;
}

export async function change<T>(method: string, path: string, body: unknown = {}, query: Query = {}, signal?: AbortSignal): Promise<T> {
  const headers = { "Content-Type": "application/json" };
  const response = await send(path, query, { method, headers, body: JSON.stringify(body), signal: signal ?? null });
  return (await response.json()) as T;
}

/** Waits for messages until the stream ends or fails; both are for the caller to repair. */
export async function stream<T>(path: string, query: Query, signal: AbortSignal, on: { open: () => void; message: (m: T) => void }) {
  const response = await send(path, query, { signal, headers: { Accept: "text/event-stream" } });
  on.open();
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  const parser = new EventParser();
  try {
    for (;;) {
      const piece = await reader?.read();
      if (!piece || piece.done) return;
      for (const data of parser.push(piece.value)) {
        const message = JSON.parse(data) as Message<T>;
        if ("error" in message) throw new ApiError(message.error.http_code ?? 0, message.error.message ?? "the stream failed");
        on.message(message.result);
      }
    }
  } finally {
    // The server goes on sending to one that only stops reading.
    void reader?.cancel().catch(() => undefined);
  }
}

export const app = (id: AppName) => `/api/v1/applications/${encodeURIComponent(id.name)}`;
const streamed = (id: AppName) => `/api/v1/stream/applications/${encodeURIComponent(id.name)}`;

/** How one can sign in. */
export interface AuthSettings {
  oidcConfig?: { name?: string; issuer?: string };
  dexConfig?: { connectors?: { name?: string }[] };
  userLoginsDisabled?: boolean;
  /** Whether there are terminals. */
  execEnabled?: boolean;
  /** Those of Kustomize that Applications may choose. */
  kustomizeVersions?: string[] | null;
  /** Where the control plane is. */
  controllerNamespace?: string;
  uiBannerContent?: string;
  uiBannerURL?: string;
  uiBannerPermanent?: boolean;
  /** A style sheet of whoever runs the control plane. */
  uiCssURL?: string;
  help?: { chatUrl?: string; chatText?: string; binaryUrls?: Record<string, string> | null };
}

/** What a list shows of an Application. A token is for these fields only. Annotations may be longer than all the rest, so they come only when somebody filters by them. */
const inLists = (annotations: boolean) => [
  "result.type",
  "result.delta",
  ...[
    ...["name", "namespace", "uid", "resourceVersion", "labels", "deletionTimestamp", ...(annotations ? ["annotations"] : [])].map((name) => `metadata.${name}`),
    ...["project", "source", "sources", "sourceHydrator", "destination", "syncPolicy"].map((name) => `spec.${name}`),
    ...["sync", "health", "history", "operationState.phase", "operationState.message", "operationState.finishedAt"].map((name) => `status.${name}`),
  ].map((path) => `result.application.${path}`),
].join(",");

export interface SyncOptions {
  /** Empty: the Application's own. */
  revision: Revision;
  prune: boolean;
  dryRun: boolean;
  force: boolean;
  applyOnly: boolean;
  /** Undefined: those of the Application's policy. */
  syncOptions: string[] | undefined;
  /** Undefined: all of them. */
  resources: ResourceRef[] | undefined;
  /** So often it is tried again; 0: as the Application says. */
  retries: number;
}

/** What is deleted along with an Application. */
export type Cascade = "foreground" | "background" | "none";

export const api = {
  login: (username: string, password: string) => change<{ token: string }>("POST", "/api/v1/session", { username, password }),
  logout: () => change<object>("DELETE", "/api/v1/session"),
  user: () => get<{ loggedIn?: boolean; username?: string; iss?: string; groups?: string[] | null }>("/api/v1/session/userinfo"),
  settings: () => get<AuthSettings>("/api/v1/settings"),
  version: () => get<Record<string, unknown>>("/api/version"),
  list: (signal?: AbortSignal) => get<ApplicationList>("/api/v1/applications", {}, signal),
  application: (id: AppName, signal?: AbortSignal) => get<Application>(app(id), { appNamespace: id.namespace }, signal),
  /** `hard` also forgets the manifests that were rendered before. */
  refresh: (id: AppName, how: "normal" | "hard" = "normal") => get<Application>(app(id), { appNamespace: id.namespace, refresh: how }),
  create: (application: Application) => change<Application>("POST", "/api/v1/applications", application),
  /** Refused with 409 unless the Application still has this version. */
  update: (application: Application, resourceVersion?: string) =>
    change<Application>("PUT", `/api/v1/applications/${encodeURIComponent(application.metadata.name)}`, application, { resourceVersion }),
  remove: (id: AppName, cascade: Cascade) => {
    const policy = cascade === "none" ? { cascade: "false" } : { cascade: "true", propagationPolicy: cascade };
    return change<object>("DELETE", app(id), {}, { appNamespace: id.namespace, ...policy });
  },
  rollback: (id: AppName, to: number, prune: boolean) =>
    change<Application>("POST", `${app(id)}/rollback`, { appNamespace: id.namespace || undefined, id: to, prune }),
  revision: (id: AppName, revision: string, signal?: AbortSignal) =>
    get<RevisionMetadata>(`${app(id)}/revisions/${encodeURIComponent(revision)}/metadata`, { appNamespace: id.namespace }, signal),
  syncWindows: (id: AppName, signal?: AbortSignal) => get<SyncWindows>(`${app(id)}/syncwindows`, { appNamespace: id.namespace }, signal),
  sync: (id: AppName, o: SyncOptions) =>
    change<Application>("POST", `${app(id)}/sync`, {
      appNamespace: id.namespace || undefined,
      ...(typeof o.revision === "string" ? { revision: o.revision || undefined } : positioned(o.revision)),
      prune: o.prune,
      dryRun: o.dryRun,
      strategy: o.applyOnly ? { apply: { force: o.force } } : { hook: { force: o.force } },
      syncOptions: o.syncOptions && { items: o.syncOptions },
      retryStrategy: retryOf(o.retries),
      resources: o.resources?.map(({ group, kind, namespace, name }) => ({ group, kind, namespace, name })),
    }),
  terminate: (id: AppName) => change<object>("DELETE", `${app(id)}/operation`, {}, { appNamespace: id.namespace }),
  managed: async (id: AppName, r: ResourceRef, signal?: AbortSignal) => {
    const query = { appNamespace: id.namespace, group: r.group, kind: r.kind, namespace: r.namespace, name: r.name };
    const found = await get<{ items?: ResourceDiff[] | null }>(`${app(id)}/managed-resources`, query, signal);
    const same = (d: ResourceDiff) => (d.group ?? "") === (r.group ?? "") && (d.namespace ?? "") === (r.namespace ?? "");
    return found.items?.find(same);
  },
  resource: async (id: AppName, r: ResourceRef, signal?: AbortSignal) => {
    const query = { appNamespace: id.namespace, group: r.group, version: r.version, kind: r.kind, namespace: r.namespace, resourceName: r.name };
    const found = await get<{ manifest?: string }>(`${app(id)}/resource`, query, signal);
    return found.manifest ?? "";
  },
  /** All of them, then only what changes: with `resume`, what has changed since. */
  watchAll: (resume: string, annotations: boolean, signal: AbortSignal, on: { open: () => void; message: (m: ApplicationDelta) => void }) =>
    stream<ApplicationDelta>("/api/v1/stream/applications", { delta: "true", resume, fields: inLists(annotations) }, signal, on),
  watch: (id: AppName, signal: AbortSignal, on: { open: () => void; message: (m: ApplicationEvent) => void }) =>
    stream<ApplicationEvent>("/api/v1/stream/applications", { name: id.name, appNamespace: id.namespace }, signal, on),
  watchTree: (id: AppName, signal: AbortSignal, on: { open: () => void; message: (m: ApplicationTree) => void }) =>
    stream<ApplicationTree>(`${streamed(id)}/resource-tree`, { appNamespace: id.namespace }, signal, on),
};
