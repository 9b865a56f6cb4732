//! Commands of `argocd` that are not implemented here, and what to use instead. Main function:
//! [`instead`].

use clap::Command;

/// Commands by their words; the longest match is reported.
const VERBS: &[(&str, &str)] = &[
    (
        "admin app",
        "tiphys admin app generate-spec prints an Application; tiphys app diff shows what would change",
    ),
    (
        "admin cluster",
        "tiphys cluster list shows clusters; tiphys cluster add writes their Secrets",
    ),
    (
        "admin dashboard",
        "tiphys up --bare --kubeconfig FILE serves API and web UI for a cluster",
    ),
    (
        "admin proj",
        "tiphys admin proj generate-spec prints a project; kubectl api-resources lists kinds to allow",
    ),
    (
        "admin repo",
        "tiphys repo add, or a Secret with the label argocd.argoproj.io/secret-type: repository",
    ),
    (
        "admin settings resource-overrides ignore-resource-updates",
        "tiphys admin settings resource-overrides ignore-differences tries the same paths",
    ),
];

/// The advice if the command line contains a command that only `argocd` has. `program` is ours.
pub fn instead(words: &[String], program: &Command) -> Option<String> {
    let verbs: Vec<&str> = words
        .iter()
        .skip(1)
        .map(String::as_str)
        .filter(|w| !w.starts_with('-'))
        .collect();
    let (mut command, mut path) = (program, Vec::new());
    // Values of flags may precede the command; they match no command.
    let mut left = verbs.as_slice();
    while let [word, rest @ ..] = left {
        left = rest;
        if let Some(next) = command.find_subcommand(word) {
            command = next;
            path.push(*word);
            continue;
        }
        let tried = [path.as_slice(), std::slice::from_ref(word)]
            .concat()
            .join(" ");
        let next = rest
            .first()
            .map(|next| format!("{tried} {next}"))
            .unwrap_or_default();
        let is = |verb: &&(&str, &str)| {
            verb.0 == tried || verb.0 == next || (!path.is_empty() && path.join(" ") == verb.0)
        };
        if let Some((verb, advice)) = VERBS.iter().filter(is).max_by_key(|v| v.0.len()) {
            let shown = if verb.len() < tried.len() {
                &tried
            } else {
                *verb
            };
            return Some(format!(
                "argocd {shown} does not exist in tiphys. Instead: {advice}"
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::{ClientCommand, adapt};
    use clap::{CommandFactory as _, Parser};

    #[derive(Parser)]
    struct Program {
        #[command(subcommand)]
        _command: ClientCommand,
    }

    /// The leaf commands of argocd 3.6 that we do not have, and for which there is advice only by
    /// their group.
    const OF_ARGO: &[&str] = &[
        "account bcrypt",
        "account can-i",
        "account delete-token",
        "account generate-token",
        "account get",
        "account get-user-info",
        "account list",
        "account session-token",
        "account update-password",
        "admin app diff-reconcile-results",
        "admin app generate-spec",
        "admin app get-reconcile-results",
        "admin cluster kubeconfig",
        "admin cluster shards",
        "admin dashboard",
        "admin export",
        "admin import",
        "admin initial-password",
        "admin notifications template get",
        "admin notifications trigger run",
        "admin proj generate-allow-list",
        "admin proj generate-spec",
        "admin redis-initial-password",
        "admin repo generate-spec",
        "admin settings rbac can",
        "admin settings rbac validate",
        "admin settings resource-overrides health",
        "admin settings validate",
        "app actions list",
        "app actions run",
        "app add-source",
        "app confirm-deletion",
        "app create",
        "app delete",
        "app delete-resource",
        "app diff",
        "app edit",
        "app get",
        "app get-resource",
        "app history",
        "app list",
        "app logs",
        "app manifests",
        "app patch",
        "app patch-resource",
        "app remove-source",
        "app resources",
        "app rollback",
        "app set",
        "app sync",
        "app terminate-op",
        "app unset",
        "app wait",
        "appset create",
        "appset list",
        "cert add-ssh",
        "cert list",
        "cluster add",
        "cluster get",
        "cluster list",
        "cluster rm",
        "cluster rotate-auth",
        "cluster set",
        "completion",
        "configure",
        "context",
        "login",
        "logout",
        "proj add-destination",
        "proj create",
        "proj edit",
        "proj get",
        "proj list",
        "proj add-source",
        "proj add-source-namespace",
        "proj allow-cluster-resource",
        "proj allow-namespace-resource",
        "proj add-destination-service-account",
        "proj add-orphaned-ignore",
        "proj delete",
        "proj role add-group",
        "proj role add-policy",
        "proj role create",
        "proj role create-token",
        "proj role delete",
        "proj role delete-token",
        "proj role get",
        "proj role list",
        "proj role list-tokens",
        "proj source-integrity git policies add",
        "proj set",
        "proj windows add",
        "relogin",
        "repo add",
        "repo get",
        "repo list",
        "repo rm",
        "repocreds add",
        "repocreds list",
        "version",
    ];

    #[test]
    fn every_verb_of_argocd_is_here_or_has_something_instead() {
        let program = adapt(Program::command());
        for verb in OF_ARGO {
            let words: Vec<String> = std::iter::once("tiphys")
                .chain(verb.split(' '))
                .map(str::to_owned)
                .collect();
            let found = verb
                .split(' ')
                .try_fold(&program, |command, word| command.find_subcommand(word))
                .is_some();
            assert!(found || instead(&words, &program).is_some(), "{verb}");
            assert!(
                !found || instead(&words, &program).is_none(),
                "{verb} exists"
            );
        }
    }

    #[test]
    fn the_verb_and_its_replacement_are_named() {
        let program = adapt(Program::command());
        let of = |line: &str| {
            instead(
                &line.split(' ').map(str::to_owned).collect::<Vec<_>>(),
                &program,
            )
        };
        assert_eq!(
            of("tiphys admin repo generate-spec").as_deref(),
            Some(
                "argocd admin repo does not exist in tiphys. Instead: tiphys repo add, or a Secret \
                 with the label argocd.argoproj.io/secret-type: repository"
            )
        );
        assert!(
            of("tiphys --server localhost admin dashboard --port 1")
                .is_some_and(|t| t.contains("tiphys up"))
        );
        assert_eq!(of("tiphys cluster rm prod"), None);
        assert_eq!(of("tiphys app nonsense"), None);
    }
}
