//! Several replicas of the control plane: their number, this one's identity, and which clusters it
//! gets.

use anyhow::{Context, bail};
use clap::Args;
use std::{sync::Arc, time::Duration};
use tiphys_cluster::{
    Cluster,
    leases::{
        Balance, DURATION, LeaseOptions, Leases, Loads,
        dynamic::{self, DynamicOptions},
    },
};
use tiphys_controllers::{application::Sharding, sharding::Method};

/// The prefix of the leases' names.
const GROUP: &str = "tiphys-application-controller";
const NOTIFICATIONS: &str = "tiphys-notifications";
const SETS_GROUP: &str = "tiphys-applicationset-controller";
const CHARTS_GROUP: &str = "tiphys-apprepository-controller";
const HYDRATOR_GROUP: &str = "tiphys-hydrator";
/// Minimum interval between changes of the weights of shards.
const REBALANCE: Duration = Duration::from_secs(600);

#[derive(Args, Debug)]
pub struct ReplicaArgs {
    /// Shards that the clusters are divided into, usually as many as there are replicas; further
    /// replicas wait
    #[arg(
        long,
        value_name = "N",
        default_value_t = 1,
        env = "ARGOCD_CONTROLLER_REPLICAS"
    )]
    replicas: usize,
    /// The one shard that this replica may take [default: any, first the one that ends the host's
    /// name]
    #[arg(
        long,
        value_name = "N",
        env = "ARGOCD_CONTROLLER_SHARD",
        allow_hyphen_values = true
    )]
    shard: Option<i64>,
    /// How work is divided: legacy, round-robin, consistent-hashing (clusters), or by-application
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "legacy",
        env = "ARGOCD_CONTROLLER_SHARDING_ALGORITHM"
    )]
    sharding_method: String,
    /// Name of this replica in its leases [default: the host's name]
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pod_name: Option<String>,
    /// As many shards as the Deployment has replicas; who has which is told in
    /// argocd-app-controller-shard-cm, as Argo CD's controllers do
    #[arg(long, env = "ARGOCD_ENABLE_DYNAMIC_CLUSTER_DISTRIBUTION")]
    dynamic_cluster_distribution_enabled: bool,
    /// Deployment whose replicas are counted then
    #[arg(
        long,
        value_name = "NAME",
        default_value = "argocd-application-controller",
        env = "ARGOCD_APPLICATION_CONTROLLER_NAME"
    )]
    deployment: String,
    /// Seconds between two signs of life in that ConfigMap, 10 to 60; after three without one the
    /// shard is another's
    #[arg(
        long,
        value_name = "SECONDS",
        default_value_t = 10,
        env = "ARGOCD_CONTROLLER_HEARTBEAT_TIME"
    )]
    heartbeat_time: u64,
    /// Without leases, if they are not permitted.
    #[arg(skip)]
    may_lack_leases: bool,
}

impl ReplicaArgs {
    /// Like the Pods of Argo CD's StatefulSet: each keeps the shard with its number, whether or not
    /// others use leases, with the permissions of Argo CD's role, which may not include leases.
    pub fn like_argo_cds(mut self) -> anyhow::Result<Self> {
        self.may_lack_leases = true;
        if self.dynamic_cluster_distribution_enabled {
            return Ok(self);
        }
        let (configured, name) = (self.configured(), self.name());
        self.shard = None;
        if self.replicas > 1 {
            let shard = configured.or_else(|| ordinal(&name));
            let shard = shard.with_context(|| {
                format!("hostname should end with shard number separated by '-' but got: {name}")
            })?;
            if shard >= self.replicas {
                tracing::warn!(
                    shard,
                    replicas = self.replicas,
                    "there is no shard of this number; this one stands by for shard 0"
                );
            }
            self.shard = i64::try_from(if shard < self.replicas { shard } else { 0 }).ok();
        }
        Ok(self)
    }

    /// Begins to acquire the one lease of notifications: only its holder sends.
    pub fn notifications(&self, cluster: &Cluster, namespace: &str) -> Leases {
        let options = LeaseOptions {
            group: NOTIFICATIONS.to_owned(),
            partition: "1".to_owned(),
            ..lease_options(namespace, &self.name(), 1, Method::Legacy)
        };
        Leases::start(cluster, options)
    }

