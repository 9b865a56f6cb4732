//! `argocd-notifications`, as a replacement for Argo CD's notifications controller.

use super::{
    NOTIFICATIONS, arguments,
    line::Said,
    plane::{self, Begun, PlaneArgs},
};
use crate::roles::{controller::terminated, logs::Logs, metrics};
use clap::Parser;
use std::net::Ipv4Addr;
use tiphys_cluster::records::SettingsOverrides;
use tiphys_controllers::{
    metrics::report::Choice,
    notifications::{self, CONFIG_MAP, Dependencies, SECRET},
};
use tokio_util::sync::CancellationToken;

/// What the role is made of, in our own flags.
#[derive(Parser)]
#[command(name = NOTIFICATIONS, no_binary_name = true)]
pub struct Role {
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
    plane: PlaneArgs,
}

/// Runs until stopped.
pub async fn run(said: Said, _logs: Logs) -> anyhow::Result<()> {
    let role: Role = arguments(&said)?;
    // None, as upstream's, if there is no word of them.
    let others = plane::named(&role.application_namespaces);
    let place = role.plane.connect().await?;
    let begun = role
        .plane
        .begin(place, others, SettingsOverrides::default());
    let Begun {
        plane,
        namespace,
        repositories,
    } = begun.await?;
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
    use super::{super::notifications_flags, *};

    fn of(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Role> {
        super::super::tests::of(&notifications_flags::NOTIFICATIONS, words, variables)
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
        assert_eq!(role.plane.kube.namespace(), Some("cd"));
        assert_eq!((role.processors_count, &*role.config_map_name), (4, "cm"));
        assert_eq!(role.secret_name, SECRET);
        assert_eq!(plane::named(&role.application_namespaces), ["a", "b"]);
        assert_eq!(role.metrics_port, 9001);
        let text = format!("{:?}", role.plane);
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
