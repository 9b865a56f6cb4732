//! The task that acquires, renews and releases the leases of one replica. Main type: [`Keeper`].

use super::{
    LeaseOptions,
    decide::{LeaseAction, View},
    record::Record,
    troubles::{Troubles, missing_namespace},
    weights::Weights,
};
use crate::{
    connect::Cluster,
    error::Error,
    fence::Tenure,
    request::{Call, Http, JSON, encode},
};
use http::Method;
use std::time::Duration;
use tiphys_api::constants::{LEASE_GROUP, LEASE_LOAD, LEASE_WEIGHTS};
use tiphys_apimachinery::Object;
use tokio::{
    sync::watch,
    time::{Instant, sleep, timeout},
};
use tokio_util::sync::CancellationToken;

/// Minimum wait for a lease to become free.
const SOON: Duration = Duration::from_millis(20);
/// How often a release is tried.
const RELEASES: usize = 3;

pub struct Keeper {
    /// Separate from the cluster's other requests, so that their throttling does not delay these.
    http: Http,
    options: LeaseOptions,
    view: View,
    tenures: Vec<watch::Sender<Tenure>>,
    /// The time before the last request that acquired or renewed each lease.
    written: Vec<Option<Instant>>,
    changed: watch::Sender<u64>,
    weights: watch::Sender<Weights>,
    /// When the weights were last computed.
    weighed: Instant,
    troubles: Troubles,
}

impl Keeper {
    pub fn new(
        cluster: &Cluster,
        options: LeaseOptions,
        tenures: Vec<watch::Sender<Tenure>>,
        (changed, weights): (watch::Sender<u64>, watch::Sender<Weights>),
    ) -> Self {
        let http = cluster.http().apart(1);
        let (view, written) = (View::new(options.clone()), vec![None; options.count]);
        Self {
            http,
            options,
            view,
            tenures,
            written,
            changed,
            weights,
            weighed: Instant::now(),
            troubles: Troubles::default(),
        }
    }

    pub async fn run(mut self, stop: CancellationToken) {
        let keep = async {
            loop {
                let pause = self.look().await;
                sleep(pause).await;
            }
        };
        tokio::select! { () = stop.cancelled() => {}, () = keep => {} }
        self.release().await;
    }

    /// Reads all leases and executes what is due; returns how long to wait until the next reading.
    async fn look(&mut self) -> Duration {
        // Random, so that replicas started together do not stay synchronized.
        let usual = self.options.pause().mul_f64(rand::random_range(0.8..1.0));
        if let Err(error) = self.read().await {
            if self.troubles.meet(error.to_string()) {
                tracing::warn!(%error, "the leases cannot be read, without which nothing is synced; trying again");
            }
            self.troubles.end();
            return usual;
        }
        let now = Instant::now();
        let mut pause = usual;
        // How long to wait at most after a lease could not be written.
        let mut failed: Option<Duration> = None;
        for action in self.view.decide(&|shard| self.is_open(shard), now) {
            match self.perform(action).await {
                // The lease can be relied on only if, after it was written, no replica was seen
                // with another partition.
                Ok(()) if matches!(action, LeaseAction::Take(shard) | LeaseAction::Renew(shard) if !self.is_open(shard)) => {
                    pause = Duration::ZERO
                }
                Ok(()) => {}
                Err(error) if error.is_conflict() || error.is_already_exists() => {
                    let shard = action.shard();
                    tracing::debug!(shard, action = action.verb(), "somebody else was faster");
                    pause = pause.min(self.options.pause().mul_f64(rand::random_range(0.01..0.1)));
                }
                Err(error) => {
                    self.complain(action, &error);
                    // A lease that we have must be renewed in time, whatever is wrong with others.
                    let holds = (0..self.options.count).any(|shard| self.is_open(shard));
                    let most = if holds || error.retryable() {
                        usual
                    } else {
                        self.options.duration
                    };
                    failed = Some(failed.map_or(most, |before| before.min(most)));
                }
            }
        }
        if self.troubles.end() {
            tracing::info!("the leases can be read and written again");
        }
        if let Some(most) = failed {
            // The lease that cannot be written may be free, which is no reason to hurry.
            let wait = self.troubles.pause(most);
            return if pause < usual { pause.min(wait) } else { wait };
        }
        // Wake up when the next lease becomes free, not one interval later.
        self.view
            .next_free(now)
            .map_or(pause, |free| pause.min(free.max(SOON)))
    }

