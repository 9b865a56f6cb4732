//! Examples for the help of every command. Main function: [`add`].

use clap::Command;

/// Keyed by the words of the command, without the program's name, which is prepended to each line.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "account can-i",
        &["account can-i sync applications 'default/*'"],
    ),
    (
        "account delete-token",
        &["account delete-token --account ci 3fd1b9c4"],
    ),
    ("account get", &["account get --account ci"]),
    ("account get-user-info", &["account get-user-info"]),
    ("account list", &["account list"]),
    ("admin export", &["admin export -n argocd -o backup.yaml"]),
    (
        "admin import",
        &[
            "admin import --dry-run backup.yaml",
            "admin import backup.yaml",
        ],
    ),
    (
        "admin initial-password",
        &["admin initial-password -n argocd"],
    ),
    (
        "admin settings resource-overrides",
        &[
            "admin settings resource-overrides health deployment.yaml --argocd-cm-path argocd-cm.yaml",
        ],
    ),
    (
        "app actions list",
        &["app actions list web --kind Deployment"],
    ),
    (
        "app actions run",
        &["app actions run web restart --kind Deployment --resource-name web"],
    ),
    (
        "app create",
        &[
            "app create web --repo https://github.com/argoproj/argocd-example-apps --path guestbook --dest-server https://kubernetes.default.svc --dest-namespace web",
        ],
    ),
    (
        "app delete",
        &["app delete web", "app delete web --cascade=false --yes"],
    ),
    (
        "app diff",
        &["app diff web", "app diff web --revision main"],
    ),
    ("app get", &["app get web", "app get web --refresh -o tree"]),
    ("app history", &["app history web"]),
    ("app list", &["app list", "app list -l team=a -o name"]),
    (
        "app manifests",
        &["app manifests web", "app manifests web --source live"],
    ),
    (
        "app patch",
        &[
            "app patch web --patch '[{\"op\": \"replace\", \"path\": \"/spec/source/path\", \"value\": \"prod\"}]'",
        ],
    ),
    (
        "app resources",
        &[
            "app resources web",
            "app resources web --output tree=detailed",
        ],
    ),
    ("app rollback", &["app rollback web 3"]),
    (
        "app set",
        &["app set web --revision v1.2", "app set web -p replicas=3"],
    ),
    (
        "app sync",
        &[
            "app sync web",
            "app sync web --dry-run --plan",
            "app sync -l team=a",
            "app sync web --resource apps:Deployment:web",
        ],
    ),
    ("app terminate-op", &["app terminate-op web"]),
    ("app wait", &["app wait web --health --timeout 300"]),
    (
        "apply",
        &["apply -f deploy/", "apply -f web.yaml --dry-run=server"],
    ),
    (
        "cert add-ssh",
        &["cert add-ssh --batch --from ~/.ssh/known_hosts"],
    ),
    (
        "cert add-tls",
        &["cert add-tls git.example.com --from git.example.com.pem"],
    ),
    (
        "cert list",
        &[
            "cert list",
            "cert list --cert-type ssh --hostname-pattern '*.example.com'",
        ],
    ),
    (
        "cert rm",
        &[
            "cert rm git.example.com",
            "cert rm git.example.com --cert-type https",
        ],
    ),
    (
        "cluster get",
        &["cluster get https://kubernetes.default.svc"],
    ),
    ("cluster list", &["cluster list"]),
    (
        "completion",
        &["completion bash > /etc/bash_completion.d/tiphys"],
    ),
    ("context", &["context", "context localhost:8080"]),
    (
        "control-plane",
        &["control-plane --bootstrap --kubeconfig ~/.kube/config"],
    ),
    ("diff", &["diff -f deploy/"]),
    ("helm lint", &["helm lint ./chart --strict"]),
    (
        "helm template",
        &["helm template web ./chart -f values.yaml --set replicas=3"],
    ),
    (
        "kustomize build",
        &[
            "kustomize build overlays/prod",
            "kustomize build overlays/prod --enable-helm --output prod.yaml",
        ],
    ),
    (
        "install",
        &[
            "install --image registry.example.com/tiphys:0.1",
            "install --print --without-crds",
        ],
    ),
    (
        "login",
        &["login localhost:8080 --plaintext --username admin"],
    ),
    ("logout", &["logout localhost:8080"]),
    ("gpg add", &["gpg add --from key.asc"]),
    ("gpg get", &["gpg get 4AEE18F83AFDEB23"]),
    ("gpg list", &["gpg list", "gpg list -o json"]),
    ("gpg rm", &["gpg rm 4AEE18F83AFDEB23"]),
    (
        "proj add-signature-key",
        &["proj add-signature-key team 4AEE18F83AFDEB23"],
    ),
    ("proj get", &["proj get default"]),
    ("proj list", &["proj list"]),
    (
        "proj remove-signature-key",
        &["proj remove-signature-key team 4AEE18F83AFDEB23"],
    ),
    (
        "repo add",
        &["repo add https://git.example.com/team/deploy.git --username me --password secret"],
    ),
    (
        "repo get",
        &["repo get https://git.example.com/team/deploy.git"],
    ),
    ("repo list", &["repo list"]),
    (
        "repo rm",
        &["repo rm https://git.example.com/team/deploy.git"],
    ),
    (
        "repocreds add",
        &[
            "repocreds add https://git.example.com/team --username me --password secret",
            "repocreds add git@git.example.com:team --ssh-private-key-path ~/.ssh/id_ed25519",
        ],
    ),
    (
        "repocreds list",
        &["repocreds list", "repocreds list -o url"],
    ),
    (
        "repocreds rm",
        &["repocreds rm https://git.example.com/team"],
    ),
    ("version", &["version", "version --client"]),
];

