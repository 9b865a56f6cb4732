//! `argocd-applicationset-controller`, as a replacement for Argo CD's controller of ApplicationSets.

use super::{
    APPLICATION_SETS, arguments,
    line::Said,
    plane::{self, Begun, PlaneArgs},
};
use crate::roles::{
    controller::terminated, logs::Logs, metrics, replicas::ReplicaArgs, wire::ControlPlane,
};
use anyhow::Context as _;
use clap::Parser;
use std::net::{Ipv4Addr, SocketAddr};
use tiphys_controllers::{
    applicationset::{self, ControllerSettings, Dependencies},
    metrics::report::Choice,
};
use tiphys_server::Options;
use tiphys_sources::HostSettings;
use tokio_util::sync::CancellationToken;

/// The variable for `--policy`; a policy from there turns the policies of sets off.
const POLICY: &str = "ARGOCD_APPLICATIONSET_CONTROLLER_POLICY";

/// What the role is made of, in our own flags.
#[derive(Parser)]
#[command(name = APPLICATION_SETS, no_binary_name = true)]
pub struct Role {
    /// Address of /metrics
    #[arg(long, default_value = ":8080")]
    metrics_addr: String,
    /// Address of /healthz and /readyz
    #[arg(long, default_value = ":8081")]
    probe_addr: String,
    /// Address of /api/webhook
    #[arg(long, default_value = ":7000")]
    webhook_addr: String,
    /// Sets that are reconciled at once
    #[arg(long, default_value_t = 10)]
    concurrent_reconciliations: usize,
    /// Applications of one set that are written at once; 16 if it is not said
    #[arg(long, value_name = "COUNT")]
    concurrent_application_updates: Option<i64>,
    /// Labels of sets that the metric argocd_appset_labels shows
    #[arg(long, value_name = "LABEL", value_delimiter = ',')]
    metrics_applicationset_labels: Vec<String>,
    /// Only one of several replicas works
    #[arg(long)]
    enable_leader_election: bool,
    /// Writes nothing, and logs which Applications it would create, update and delete
    #[arg(long)]
    dry_run: bool,
    /// Proxy for requests to hosts of Git
    #[arg(long, value_name = "URL", default_value = "")]
    scm_proxy_url: String,
    /// Hosts that are reached without it
    #[arg(long, value_name = "HOSTS", default_value = "")]
    scm_no_proxy: String,
    #[command(flatten)]
    replicas: ReplicaArgs,
    #[command(flatten)]
    plane: PlaneArgs,
}

impl Role {
    fn of(said: &Said) -> anyhow::Result<Self> {
        arguments(said)
    }

    /// What does not override a setting of argocd-cmd-params-cm.
    fn settings(&self, said: &Said, variable: Option<&str>) -> ControllerSettings {
        let is_said = |flag: &str| said.text(flag).is_some_and(|value| !value.is_empty());
        let by_flag = is_said("policy") && variable.is_none_or(str::is_empty);
        let keeps_overrides = by_flag && !is_said("enable-policy-override");
        ControllerSettings {
            policy_override: keeps_overrides.then_some(true),
            dry_run: self.dry_run,
            concurrent_updates: self
                .concurrent_application_updates
                .map(|count| usize::try_from(count).unwrap_or_default().max(1)),
            hosts: HostSettings {
                proxy: self.scm_proxy_url.clone(),
                no_proxy: self.scm_no_proxy.clone(),
                ..HostSettings::default()
            },
            ..ControllerSettings::default()
        }
    }
}

/// Reads an address such as `:7000`; `None`: `0`, which is none.
fn address(text: &str) -> anyhow::Result<Option<SocketAddr>> {
    if text == "0" {
        return Ok(None);
    }
    let parsed = match text.strip_prefix(':') {
        Some(port) => port
            .parse()
            .ok()
            .map(|port| (Ipv4Addr::UNSPECIFIED, port).into()),
        None => text.parse().ok(),
    };
    parsed
        .map(Some)
        .with_context(|| format!("{text:?} is no address with a port"))
}

/// Runs until stopped.
pub async fn run(said: Said, _logs: Logs) -> anyhow::Result<()> {
    let role = Role::of(&said)?;
    let settings = role.settings(&said, std::env::var(POLICY).ok().as_deref());
    let (cluster, namespace) = role.plane.connect().await?;
    let others = said.text("applicationset-namespaces").unwrap_or_default();
    let others: Vec<String> = others.split(',').map(str::to_owned).collect();
    let (others, place) = (plane::named(&others), (cluster.clone(), namespace));
    let begun = role.plane.begin(place, others, said.overrides());
    let Begun {
        plane,
        namespace,
        repositories,
    } = begun.await?;
    let stop = CancellationToken::new();
    let leases = match role.enable_leader_election {
        true => role.replicas.start_for_sets(&cluster, &namespace).await,
        false => None,
    };
    let dependencies = Dependencies {
        workers: role.concurrent_reconciliations,
        settings,
        ..plane.application_sets(leases)
    };
    serve(&role, &plane, &stop).await?;
    let running = tokio::spawn(applicationset::run(dependencies, stop.clone()));
    tracing::info!(namespace, "{APPLICATION_SETS} begins");
    terminated().await?;
    stop.cancel();
    running.await?;
    drop(repositories);
    Ok(())
}

