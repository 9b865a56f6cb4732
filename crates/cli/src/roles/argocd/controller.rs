//! `argocd-application-controller`: only the Application controller, as a replacement for Argo
//! CD's, next to its servers.

use super::{CONTROLLER, line::Said};
use crate::{
    commands::{self, KubeArgs},
    roles::{
        controller::{ControllerArgs, terminated},
        logs::Logs,
    },
};
use anyhow::bail;
use clap::{CommandFactory as _, FromArgMatches as _, Parser};
use std::net::Ipv4Addr;
use tiphys_cluster::Cluster;

/// What the role is made of, in our own flags.
#[derive(Parser)]
#[command(name = CONTROLLER, no_binary_name = true)]
struct Role {
    #[command(flatten)]
    controller: ControllerArgs,
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
        let mut role = Self::from_arg_matches(&Self::flags().try_get_matches_from(said.words())?)?;
        role.controller.replicas = role.controller.replicas.like_argo_cds()?;
        Ok(role)
    }
}

/// Runs until stopped.
pub async fn run(said: Said, logs: Logs) -> anyhow::Result<()> {
    let Role { controller, kube } = Role::of(&said)?;
    let cluster = Cluster::connect(kube.options()).await?;
    let namespace = kube
        .namespace()
        .unwrap_or(cluster.default_namespace())
        .to_owned();
    let ready = controller
        .ready(
            (cluster, &namespace),
            said.overrides(),
            Ipv4Addr::UNSPECIFIED.into(),
            logs,
        )
        .await?;
    let (controller, shutdown) = ready.begin();
    tracing::info!(namespace, "{CONTROLLER} begins");
    terminated().await?;
    shutdown.cancel();
    Ok(controller.await?)
}

#[cfg(test)]
mod tests {
    use super::super::{
        flags,
        line::{Line, read},
    };
    use super::*;

    fn of(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Role> {
        let words: Vec<String> = words.iter().map(|w| (*w).to_owned()).collect();
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(n, _)| *n == name)
                .map(|(_, v)| (*v).to_owned())
        };
        match read(&flags::CONTROLLER, &words, variable) {
            Ok(Line::Run(said)) => Role::of(&said),
            _ => bail!("not to be run"),
        }
    }

    #[test]
    fn every_flag_is_one_of_ours() {
        Role::flags().debug_assert();
        for row in flags::CONTROLLER.rows {
            if let flags::Here::Flag(flag) | flags::Here::Always(flag) = row.here {
                assert!(
                    Role::flags()
                        .get_arguments()
                        .any(|arg| arg.get_long() == Some(flag)),
                    "{flag}"
                );
            }
        }
    }

    #[test]
    fn what_is_said_arrives() {
        let role = of(
            &[
                "-n",
                "cd",
                "--metrics-port",
                "9000",
                "--otlp-insecure=false",
                "--hydrator-enabled",
                "--redis-insecure-skip-tls-verify",
            ],
            &[
                ("ARGOCD_CONTROLLER_REPLICAS", "3"),
                ("POD_NAME", "controller-1"),
                ("ARGOCD_CONTROLLER_SHARD", "-1"),
                ("REDIS_PASSWORD", "p"),
            ],
        );
        let role = role.expect("valid");
        assert_eq!(role.kube.namespace(), Some("cd"));
        let text = format!("{:?}", role.controller);
        for part in [
            "metrics_port: 9000",
            "shard: Some(1)",
            "replicas: 3",
            "server: Some(\"argocd-redis:6379\")",
            "otlp_insecure: Some(false)",
            "hydrator_enabled: true",
            "hydration_processors: 5",
            "commit_server: Some(\"argocd-commit-server:8086\")",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(
            of(
                &["--sharding-method", "legacy"],
                &[
                    ("ARGOCD_CONTROLLER_REPLICAS", "2"),
                    ("POD_NAME", "nameless")
                ]
            )
            .is_err()
        );
        assert!(of(&["--status-processors", "-1"], &[]).is_err());
    }
}