/// Adds the examples to a command and to those below it; `path`: its words.
pub fn add(command: Command, path: &str) -> Command {
    let command = command.mut_subcommands(|sub| {
        let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
        add(sub, &path)
    });
    let of_group = |known: &str| {
        path.strip_prefix(known)
            .is_some_and(|rest| rest.starts_with(' '))
            && !command.has_subcommands()
    };
    let found = EXAMPLES
        .iter()
        .find(|(known, _)| *known == path)
        .or_else(|| EXAMPLES.iter().find(|(known, _)| of_group(known)));
    let Some((_, lines)) = found.filter(|_| command.get_after_help().is_none()) else {
        return command;
    };
    let lines: String = lines
        .iter()
        .map(|line| format!("\n  tiphys {line}"))
        .collect();
    command.after_help(format!("Examples:{lines}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client::ConnectArgs;
    use crate::commands::{ClientCommand, adapt};
    use clap::{CommandFactory as _, Parser};

    #[derive(Parser)]
    struct Program {
        #[command(flatten)]
        _connect: ConnectArgs,
        #[command(subcommand)]
        _command: ClientCommand,
    }

    fn leaves(command: &Command, path: &str, found: &mut Vec<(String, bool)>) {
        for sub in command
            .get_subcommands()
            .filter(|s| s.get_name() != "help" && !s.is_hide_set())
        {
            let path = format!("{path} {}", sub.get_name()).trim_start().to_owned();
            if sub.has_subcommands() {
                leaves(sub, &path, found)
            } else {
                found.push((path, sub.get_after_help().is_some()))
            }
        }
    }

    #[test]
    fn every_verb_has_examples_that_can_be_parsed() {
        let program = adapt(Program::command());
        let mut found = Vec::new();
        leaves(&program, "", &mut found);
        let without: Vec<&String> = found
            .iter()
            .filter(|(_, has)| !has)
            .map(|(path, _)| path)
            .collect();
        assert!(without.is_empty(), "{without:?}");
        let mut refused = Vec::new();
        // Quoted text is a single word in a shell.
        let lines = EXAMPLES
            .iter()
            .filter(|(verb, _)| *verb != "control-plane")
            .flat_map(|(_, lines)| *lines);
        for line in lines.filter(|line| !line.contains('\'')) {
            let words = line.split(" > ").next().unwrap_or_default().split(' ');
            if let Err(e) = adapt(Program::command())
                .try_get_matches_from(std::iter::once("tiphys").chain(words))
            {
                refused.push(format!("{line}: {e}"));
            }
        }
        assert!(refused.is_empty(), "{refused:#?}");
    }
}
