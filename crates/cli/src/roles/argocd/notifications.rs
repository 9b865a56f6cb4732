//! `argocd-notifications`, as a replacement for Argo CD's notifications controller.

use super::{NOTIFICATIONS, line::Said};
use crate::{
    commands::{self, KubeArgs},
    roles::{
        controller::terminated, git::GitArgs, logs::Logs, metrics, repo_server::RepoServerArgs,
        repositories::RepositoryArgs, wire::ControlPlane,
    },
};
use anyhow::bail;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use std::net::Ipv4Addr;
use tiphys_cluster::{Cluster, RecordsOptions};
use tiphys_controllers::{
    metrics::report::Choice,
    notifications::{self, CONFIG_MAP, Dependencies, SECRET},
};
use tokio_util::sync::CancellationToken;

/// What the role is made of, in our own flags.
#[derive(Parser)]
#[command(name = NOTIFICATIONS, no_binary_name = true)]
struct Role {
    /// Applications evaluated at once
    #[arg(long, default_value_t = 1)]
    processors_count: usize,
    /// ConfigMap with the configuration
    #[arg(long, default_value = CONFIG_MAP)]
    config_map_name: String,
    /// Secret of the configuration
    #[arg(long, default_value = SECRET)]
    secret_name: String,
    /// Namespaces with Applications beside it
    #[arg(long, value_name = "NAME", value_delimiter = ',')]
    application_namespaces: Vec<String>,
    /// Port of /metrics and /healthz
    #[arg(long, value_name = "PORT", default_value_t = 9001)]
    metrics_port: u16,
    /// Namespaces may configure notifications of their own Applications
    #[arg(long)]
    self_service_notification_enabled: bool,
    #[command(flatten)]
    repo_server: RepoServerArgs,
    #[command(flatten)]
    repositories: RepositoryArgs,
    #[command(flatten)]
    git: GitArgs,
    #[command(flatten)]
    kube: KubeArgs,
}

impl Role {
    /// The variables have already been read by Argo CD's rules.
    fn flags() -> clap::Command {
        commands::adapt(Self::command()).mut_args(|arg| arg.env(clap::builder::Resettable::Reset))
    }

    fn of(said: &Said) -> anyhow::Result<Self> {
        if let Some(name) = said.refused() {
            bail!("{name} is not there yet");
        }
        let matches = Self::flags().try_get_matches_from(said.words())?;
        Ok(Self::from_arg_matches(&matches)?)
    }

    /// The namespaces beside the own one; none, as upstream's, if there is no word of them.
    fn namespaces(&self) -> Vec<String> {
        let given = self.application_namespaces.iter().map(|n| n.trim());
        given.filter(|n| !n.is_empty()).map(str::to_owned).collect()
    }
}

/// Runs until stopped.
pub async fn run(said: Said, _logs: Logs) -> anyhow::Result<()> {
    let role = Role::of(&said)?;
    let cluster = Cluster::connect(role.kube.options()).await?;
    let namespace = role
        .kube
        .namespace()
        .unwrap_or(cluster.default_namespace())
        .to_owned();
    let records = RecordsOptions {
        application_namespaces: Some(role.namespaces()),
        ..RecordsOptions::new(&namespace)
    };
    let repositories = role.repositories.folder()?;
    let options = role.git.options();
    let mut plane =
        ControlPlane::start(cluster, records, repositories.path.clone(), options).await?;
    plane.repo_server = role.repo_server.client()?;
    let stop = CancellationToken::new();
    // Like upstream's, it is the only one: its role may create no leases.
    let self_service = role
        .self_service_notification_enabled
        .then(|| plane.self_service(&role.config_map_name, &role.secret_name));
    let dependencies = Dependencies {
        self_service,
        workers: role.processors_count,
        config_map: role.config_map_name,
        secret: role.secret_name,
        ..plane.notifications(None)?
    };
    metrics::of_notifications(
        (
            Ipv4Addr::UNSPECIFIED.into(),
            role.metrics_port,
            "--metrics-port",
        ),
        dependencies.metrics.clone(),
        plane.report(Choice::default()),
        stop.clone(),
    )
    .await?;
    let running = tokio::spawn(notifications::run(dependencies, stop.clone()));
    tracing::info!(namespace, "{NOTIFICATIONS} begins");
    terminated().await?;
    stop.cancel();
    running.await?;
    drop(repositories);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{
        flags::Here,
        line::{Line, read},
        notifications_flags,
    };
    use super::*;

    fn of(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Role> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let variable = |name: &str| {
            let found = variables.iter().find(|(n, _)| *n == name);
            found.map(|(_, v)| (*v).to_owned())
        };
        match read(&notifications_flags::NOTIFICATIONS, &words, variable) {
            Ok(Line::Run(said)) => Role::of(&said),
            _ => bail!("not to be run"),
        }
    }

    #[test]
    fn every_flag_is_one_of_ours() {
        Role::flags().debug_assert();
        let flags = Role::flags();
        for row in notifications_flags::NOTIFICATIONS.rows {
            if let Here::Flag(flag) | Here::Always(flag) = row.here {
                let is_there = flags.get_arguments().any(|a| a.get_long() == Some(flag));
                assert!(is_there, "{flag}");
            }
        }
    }

    #[test]
    fn what_is_said_arrives() {
        let role = of(
            &["--config-map-name", "cm", "-n", "cd"],
            &[
                ("ARGOCD_NOTIFICATION_CONTROLLER_PROCESSORS_COUNT", "4"),
                ("ARGOCD_APPLICATION_NAMESPACES", "a,b"),
            ],
        );
        let role = role.expect("valid");
        assert_eq!(role.kube.namespace(), Some("cd"));
        assert_eq!((role.processors_count, &*role.config_map_name), (4, "cm"));
        assert_eq!(role.secret_name, SECRET);
        assert_eq!(role.namespaces(), ["a", "b"]);
        assert_eq!(role.metrics_port, 9001);
        let text = format!("{:?}", role.repo_server);
        let address = "Some(\"argocd-repo-server:8081\")";
        assert!(text.contains(address), "{text}");
        assert!(of(&["--app-label-selector", "a=b"], &[]).is_err());
        let variable = "ARGOCD_NOTIFICATION_CONTROLLER_SELF_SERVICE_NOTIFICATION_ENABLED";
        for (words, variables, expected) in [
            (&["--self-service-notification-enabled"][..], &[][..], true),
            (&[], &[(variable, "true")], true),
            (&[], &[(variable, "false")], false),
            (&[], &[], false),
        ] {
            let role = of(words, variables).expect("valid");
            assert_eq!(role.self_service_notification_enabled, expected);
        }
    }
}
