//! Objects of the `events` resource, as the real controllers write them, up to a fixed number.
//!
//! Main type: [`Recorder`]. A repeated event about the same object increases a count instead of
//! creating another event.

use super::{
    fields::{parse_time, rfc3339},
    kind::Kind,
    plan::Note,
    store::{DeleteRequest, Propagation, SimStore},
};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use std::{
    collections::{HashMap, VecDeque},
    sync::Arc,
};
use tiphys_apimachinery::Object;

/// How long an event is kept, as in the real API server.
const LIFETIME: SignedDuration = SignedDuration::from_hours(1);

/// The identity of an event: object, reason and message.
type Same = (String, &'static str, String);

/// Writes events and deletes the oldest.
pub struct Recorder {
    limit: usize,
    /// Oldest first: when it was written, namespace, name, and what it says.
    written: VecDeque<(Timestamp, String, String, Option<Same>)>,
    recent: HashMap<Same, Arc<Object>>,
    /// Makes names unique within a process; the time makes them unique across processes.
    serial: u64,
}

impl Recorder {
    /// At most `limit` events are kept; 0 writes none.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            written: VecDeque::new(),
            recent: HashMap::new(),
            serial: 0,
        }
    }

    /// Includes events of an earlier process, so that they are deleted, too.
    pub fn adopt(&mut self, events: &[Arc<Object>]) {
        let mut own: Vec<&Arc<Object>> = events
            .iter()
            .filter(|e| e.str_at("/reportingInstance") == INSTANCE)
            .collect();
        own.sort_by(|a, b| a.creation_timestamp().cmp(b.creation_timestamp()));
        for event in own {
            let time = parse_time(event.creation_timestamp()).unwrap_or(Timestamp::UNIX_EPOCH);
            self.written.push_back((
                time,
                event.namespace().to_owned(),
                event.name().to_owned(),
                None,
            ));
        }
    }

    /// Records `note` about `object`. Failures are ignored: nothing depends on an event.
    pub fn record<S: SimStore>(&mut self, store: &S, object: &Object, note: &Note, now: Timestamp) {
        if self.limit == 0 {
            return;
        }
        self.forget(store, now);
        let same = (object.uid().to_owned(), note.reason, note.message.clone());
        if let Some(event) = self.recent.get(&same) {
            let mut again = Object::clone(event);
            let count = again
                .0
                .get("count")
                .and_then(serde_json::Value::as_i64)
                .unwrap_or(1);
            again.0.insert("count".into(), (count + 1).into());
            again.0.insert("lastTimestamp".into(), rfc3339(now).into());
            if let Ok(written) = store.update(again) {
                self.recent.insert(same, written);
                return;
            }
        }
        self.serial += 1;
        let event = new_event(object, note, now, self.serial);
        if let Ok(written) = store.create(event) {
            self.written.push_back((
                now,
                written.namespace().to_owned(),
                written.name().to_owned(),
                Some(same.clone()),
            ));
            self.recent.insert(same, written);
        }
    }

    /// Records a note unless it has been recorded before.
    pub fn remark<S: SimStore>(&mut self, store: &S, object: &Object, note: &Note, now: Timestamp) {
        if !self
            .recent
            .contains_key(&(object.uid().to_owned(), note.reason, note.message.clone()))
        {
            self.record(store, object, note, now);
        }
    }

    fn forget<S: SimStore>(&mut self, store: &S, now: Timestamp) {
        while let Some((time, ..)) = self.written.front()
            && (self.written.len() >= self.limit || now.duration_since(*time) > LIFETIME)
        {
            let Some((_, namespace, name, same)) = self.written.pop_front() else {
                return;
            };
            if let Some(same) = same {
                self.recent.remove(&same);
            }
            let request = DeleteRequest {
                uid: None,
                grace_seconds: Some(0),
                propagation: Propagation::Background,
            };
            // It does not matter if it is already deleted.
            let _ = store.delete(Kind::Event, &namespace, &name, request);
        }
    }
}

const INSTANCE: &str = "sim";

/// The real controller that would report the event.
fn component(kind: &str, reason: &str) -> &'static str {
    match (kind, reason) {
        ("Pod", "Scheduled" | "FailedScheduling") => "default-scheduler",
        ("Pod", "TaintManagerEviction") => "taint-eviction-controller",
        ("Pod", _) => "kubelet",
        ("Deployment", _) => "deployment-controller",
        ("ReplicaSet", _) => "replicaset-controller",
        ("ReplicationController", _) => "replication-controller",
        ("StatefulSet", _) => "statefulset-controller",
        ("DaemonSet", _) => "daemonset-controller",
        ("Job", _) => "job-controller",
        ("CronJob", _) => "cronjob-controller",
        ("Service", _) => "service-controller",
        ("Ingress", _) => "ingress-controller",
        ("PodDisruptionBudget", _) => "controllermanager",
        ("HorizontalPodAutoscaler", _) => "horizontal-pod-autoscaler",
        ("PersistentVolumeClaim", _) => "persistentvolume-controller",
        _ => "controller-manager",
    }
}

fn new_event(object: &Object, note: &Note, now: Timestamp, serial: u64) -> Object {
    let namespace = if object.namespace().is_empty() {
        "default"
    } else {
        object.namespace()
    };
    let unique = now
        .as_nanosecond()
        .unsigned_abs()
        .wrapping_add(u128::from(serial))
        & u128::from(u64::MAX);
    let mut event = Object::skeleton(
        &Kind::Event.gvk(),
        namespace,
        &format!("{}.{unique:016x}", object.name()),
    );
    let time = rfc3339(now);
    let component = component(object.kind(), note.reason);
    let mut source = json!({"component": component});
    if component == "kubelet" {
        source["host"] = object.str_at("/spec/nodeName").into();
    }
    let body = json!({
        "involvedObject": {
            "apiVersion": object.api_version(), "kind": object.kind(), "namespace": object.namespace(), "name": object.name(),
            "uid": object.uid(), "resourceVersion": object.resource_version(),
        },
        "reason": note.reason, "message": note.message, "type": if note.warning { "Warning" } else { "Normal" },
        "source": source, "reportingComponent": component, "reportingInstance": INSTANCE,
        "firstTimestamp": time, "lastTimestamp": time, "count": 1, "eventTime": null,
    });
    if let serde_json::Value::Object(fields) = body {
        event.0.extend(fields);
    }
    if object.namespace().is_empty()
        && let Some(serde_json::Value::Object(about)) = event.0.get_mut("involvedObject")
    {
        about.remove("namespace");
    }
    event
}