    fn name(&self) -> String {
        self.pod_name
            .clone()
            .filter(|name| !name.is_empty())
            .unwrap_or_else(host_name)
    }

    /// Begins to acquire the lease of the one replica that works on ApplicationSets; `None` if
    /// leases are not permitted.
    pub async fn start_for_sets(&self, cluster: &Cluster, namespace: &str) -> Option<Leases> {
        let what = "the same ApplicationSets";
        one_lease(cluster, namespace, &self.name(), (SETS_GROUP, what)).await
    }

    /// The same of the one that hydrates.
    pub async fn start_for_hydrator(&self, cluster: &Cluster, namespace: &str) -> Option<Leases> {
        let what = "hydrating the same Applications";
        one_lease(cluster, namespace, &self.name(), (HYDRATOR_GROUP, what)).await
    }

    /// Begins to acquire leases.
    pub async fn start(&self, cluster: &Cluster, namespace: &str) -> anyhow::Result<Sharding> {
        let name = self.name();
        let (method, loads) = (self.method(), Arc::new(Loads::default()));
        let balance = (method == Method::ByApplication).then(|| Balance {
            loads: loads.clone(),
            every: REBALANCE,
        });
        if !self.dynamic_cluster_distribution_enabled {
            let options = LeaseOptions {
                balance,
                ..self.options(namespace, &name)?
            };
            let lone = options.pinned || options.count == 1;
            if self.may_lack_leases && lone && !Leases::permitted(cluster, namespace).await {
                tracing::warn!(
                    "this user may not create leases: nothing keeps a second controller from the same shard"
                );
                let leases = Leases::without(
                    options.count,
                    options.preferred.filter(|_| options.pinned).unwrap_or(0),
                );
                return Ok(Sharding::fixed(Arc::new(leases), method, loads));
            }
            return Ok(Sharding::fixed(
                Arc::new(Leases::start(cluster, options)),
                method,
                loads,
            ));
        }
        let (space, holder) = (namespace.to_owned(), name.clone());
        let options = DynamicOptions {
            deployment: self.deployment.clone(),
            name,
            configured: self.configured(),
            heartbeat: Duration::from_secs(if (10..=60).contains(&self.heartbeat_time) {
                self.heartbeat_time
            } else {
                10
            }),
            // The ConfigMap assigns the shard; other entries may belong to controllers that do not
            // use leases.
            leases: Arc::new(move |count, shard| LeaseOptions {
                preferred: shard,
                pinned: true,
                balance: balance.clone(),
                ..lease_options(&space, &holder, count, method)
            }),
        };
        let leases = dynamic::follow(cluster, options).await;
        let leases = leases.with_context(|| {
            format!(
                "the replicas of Deployment {} cannot be shared",
                self.deployment
            )
        })?;
        Ok(Sharding {
            leases,
            method,
            loads,
        })
    }

    fn method(&self) -> Method {
        Method::parse(&self.sharding_method).unwrap_or_else(|| {
            tracing::warn!(
                "sharding method {:?} is not known; it is legacy then",
                self.sharding_method
            );
            Method::Legacy
        })
    }

    /// Argo CD uses a negative number for an unset shard.
    fn configured(&self) -> Option<usize> {
        self.shard.and_then(|shard| usize::try_from(shard).ok())
    }

    fn options(&self, namespace: &str, name: &str) -> anyhow::Result<LeaseOptions> {
        let (count, configured) = (self.replicas.max(1), self.configured());
        if let Some(shard) = configured.filter(|shard| *shard >= count) {
            bail!(
                "there is no shard {shard} of {count}; choose one below {count}, or more --replicas"
            );
        }
        let options = lease_options(namespace, name, count, self.method());
        Ok(LeaseOptions {
            preferred: configured.or_else(|| ordinal(name)),
            pinned: configured.is_some(),
            ..options
        })
    }
}

fn lease_options(namespace: &str, name: &str, count: usize, method: Method) -> LeaseOptions {
    LeaseOptions {
        namespace: namespace.to_owned(),
        group: GROUP.to_owned(),
        // Two processes with the same name must be distinguishable.
        identity: format!("{name}_{:016x}", rand::random::<u64>()),
        count,
        partition: format!("{count}.{}", method.as_str()),
        preferred: None,
        pinned: false,
        duration: DURATION,
        clock: Arc::new(jiff::Timestamp::now),
        balance: None,
    }
}

