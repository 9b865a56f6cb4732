//! A `coordination.k8s.io/v1` Lease. Main type: [`Record`].

use super::weights::Weights;
use jiff::Timestamp;
use serde_json::{Value, json};
use std::time::Duration;
use tiphys_api::constants::{
    LEASE_GROUP, LEASE_LOAD, LEASE_PARTITION, LEASE_WANTED_BY, LEASE_WEIGHTS,
};
use tiphys_apimachinery::{Gvk, Object};

/// A Lease.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    object: Object,
}

/// The holder is alive if any of this changes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sign {
    pub holder: String,
    renewed: String,
    transitions: i64,
}

impl From<Object> for Record {
    fn from(object: Object) -> Self {
        Self { object }
    }
}

impl Record {
    /// A lease without a holder.
    pub fn new(namespace: &str, name: &str, group: &str) -> Self {
        let mut object = Object::skeleton(
            &Gvk::new("coordination.k8s.io", "v1", "Lease"),
            namespace,
            name,
        );
        object
            .metadata_mut()
            .insert("labels".to_owned(), json!({ LEASE_GROUP: group }));
        Self { object }
    }

    pub fn name(&self) -> &str {
        self.object.name()
    }

    /// Whether it exists on the API server.
    pub fn exists(&self) -> bool {
        !self.object.resource_version().is_empty()
    }

    /// Empty: none.
    pub fn holder(&self) -> &str {
        self.object.str_at("/spec/holderIdentity")
    }

    pub fn sign(&self) -> Sign {
        Sign {
            holder: self.holder().to_owned(),
            renewed: self.object.str_at("/spec/renewTime").to_owned(),
            transitions: self
                .object
                .pointer("/spec/leaseTransitions")
                .and_then(Value::as_i64)
                .unwrap_or_default(),
        }
    }

    /// How long it lasts without renewal, as its holder wrote.
    pub fn duration(&self) -> Option<Duration> {
        self.object
            .pointer("/spec/leaseDurationSeconds")
            .and_then(Value::as_u64)
            .map(Duration::from_secs)
    }

    /// The partition that its shard belongs to.
    pub fn partition(&self) -> &str {
        self.object.label(LEASE_PARTITION).unwrap_or_default()
    }

    /// The replica that asked for it.
    pub fn wanted_by(&self) -> Option<&str> {
        self.object.annotation(LEASE_WANTED_BY)
    }

    /// The load of its shard, as its holder wrote.
    pub fn load(&self) -> Option<u64> {
        self.object.annotation(LEASE_LOAD)?.parse().ok()
    }

    /// The weights of all shards, stored in the first one's lease.
    pub fn weights(&self, shards: usize) -> Option<Weights> {
        Weights::parse(self.object.annotation(LEASE_WEIGHTS)?, shards)
    }

    /// The lease acquired by `holder`.
    pub fn taken(
        &self,
        holder: &str,
        partition: &str,
        duration: Duration,
        now: Timestamp,
    ) -> Object {
        let mut taken = self.wanted(None);
        let transitions = self.sign().transitions + i64::from(self.exists());
        let metadata = taken.metadata_mut();
        metadata.entry("labels").or_insert_with(|| json!({}))[LEASE_PARTITION] = partition.into();
        let spec = json!({
            "holderIdentity": holder, "leaseDurationSeconds": duration.as_secs().max(1), "acquireTime": micros(now), "renewTime": micros(now),
            "leaseTransitions": transitions,
        });
        taken.0.insert("spec".to_owned(), spec);
        taken
    }

    pub fn renewed(&self, now: Timestamp) -> Object {
        let mut renewed = self.object.clone();
        renewed.0.entry("spec").or_insert_with(|| json!({}))["renewTime"] = micros(now).into();
        renewed
    }

    /// The lease after its release.
    pub fn released(&self, now: Timestamp) -> Object {
        let mut released = self.renewed(now);
        released.0["spec"]["holderIdentity"] = "".into();
        released
    }

    /// The lease with the name of the replica that asks for it.
    pub fn wanted(&self, by: Option<&str>) -> Object {
        let mut wanted = self.object.clone();
        let annotations = wanted
            .metadata_mut()
            .entry("annotations")
            .or_insert_with(|| json!({}));
        if let Some(map) = annotations.as_object_mut() {
            map.remove(LEASE_WANTED_BY);
            map.extend(by.map(|by| (LEASE_WANTED_BY.to_owned(), by.into())));
        }
        wanted
    }
}

/// Kubernetes' MicroTime.
fn micros(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S.%6fZ").to_string()
}
