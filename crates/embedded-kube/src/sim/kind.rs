//! The kinds that the simulated controllers read or write, and the key of an object.
//!
//! Main types: [`Kind`] and [`Key`]. An enum instead of names keeps the indexes small, and excludes
//! kinds that are not simulated.

use std::fmt;
use tiphys_apimachinery::{Gvk, Object, gvk::split_api_version};

macro_rules! kinds {
    ($($kind:ident $group:literal $version:literal $name:literal $resource:literal;)*) => {
        /// A kind that the controllers know.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Kind { $($kind),* }

        impl Kind {
            pub const ALL: &'static [Kind] = &[$(Kind::$kind),*];

            /// API group, version, kind and plural resource name.
            pub const fn names(self) -> (&'static str, &'static str, &'static str, &'static str) {
                match self { $(Kind::$kind => ($group, $version, $name, $resource)),* }
            }

            /// The kind of a group (without version) and a kind name.
            pub fn of_names(group: &str, kind: &str) -> Option<Kind> {
                match (group, kind) { $(($group, $name) => Some(Kind::$kind),)* _ => None }
            }
        }
    };
}

kinds! {
    Namespace "" "v1" "Namespace" "namespaces";
    Node "" "v1" "Node" "nodes";
    Pod "" "v1" "Pod" "pods";
    Service "" "v1" "Service" "services";
    Endpoints "" "v1" "Endpoints" "endpoints";
    ConfigMap "" "v1" "ConfigMap" "configmaps";
    ServiceAccount "" "v1" "ServiceAccount" "serviceaccounts";
    PersistentVolume "" "v1" "PersistentVolume" "persistentvolumes";
    PersistentVolumeClaim "" "v1" "PersistentVolumeClaim" "persistentvolumeclaims";
    Event "" "v1" "Event" "events";
    ReplicationController "" "v1" "ReplicationController" "replicationcontrollers";
    ResourceQuota "" "v1" "ResourceQuota" "resourcequotas";
    Deployment "apps" "v1" "Deployment" "deployments";
    ReplicaSet "apps" "v1" "ReplicaSet" "replicasets";
    StatefulSet "apps" "v1" "StatefulSet" "statefulsets";
    DaemonSet "apps" "v1" "DaemonSet" "daemonsets";
    ControllerRevision "apps" "v1" "ControllerRevision" "controllerrevisions";
    Job "batch" "v1" "Job" "jobs";
    CronJob "batch" "v1" "CronJob" "cronjobs";
    EndpointSlice "discovery.k8s.io" "v1" "EndpointSlice" "endpointslices";
    StorageClass "storage.k8s.io" "v1" "StorageClass" "storageclasses";
    Lease "coordination.k8s.io" "v1" "Lease" "leases";
    PodDisruptionBudget "policy" "v1" "PodDisruptionBudget" "poddisruptionbudgets";
    Ingress "networking.k8s.io" "v1" "Ingress" "ingresses";
    HorizontalPodAutoscaler "autoscaling" "v2" "HorizontalPodAutoscaler" "horizontalpodautoscalers";
}

impl Kind {
    pub fn of(object: &Object) -> Option<Kind> {
        Self::of_names(object.group(), object.kind())
    }

    /// The kind an owner reference names.
    pub fn of_api_version(api_version: &str, kind: &str) -> Option<Kind> {
        Self::of_names(split_api_version(api_version).0, kind)
    }

    pub fn gvk(self) -> Gvk {
        let (group, version, kind, _) = self.names();
        Gvk::new(group, version, kind)
    }

    pub fn name(self) -> &'static str {
        self.names().2
    }

    /// Whether the cache should keep this object: every object of a simulated kind, except for
    /// ConfigMaps, of which only one name is used.
    pub fn wants(self, name: &str) -> bool {
        match self {
            Kind::ConfigMap => name == ROOT_CA,
            Kind::ServiceAccount => name == "default",
            Kind::Event => false,
            _ => true,
        }
    }
}

/// The ConfigMap with the cluster's certificate authority that every namespace has.
pub const ROOT_CA: &str = "kube-root-ca.crt";

/// Kind, namespace (empty for cluster scope) and name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key {
    pub kind: Kind,
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn new(kind: Kind, namespace: &str, name: &str) -> Self {
        Self {
            kind,
            namespace: namespace.to_owned(),
            name: name.to_owned(),
        }
    }

    /// `None` for kinds and names that are not simulated.
    pub fn of(object: &Object) -> Option<Self> {
        let kind = Kind::of(object)?;
        kind.wants(object.name())
            .then(|| Self::new(kind, object.namespace(), object.name()))
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}/{}", self.kind.name(), self.namespace, self.name)
    }
}
