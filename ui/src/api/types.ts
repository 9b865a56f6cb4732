// The parts of the API's messages that the page draws. Names are the API's; every field may be absent.

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  resourceVersion?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  finalizers?: string[];
  ownerReferences?: { kind: string; name: string; controller?: boolean }[];
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

export interface HelmSource {
  valueFiles?: string[];
  values?: string;
  valuesObject?: unknown;
  parameters?: { name: string; value?: string; forceString?: boolean }[];
  fileParameters?: { name: string; path?: string }[];
  releaseName?: string;
  skipCrds?: boolean;
  ignoreMissingValueFiles?: boolean;
  skipTests?: boolean;
  skipSchemaValidation?: boolean;
  passCredentials?: boolean;
  namespace?: string;
  version?: string;
  kubeVersion?: string;
  apiVersions?: string[];
}

export interface KustomizeSource {
  images?: string[];
  namePrefix?: string;
  nameSuffix?: string;
  commonLabels?: Record<string, string>;
  commonAnnotations?: Record<string, string>;
  namespace?: string;
  replicas?: { name: string; count?: number | string }[];
  components?: string[];
  patches?: KustomizePatch[];
  commonAnnotationsEnvsubst?: boolean;
  forceCommonLabels?: boolean;
  forceCommonAnnotations?: boolean;
  labelWithoutSelector?: boolean;
  labelIncludeTemplates?: boolean;
  ignoreMissingComponents?: boolean;
  version?: string;
  kubeVersion?: string;
  apiVersions?: string[];
}

export interface KustomizePatch {
  path?: string;
  patch?: string;
  target?: { group?: string; version?: string; kind?: string; name?: string; namespace?: string; labelSelector?: string; annotationSelector?: string };
  options?: Record<string, boolean>;
}

export interface PluginParameter {
  name?: string;
  string?: string;
  map?: Record<string, string>;
  array?: string[];
}

export interface PluginSource {
  name?: string;
  env?: { name: string; value?: string }[];
  parameters?: PluginParameter[];
}

export interface JsonnetVar {
  name: string;
  value?: string;
  /** The value is an expression, not a text. */
  code?: boolean;
}

export interface DirectorySource {
  recurse?: boolean;
  jsonnet?: { extVars?: JsonnetVar[]; tlas?: JsonnetVar[]; libs?: string[] } | undefined;
  include?: string;
  exclude?: string;
}

export interface Source {
  repoURL: string;
  path?: string;
  chart?: string;
  targetRevision?: string;
  helm?: HelmSource | undefined;
  kustomize?: KustomizeSource | undefined;
  directory?: DirectorySource | undefined;
  plugin?: PluginSource | undefined;
  ref?: string;
}

/** Where a hydrator renders from, and where it writes to. */
export interface SourceHydrator {
  drySource?: Omit<Source, "chart" | "ref">;
  syncSource?: { targetBranch?: string; path?: string; repoURL?: string };
  /** Where it writes, if somebody else is to move the branch of `syncSource`. */
  hydrateTo?: { targetBranch?: string } | undefined;
}

/** One run of a hydrator. */
export interface Hydration {
  phase?: string;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
  drySHA?: string;
  hydratedSHA?: string;
}

export interface Condition {
  type: string;
  message: string;
  lastTransitionTime?: string;
}

export interface ResourceStatus {
  group?: string;
  version?: string;
  kind: string;
  namespace?: string;
  name: string;
  status?: string;
  health?: { status?: string; message?: string };
  hook?: boolean;
  requiresPruning?: boolean;
  syncWave?: number;
}

export interface ResourceResult {
  group?: string;
  kind: string;
  namespace?: string;
  name: string;
  status?: string;
  message?: string;
  hookType?: string;
  hookPhase?: string;
  syncPhase?: string;
}

export interface OperationState {
  phase?: string;
  message?: string;
  startedAt?: string;
  finishedAt?: string;
  retryCount?: number;
  operation?: { sync?: { revision?: string; dryRun?: boolean }; initiatedBy?: { username?: string; automated?: boolean } };
  syncResult?: { revision?: string; resources?: ResourceResult[] };
}

