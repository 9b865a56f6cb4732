//! Dynamic distribution: as many shards as a Deployment has replicas, claimed through Argo CD's
//! ConfigMap and fenced by leases.
//!
//! Main function: [`follow`]. At every heartbeat the Deployment is read and the claim renewed. If
//! the number of replicas or the shard changed, the leases are released and those of the new
//! distribution acquired.

use super::{
    LeaseOptions, Leases,
    mapping::{Claimant, Entry, claim},
};
use crate::{
    connect::Cluster,
    error::Error,
    request::{Call, JSON, encode},
};
use http::Method;
use jiff::SignedDuration;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tokio::{sync::watch, time::sleep};

/// Argo CD's name for it.
const CONFIG_MAP: &str = "argocd-app-controller-shard-cm";
const KEY: &str = "shardControllerMapping";
/// Retries, because other replicas write it as well.
const TRIES: usize = 4;

/// The Deployment whose replicas are counted, and the claim's name.
#[derive(Clone)]
pub struct DynamicOptions {
    pub deployment: String,
    /// The name of this controller in the ConfigMap.
    pub name: String,
    pub configured: Option<usize>,
    pub heartbeat: Duration,
    /// Lease options for this many shards, and our own shard.
    pub leases: Arc<dyn Fn(usize, Option<usize>) -> LeaseOptions + Send + Sync>,
}

struct Follower {
    cluster: Cluster,
    options: DynamicOptions,
    namespace: String,
}

/// The current leases and all later ones. Ends when the receiver is dropped.
///
/// # Errors
/// If there is no such Deployment, or the claim cannot be written.
pub async fn follow(
    cluster: &Cluster,
    options: DynamicOptions,
) -> Result<watch::Receiver<Arc<Leases>>, Error> {
    let namespace = (options.leases)(1, None).namespace;
    let follower = Follower {
        cluster: cluster.clone(),
        options,
        namespace,
    };
    let replicas = follower.replicas().await?;
    let mut division = (replicas, follower.claim(replicas).await?);
    let (sender, receiver) = watch::channel(Arc::new(follower.start(division)));
    tokio::spawn(async move {
        loop {
            tokio::select! { () = sender.closed() => return, () = sleep(follower.options.heartbeat) => {} }
            let now = match follower.beat(division.0).await {
                Ok(now) => now,
                Err(error) => {
                    tracing::warn!(%error, "the claim of a shard cannot be renewed; trying again");
                    continue;
                }
            };
            if now != division {
                tracing::info!(
                    replicas = now.0,
                    shard = now.1,
                    "the clusters are divided anew"
                );
                division = now;
                let old = sender.borrow().clone();
                // First, so that receivers see nothing of the old distribution as held.
                old.release().await;
                sender.send_replace(Arc::new(follower.start(division)));
            }
        }
    });
    Ok(receiver)
}

impl Follower {
    fn start(&self, (replicas, shard): (usize, Option<usize>)) -> Leases {
        Leases::start(&self.cluster, (self.options.leases)(replicas, shard))
    }

    /// Keeps the previous number if the Deployment no longer exists.
    async fn beat(&self, before: usize) -> Result<(usize, Option<usize>), Error> {
        let replicas = match self.replicas().await {
            Err(error) if error.is_not_found() => before,
            replicas => replicas?,
        };
        Ok((replicas, self.claim(replicas).await?))
    }

    async fn replicas(&self) -> Result<usize, Error> {
        let path = format!(
            "/apis/apps/v1/namespaces/{}/deployments/{}",
            encode(&self.namespace),
            encode(&self.options.deployment)
        );
        let deployment: Value = self.cluster.http().json(&Call::get(path)).await?;
        let replicas = deployment
            .pointer("/spec/replicas")
            .and_then(Value::as_u64)
            .unwrap_or(1);
        Ok(usize::try_from(replicas).unwrap_or(1).max(1))
    }

    async fn claim(&self, replicas: usize) -> Result<Option<usize>, Error> {
        let mut tries = 1;
        loop {
            match self.claim_once(replicas).await {
                Err(error)
                    if (error.is_conflict() || error.is_already_exists()) && tries < TRIES =>
                {
                    tries += 1
                }
                result => return result,
            }
        }
    }

    async fn claim_once(&self, replicas: usize) -> Result<Option<usize>, Error> {
        let maps = format!("/api/v1/namespaces/{}/configmaps", encode(&self.namespace));
        let found = match self
            .cluster
            .http()
            .json::<Value>(&Call::get(format!("{maps}/{CONFIG_MAP}")))
            .await
        {
            Err(error) if error.is_not_found() => None,
            found => Some(found?),
        };
        let text = found
            .as_ref()
            .and_then(|map| map["data"][KEY].as_str())
            .unwrap_or("[]");
        let entries: Vec<Entry> = serde_json::from_str(text).map_err(|e| {
            let fix = "delete the ConfigMap; the controllers make it anew";
            Error::config(
                format!("ConfigMap {CONFIG_MAP}"),
                format!("data.{KEY} cannot be read: {e}"),
                fix,
            )
        })?;
        let lease = (self.options.leases)(replicas, None);
        let by = Claimant {
            name: &self.options.name,
            configured: self.options.configured,
            timeout: SignedDuration::try_from(3 * self.options.heartbeat)
                .unwrap_or(SignedDuration::MAX),
            now: (lease.clock)(),
        };
        let (shard, entries) = claim(entries, replicas, &by);
        let text = serde_json::to_string(&entries).expect("names and numbers");
        let call = match found {
            Some(mut map) => {
                map["data"][KEY] = text.into();
                Call::new(Method::PUT, format!("{maps}/{CONFIG_MAP}"))
                    .with_body(JSON, map.to_string())
            }
            None => {
                let metadata = json!({"name": CONFIG_MAP, "namespace": self.namespace});
                let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {(KEY): text}});
                Call::new(Method::POST, maps).with_body(JSON, map.to_string())
            }
        };
        self.cluster.http().json::<Value>(&call).await?;
        Ok(shard)
    }
}
