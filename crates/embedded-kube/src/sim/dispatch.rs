//! Collects what a reconciler needs to know, by kind, and calls it.

use super::{
    cluster, disruption,
    engine::{Engine, Marker},
    fields::{spec_i64, text},
    kind::{Key, Kind, ROOT_CA},
    network::{endpoints, ingress, service},
    plan::Plan,
    pod::{self, NodeLoad, PodWorld, Stage},
    storage,
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

impl<S: SimStore> Engine<S> {
    /// The next step of an object of any kind.
    pub(super) fn plan(&mut self, key: &Key, object: &Object, now: Timestamp) -> Plan {
        match key.kind {
            Kind::Pod => self.plan_pod(key, object, now),
            Kind::ReplicaSet => self
                .with_members(object, Kind::Pod, |engine, members| replicaset::reconcile(object, members, engine.failures.get(key), now)),
            Kind::Deployment => self.with_members(object, Kind::ReplicaSet, |engine, sets| {
                deployment::reconcile(object, sets, &|uid| engine.cache.owned(uid, Kind::Pod), now)
            }),
            Kind::StatefulSet => self.with_members(object, Kind::Pod, |engine, pods| {
                let revisions = engine.cache.owned(object.uid(), Kind::ControllerRevision);
                let claim_exists = |name: &str| engine.cache.find(Kind::PersistentVolumeClaim, object.namespace(), name).is_some();
                statefulset::reconcile(object, &statefulset::Members { pods, revisions: &revisions, claim_exists: &claim_exists }, now)
            }),
            Kind::DaemonSet => self.with_members(object, Kind::Pod, |engine, pods| {
                let revisions = engine.cache.owned(object.uid(), Kind::ControllerRevision);
                let nodes: Vec<&Object> = engine.cache.of_kind(Kind::Node).map(|n| &**n).collect();
                daemonset::reconcile(object, pods, &revisions, &nodes, now)
            }),
            Kind::Job => job::reconcile(object, &self.cache.owned(object.uid(), Kind::Pod), self.failures.get(key), now),
            Kind::CronJob => cronjob::reconcile(object, &self.cache.owned(object.uid(), Kind::Job), now),
            Kind::Service => self.plan_service(key, object, now),
            Kind::Ingress => {
                let due = self.address_due(key, object, now);
                ingress::reconcile(object, due, now)
            }
            Kind::PersistentVolumeClaim => {
                let named = object.str_at("/spec/volumeName");
                let name = if named.is_empty() { format!("pvc-{}", object.uid()) } else { named.to_owned() };
                storage::reconcile_claim(object, self.cache.find(Kind::PersistentVolume, "", &name).map(|v| &**v))
            }
            Kind::PersistentVolume => self.plan_volume(object),
            Kind::Node => cluster::reconcile_node(object, now),
            Kind::Namespace => {
                let find = |kind, name| self.cache.find(kind, object.name(), name).map(|o| &**o);
                let (account, ca) = (find(Kind::ServiceAccount, "default"), find(Kind::ConfigMap, ROOT_CA));
                cluster::reconcile_namespace(object, account, ca, &self.options.ca_certificate)
            }
            Kind::HorizontalPodAutoscaler => {
                let target =
                    Kind::of_api_version(object.str_at("/spec/scaleTargetRef/apiVersion"), object.str_at("/spec/scaleTargetRef/kind"));
                let target = target.and_then(|kind| self.cache.find(kind, object.namespace(), object.str_at("/spec/scaleTargetRef/name")));
                cluster::reconcile_autoscaler(object, target.map(|t| &**t), now)
            }
            Kind::PodDisruptionBudget => self.plan_budget(object, now),
            Kind::Endpoints | Kind::EndpointSlice | Kind::ControllerRevision | Kind::ConfigMap | Kind::ServiceAccount | Kind::Event => {
                Plan::default()
            }
        }
    }

    /// Claims what belongs to `owner`, then plans with it.
    fn with_members(&self, owner: &Object, kind: Kind, reconcile: impl FnOnce(&Self, &[Arc<Object>]) -> Plan) -> Plan {
        let mut claims = Plan::default();
        let members = claim(&mut claims, owner, self.cache.owned(owner.uid(), kind), self.cache.orphans(kind, owner.namespace()));
        if !claims.writes.is_empty() {
            // What is adopted or released changes, and leads back here.
            return claims;
        }
        reconcile(self, &members)
    }

    fn plan_pod(&mut self, key: &Key, object: &Object, now: Timestamp) -> Plan {
        let (stage, delay) = pod::stage(object, &self.options);
        let since = self.since(key, object.uid(), Marker::Pod(stage), now);
        let free_ip = if matches!(stage, Stage::Start | Stage::BadImage) && since.saturating_add(delay).is_ok_and(|due| due <= now) {
            self.free_address(object.str_at("/spec/nodeName"))
        } else {
            String::new()
        };
        let needs_nodes = matches!(stage, Stage::Bind | Stage::Start | Stage::BadImage);
        let load = |node: &'_ Arc<Object>| self.cache.pods_on(node.name());
        let nodes: Vec<NodeLoad<'_>> =
            if needs_nodes { self.cache.of_kind(Kind::Node).map(|node| NodeLoad { node, pods: load(node) }).collect() } else { Vec::new() };
        let missing_claims = if stage == Stage::Bind { self.missing_claims(object) } else { Vec::new() };
        let world = PodWorld { options: &self.options, nodes: &nodes, missing_claims: &missing_claims, since, free_ip: &free_ip, now };
        pod::reconcile(object, &world)
    }

    fn missing_claims(&self, object: &Object) -> Vec<String> {
        let volumes = object.pointer("/spec/volumes").and_then(Value::as_array);
        let names = volumes.into_iter().flatten().filter_map(|v| Some(text(v.get("persistentVolumeClaim")?, "claimName")));
        let missing = |name: &&str| self.cache.find(Kind::PersistentVolumeClaim, object.namespace(), name).is_none();
        names.filter(missing).map(str::to_owned).collect()
    }

    /// An address of a node's network that no pod has.
    fn free_address(&mut self, node: &str) -> String {
        let network = self.cache.find(Kind::Node, "", node).map(|n| n.str_at("/spec/podCIDR").to_owned()).unwrap_or_default();
        let prefix = match network.split('.').collect::<Vec<_>>().as_slice() {
            [a, b, ..] if !a.is_empty() => format!("{a}.{b}"),
            _ => "10.244".to_owned(),
        };
        // 16 bits; when all are taken, one is given twice rather than none.
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
        since.saturating_add(self.options.balancer_delay).unwrap_or(Timestamp::MAX)
    }

    fn plan_service(&mut self, key: &Key, object: &Object, now: Timestamp) -> Plan {
        let mut plan = Plan::default();
        if service::wants_balancer(object) && service::given_address(object).is_empty() {
            let due = self.address_due(key, object, now);
            let used: HashSet<&str> = self.cache.of_kind(Kind::Service).map(|s| service::given_address(s)).collect();
            let free = (0..762).map(service::address).find(|a| !used.contains(a.as_str())).unwrap_or_else(|| service::address(0));
            service::balance(&mut plan, object, due, &free, now);
        } else {
            service::balance(&mut plan, object, now, "", now);
        }
        let selector = object.pointer("/spec/selector");
        let selected: Vec<Arc<Object>> =
            self.cache.in_namespace(Kind::Pod, object.namespace()).filter(|p| selects_map(selector, p)).cloned().collect();
        let slices = self.cache.owned(object.uid(), Kind::EndpointSlice);
        let classic = self.cache.find(Kind::Endpoints, object.namespace(), object.name());
        endpoints::reconcile(&mut plan, object, &selected, &slices, classic.map(|e| &**e));
        plan
    }

    fn plan_budget(&self, budget: &Object, now: Timestamp) -> Plan {
        let selector = budget.pointer("/spec/selector");
        let selected: Vec<Arc<Object>> =
            self.cache.in_namespace(Kind::Pod, budget.namespace()).filter(|p| selects(selector, p)).cloned().collect();
        // What the controllers of the pods want in all; a ReplicaSet of a Deployment wants what the Deployment wants.
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
        disruption::reconcile(budget, &selected, owners.values().sum(), now)
    }

    fn owner_of(&self, object: &Object) -> Option<&Arc<Object>> {
        let owner = object.controller_of()?;
        self.cache.find(Kind::of_api_version(&owner.api_version, &owner.kind)?, object.namespace(), &owner.name)
    }

    fn plan_volume(&self, volume: &Object) -> Plan {
        let reference = |field: &str| volume.pointer("/spec/claimRef").map_or("", |r| text(r, field)).to_owned();
        let claim = self.cache.find(Kind::PersistentVolumeClaim, &reference("namespace"), &reference("name"));
        let uid = reference("uid");
        let claim = claim.filter(|c| uid.is_empty() || c.uid() == uid);
        storage::reconcile_volume(volume, claim.map(|c| &**c))
    }
}
