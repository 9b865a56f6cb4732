//! Cases whose answer differs from the recorded one on purpose. Main function: [`reason`].

/// By the beginnings of ids.
const INTENDED: [(&str, &str); 95] = [
    ("wrepo-get-", ROUTED),
    ("wrepo-update-off", ROUTED),
    ("wrepo-validate-", ROUTED),
    ("wrepo-delete-on", ROUTED),
    ("wcreds-delete-", ROUTED),
    ("wcreds-update-on", ROUTED),
    ("creds-update", ESCAPED),
    ("extension-granted-forged", SPEAKS),
    ("static-directory", LISTED),
    ("settings-bad-customization", CUSTOMIZED),
    ("session-sso-callback-wrong-state", COOKIE),
    ("session-sso-callback-error", IMPLICIT),
    ("app-list-fields-exclude-", FIELDS),
    ("app-list-fields-items", FIELDS),
    ("app-list-fields-operation-state", FIELDS),
    ("app-list-fields-sources", FIELDS),
    ("app-list-fields-health", FIELDS),
    ("app-list-fields-spec-part", FIELDS),
    ("app-list-fields-dash-only", FIELDS),
    ("app-list-fields-guestbook-all", FIELDS),
    ("cert-list-all", FINGERPRINT),
    ("cert-list-host", FINGERPRINT),
    ("cert-list-ssh", FINGERPRINT),
    ("cert-list-subtype", FINGERPRINT),
    ("cluster-create-in-cluster", COUNTED),
    ("stored-cluster-in-cluster", COUNTED),
    ("app-create-no-token-bad-json", CALLER),
    ("grpc-raw-health-no-token", PROBES),
    ("app-ssd-target", PANICS),
    ("notifications-bad-trigger", PANICS),
    ("app-manifests-multi-position-mismatch", PANICS),
    ("creds-create-existing", TWICE),
    ("version", PROGRAMS),
    ("session-anonymous-nothing", PROGRAMS),
    ("session-renewal-stream", ONCE),
    ("app-create-status-and-operation", PLANTED),
    ("session-login-bad-", BROKEN),
    ("session-sso-token-no-exp", ENDLESS),
    ("session-sso-userinfo-groups", DIRECTIVE),
    ("authz-RepositoryService-ListOCITags-", REGISTRY),
    ("app-oci-not-oci", REGISTRY),
    ("repo-oci-tags-not-oci", REGISTRY),
    ("authz-ProjectService-ListLinks-existing", REFUSAL),
    ("authz-ProjectService-ListLinks-missing", REFUSAL),
    ("authz-CertificateService-CreateCertificate-upsert", UPSERT),
    ("authz-ClusterService-Create-upsert", UPSERT),
    (
        "authz-RepoCredsService-CreateRepositoryCredentials-upsert",
        UPSERT,
    ),
    (
        "authz-RepoCredsService-CreateWriteRepositoryCredentials-upsert",
        UPSERT,
    ),
    ("authz-ProjectService-CreateToken-missing", EXISTENCE),
    (
        "authz-RepoCredsService-UpdateRepositoryCredentials-existing",
        ESCAPED,
    ),
    (
        "authz-RepoCredsService-UpdateRepositoryCredentials-missing",
        ESCAPED,
    ),
    (
        "authz-RepoCredsService-UpdateWriteRepositoryCredentials-existing",
        ROUTED,
    ),
    (
        "authz-RepoCredsService-UpdateWriteRepositoryCredentials-missing",
        ROUTED,
    ),
    (
        "authz-RepoCredsService-DeleteWriteRepositoryCredentials-existing",
        ROUTED,
    ),
    (
        "authz-RepoCredsService-DeleteWriteRepositoryCredentials-missing",
        ROUTED,
    ),
    ("authz-RepositoryService-GetWrite-existing", ROUTED),
    ("authz-RepositoryService-GetWrite-missing", ROUTED),
    (
        "authz-RepositoryService-UpdateWriteRepository-existing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-UpdateWriteRepository-missing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-DeleteWriteRepository-existing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-DeleteWriteRepository-missing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-ValidateWriteAccess-existing",
        ROUTED,
    ),
    ("authz-RepositoryService-ValidateAccess-existing", ESCAPED),
    ("authz-RepositoryService-ValidateAccess-missing", ESCAPED),
    ("app-tree-ns", FIELDS),
    ("app-get-resource-version-future", FUTURE),
    ("app-create-bad-time", NAMED),
    ("appset-create-bad-template", NAMED),
    ("app-create-two-tools", NAMED),
    ("app-resource-get-wrong-version", NAMED),
    ("app-action-v2-scale-", NAMED),
    ("app-revision-unknown", NAMED),
    ("app-ssd-bad", NAMED),
    ("app-links-bad-setting", NAMED),
    ("cluster-create-empty", NAMED),
    ("cluster-create-bad-", NAMED),
    ("gpg-create-bad", NAMED),
    ("repo-get-scoped", NAMED),
    ("repo-create-unreachable", NAMED),
    ("repo-validate-helm", NAMED),
    ("repo-validate-empty-body", ROUTED),
    ("app-logs-previous", SIMULATED),
    ("stored-repo-upsert", OWNED),
    ("cluster-list", COUNTED),
    ("cluster-get-in-cluster", COUNTED),
    ("cluster-get-name-escaped", COUNTED),
    ("logout-bearer", LEFT),
    ("live-refresh-hard", HYDRATED),
    ("live-rollback", FOLDED),
    ("live-watch-sync", STEPS),
    ("live-tree", ENDPOINTS),
    ("live-appset-tree", HEALTH),
    ("live-get-bad-path", DIRECT),
    ("authz-RepositoryService-Create-new", SEGMENTS),
    ("authz-RepositoryService-CreateRepository-new", SEGMENTS),
];
const FUTURE: &str = "a version that is not reached yet is not waited for without an end";
const NAMED: &str = "the error says which field, key or address is wrong, and why";
const SIMULATED: &str = "the text is that of the kubelet, not of a simulated one";
const OWNED: &str = "a Secret that somebody else made is not marked as ours";
const LEFT: &str = "who leaves with a token in a header leaves as well";
const HYDRATED: &str = "the hydrator runs, and takes its annotation away";
const FOLDED: &str = "stringData is compared and applied as data, so that an unchanged Secret is \
                      unchanged";
