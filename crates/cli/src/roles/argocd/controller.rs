//! `argocd-application-controller`: only the Application controller, as a replacement for Argo
//! CD's, next to its servers.

use super::{CONTROLLER, arguments, line::Said};
use crate::{
    kubectl::kube::KubeArgs,
    roles::{
        controller::{ControllerArgs, terminated},
        logs::Logs,
    },
};
use clap::Parser;
use std::net::Ipv4Addr;
use tiphys_cluster::Cluster;

/// What the role is made of, in our own flags.
#[derive(Parser)]
#[command(name = CONTROLLER, no_binary_name = true)]
pub struct Role {
    #[command(flatten)]
    controller: ControllerArgs,
    #[command(flatten)]
    kube: KubeArgs,
}

impl Role {
    fn of(said: &Said) -> anyhow::Result<Self> {
        let mut role: Self = arguments(said)?;
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
    use super::{super::controller_flags, *};
    use crate::roles::repositories::check_local;

    fn of(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Role> {
        let said = super::super::tests::said(&controller_flags::CONTROLLER, words, variables);
        Role::of(&said.expect("to be run"))
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

    #[tokio::test(flavor = "multi_thread")]
    async fn repositories_of_this_machine_are_refused() {
        check_local(|words| Role::parse_from(words).controller.repo_options()).await;
    }
}