/// The ordinal of a StatefulSet's Pod.
fn ordinal(name: &str) -> Option<usize> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// Begins to acquire the lease of the one `apprepository-controller` that makes Jobs; `None` if
/// leases are not permitted.
pub async fn start_for_chart_repositories(cluster: &Cluster, namespace: &str) -> Option<Leases> {
    let name = std::env::var("POD_NAME").unwrap_or_default();
    let name = if name.is_empty() { host_name() } else { name };
    let what = "making the same Jobs";
    one_lease(cluster, namespace, &name, (CHARTS_GROUP, what)).await
}

/// `what` a second controller would do without leases.
async fn one_lease(
    cluster: &Cluster,
    namespace: &str,
    name: &str,
    (group, what): (&str, &str),
) -> Option<Leases> {
    if !Leases::permitted(cluster, namespace).await {
        tracing::warn!(
            "this user may not create leases: nothing keeps a second controller from {what}"
        );
        return None;
    }
    let options = LeaseOptions {
        group: group.to_owned(),
        partition: "1".to_owned(),
        ..lease_options(namespace, name, 1, Method::Legacy)
    };
    Some(Leases::start(cluster, options))
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() {
        "tiphys".to_owned()
    } else {
        name.trim().to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(replicas: usize, shard: Option<i64>, method: &str) -> ReplicaArgs {
        ReplicaArgs {
            replicas,
            shard,
            sharding_method: method.to_owned(),
            pod_name: None,
            dynamic_cluster_distribution_enabled: false,
            deployment: String::new(),
            heartbeat_time: 10,
            may_lack_leases: false,
        }
    }

    #[test]
    fn pods_of_argo_cds_keep_to_their_number() {
        let of = |replicas, shard, name: &str| {
            let args = ReplicaArgs {
                pod_name: Some(name.into()),
                ..args(replicas, shard, "legacy")
            };
            args.like_argo_cds()
                .and_then(|args| args.options("argocd", name))
                .map(|o| (o.count, o.preferred, o.pinned))
                .ok()
        };
        for (replicas, shard, name, expected) in [
            (
                3,
                None,
                "argocd-application-controller-2",
                Some((3, Some(2), true)),
            ),
            (
                3,
                Some(1),
                "argocd-application-controller-2",
                Some((3, Some(1), true)),
            ),
            (
                3,
                Some(-1),
                "argocd-application-controller-0",
                Some((3, Some(0), true)),
            ),
            // One more than there are shards.
            (
                2,
                None,
                "argocd-application-controller-2",
                Some((2, Some(0), true)),
            ),
            (
                0,
                Some(4),
                "argocd-application-controller-0",
                Some((1, Some(0), false)),
            ),
            (2, None, "controller", None),
        ] {
            assert_eq!(
                of(replicas, shard, name),
                expected,
                "{replicas} {shard:?} {name}"
            );
        }
    }

    #[test]
    fn c98_a_pod_prefers_the_shard_of_its_number_and_keeps_to_one_that_it_is_told() {
        let of = |args: ReplicaArgs, name: &str| {
            args.options("argocd", name)
                .map(|o| (o.count, o.preferred, o.pinned, args.method()))
        };
        let free = |n: Option<usize>| (3, n, false, Method::RoundRobin);
        assert_eq!(
            of(args(3, None, "round-robin"), "controller-2").ok(),
            Some(free(Some(2)))
        );
        assert_eq!(
            of(args(3, Some(-1), "round-robin"), "controller").ok(),
            Some(free(None))
        );
        assert_eq!(
            of(args(3, Some(1), "round-robin"), "controller-2").ok(),
            Some((3, Some(1), true, Method::RoundRobin))
        );
        assert_eq!(
            of(args(0, None, "by-size"), "a-b").ok(),
            Some((1, None, false, Method::Legacy))
        );
        let error = of(args(2, Some(2), "legacy"), "a").expect_err("there is none");
        assert_eq!(
            error.to_string(),
            "there is no shard 2 of 2; choose one below 2, or more --replicas"
        );
    }

    #[test]
    fn two_processes_of_one_name_are_told_apart() {
        let identity = || {
            args(1, None, "legacy")
                .options("argocd", "host")
                .map(|o| o.identity)
                .expect("valid")
        };
        assert_ne!(identity(), identity());
        assert!(identity().starts_with("host_"));
    }
}
