//! Names in the public interface: annotations, labels, finalizers, field managers.

pub const GROUP: &str = "argoproj.io";
pub const VERSION: &str = "v1alpha1";
pub const API_VERSION: &str = "argoproj.io/v1alpha1";
pub const IN_CLUSTER: &str = "https://kubernetes.default.svc";
/// The name of that cluster.
pub const IN_CLUSTER_NAME: &str = "in-cluster";
/// The field manager of server-side applies.
pub const FIELD_MANAGER: &str = "argocd-controller";

pub const REFRESH: &str = "argocd.argoproj.io/refresh";
/// Asks that the generators of an ApplicationSet are asked again.
pub const APPLICATION_SET_REFRESH: &str = "argocd.argoproj.io/application-set-refresh";
/// Beside it: tells two requests apart.
pub const APPLICATION_SET_REFRESH_TIMESTAMP: &str =
    "argocd.argoproj.io/application-set-refresh-timestamp";
/// When the refresh was requested; distinguishes one request from the next.
pub const REFRESH_TIMESTAMP: &str = "argocd.argoproj.io/refresh-timestamp";
pub const HYDRATE: &str = "argocd.argoproj.io/hydrate";
/// When that was requested.
pub const HYDRATE_TIMESTAMP: &str = "argocd.argoproj.io/hydrate-timestamp";
pub const TRACKING_ID: &str = "argocd.argoproj.io/tracking-id";
pub const INSTALLATION_ID: &str = "argocd.argoproj.io/installation-id";
pub const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
pub const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
pub const SYNC_WAVE: &str = "argocd.argoproj.io/sync-wave";
pub const HOOK: &str = "argocd.argoproj.io/hook";
pub const HOOK_DELETE_POLICY: &str = "argocd.argoproj.io/hook-delete-policy";
pub const HOOK_FINALIZER: &str = "argocd.argoproj.io/hook-finalizer";
pub const DELETION_APPROVED: &str = "argocd.argoproj.io/deletion-approved";
pub const IGNORE_HEALTHCHECK: &str = "argocd.argoproj.io/ignore-healthcheck";
/// On an Application: the field manager whose fields are migrated to server-side apply, instead of
/// kubectl's.
pub const MIGRATION_MANAGER: &str = "argocd.argoproj.io/client-side-apply-migration-manager";
pub const SKIP_RECONCILE: &str = "argocd.argoproj.io/skip-reconcile";
pub const MANIFEST_GENERATE_PATHS: &str = "argocd.argoproj.io/manifest-generate-paths";
pub const RESOURCES_FINALIZER: &str = "resources-finalizer.argocd.argoproj.io";
pub const RESOURCES_FINALIZER_FOREGROUND: &str =
    "resources-finalizer.argocd.argoproj.io/foreground";
pub const RESOURCES_FINALIZER_BACKGROUND: &str =
    "resources-finalizer.argocd.argoproj.io/background";
pub const PRE_DELETE_FINALIZER: &str = "pre-delete-finalizer.argocd.argoproj.io";
pub const POST_DELETE_FINALIZER: &str = "post-delete-finalizer.argocd.argoproj.io";
pub const INSTANCE_LABEL: &str = "app.kubernetes.io/instance";
pub const SECRET_TYPE_LABEL: &str = "argocd.argoproj.io/secret-type";
/// Of Secrets that Argo CD does not know and that are no settings.
pub const OWN_SECRET_TYPE_LABEL: &str = "tiphys.dev/secret-type";
/// The ConfigMaps with the host keys and certificates of repository servers.
pub const KNOWN_HOSTS_CM: &str = "argocd-ssh-known-hosts-cm";
pub const TLS_CERTS_CM: &str = "argocd-tls-certs-cm";
/// Public keys, armored, by their ids.
pub const GPG_KEYS_CM: &str = "argocd-gpg-keys-cm";
pub const KNOWN_HOSTS_KEY: &str = "ssh_known_hosts";
pub const PART_OF_LABEL: &str = "app.kubernetes.io/part-of";
pub const MANAGED_BY: &str = "managed-by";
pub const MANAGED_BY_VALUE: &str = "argocd.argoproj.io";

/// On Applications, by their controller for itself: what Argo CD's fields cannot hold about a
/// running operation, the newest entry of the history that was Synced and Healthy, and the failed
/// hooks of a deletion that a condition reports.
pub const SYNC_PROGRESS: &str = "tiphys.dev/sync-progress";
pub const LAST_HEALTHY: &str = "tiphys.dev/last-healthy";
pub const FAILED_HOOKS: &str = "tiphys.dev/failed-hooks";
/// All of these: who writes the other annotations leaves them as they are.
pub const OF_CONTROLLER: [&str; 3] = [SYNC_PROGRESS, LAST_HEALTHY, FAILED_HOOKS];
/// On hooks: which operation created them.
pub const OPERATION_ID: &str = "tiphys.dev/operation-id";
/// On leases: their group, the partition into shards, and the replica that asks for one.
pub const LEASE_GROUP: &str = "tiphys.dev/lease-group";
pub const LEASE_PARTITION: &str = "tiphys.dev/lease-partition";
pub const LEASE_LOAD: &str = "tiphys.dev/lease-load";
pub const LEASE_WEIGHTS: &str = "tiphys.dev/lease-weights";
pub const LEASE_WANTED_BY: &str = "tiphys.dev/lease-wanted-by";
/// On sets: how many Applications they delete without asking, and those that they deleted.
pub const DELETE_LIMIT: &str = "tiphys.dev/delete-limit";
pub const DELETED_APPLICATIONS: &str = "tiphys.dev/deleted-applications";
/// An `info` of an operation that is a dry run: its message contains the plan.
pub const SHOW_PLAN: &str = "tiphys.dev/show-plan";
