//! Steps of scenarios that differ from the recorded ones on purpose. Main functions: [`explains`]
//! and [`outdated`].

use super::steps::{Differs, Kind};

/// By id of the scenario, with the numbers of the steps that the reason is about.
const INTENDED: &[(&str, &str, &[usize])] = &[
    ("account-password-errors", PIPED, &[2, 5, 6]),
    ("account-can-i-admin", ACTIONS, &[6]),
    ("appset-create-dry", WHOLE, &[1, 2]),
    ("cert-list", FINGERPRINT, &[0, 2, 3, 4, 5, 6, 8]),
    ("cert-ssh", FINGERPRINT, &[1, 2]),
    ("core-mode", CORE, &[1, 2, 3, 4, 5, 6, 7, 8, 9]),
    ("get-missing", TREE, &[5, 6]),
    ("gpg-errors", TOOLS, &[3]),
    ("group-only", LISTS, &[10]),
    ("login-name", LOGOUT, &[4, 5]),
    ("login-tls", TLS, &[0, 1, 2]),
    ("login-tls-insecure", TLS, &[2]),
    ("logout", LOGOUT, &[1, 2, 7]),
    ("logs", LOGS, &[3, 4, 5, 7, 8, 9, 11, 12, 13, 15]),
    (
        "notifications-get",
        OTHERS,
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    ),
    ("notifications-get", CODE, &[4, 8, 9, 10]),
    ("rbac-can-files", LINE, &[3, 4]),
    ("rbac-can-files", BUILT_IN, &[0, 1]),
    ("rbac-can-live", BUILT_IN, &[0, 1, 2, 3]),
    ("rbac-validate", LINE, &[0, 3, 4, 8]),
    ("rbac-validate", BUILT_IN, &[1, 2]),
    ("repo-declared", TOOLS, &[0, 1]),
    ("resources", TREE, &[3, 4]),
    ("rollback-no-id", UNCHANGED, &[5, 7]),
    ("sync-outputs-tree", EARLY, &[4, 5]),
    ("sync-outputs-tree", UNCHANGED, &[3]),
    ("sync-plain", UNCHANGED, &[4]),
    ("sync-revision", UNCHANGED, &[7]),
    ("sync-strategy", UNCHANGED, &[4]),
    ("version", BUILD, &[0, 2, 3, 5, 6, 7, 8]),
    ("version-no-server", BUILD, &[0, 1]),
    ("version-unreachable", BUILD, &[0]),
    ("wait", EARLY, &[10]),
    ("notifications-live", CODE, &[0, 1, 2, 3]),
    ("login-twice", KEPT, &[5, 6]),
    ("tty-list", TREE, &[3]),
    ("settings-validate", CRASH, &[11, 12]),
    ("limited-to-project", EARLY, &[2]),
    ("add-source", NAMED, &[7, 8]),
    ("appset-create-errors", NAMED, &[2, 4, 6]),
    ("appset-error", NAMED, &[2]),
    ("create-broken-app", NAMED, &[2, 3]),
    ("create-errors", NAMED, &[4, 6, 7]),
    ("create-errors-more", NAMED, &[7]),
    ("create-helm-repo", NAMED, &[7, 8, 9]),
    ("create-jsonnet", NAMED, &[6]),
    ("create-no-validate", DIRECT, &[5]),
    ("create-plugin", DIRECT, &[0, 4]),
    ("create-stdin", NAMED, &[4, 5]),
    ("create-stdin", CODE, &[4]),
    ("create-hydrator", DIRECT, &[2]),
    ("repo-add-helm", NAMED, &[4]),
    ("repo-add-oci", NAMED, &[0, 1, 2]),
    ("set-source", NAMED, &[7]),
    ("cluster-get", KINDS, &[0, 1, 2, 3]),
    ("cluster-shards", REDIS, &[0, 2, 3, 4]),
    ("cluster-stats", REDIS, &[1, 2]),
    ("completion", POWERSHELL, &[5]),
    ("gen-cluster", HASH, &[0, 1, 3, 8, 9]),
    ("missing-args-other", ONE, &[28]),
    ("appset-get", HEALTH, &[5]),
    ("tty-sync-several", LINES, &[2, 4, 5, 8]),
    ("sync-preview", LINES, &[1, 3, 5, 6]),
    ("appset-create", HEALTH, &[5]),
    ("list-states", LOOKED_AT, &[4]),
    ("repo-add-options", OPTIONS, &[2, 3]),
];
const LOOKED_AT: &str = "the status says what was looked at, even if it could not be compared";
const OPTIONS: &str = "each option of a repository is in the answer, not some";
const NAMED: &str = "the error says which file, line, field or address is wrong, and why";
const DIRECT: &str = "manifests are made in this program: no RPC failed";
const KINDS: &str = "the cluster of this program serves fewer kinds";
const REDIS: &str = "no Redis runs beside these scenarios, and the command says so";
const POWERSHELL: &str = "the completion of PowerShell is made by another library";
const HASH: &str = "the name has a hash of the cluster's address, which is another one";
const ONE: &str = "one context is named at a time";
const HEALTH: &str = "a set says the health of its Applications as soon as they have one";
const LINES: &str = "the width of a column, which hangs on how far a sync is when it is first read";
const ACTIONS: &str = "the rights to run actions can be asked for, too";
const FINGERPRINT: &str = "the fingerprints of host keys are shown, not only how they are made";
const LISTS: &str = "`context` alone lists the contexts";
const LOGS: &str = "simulated pods log other lines";
const UNCHANGED: &str = "a Secret with stringData that is applied again has not changed";
const BUILD: &str = "our program is not built by Go, and says how it was";
const PIPED: &str = "a password may be piped";
const WHOLE: &str = "a document without apiVersion and kind could not be applied";
const CORE: &str = "the recorded one needs the pod of a repo-server; ours renders in its process";
const TREE: &str =
    "resources that do not exist yet have no UID, by which the recorded tree loses them";
