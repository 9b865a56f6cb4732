//! Scenarios that differ from the recorded ones on purpose. Main function: [`reason`].

/// By id.
const INTENDED: [(&str, &str); 62] = [
    ("account-password-errors", PIPED),
    ("account-can-i-admin", ACTIONS),
    ("appset-create-dry", WHOLE),
    ("cert-list", FINGERPRINT),
    ("cert-ssh", FINGERPRINT),
    ("core-mode", CORE),
    ("get-missing", TREE),
    ("gpg-errors", TOOLS),
    ("group-only", LISTS),
    ("login-name", LOGOUT),
    ("login-tls", TLS),
    ("login-tls-insecure", TLS),
    ("logout", LOGOUT),
    ("logs", LOGS),
    ("notifications-get", OTHERS),
    ("rbac-can-files", LINE),
    ("rbac-can-live", BUILT_IN),
    ("rbac-validate", LINE),
    ("repo-declared", TOOLS),
    ("resources", TREE),
    ("rollback-no-id", UNCHANGED),
    ("sync-outputs-tree", EARLY),
    ("sync-plain", UNCHANGED),
    ("sync-revision", UNCHANGED),
    ("sync-strategy", UNCHANGED),
    ("version", BUILD),
    ("version-no-server", BUILD),
    ("version-unreachable", BUILD),
    ("wait", EARLY),
    ("notifications-live", CODE),
    ("login-twice", KEPT),
    ("tty-list", TREE),
    ("settings-validate", CRASH),
    ("limited-to-project", EARLY),
    ("add-source", NAMED),
    ("appset-create-errors", NAMED),
    ("appset-error", NAMED),
    ("create-broken-app", NAMED),
    ("create-errors", NAMED),
    ("create-errors-more", NAMED),
    ("create-helm-repo", NAMED),
    ("create-jsonnet", NAMED),
    ("create-no-validate", DIRECT),
    ("create-plugin", DIRECT),
    ("create-stdin", NAMED),
    ("create-hydrator", DIRECT),
    ("manifests-local", NAMED),
    ("repo-add-helm", NAMED),
    ("repo-add-oci", NAMED),
    ("set-source", NAMED),
    ("cluster-get", KINDS),
    ("cluster-shards", REDIS),
    ("cluster-stats", REDIS),
    ("completion", SHELLS),
    ("gen-cluster", HASH),
    ("missing-args-other", ONE),
    ("admin-misc-errors", MISUSE),
    ("plugin", MISUSE),
    ("appset-get", LINES),
    ("tty-sync-several", LINES),
    ("sync-preview", LINES),
    ("appset-create", HEALTH),
];
const NAMED: &str = "the error says which file, line, field or address is wrong, and why";
const DIRECT: &str = "manifests are made in this program: no RPC failed";
const KINDS: &str = "the cluster of this program serves fewer kinds";
const REDIS: &str = "no Redis runs beside these scenarios, and the command says so";
const SHELLS: &str = "completions are made by another library, for other shells";
const HASH: &str = "the name has a hash of the cluster's address, which is another one";
const ONE: &str = "one context is named at a time";
const MISUSE: &str = "the help that is printed because of a mistake goes to stderr";
const HEALTH: &str = "a set says the health of its Applications as soon as they have one";
const LINES: &str = "the width of a column, or an empty line at the end";
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
const TLS: &str = "the TLS library names another fault of the same certificate";
const OTHERS: &str = "a trigger that cannot be read does not hide the others";
const BUILT_IN: &str = "the built-in roles are roles of a policy";
const LINE: &str = "a broken policy line is named by its number, and a file needs no cluster";
const EARLY: &str = "an unknown output format is refused before anything is done";
const CODE: &str = "a command that could not do what it was asked for does not exit with 0";
const CRASH: &str = "the recorded one crashes at a group that it does not know";
const KEPT: &str = "the deletion of a context leaves another one of the same server";

pub fn reason(id: &str) -> Option<&'static str> {
    let found = INTENDED.iter().find(|(known, _)| *known == id);
    found.map(|(_, reason)| *reason)
}