const STEPS: &str = "what a sync has done is published step by step";
const ENDPOINTS: &str = "the cluster of this program makes no endpoints";
const HEALTH: &str = "a set says the health of its Applications as soon as they have one";
const DIRECT: &str = "manifests are made in this program: no RPC failed";
const SPEAKS: &str = "headers that say who the caller is are this server's, never the caller's";
const LISTED: &str = "the folders of the page's files are not listed";
const CUSTOMIZED: &str = "one broken customization does not take the settings from everybody";
const COOKIE: &str = "the text names the cookie that has the state";
const IMPLICIT: &str =
    "no script takes a token out of an address: the implicit flow is not offered";
const FIELDS: &str = "any field can be selected or left out, not only those of a list of them";
const FINGERPRINT: &str = "the fingerprint of a host's key is told, not only its algorithm";
const COUNTED: &str = "a cluster's Applications are counted when they are asked for";
const CALLER: &str = "nothing of a request is read before its caller is known";
const PROBES: &str = "whether the server is well is told to probes, which have no token";
const PANICS: &str = "a request that the reference panics at is answered";
const PROGRAMS: &str = "versions are told of what is in the program only";
const ONCE: &str = "a renewed session's cookie is set once";
const PLANTED: &str = "the status of a new Application is its controller's: nobody plants a \
                       history to roll back to";
const TWICE: &str = "no second Secret is made for a URL that has one";
const BROKEN: &str = "a broken value of one account keeps nobody from signing in";
const ENDLESS: &str = "a provider's token without an end is not accepted";
const DIRECTIVE: &str = "the text has no leftover of a printing directive";
const REGISTRY: &str = "an address that is no registry's is an error of whoever sent it";
const REFUSAL: &str = "a refusal is a refusal, not an internal error";
const UPSERT: &str = "replacing what exists needs the permission to update it";
const EXISTENCE: &str = "whether a project or role exists is not told to strangers";
const ESCAPED: &str = "the URL in a path is read unescaped, not as the client wrote it";
const ROUTED: &str = "an escaped URL in the path of these calls is found, not lost";
const SEGMENTS: &str = "a repository's URL has one form, without `.` segments";

/// Why the answer to a case is another one, if that is intended.
pub fn reason(id: &str) -> Option<&'static str> {
    let found = INTENDED
        .iter()
        .find(|(beginning, _)| id.starts_with(beginning));
    found.map(|(_, reason)| *reason)
}