/** One of the syncs that an Application's history keeps. */
export interface Deployed {
  id?: number;
  revision?: string;
  revisions?: string[];
  deployedAt?: string;
  initiatedBy?: { username?: string; automated?: boolean };
  source?: Source;
  sources?: Source[];
}

export interface RevisionMetadata {
  author?: string;
  date?: string;
  message?: string;
  tags?: string[];
}

export interface SyncWindow {
  kind?: string;
  schedule?: string;
  duration?: string;
  manualSync?: boolean;
}

export interface SyncWindows {
  canSync?: boolean;
  activeWindows?: SyncWindow[];
  assignedWindows?: SyncWindow[];
}

export interface Application {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
  spec: {
    project?: string;
    source?: Source;
    sources?: Source[];
    sourceHydrator?: SourceHydrator | undefined;
    destination?: { server?: string; name?: string; namespace?: string };
    syncPolicy?: { automated?: { enabled?: boolean; prune?: boolean; selfHeal?: boolean }; syncOptions?: string[] };
  };
  status?: {
    sync?: { status?: string; revision?: string; revisions?: string[] };
    health?: { status?: string; message?: string };
    resources?: ResourceStatus[];
    conditions?: Condition[];
    operationState?: OperationState;
    history?: Deployed[];
    reconciledAt?: string;
    summary?: { images?: string[]; externalURLs?: string[] };
    sourceHydrator?: { currentOperation?: Hydration; lastSuccessfulOperation?: Hydration };
  };
  operation?: unknown;
}

export interface ApplicationList {
  metadata?: { resourceVersion?: string };
  items?: Application[] | null;
}

export interface ApplicationEvent {
  type: "ADDED" | "MODIFIED" | "DELETED";
  application: Application;
}

/** An event of a watch that sends only what changes. */
export interface ApplicationDelta {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "EXPIRED";
  /** Whole when it is added; otherwise what names it, and what `changed` names. */
  application: Application;
  delta?: { resume?: string; changed?: string[] };
}

export interface ResourceRef {
  group?: string;
  version?: string;
  kind: string;
  namespace?: string;
  name: string;
  uid?: string;
}

export interface ResourceNode extends ResourceRef {
  parentRefs?: ResourceRef[];
  info?: { name: string; value: string }[];
  resourceVersion?: string;
  images?: string[];
  health?: { status?: string; message?: string };
  createdAt?: string;
  networkingInfo?: {
    externalURLs?: string[];
    /** What it sends requests to: by name, or by labels. */
    targetRefs?: ResourceRef[];
    targetLabels?: Record<string, string>;
    labels?: Record<string, string>;
    ingress?: { hostname?: string; ip?: string }[];
  };
}

export interface ApplicationTree {
  nodes?: ResourceNode[] | null;
  orphanedNodes?: ResourceNode[] | null;
  unreadableKinds?: UnreadableKind[] | null;
  /** The nodes of the cluster on which its Pods run. */
  hosts?: HostInfo[] | null;
}

/** Amounts are thousandths; numbers of 64 bits may come as texts. */
export interface HostInfo {
  name?: string;
  resourcesInfo?: { resourceName?: string; requestedByApp?: number | string; requestedByNeighbors?: number | string; capacity?: number | string }[] | null;
}

// A kind of which objects may be missing from the tree.
export interface UnreadableKind {
  group?: string;
  kind: string;
  message?: string;
}

export interface ResourceDiff extends ResourceRef {
  targetState?: string;
  liveState?: string;
  normalizedLiveState?: string;
  predictedLiveState?: string;
  modified?: boolean;
  hook?: boolean;
}

export interface Event {
  metadata?: ObjectMeta;
  involvedObject?: { kind?: string; name?: string };
  type?: string;
  reason?: string;
  message?: string;
  count?: number;
  firstTimestamp?: string;
  lastTimestamp?: string;
  eventTime?: string;
}

export interface LogLine {
  content?: string;
  timeStampStr?: string;
  podName?: string;
  last?: boolean;
}

export interface ResourceAction {
  name: string;
  displayName?: string;
  disabled?: boolean;
  params?: { name: string }[];
}

/** A link that the server makes of its settings (`application.links`, `resource.links`). */
export interface DeepLink {
  title?: string;
  url?: string;
  description?: string;
}
