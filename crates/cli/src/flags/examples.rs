//! Examples for the help of every command. Main function: [`add`].

use clap::Command;

/// Keyed by the words of the command, without the program's name, which is prepended to each line.
const EXAMPLES: &[(&str, &[&str])] = &[
    (
        "account bcrypt",
        &["account bcrypt --password secret", "account bcrypt"],
    ),
    (
        "account can-i",
        &["account can-i sync applications 'default/*'"],
    ),
    (
        "account delete-token",
        &["account delete-token --account ci 3fd1b9c4"],
    ),
    (
        "appset create",
        &[
            "appset create sets.yaml",
            "appset create sets.yaml --upsert",
        ],
    ),
    (
        "appset plan",
        &[
            "appset plan sets.yaml",
            "appset plan previews --diff-exit-code 2",
            "appset plan sets.yaml -o json",
        ],
    ),
    (
        "appset confirm-deletion",
        &["appset confirm-deletion previews"],
    ),
    (
        "appset restore",
        &[
            "appset restore previews",
            "appset restore previews web-1",
            "appset restore previews --all",
            "appset restore previews --set-only",
        ],
    ),
    ("appset delete", &["appset delete previews -y"]),
    (
        "appset generate",
        &[
            "appset generate sets.yaml",
            "appset generate sets.yaml -o yaml",
            "appset generate sets.yaml --sort-by name",
        ],
    ),
    (
        "appset get",
        &["appset get previews", "appset get previews -o yaml"],
    ),
    (
        "appset list",
        &[
            "appset list",
            "appset list -p team -o name",
            "appset list --sort-by health",
        ],
    ),
    ("account get", &["account get --account ci"]),
    ("account get-user-info", &["account get-user-info"]),
    (
        "account list",
        &["account list", "account list --sort-by enabled"],
    ),
    (
        "account session-token",
        &["account session-token", "account session-token -o json"],
    ),
    (
        "admin app generate-spec",
        &[
            "admin app generate-spec web --repo https://github.com/argoproj/argocd-example-apps --path guestbook --dest-server https://kubernetes.default.svc --dest-namespace web",
            "admin app generate-spec -f web.yaml --helm-set replicas=2 --inline",
        ],
    ),
    (
        "admin proj generate-spec",
        &[
            "admin proj generate-spec team -d https://kubernetes.default.svc,shop -s https://git.example.com/team/*",
        ],
    ),
    (
        "admin app get-reconcile-results",
        &[
            "admin app get-reconcile-results before.yaml -n argocd",
            "admin app get-reconcile-results after.yaml --refresh --l team=shop",
        ],
    ),
    (
        "admin app diff-reconcile-results",
        &["admin app diff-reconcile-results before.yaml after.yaml"],
    ),
    (
        "admin proj update-role-policy",
        &[
            "admin proj update-role-policy '*' set 'action/*' --role '*deployer*' --resource applications --scope '*' --permission allow",
            "admin proj update-role-policy '*' remove override --role '*deployer*' --dry-run=false",
        ],
    ),
    (
        "admin proj generate-allow-list",
        &["admin proj generate-allow-list clusterrole.yaml team -o team.yaml"],
    ),
    (
        "admin repo generate-spec",
        &[
            "admin repo generate-spec git@git.example.com:team/shop --ssh-private-key-path ~/.ssh/id_ed25519",
            "admin repo generate-spec https://charts.example.com --type helm --name charts -o json",
        ],
    ),
    (
        "admin cluster generate-spec",
        &[
            "admin cluster generate-spec production --bearer-token TOKEN",
            "admin cluster generate-spec production --in-cluster --label team=shop",
        ],
    ),
    (
        "admin cluster kubeconfig",
        &["admin cluster kubeconfig https://10.0.0.1:6443 production.yaml"],
    ),
    (
        "admin dashboard",
        &[
            "admin dashboard",
            "admin dashboard --port 8081 --context production",
        ],
    ),
    (
        "admin cluster stats",
        &[
            "admin cluster stats -n argocd",
            "admin cluster stats --redis localhost:6379 --shard 1 --replicas 2",
        ],
    ),
    (
        "admin cluster shards",
        &["admin cluster shards --replicas 3 --sharding-method round-robin"],
    ),
    (
        "admin cluster namespaces enable-namespaced-mode",
        &["admin cluster namespaces enable-namespaced-mode team-*"],
    ),
    (
        "admin cluster namespaces disable-namespaced-mode",
        &["admin cluster namespaces disable-namespaced-mode team-*"],
    ),
    (
        "admin audit verify",
        &["admin audit verify /var/log/tiphys/audit.log"],
    ),
    (
        "admin audit list",
        &[
            "admin audit list /var/log/tiphys/audit.log --denied",
            "admin audit list audit.log --user alice -o json",
            "admin audit list audit.log --sort-by verdict",
        ],
    ),
    (
        "admin redis-initial-password",
        &["admin redis-initial-password -n argocd"],
    ),
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
        &[
            "app actions list web --kind Deployment",
            "app actions list web --sort-by action",
        ],
    ),
    (
        "app actions run",
        &["app actions run web restart --kind Deployment --resource-name web"],
    ),
    (
        "app add-source",
        &[
            "app add-source web --repo https://git.example.com/team/deploy.git --path extra --source-name extra",
        ],
    ),
    ("app confirm-deletion", &["app confirm-deletion web"]),
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
        "app delete-resource",
        &["app delete-resource web --kind ConfigMap --resource-name old"],
    ),
    (
        "app diff",
        &["app diff web", "app diff web --revision main"],
    ),
    ("app edit", &["app edit web"]),
    (
        "app get-resource",
        &[
            "app get-resource web --kind Pod -o yaml",
            "app get-resource web --kind Pod --filter-fields status.podIP,status.hostIP",
        ],
    ),
    (
        "app get",
        &[
            "app get web",
            "app get web --refresh -o tree",
            "app get web --watch",
        ],
    ),
    (
        "app history",
        &["app history web", "app history web --sort-by age"],
    ),
    (
        "app list",
        &[
            "app list",
            "app list -l team=a -o name",
            "app list --sort-by health",
            "app list --sort-by .metadata.creationTimestamp",
            "app list -p team --watch",
        ],
    ),
    (
        "app logs",
        &[
            "app logs web --follow",
            "app logs web --kind Deployment --name web --tail 100 --container app",
        ],
    ),
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
        "app patch-resource",
        &[
            "app patch-resource web --kind ConfigMap --resource-name settings --patch '{\"data\": {\"colour\": \"green\"}}'",
        ],
    ),
    (
        "app remove-source",
        &[
            "app remove-source web --source-position 2",
            "app remove-source web --source-name extra",
        ],
    ),
    (
        "app resources",
        &[
            "app resources web",
            "app resources web --output tree=detailed",
            "app resources web --sort-by kind",
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
    (
        "app unset",
        &[
            "app unset web -p replicas",
            "app unset web --source-position 1 --kustomize-image node",
        ],
    ),
    ("app wait", &["app wait web --health --timeout 300"]),
    (
        "apply",
        &[
            "apply -f deploy/",
            "apply -k overlays/prod",
            "apply -f web.yaml --dry-run=server",
        ],
    ),
    (
        "apprepository-controller",
        &[
            "apprepository-controller --namespace=kubeapps --repo-sync-image=tiphys:latest --repo-sync-cmd=asset-syncer --database-url=postgres:5432 --database-user=postgres --database-name=assets",
        ],
    ),
    (
        "asset-syncer",
        &[
            "asset-syncer sync --database-url=postgres:5432 --database-user=postgres --namespace=kubeapps bitnami https://charts.bitnami.com/bitnami helm",
            "asset-syncer delete bitnami --namespace=kubeapps",
        ],
    ),
    (
        "catalog install",
        &[
            "catalog install argo/argo-cd --preview",
            "catalog install argo/argo-cd --diff",
            "catalog install podinfo web --version 6.7.0 --set replicaCount=2 > apps/web.yaml",
            "catalog install podinfo web -f values.yaml --auto-sync --create",
            "catalog install podinfo web --commit-to git@github.com:team/deploy.git --path apps/web.yaml",
        ],
    ),
    (
        "catalog upgrade",
        &[
            "catalog upgrade podinfo --preview",
            "catalog upgrade podinfo --version 6.8.0 --yes",
            "catalog upgrade podinfo --prefer ours --set replicaCount=3",
        ],
    ),
    (
        "catalog rollback",
        &[
            "catalog rollback podinfo",
            "catalog rollback podinfo --preview",
            "catalog rollback podinfo --to 6.7.0 --yes",
        ],
    ),
    (
        "catalog updates",
        &[
            "catalog updates",
            "catalog updates -o json",
            "catalog updates --sort-by chart",
        ],
    ),
    (
        "catalog repos add",
        &[
            "catalog repos add argo https://argoproj.github.io/argo-helm",
            "catalog repos add podinfo oci://ghcr.io/stefanprodan/charts --oci-repositories podinfo",
            "catalog repos add team https://charts.example.com --username ci --password secret --filter '.category == \"Database\"'",
        ],
    ),
    (
        "catalog repos list",
        &["catalog repos list", "catalog repos list -o wide"],
    ),
    ("catalog repos rm", &["catalog repos rm argocd/argo"]),
    (
        "catalog search",
        &[
            "catalog search prometheus",
            "catalog search database --repo bitnami --keyword sql -o wide",
            "catalog search --facets",
        ],
    ),
    (
        "catalog show",
        &["catalog show argo/argo-cd", "catalog show argo-cd --readme"],
    ),
    ("catalog sync", &["catalog sync", "catalog sync argo"]),
    (
        "catalog values",
        &[
            "catalog values argo-cd",
            "catalog values argo-cd --version 7.0.0 --schema",
        ],
    ),
    (
        "catalog versions",
        &[
            "catalog versions argo-cd",
            "catalog versions argo-cd -o name",
        ],
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
            "cert list --sort-by info",
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
        "cluster add",
        &[
            "cluster add staging",
            "cluster add staging --name far --namespace shop --namespace billing -y",
            "cluster add eks --aws-cluster-name shop --aws-role-arn arn:aws:iam::1:role/deploy",
        ],
    ),
    (
        "cluster get",
        &["cluster get https://kubernetes.default.svc"],
    ),
    (
        "cluster list",
        &["cluster list", "cluster list --sort-by version"],
    ),
    (
        "cluster rm",
        &["cluster rm far", "cluster rm https://10.0.0.1:6443 -y"],
    ),
    ("cluster rotate-auth", &["cluster rotate-auth far"]),
    (
        "cluster set",
        &[
            "cluster set far --name staging",
            "cluster set far --namespace '*' --label env=prod",
        ],
    ),
    (
        "completion",
        &["completion bash > /etc/bash_completion.d/tiphys"],
    ),
    (
        "configure",
        &[
            "configure --prompts-enabled=true",
            "configure --prompts-enabled=false",
        ],
    ),
    ("context", &["context", "context localhost:8080"]),
    (
        "control-plane",
        &["control-plane --bootstrap --kubeconfig ~/.kube/config"],
    ),
    (
        "dex",
        &["dex gendexcfg -n argocd", "dex rundex --disable-tls"],
    ),
    (
        "diff",
        &[
            "diff -f deploy/",
            "diff -k overlays/prod --prune -l app=web",
        ],
    ),
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
    ("relogin", &["relogin", "relogin --password secret"]),
    ("logout", &["logout localhost:8080"]),
    ("gpg add", &["gpg add --from key.asc"]),
    ("gpg get", &["gpg get 4AEE18F83AFDEB23"]),
    (
        "gpg list",
        &[
            "gpg list",
            "gpg list -o json",
            "gpg list --sort-by identity",
        ],
    ),
    ("gpg rm", &["gpg rm 4AEE18F83AFDEB23"]),
    (
        "proj add-signature-key",
        &["proj add-signature-key team 4AEE18F83AFDEB23"],
    ),
    (
        "proj add-destination",
        &[
            "proj add-destination team https://kubernetes.default.svc shop",
            "proj add-destination team in-cluster shop --name",
        ],
    ),
    (
        "proj add-destination-service-account",
        &["proj add-destination-service-account team https://kubernetes.default.svc shop deployer"],
    ),
    (
        "proj add-orphaned-ignore",
        &["proj add-orphaned-ignore team apps Deployment --name scratch-*"],
    ),
    (
        "proj add-source",
        &["proj add-source team https://git.example.com/team/deploy.git"],
    ),
    (
        "proj add-source-namespace",
        &["proj add-source-namespace team team-apps"],
    ),
    (
        "proj allow-cluster-resource",
        &[
            "proj allow-cluster-resource team rbac.authorization.k8s.io ClusterRole",
            "proj allow-cluster-resource team '' Namespace team-*",
        ],
    ),
    (
        "proj allow-namespace-resource",
        &["proj allow-namespace-resource team apps Deployment --list allow"],
    ),
    (
        "proj create",
        &[
            "proj create team -d https://kubernetes.default.svc,shop -s https://git.example.com/team/*",
            "proj create -f team.yaml --upsert",
        ],
    ),
    ("proj delete", &["proj delete team"]),
    (
        "proj deny-cluster-resource",
        &["proj deny-cluster-resource team rbac.authorization.k8s.io ClusterRole"],
    ),
    (
        "proj deny-namespace-resource",
        &["proj deny-namespace-resource team '' Secret"],
    ),
    ("proj edit", &["proj edit team"]),
    (
        "proj remove-destination",
        &["proj remove-destination team https://kubernetes.default.svc shop"],
    ),
    (
        "proj remove-destination-service-account",
        &[
            "proj remove-destination-service-account team https://kubernetes.default.svc shop deployer",
        ],
    ),
    (
        "proj remove-orphaned-ignore",
        &["proj remove-orphaned-ignore team apps Deployment --name scratch-*"],
    ),
    (
        "proj remove-source",
        &["proj remove-source team https://git.example.com/team/deploy.git"],
    ),
    (
        "proj remove-source-namespace",
        &["proj remove-source-namespace team team-apps"],
    ),
    (
        "proj role add-group",
        &["proj role add-group team dev example:developers"],
    ),
    (
        "proj role add-policy",
        &[
            "proj role add-policy team dev -a sync -o *",
            "proj role add-policy team dev -a get -o * -r logs",
        ],
    ),
    (
        "proj role create",
        &["proj role create team dev --description Developers"],
    ),
    (
        "proj role create-token",
        &[
            "proj role create-token team ci --expires-in 12h",
            "proj role create-token team ci --id nightly --token-only",
        ],
    ),
    ("proj role delete", &["proj role delete team dev"]),
    (
        "proj role delete-token",
        &["proj role delete-token team ci 1696769937"],
    ),
    ("proj role get", &["proj role get team dev"]),
    (
        "proj role list",
        &[
            "proj role list team",
            "proj role list team -o json",
            "proj role list team --sort-by name",
        ],
    ),
    (
        "proj role list-tokens",
        &["proj role list-tokens team ci --unixtime"],
    ),
    (
        "proj role remove-group",
        &["proj role remove-group team dev example:developers"],
    ),
    (
        "proj role remove-policy",
        &["proj role remove-policy team dev -a sync -o *"],
    ),
    (
        "proj set",
        &[
            "proj set team --description Shop",
            "proj set team --allow-cluster-resource /Namespace/team-* --orphaned-resources-warn",
        ],
    ),
    (
        "proj source-integrity git policies add",
        &[
            "proj source-integrity git policies add team --repo-url https://git.example.com/* --gpg-mode strict --gpg-key 4AEE18F83AFDEB23",
        ],
    ),
    (
        "proj source-integrity git policies delete",
        &["proj source-integrity git policies delete team 1 3"],
    ),
    (
        "proj source-integrity git policies list",
        &["proj source-integrity git policies list team"],
    ),
    (
        "proj source-integrity git policies update",
        &[
            "proj source-integrity git policies update team 0 --gpg-mode head --add-gpg-key 4AEE18F83AFDEB23",
        ],
    ),
    (
        "proj windows add",
        &[
            "proj windows add team --kind allow --schedule '0 22 * * *' --duration 1h --applications '*'",
            "proj windows add team --kind deny --schedule '30 10 * * *' --duration 30m --namespaces default,prod-* --manual-sync --time-zone Europe/Berlin",
        ],
    ),
    ("proj windows delete", &["proj windows delete team 0"]),
    (
        "proj windows disable-manual-sync",
        &["proj windows disable-manual-sync team 0"],
    ),
    (
        "proj windows disable-sync-overrun",
        &["proj windows disable-sync-overrun team 0"],
    ),
    (
        "proj windows enable-manual-sync",
        &["proj windows enable-manual-sync team 0"],
    ),
    (
        "proj windows enable-sync-overrun",
        &["proj windows enable-sync-overrun team 0"],
    ),
    (
        "proj windows list",
        &[
            "proj windows list team",
            "proj windows list team --sort-by status",
        ],
    ),
    (
        "proj windows update",
        &["proj windows update team 0 --duration 2h"],
    ),
    ("proj get", &["proj get default"]),
    ("proj list", &["proj list", "proj list --sort-by created"]),
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
    ("repo list", &["repo list", "repo list --sort-by status"]),
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
        &[
            "repocreds list",
            "repocreds list -o url",
            "repocreds list --sort-by url",
        ],
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
    use crate::{client::ConnectArgs, commands::ClientCommand, flags::adapt};
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
            .filter(|(verb, _)| {
                ![
                    "control-plane",
                    "apprepository-controller",
                    "asset-syncer",
                    "dex",
                ]
                .contains(verb)
            })
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