    /// Logs why a lease cannot be written, unless that was said the last time as well.
    fn complain(&mut self, action: LeaseAction, error: &Error) {
        let missing = missing_namespace(error, &self.options.namespace);
        let reason = missing.clone().unwrap_or_else(|| error.to_string());
        if !self.troubles.meet(reason) {
            return;
        }
        if let Some(missing) = missing {
            tracing::warn!("{missing}");
            return;
        }
        let (shard, action) = (action.shard(), action.verb());
        tracing::warn!(%error, shard, action, "a lease cannot be written; trying again");
    }

    async fn read(&mut self) -> Result<(), Error> {
        let call = Call::get(self.path("")).query(
            "labelSelector",
            &format!("{LEASE_GROUP}={}", self.options.group),
        );
        let mut list: serde_json::Value = self.json(&call).await?;
        let items = list
            .get_mut("items")
            .and_then(serde_json::Value::as_array_mut)
            .map(std::mem::take)
            .unwrap_or_default();
        let records = items
            .into_iter()
            .filter_map(|item| Some(Record::from(Object::from_value(item).ok()?)))
            .collect();
        let now = Instant::now();
        self.view.read(records, now);
        self.take_weights();
        let contested = self.view.is_contested(now);
        for shard in 0..self.options.count {
            if !self.view.is_mine(shard) {
                self.close(shard);
            } else if self.is_open(shard) || !contested {
                self.open(shard);
            }
        }
        Ok(())
    }

    async fn perform(&mut self, deed: LeaseAction) -> Result<(), Error> {
        let (sent, at) = (Instant::now(), (self.options.clock)());
        let lease = |shard: usize| {
            let new = || {
                Record::new(
                    &self.options.namespace,
                    &self.options.lease_name(shard),
                    &self.options.group,
                )
            };
            self.view.lease(shard).cloned().unwrap_or_else(new)
        };
        match deed {
            LeaseAction::Take(shard) | LeaseAction::Renew(shard) => {
                let lease = lease(shard);
                let ours = match deed {
                    LeaseAction::Take(_) => lease.taken(
                        &self.options.identity,
                        &self.options.partition,
                        self.options.duration,
                        at,
                    ),
                    _ => self.with_load(shard, lease.renewed(at)),
                };
                self.write(&lease, &ours).await?;
                self.written[shard] = Some(sent);
                if self.is_open(shard) {
                    self.open(shard);
                }
                Ok(())
            }
            LeaseAction::Release(shard) => {
                let lease = lease(shard);
                self.close(shard);
                self.write(&lease, &lease.released(at)).await
            }
            LeaseAction::Ask(shard) => {
                let lease = lease(shard);
                self.write(&lease, &lease.wanted(Some(&self.options.identity)))
                    .await
            }
        }
    }

    /// Adopts the weights that were read.
    fn take_weights(&self) {
        let first = self.view.lease(0).filter(|lease| {
            self.options.balance.is_some() && lease.partition() == self.options.partition
        });
        let configured = first
            .and_then(|lease| lease.weights(self.options.count))
            .unwrap_or_else(|| Weights::equal(self.options.count));
        if self
            .weights
            .send_if_modified(|now| std::mem::replace(now, configured.clone()) != configured)
        {
            tracing::info!(weights = %configured, "the shards have other weights now");
            self.changed.send_modify(|n| *n += 1);
        }
    }

