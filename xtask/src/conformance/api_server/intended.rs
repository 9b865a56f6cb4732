//! Cases whose answer differs from the recorded one on purpose. Main function: [`reason`].

use serde_json::Value;

/// gRPC's code of a caller who is not known.
const UNAUTHENTICATED: i64 = 16;

/// By ids, or their beginnings, which end with `-`.
const INTENDED: [(&str, &str); 118] = [
    ("wrepo-get-", ROUTED),
    ("wrepo-update-off", ROUTED),
    ("wrepo-validate-", ROUTED),
    ("wrepo-delete-on", ROUTED),
    ("wcreds-delete-", ROUTED),
    ("wcreds-update-on", ROUTED),
    ("creds-update", ESCAPED),
    ("creds-update-missing", ESCAPED),
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
    ("version-nobody", PROGRAMS),
    ("session-anonymous-nothing", PROGRAMS),
    ("session-renewal-stream", ONCE),
    ("app-create-status-and-operation", PLANTED),
    ("session-login-bad-", BROKEN),
    ("session-sso-token-no-exp", ENDLESS),
    ("session-sso-logout", SIGNED_OUT),
    ("session-sso-userinfo-groups", DIRECTIVE),
    ("authz-RepositoryService-ListOCITags-", REGISTRY),
    ("app-oci-not-oci", REGISTRY),
    ("repo-oci-tags-not-oci", REGISTRY),
    ("authz-ProjectService-ListLinks-existing", REFUSAL),
    ("authz-ProjectService-ListLinks-missing", REFUSAL),
    ("authz-CertificateService-CreateCertificate-upsert", UPSERT),
    ("authz-ClusterService-Create-upsert", UPSERT),
    ("authz-ProjectService-CreateToken-missing", EXISTENCE),
    ("authz-ProjectService-CreateToken-missing-role", EXISTENCE),
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
    (
        "authz-RepositoryService-GetWrite-existing-hydrator-off",
        ROUTED,
    ),
    ("authz-RepositoryService-GetWrite-missing", ROUTED),
    (
        "authz-RepositoryService-UpdateWriteRepository-existing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-UpdateWriteRepository-existing-hydrator-off",
        ROUTED,
    ),
    (
        "authz-RepositoryService-DeleteWriteRepository-existing",
        ROUTED,
    ),
    (
        "authz-RepositoryService-DeleteWriteRepository-existing-hydrator-off",
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
    (
        "authz-RepositoryService-ValidateWriteAccess-existing-hydrator-off",
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
    ("app-action-v2-scale-none", NAMED),
    ("app-action-v2-scale-unknown-parameter", NAMED),
    ("app-revision-unknown", NAMED),
    ("app-ssd-bad", NAMED),
    ("app-links-bad-setting", NAMED),
    ("cluster-create-empty", NAMED),
    ("cluster-create-bad-", NAMED),
    ("gpg-create-bad", NAMED),
    ("repo-get-scoped", NAMED),
    ("repo-get-scoped-no-project", NAMED),
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
    ("app-create-int-overflow", FLOATS),
    ("app-create-replicas-int", COPIES),
    ("app-manifests-with-files-rest-empty", STREAMS),
    ("app-watch-resource-version", CAUGHT_UP),
    ("app-watch-deleted", RESUMED),
    ("appset-create-git-bad", NAMED),
    ("project-create-existing", DIFFERING),
    ("repo-create-existing", DIFFERING),
    ("swagger-json", DESCRIBED),
    ("dex-on-callback-code", NAMED),
    ("seq-cluster-update-get", PUBLISHED),
    ("grpc-raw-reflection", NAMED),
    ("grpcweb-truncated", CUT),
    ("session-project-token-iat-only", AT_ONCE),
    ("session-sso-callback-long-token", UNSIGNED),
    ("authz-ClusterService-Update-project-scoped", NAMED),
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
const SIGNED_OUT: &str = "a sign-out ends a token to which its provider gave no id, too";
const DIRECTIVE: &str = "the text has no leftover of a printing directive";
const REGISTRY: &str = "an address that is no registry's is an error of whoever sent it";
const REFUSAL: &str = "a refusal is a refusal, not an internal error";
const UPSERT: &str = "replacing what exists needs the permission to update it";
const EXISTENCE: &str = "whether a project or role exists is not told to strangers";
const ESCAPED: &str = "the URL in a path is read unescaped, not as the client wrote it";
const ROUTED: &str = "an escaped URL in the path of these calls is found, not lost";
const SEGMENTS: &str = "a repository's URL has one form, without `.` segments";
const FLOATS: &str = "a number beyond all integers is shown as a float";
const COPIES: &str = "a message names a directory as the Application does, not the copy of it";
const STREAMS: &str = "REST has no stream of files: every such request is answered alike";
// The recording has no answer in its time, and on a slow machine we may have none, either.
const CAUGHT_UP: &str = "a watch that goes on from a version begins at once with what was missed";
const RESUMED: &str = "a watch that goes on from a version begins with what has changed since";
const DIFFERING: &str =
    "fields that differ are named once each, by the alphabet, without the fields in them";
const DESCRIBED: &str =
    "the description is made from this program's own table of calls, and is JSON";
const PUBLISHED: &str =
    "what the controller has published of a cluster outlasts a change of its labels";
const CUT: &str = "a message that is cut off is an internal error, as everywhere in gRPC";
const AT_ONCE: &str = "a token in a project's specification counts at once, not after a restart";
const UNSIGNED: &str =
    "cannot be run: the cases have no key with which a token of that length could be signed";

/// Why the answer to a case is another one, if that is intended.
pub fn reason(id: &str) -> Option<&'static str> {
    let is_it = |known: &str| known == id || (known.ends_with('-') && id.starts_with(known));
    let found = INTENDED.iter().find(|(known, _)| is_it(known));
    found.map(|(_, reason)| *reason)
}

/// The reasons that hang on how fast things happen: a run may go without them.
const OF_TIME: [&str; 3] = [CAUGHT_UP, HEALTH, STEPS];

/// Why a case must differ.
pub fn excuse(id: &str) -> Option<&'static str> {
    reason(id).filter(|reason| !OF_TIME.contains(reason))
}

/// Whether a reason explains the difference of two outcomes of `authz`, the recorded one first. Who
/// is not known is let in for no reason, and only some reasons are about who is refused.
pub fn explains_outcome(reason: &str, is_admin: bool, want: &Value, got: &Value) -> bool {
    let is_refused = |outcome: &Value| match outcome["code"].as_i64() {
        Some(code) => code != 0,
        None => outcome["status"].as_i64().is_some_and(|code| code >= 400),
    };
    let is_same = |field: &&str| want[*field] == got[*field];
    match reason {
        _ if ["code", "status", "items", "value"].iter().all(is_same) => true,
        _ if want["code"] == UNAUTHENTICATED => false,
        ESCAPED | ROUTED | SEGMENTS => true,
        REFUSAL | REGISTRY | EXISTENCE => is_refused(want) && is_refused(got),
        // Fewer may do it.
        UPSERT => !is_admin && is_refused(got),
        _ => false,
    }
}

/// Whether a reason explains what differs at a step of `session`: in most cases only words may,
/// never whether something is allowed.
pub fn explains_step(reason: &str, found: &[String]) -> bool {
    let allowed = match reason {
        IMPLICIT | BROKEN | UNSIGNED => return true,
        AT_ONCE => "/status: wanted 401, got 200",
        ENDLESS | SIGNED_OUT => "/status: wanted 200, got 401",
        _ => "",
    };
    let is_access = |differs: &&String| {
        ["/status:", "/body/code:", "/api/v1/account/can-i/"]
            .iter()
            .any(|place| differs.starts_with(place))
    };
    // Two ways of saying the same: the status, and the code in its body.
    let code = match reason {
        AT_ONCE => r#"/body/code: wanted 16, got "<absent>""#,
        ENDLESS | SIGNED_OUT => r#"/body/code: wanted "<absent>", got 16"#,
        _ => "",
    };
    let mut of_access = found.iter().filter(is_access);
    of_access.all(|differs| [allowed, code].contains(&differs.as_str()))
}

#[cfg(test)]
mod tests {
    use super::{
        AT_ONCE, EXISTENCE, INTENDED, NAMED, ROUTED, STEPS, UPSERT, excuse, explains_outcome,
        explains_step, reason,
    };
    use serde_json::{Value, json};

    #[test]
    fn only_named_cases_are_excused() {
        assert_eq!(reason("authz-ClusterService-Create-upsert"), Some(UPSERT));
        assert_eq!(reason("authz-ClusterService-Create-upsert-more"), None);
        assert_eq!(reason("wrepo-get-off"), Some(ROUTED));
        assert_eq!(excuse("wrepo-get-off"), Some(ROUTED));
        assert_eq!(reason("live-watch-sync"), Some(STEPS));
        assert_eq!(excuse("live-watch-sync"), None);
        assert_eq!(excuse("app-watch-resource-version"), None);
    }

    #[test]
    fn reasons_are_for_cases_that_are_recorded() {
        let mut ids = Vec::new();
        for suite in ["authz", "session", "api"] {
            let Some(file) = tiphys_testkit::shared(&format!("cases/{suite}.jsonl")) else {
                return;
            };
            let text = std::fs::read_to_string(file).expect("the cases");
            for line in text.lines() {
                let case: Value = serde_json::from_str(line).expect("JSON");
                ids.push(case["id"].as_str().expect("an id").to_owned());
            }
        }
        for (known, _) in INTENDED {
            let is_it = |id: &String| match known.ends_with('-') {
                true => id.starts_with(known),
                false => id == known,
            };
            assert!(ids.iter().any(is_it), "{known}");
        }
    }

    #[test]
    fn words_excuse_nobody_who_is_let_in() {
        let outcome = |status: u16, code: i64| json!({"status": status, "code": code});
        let (allowed, denied) = (outcome(200, 0), outcome(403, 7));
        let (unknown, missing) = (outcome(401, 16), outcome(404, 5));
        for (reason, is_admin, want, got, expected) in [
            (NAMED, false, &denied, &denied, true),
            (NAMED, false, &denied, &allowed, false),
            (NAMED, false, &allowed, &denied, false),
            (EXISTENCE, false, &missing, &denied, true),
            (EXISTENCE, false, &missing, &allowed, false),
            (UPSERT, false, &allowed, &denied, true),
            (UPSERT, true, &allowed, &denied, false),
            (UPSERT, false, &denied, &allowed, false),
            (ROUTED, false, &missing, &allowed, true),
            (ROUTED, false, &unknown, &allowed, false),
        ] {
            let explained = explains_outcome(reason, is_admin, want, got);
            assert_eq!(explained, expected, "{reason}: {want} {got}");
        }
    }

    #[test]
    fn steps_are_excused_for_what_the_reason_says() {
        let found = |places: &[&str]| places.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        let words = found(&["/body/message: wanted \"a\", got \"b\""]);
        let let_in = found(&[
            "/status: wanted 401, got 200",
            r#"/body/code: wanted 16, got "<absent>""#,
        ]);
        let also_failed = found(&[
            "/status: wanted 401, got 200",
            "/body/code: wanted 16, got 2",
        ]);
        let failed = found(&["/status: wanted 401, got 500"]);
        assert!(explains_step(NAMED, &words) && !explains_step(NAMED, &let_in));
        assert!(explains_step(AT_ONCE, &let_in) && !explains_step(AT_ONCE, &failed));
        assert!(!explains_step(AT_ONCE, &also_failed));
    }
}
