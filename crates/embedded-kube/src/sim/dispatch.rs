//! Collects the input of a reconciler, by kind, and calls it.

use super::{
    autoscaler, cluster, disruption,
    engine::{Engine, Marker},
    fields::{after, spec_i64, text},
    kind::{Key, Kind, ROOT_CA},
    network::{endpoints, ingress, mirror, service},
    node,
    plan::Plan,
    pod::{self, NodeLoad, PodWorld, Stage, Storage},
    quota, storage,
    store::SimStore,
    workload::{
        claim::{claim, selects, selects_map},
        cronjob, daemonset, deployment, job, replicaset, statefulset,
    },
};
use jiff::Timestamp;
use serde_json::Value;
use std::{collections::HashSet, sync::Arc};
use tiphys_apimachinery::Object;

/// How long pods of a deleted node are kept, in seconds: the node may come back.
const QUARANTINE: i64 = 40;

/// The claims that a pod mounts.
fn claim_names(pod: &Object) -> impl Iterator<Item = &str> {
    let volumes = pod
        .pointer("/spec/volumes")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    volumes.filter_map(|v| Some(text(v.get("persistentVolumeClaim")?, "claimName")))
}

impl<S: SimStore> Engine<S> {
    /// The next step of an object of any kind.
    pub(super) fn plan(&mut self, key: &Key, object: &Object, now: Timestamp) -> Plan {
        match key.kind {
            Kind::Pod => self.plan_pod(key, object, now),
            Kind::ReplicaSet | Kind::ReplicationController => {
                self.with_members(object, Kind::Pod, |engine, members| {
                    replicaset::reconcile(object, members, engine.failures.get(key), now)
                })
            }
            Kind::Deployment => self.with_members(object, Kind::ReplicaSet, |engine, sets| {
                deployment::reconcile(object, sets, &|uid| engine.cache.owned(uid, Kind::Pod), now)
            }),
            Kind::StatefulSet => self.with_members(object, Kind::Pod, |engine, pods| {
                let revisions = engine.cache.owned(object.uid(), Kind::ControllerRevision);
                let claim = |name: &str| {
                    engine
                        .cache
                        .find(Kind::PersistentVolumeClaim, object.namespace(), name)
                        .cloned()
                };
                statefulset::reconcile(
                    object,
                    &statefulset::Members {
                        pods,
                        revisions: &revisions,
                        claim: &claim,
                    },
                    now,
                )
            }),
            Kind::DaemonSet => self.with_members(object, Kind::Pod, |engine, pods| {
                let revisions = engine.cache.owned(object.uid(), Kind::ControllerRevision);
                let nodes: Vec<&Object> = engine.cache.of_kind(Kind::Node).map(|n| &**n).collect();
                daemonset::reconcile(object, pods, &revisions, &nodes, now)
            }),
            Kind::Job => job::reconcile(
                object,
                &self.cache.owned(object.uid(), Kind::Pod),
                self.failures.get(key),
                now,
            ),
            Kind::CronJob => {
                cronjob::reconcile(object, &self.cache.owned(object.uid(), Kind::Job), now)
            }
            Kind::Service => self.plan_service(key, object, now),
            Kind::Ingress => {
                let due = self.address_due(key, object, now);
                ingress::reconcile(object, due, now)
            }
            Kind::PersistentVolumeClaim => self.plan_claim(object),
            Kind::PersistentVolume => self.plan_volume(object, now),
            Kind::Node => {
                let lease = self.cache.find(Kind::Lease, node::LEASES, object.name());
                node::reconcile(object, lease.map(|l| &**l), self.options.heartbeat, now)
            }
            Kind::ResourceQuota => self.plan_quota(object),
            Kind::Endpoints => {
                let service = self
                    .cache
                    .find(Kind::Service, object.namespace(), object.name());
                mirror::reconcile(
                    object,
                    service.map(|s| &**s),
                    &self.cache.owned(object.uid(), Kind::EndpointSlice),
                )
            }
            Kind::Namespace => {
                let find = |kind, name| self.cache.find(kind, object.name(), name).map(|o| &**o);
                let (account, ca) = (
                    find(Kind::ServiceAccount, "default"),
                    find(Kind::ConfigMap, ROOT_CA),
                );
                cluster::reconcile_namespace(object, account, ca, &self.options.ca_certificate)
            }
            Kind::HorizontalPodAutoscaler => self.plan_autoscaler(key, object, now),
            Kind::PodDisruptionBudget => self.plan_budget(object, now),
            Kind::EndpointSlice
            | Kind::ControllerRevision
            | Kind::ConfigMap
            | Kind::ServiceAccount
            | Kind::StorageClass
            | Kind::Lease
            | Kind::Event => Plan::default(),
        }
    }