const TOOLS: &str = "words of git or gpg, which do not run here";
const LOGOUT: &str = "a logout goes to the context's server, as the context says to connect";
const TLS: &str = "the certificate that the server makes is also for 127.0.0.1";
const OTHERS: &str = "a trigger that cannot be read does not hide the others";
const BUILT_IN: &str = "the built-in roles are roles of a policy";
const LINE: &str = "a broken policy line is named by its number, and a file needs no cluster";
const EARLY: &str = "an unknown output format is refused before anything is done";
const CODE: &str = "a command that could not do what it was asked for does not exit with 0";
const CRASH: &str = "the recorded one crashes at a group that it does not know";
const KEPT: &str = "the deletion of a context leaves another one of the same server";

/// The reasons for which a command may end with another code, not only print other words.
const OF_CODES: [&str; 13] = [
    ACTIONS, BUILT_IN, CODE, CORE, CRASH, EARLY, KEPT, LINE, LISTS, LOGOUT, ONE, PIPED, REDIS,
];

/// The reasons that hang on how fast things happen: a run may go without them.
const OF_TIME: [&str; 2] = [HEALTH, LINES];

/// The steps of a scenario, with their reasons, that are as recorded although they need not be.
pub fn outdated(id: &str, found: &[Differs]) -> Vec<(usize, &'static str)> {
    let explained = found.iter().filter_map(|differs| {
        let reason = explains(id, differs.step, differs.kind)?;
        Some((differs.step, reason))
    });
    let needed: Vec<(usize, &str)> = explained.collect();
    let entries = INTENDED
        .iter()
        .filter(|(known, reason, _)| *known == id && !OF_TIME.contains(reason));
    entries
        .flat_map(|(_, reason, steps)| steps.iter().map(move |step| (*step, *reason)))
        .filter(|entry| !needed.contains(entry))
        .collect()
}

/// Why a step differs, if that is intended.
pub fn explains(id: &str, step: usize, kind: Kind) -> Option<&'static str> {
    let may_be = |reason: &&str| match kind {
        Kind::Code => OF_CODES.contains(reason),
        Kind::Words => true,
        // Nothing after it has been compared.
        Kind::Wait => false,
    };
    let is_it = |(known, reason, steps): &&(&str, &str, &[usize])| {
        *known == id && steps.contains(&step) && may_be(reason)
    };
    INTENDED.iter().find(is_it).map(|(_, reason, _)| *reason)
}

#[cfg(test)]
mod tests {
    use super::Kind::{Code, Wait, Words};
    use super::{BUILT_IN, CODE, Differs, EARLY, INTENDED, LINE, NAMED, explains, outdated};

    #[test]
    fn a_reason_excuses_only_what_it_is_about() {
        for (id, step, kind, expected) in [
            ("wait", 10, Code, Some(EARLY)),
            ("wait", 10, Words, Some(EARLY)),
            ("wait", 10, Wait, None),
            ("wait", 11, Words, None),
            // The words of a table excuse no failure.
            ("sync-preview", 3, Code, None),
            ("rbac-can-files", 3, Code, Some(LINE)),
            ("rbac-can-files", 0, Words, Some(BUILT_IN)),
            ("rbac-can-files", 2, Words, None),
            ("unknown", 0, Words, None),
        ] {
            assert_eq!(explains(id, step, kind), expected, "{id} {step}");
        }
    }

    #[test]
    fn a_step_that_does_not_differ_needs_no_reason() {
        let differs = |step, kind| Differs {
            step,
            kind,
            what: String::new(),
        };
        assert!(outdated("wait", &[differs(10, Code)]).is_empty());
        assert_eq!(outdated("wait", &[differs(3, Code)]), [(10, EARLY)]);
        let words = [differs(4, Words), differs(5, Words)];
        assert_eq!(outdated("create-stdin", &words), [(4, CODE)]);
        assert_eq!(
            outdated("create-stdin", &[]),
            [(4, NAMED), (5, NAMED), (4, CODE)]
        );
        // How wide a column is may change from run to run.
        assert!(outdated("sync-preview", &[]).is_empty());
        assert!(outdated("unknown", &words).is_empty());
    }

    #[test]
    fn reasons_are_for_scenarios_that_are_recorded() {
        let Some(file) = tiphys_testkit::shared("cases/cli.jsonl") else {
            return;
        };
        let text = std::fs::read_to_string(file).expect("the cases");
        let cases: Vec<serde_json::Value> = text
            .lines()
            .map(|line| serde_json::from_str(line).expect("JSON"))
            .collect();
        for (id, _, steps) in INTENDED {
            let case = cases.iter().find(|case| case["id"] == *id);
            let recorded = case.expect(id)["steps"].as_array().expect("steps").len();
            assert!(steps.iter().all(|step| *step < recorded), "{id}");
        }
    }
}
