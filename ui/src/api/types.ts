// The parts of the API's messages that the page draws. Names are the API's; every field may be absent.

export interface ObjectMeta {
  name: string;
  namespace?: string;
  resourceVersion?: string;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

export interface Source {
  repoURL: string;
  path?: string;
  chart?: string;
  targetRevision?: string;
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

export interface Application {
  metadata: ObjectMeta;
  spec: {
    project?: string;
    source?: Source;
    sources?: Source[];
    destination?: { server?: string; name?: string; namespace?: string };
    syncPolicy?: { automated?: { enabled?: boolean; prune?: boolean; selfHeal?: boolean } };
  };
  status?: {
    sync?: { status?: string; revision?: string; revisions?: string[] };
    health?: { status?: string; message?: string };
    resources?: ResourceStatus[];
    conditions?: Condition[];
    operationState?: OperationState;
    history?: { revision?: string; deployedAt?: string; id?: number; source?: Source }[];
    reconciledAt?: string;
    summary?: { images?: string[]; externalURLs?: string[] };
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
  networkingInfo?: { externalURLs?: string[] };
}

export interface ApplicationTree {
  nodes?: ResourceNode[] | null;
  orphanedNodes?: ResourceNode[] | null;
  unreadableKinds?: UnreadableKind[] | null;
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
}