    /// Claims the objects that belong to `owner`, then plans with them.
    fn with_members(
        &self,
        owner: &Object,
        kind: Kind,
        reconcile: impl FnOnce(&Self, &[Arc<Object>]) -> Plan,
    ) -> Plan {
        let mut claims = Plan::default();
        let members = claim(
            &mut claims,
            owner,
            self.cache.owned(owner.uid(), kind),
            self.cache.orphans(kind, owner.namespace()),
        );
        if !claims.writes.is_empty() {
            // An adoption or release changes the object, which triggers another reconcile.
            return claims;
        }
        reconcile(self, &members)
    }

    fn plan_pod(&mut self, key: &Key, object: &Object, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        if let Some(done) = self.plan_leaving(&mut plan, key, object, now) {
            return done;
        }
        let (stage, delay) = pod::stage(object, &self.options);
        let since = self.since(key, object.uid(), Marker::Pod(stage), now);
        let free_ip = if matches!(stage, Stage::Init { .. } | Stage::Start | Stage::BadImage)
            && since.saturating_add(delay).is_ok_and(|due| due <= now)
        {
            self.free_address(object.str_at("/spec/nodeName"))
        } else {
            String::new()
        };
        let needs_nodes = matches!(
            stage,
            Stage::Bind | Stage::Init { .. } | Stage::Start | Stage::BadImage
        );
        let load = |node: &'_ Arc<Object>| self.cache.pods_on(node.name());
        let nodes: Vec<NodeLoad<'_>> = if needs_nodes {
            self.cache
                .of_kind(Kind::Node)
                .map(|node| NodeLoad {
                    node,
                    pods: load(node),
                })
                .collect()
        } else {
            Vec::new()
        };
        let storage = if stage == Stage::Bind {
            self.storage_of(object)
        } else {
            Storage::Ready
        };
        let world = PodWorld {
            options: &self.options,
            nodes: &nodes,
            storage: &storage,
            since,
            free_ip: &free_ip,
            now,
        };
        let mut steps = pod::reconcile(object, &world);
        if let Some(wake) = plan.wake {
            steps.wake_at(wake);
        }
        steps
    }

    /// A pod that has to leave its node: returns the plan for now, or notes in `plan` when to
    /// reconcile again.
    fn plan_leaving(
        &mut self,
        plan: &mut Plan,
        key: &Key,
        object: &Object,
        now: Timestamp,
    ) -> Option<Plan> {
        let node = object.str_at("/spec/nodeName");
        if node.is_empty() || object.deletion_timestamp().is_some() {
            return None;
        }
        let node = self.cache.find(Kind::Node, "", node).cloned();
        let gone = node.is_none();
        let since = *self.rounds.get(key).unwrap_or(&now);
        let due = match &node {
            None => Some(after(since, QUARANTINE)),
            Some(node) => pod::leaves_at(object, node, since),
        };
        let Some(due) = due else {
            self.rounds.remove(key);
            return None;
        };
        self.rounds.insert(key.clone(), since);
        if due > now {
            plan.wake_at(due);
            return None;
        }
        let mut done = Plan::default();
        if gone {
            pod::collect(&mut done, object, now)
        } else {
            pod::evict(&mut done, object, now)
        }
        Some(done)
    }

    fn storage_of(&self, object: &Object) -> Storage {
        let mut storage = Storage::Ready;
        for name in claim_names(object) {
            let Some(claim) =
                self.cache
                    .find(Kind::PersistentVolumeClaim, object.namespace(), name)
            else {
                return Storage::Lacking(format!("persistentvolumeclaim \"{name}\" not found"));
            };
            if storage::is_bound(claim) {
                continue;
            }
            let class = self.cache.find(
                Kind::StorageClass,
                "",
                claim.str_at("/spec/storageClassName"),
            );
            if !class.is_some_and(|c| storage::waits_for_consumer(c)) {
                return Storage::Lacking("pod has unbound immediate PersistentVolumeClaims".into());
            }
            storage = Storage::Coming;
        }
        storage
    }

    /// A free address in a node's network.
    fn free_address(&mut self, node: &str) -> String {
        let network = self
            .cache
            .find(Kind::Node, "", node)
            .map(|n| n.str_at("/spec/podCIDR").to_owned())
            .unwrap_or_default();
        let prefix = match network.split('.').collect::<Vec<_>>().as_slice() {
            [a, b, ..] if !a.is_empty() => format!("{a}.{b}"),
            _ => "10.244".to_owned(),
        };
        // 16 bits; if all are taken, one is used twice rather than none.
        for _ in 0..=u16::MAX {
            let host = self.next_address % 65_536;
            self.next_address = self.next_address.wrapping_add(1);
            let address = format!("{prefix}.{}.{}", host >> 8, host & 255);
            if !matches!(host & 255, 0 | 255) && !self.cache.address_used(&address) {
                return address;
            }
        }
        format!("{prefix}.255.254")
    }

    fn address_due(&mut self, key: &Key, object: &Object, now: Timestamp) -> Timestamp {
        let since = self.since(key, object.uid(), Marker::Address, now);
        since
            .saturating_add(self.options.balancer_delay)
            .unwrap_or(Timestamp::MAX)
    }

    fn plan_service(&mut self, key: &Key, object: &Object, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        if service::wants_balancer(object) && service::given_address(object).is_empty() {
            let due = self.address_due(key, object, now);
            let used: HashSet<&str> = self
                .cache
                .of_kind(Kind::Service)
                .map(|s| service::given_address(s))
                .collect();
            let free = (0..762)
                .map(service::address)
                .find(|a| !used.contains(a.as_str()))
                .unwrap_or_else(|| service::address(0));
            service::balance(&mut plan, object, due, &free, now);
        } else {
            service::balance(&mut plan, object, now, "", now);
        }
        let selector = object.pointer("/spec/selector");
        let selected: Vec<Arc<Object>> = self
            .cache
            .in_namespace(Kind::Pod, object.namespace())
            .filter(|p| selects_map(selector, p))
            .cloned()
            .collect();
        let slices = self.cache.owned(object.uid(), Kind::EndpointSlice);
        let classic = self
            .cache
            .find(Kind::Endpoints, object.namespace(), object.name());
        endpoints::reconcile(&mut plan, object, &selected, &slices, classic.map(|e| &**e));
        plan
    }

    fn plan_budget(&self, budget: &Object, now: Timestamp) -> Plan {
        let selector = budget.pointer("/spec/selector");
        let selected: Vec<Arc<Object>> = self
            .cache
            .in_namespace(Kind::Pod, budget.namespace())
            .filter(|p| selects(selector, p))
            .cloned()
            .collect();
        // The number of pods that their controllers want in total; for a ReplicaSet of a
        // Deployment, the Deployment's number.
        let mut owners = std::collections::BTreeMap::new();
        for pod in &selected {
            let mut owner = self.owner_of(pod);
            if let Some(above) = owner.and_then(|o| self.owner_of(o)) {
                owner = Some(above);
            }
            if let Some(owner) = owner {
                owners.insert(owner.uid().to_owned(), spec_i64(owner, "replicas", 1));
            }
        }
        let loose = selected.iter().any(|p| p.controller_of().is_none());
        disruption::reconcile(budget, &selected, (owners.values().sum(), loose), now)
    }

    fn owner_of(&self, object: &Object) -> Option<&Arc<Object>> {
        let owner = object.controller_of()?;
        self.cache.find(
            Kind::of_api_version(&owner.api_version, &owner.kind)?,
            object.namespace(),
            &owner.name,
        )
    }

    /// The work that remains when an object is deleted: the Endpoints of a Service are deleted with
    /// it.
    pub(super) fn plan_gone(&self, key: &Key) -> Plan {
        let mut plan = Plan::default();
        if key.kind == Kind::Service
            && let Some(endpoints) = self.cache.find(Kind::Endpoints, &key.namespace, &key.name)
        {
            plan.delete(endpoints, None);
        }
        plan
    }

    fn plan_claim(&self, claim: &Object) -> Plan {
        let volumes: Vec<Arc<Object>> = self
            .cache
            .of_kind(Kind::PersistentVolume)
            .cloned()
            .collect();
        let name = claim.str_at("/spec/storageClassName");
        let defined = self.cache.find(Kind::StorageClass, "", name).cloned();
        let any = defined.is_none() && self.options.any_storage_class && !name.is_empty();
        let class = defined.or_else(|| any.then(|| Arc::new(storage::class_named(name))));
        let default_class = self
            .cache
            .of_kind(Kind::StorageClass)
            .find(|c| storage::is_default(c));
        let mut pods = self.cache.in_namespace(Kind::Pod, claim.namespace());
        let has_consumer = pods.any(|p| claim_names(p).any(|name| name == claim.name()));
        let world = storage::ClaimWorld {
            volumes: &volumes,
            class: class.as_deref(),
            default_class: default_class.map(|c| &**c),
            has_consumer,
        };
        storage::reconcile_claim(claim, &world)
    }

    fn plan_quota(&self, object: &Object) -> Plan {
        let namespace = object.namespace();
        let all = |kind: Kind| -> Vec<Arc<Object>> {
            self.cache.in_namespace(kind, namespace).cloned().collect()
        };
        let (pods, services, claims) = (
            all(Kind::Pod),
            all(Kind::Service),
            all(Kind::PersistentVolumeClaim),
        );
        let count = |group: &str, resource: &str| self.store.count(group, resource, namespace);
        quota::reconcile(
            object,
            &quota::Usage {
                pods: &pods,
                services: &services,
                claims: &claims,
                count: &count,
            },
        )
    }

    /// Periodic: between two rounds changes have no effect.
    fn plan_autoscaler(&mut self, key: &Key, object: &Object, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        if let Some(due) = self.rounds.get(key).filter(|due| **due > now) {
            plan.wake_at(*due);
            return plan;
        }
        let kind = autoscaler::target_kind(object);
        let target = kind.and_then(|kind| {
            self.cache.find(
                kind,
                object.namespace(),
                object.str_at("/spec/scaleTargetRef/name"),
            )
        });
        plan = autoscaler::reconcile(object, target.map(|t| &**t), now);
        let next = after(now, autoscaler::PERIOD);
        self.rounds.insert(key.clone(), next);
        plan.wake_at(next);
        plan
    }

    fn plan_volume(&self, volume: &Object, now: Timestamp) -> Plan {
        let reference = |field: &str| {
            volume
                .pointer("/spec/claimRef")
                .map_or("", |r| text(r, field))
                .to_owned()
        };
        let claim = self.cache.find(
            Kind::PersistentVolumeClaim,
            &reference("namespace"),
            &reference("name"),
        );
        let uid = reference("uid");
        let claim = claim.filter(|c| uid.is_empty() || c.uid() == uid);
        storage::reconcile_volume(volume, claim.map(|c| &**c), now)
    }
}