    /// Adds the load of the shard to our lease and, if it is the first shard's, new weights when
    /// they are due.
    fn with_load(&mut self, shard: usize, mut lease: Object) -> Object {
        let Some(balance) = &self.options.balance else {
            return lease;
        };
        let load = |n: usize| {
            if self.view.is_mine(n) {
                Some(balance.loads.of(n))
            } else {
                self.view.lease(n)?.load()
            }
        };
        lease.set_annotation(LEASE_LOAD, &balance.loads.of(shard).to_string());
        if shard == 0 && self.weighed.elapsed() >= balance.every {
            let loads: Option<Vec<u64>> = (0..self.options.count).map(load).collect();
            if let Some(new) = loads.and_then(|loads| self.weights.borrow().adjusted(&loads)) {
                lease.set_annotation(LEASE_WEIGHTS, &new.to_string());
            }
            self.weighed = Instant::now();
        }
        lease
    }

    /// Creates the lease, or replaces the one that was read.
    async fn write(&self, lease: &Record, new: &Object) -> Result<(), Error> {
        let call = match lease.exists() {
            true => Call::new(Method::PUT, self.path(lease.name())),
            false => Call::new(Method::POST, self.path("")),
        };
        let body = serde_json::to_vec(new).expect("a JSON map can be written as JSON");
        self.json::<serde_json::Value>(&call.with_body(JSON, body))
            .await
            .map(drop)
    }

    async fn json<T: serde::de::DeserializeOwned>(&self, call: &Call) -> Result<T, Error> {
        let after = self.options.patience();
        let late = |_| Error::Timeout {
            what: format!("{} {}", call.method, call.path),
            after,
        };
        timeout(after, self.http.json(call))
            .await
            .unwrap_or_else(|elapsed| Err(late(elapsed)))
    }

    fn path(&self, name: &str) -> String {
        let collection = format!(
            "/apis/coordination.k8s.io/v1/namespaces/{}/leases",
            encode(&self.options.namespace)
        );
        if name.is_empty() {
            collection
        } else {
            format!("{collection}/{}", encode(name))
        }
    }

    fn is_open(&self, shard: usize) -> bool {
        self.tenures[shard].borrow().holds(Instant::now())
    }

    /// Relies on a lease for as long as its last renewal allows.
    fn open(&self, shard: usize) {
        let Some(until) = self.written[shard].map(|sent| sent + self.options.reliance()) else {
            return;
        };
        let (before, now) = (*self.tenures[shard].borrow(), Instant::now());
        let anew = !before.holds(now);
        if until <= now || before.until.is_some_and(|before| before >= until) {
            return;
        }
        self.tenures[shard].send_replace(Tenure {
            epoch: before.epoch + u64::from(anew),
            until: Some(until),
        });
        if anew {
            tracing::info!(shard, identity = %self.options.identity, "this replica has the shard now");
            self.changed.send_modify(|n| *n += 1);
        }
    }

    fn close(&mut self, shard: usize) {
        self.written[shard] = None;
        let epoch = self.tenures[shard].borrow().epoch;
        if self.tenures[shard]
            .send_replace(Tenure { epoch, until: None })
            .until
            .is_some()
        {
            tracing::info!(shard, identity = %self.options.identity, "this replica has the shard no longer");
            self.changed.send_modify(|n| *n += 1);
        }
    }

    /// Releases our leases, within the timeout of a request.
    async fn release(&mut self) {
        (0..self.options.count).for_each(|shard| self.close(shard));
        let patience = self.options.patience();
        let all = async {
            for _ in 0..RELEASES {
                // A lease that cannot be released now will expire.
                let _ = self.read().await;
                let mine: Vec<usize> = (0..self.options.count)
                    .filter(|shard| self.view.is_mine(*shard))
                    .collect();
                let mut left = false;
                for shard in mine {
                    left |= self.perform(LeaseAction::Release(shard)).await.is_err();
                }
                if !left {
                    break;
                }
            }
        };
        let _ = timeout(patience, all).await;
    }
}