/// Opens the ports.
async fn serve(role: &Role, plane: &ControlPlane, stop: &CancellationToken) -> anyhow::Result<()> {
    if let Some(address) = address(&role.metrics_addr)? {
        let sets = plane.set_report(role.metrics_applicationset_labels.clone());
        let report = plane.report(Choice::default());
        metrics::of_sets(address, sets, report, stop.clone()).await?;
    }
    if let Some(address) = address(&role.probe_addr)? {
        metrics::probes(address, plane.records.clone(), stop.clone()).await?;
    }
    if let Some(address) = address(&role.webhook_addr)? {
        let server = plane.server(false, "", Options::default())?;
        metrics::webhook_of_sets(address, server, stop.clone()).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::applicationset_flags, *};

    fn said(words: &[&str], variables: &[(&str, &str)]) -> anyhow::Result<Said> {
        let program = &applicationset_flags::APPLICATION_SETS;
        super::super::tests::said(program, words, variables).context("not to be run")
    }

    #[test]
    fn what_is_said_arrives() {
        let words = [
            "--policy",
            "create-only",
            "-n",
            "cd",
            "--allowed-scm-providers",
            "a,b",
        ];
        let variables = [
            (
                "ARGOCD_APPLICATIONSET_CONTROLLER_CONCURRENT_RECONCILIATIONS",
                "4",
            ),
            ("ARGOCD_APPLICATIONSET_CONTROLLER_NAMESPACES", "team-*"),
            (
                "ARGOCD_APPLICATIONSET_CONTROLLER_ENABLE_SCM_PROVIDERS",
                "false",
            ),
        ];
        let said = said(&words, &variables).expect("valid");
        let role = Role::of(&said).expect("valid");
        assert_eq!(role.plane.kube.namespace(), Some("cd"));
        assert_eq!(role.concurrent_reconciliations, 4);
        let params = said.overrides().params;
        for (key, value) in [
            ("namespaces", "team-*"),
            ("policy", "create-only"),
            ("enable.scm.providers", "false"),
            ("allowed.scm.providers", "a,b"),
        ] {
            let key = format!("applicationsetcontroller.{key}");
            assert_eq!(params.get(&key).map(String::as_str), Some(value), "{key}");
        }
    }

    /// As in Argo CD, where a policy comes from decides whether sets may have their own.
    #[test]
    fn a_policy_of_a_flag_leaves_sets_theirs() {
        let of = |words: &[&str], variable: Option<&str>| {
            let variables: Vec<_> = variable.map(|v| (POLICY, v)).into_iter().collect();
            let said = said(words, &variables).expect("valid");
            let role = Role::of(&said).expect("valid");
            role.settings(&said, variable).policy_override
        };
        assert_eq!(of(&["--policy=sync"], None), Some(true));
        assert_eq!(of(&[], Some("sync")), None);
        assert_eq!(
            of(&["--policy=sync", "--enable-policy-override=false"], None),
            None
        );
        assert_eq!(of(&[], None), None);
    }

    #[test]
    fn addresses_as_go_writes_them() {
        for (text, expected) in [
            (":7000", Some("0.0.0.0:7000")),
            ("127.0.0.1:7000", Some("127.0.0.1:7000")),
            ("[::1]:7000", Some("[::1]:7000")),
            ("0", None),
        ] {
            let found = address(text).expect(text).map(|found| found.to_string());
            assert_eq!(found.as_deref(), expected, "{text}");
        }
        assert!(address("7000").is_err() && address("").is_err());
    }

    #[test]
    fn concurrent_writes_are_those_that_are_said() {
        let of = |words: &[&str], variables: &[(&str, &str)]| {
            let said = said(words, variables).expect("valid");
            let role = Role::of(&said).expect("valid");
            role.settings(&said, None).concurrent_updates
        };
        for (value, expected) in [("3", 3), ("0", 1), ("-1", 1), ("500", 500)] {
            let flag = format!("--concurrent-application-updates={value}");
            assert_eq!(of(&[flag.as_str()], &[]), Some(expected), "{value}");
        }
        assert_eq!(of(&[], &[]), None, "not Argo CD's default of one");
        // Argo CD takes 1 to 200 from the variable.
        for (value, expected) in [
            ("1", Some(1)),
            ("200", Some(200)),
            ("0", None),
            ("-1", None),
            ("201", None),
            ("many", None),
        ] {
            let name = "ARGOCD_APPLICATIONSET_CONTROLLER_CONCURRENT_APPLICATION_UPDATES";
            assert_eq!(of(&[], &[(name, value)]), expected, "{value}");
        }
    }

    #[test]
    fn a_dry_run_is_asked_for_by_flag_or_variable() {
        let of = |words: &[&str], variables: &[(&str, &str)]| {
            let said = said(words, variables).expect("valid");
            Role::of(&said)
                .expect("valid")
                .settings(&said, None)
                .dry_run
        };
        assert!(of(&["--dry-run"], &[]));
        assert!(of(
            &[],
            &[("ARGOCD_APPLICATIONSET_CONTROLLER_DRY_RUN", "true")]
        ));
        assert!(!of(&["--dry-run=false"], &[]) && !of(&[], &[]));
    }
}
