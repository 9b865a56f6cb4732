//! Several replicas of the control plane: how many, who this one is, and which clusters it takes.

use anyhow::bail;
use clap::Args;
use std::sync::Arc;
use tiphys_cluster::{
    Cluster,
    leases::{DURATION, LeaseOptions, Leases},
};
use tiphys_controllers::{application::Sharding, sharding::Method};

/// What the leases are called, but for their numbers.
const GROUP: &str = "tiphys-application-controller";

#[derive(Args, Debug)]
pub struct ReplicaArgs {
    /// Shards that the clusters are divided into, usually as many as there are replicas; further replicas wait
    #[arg(long, value_name = "N", default_value_t = 1, env = "ARGOCD_CONTROLLER_REPLICAS")]
    replicas: usize,
    /// The one shard that this replica may take [default: any, first the one that ends the host's name]
    #[arg(long, value_name = "N", env = "ARGOCD_CONTROLLER_SHARD", allow_hyphen_values = true)]
    shard: Option<i64>,
    /// How clusters are divided: legacy, round-robin or consistent-hashing
    #[arg(long, value_name = "METHOD", default_value = "legacy", env = "ARGOCD_CONTROLLER_SHARDING_ALGORITHM")]
    sharding_method: String,
    /// Name of this replica in its leases [default: the host's name]
    #[arg(long, value_name = "NAME", env = "POD_NAME")]
    pod_name: Option<String>,
}

impl ReplicaArgs {
    /// Begins to take leases.
    pub fn start(&self, cluster: &Cluster, namespace: &str) -> anyhow::Result<Sharding> {
        let name = self.pod_name.clone().filter(|name| !name.is_empty()).unwrap_or_else(host_name);
        let (options, method) = self.options(namespace, &name)?;
        Ok(Sharding { leases: Arc::new(Leases::start(cluster, options)), method })
    }

    fn options(&self, namespace: &str, name: &str) -> anyhow::Result<(LeaseOptions, Method)> {
        let count = self.replicas.max(1);
        let method = Method::parse(&self.sharding_method).unwrap_or_else(|| {
            tracing::warn!("sharding method {:?} is not known; it is legacy then", self.sharding_method);
            Method::Legacy
        });
        // Below zero is how Argo CD says that none is told.
        let told = self.shard.and_then(|shard| usize::try_from(shard).ok());
        if let Some(shard) = told.filter(|shard| *shard >= count) {
            bail!("there is no shard {shard} of {count}; choose one below {count}, or more --replicas");
        }
        let options = LeaseOptions {
            namespace: namespace.to_owned(),
            group: GROUP.to_owned(),
            // Two processes of one name must not take each other for themselves.
            identity: format!("{name}_{:016x}", rand::random::<u64>()),
            count,
            partition: format!("{count}.{}", method.as_str()),
            preferred: told.or_else(|| ordinal(name)),
            pinned: told.is_some(),
            duration: DURATION,
            clock: Arc::new(jiff::Timestamp::now),
        };
        Ok((options, method))
    }
}

/// The number that a StatefulSet gives to its pods.
fn ordinal(name: &str) -> Option<usize> {
    name.rsplit_once('-')?.1.parse().ok()
}

fn host_name() -> String {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    if name.trim().is_empty() { "tiphys".to_owned() } else { name.trim().to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(replicas: usize, shard: Option<i64>, method: &str) -> ReplicaArgs {
        ReplicaArgs { replicas, shard, sharding_method: method.to_owned(), pod_name: None }
    }

    #[test]
    fn fact_98_a_pod_prefers_the_shard_of_its_number_and_keeps_to_one_that_it_is_told() {
        let of = |args: ReplicaArgs, name: &str| args.options("argocd", name).map(|(o, m)| (o.count, o.preferred, o.pinned, m));
        let free = |n: Option<usize>| (3, n, false, Method::RoundRobin);
        assert_eq!(of(args(3, None, "round-robin"), "controller-2").ok(), Some(free(Some(2))));
        assert_eq!(of(args(3, Some(-1), "round-robin"), "controller").ok(), Some(free(None)));
        assert_eq!(of(args(3, Some(1), "round-robin"), "controller-2").ok(), Some((3, Some(1), true, Method::RoundRobin)));
        assert_eq!(of(args(0, None, "by-size"), "a-b").ok(), Some((1, None, false, Method::Legacy)));
        let error = of(args(2, Some(2), "legacy"), "a").expect_err("there is none");
        assert_eq!(error.to_string(), "there is no shard 2 of 2; choose one below 2, or more --replicas");
    }

    #[test]
    fn two_processes_of_one_name_are_told_apart() {
        let identity = || args(1, None, "legacy").options("argocd", "host").map(|(o, _)| o.identity).expect("valid");
        assert_ne!(identity(), identity());
        assert!(identity().starts_with("host_"));
    }
}
