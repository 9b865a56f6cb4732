//! Object identity: kind, name and namespace.
//!
//! Main types: [`Gvk`] and [`ResId`]. Whether a kind is namespaced is known for the kinds of
//! Kubernetes 1.21; all others are treated as namespaced.

use super::tree::{Id, Tree};
use std::fmt;
use tiphys_apimachinery::gvk::{join_api_version, split_api_version};

/// Cluster-scoped kinds, one group and version per line.
const CLUSTER_SCOPED: &[(&str, &[&str])] = &[
    (
        "admissionregistration.k8s.io/v1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ],
    ),
    (
        "admissionregistration.k8s.io/v1beta1",
        &[
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        ],
    ),
    // kustomize knows these two only since 5.8.1.
    (
        "admissionregistration.k8s.io/v1",
        &[
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
        ],
    ),
    ("apiextensions.k8s.io/v1", &["CustomResourceDefinition"]),
    (
        "apiextensions.k8s.io/v1beta1",
        &["CustomResourceDefinition"],
    ),
    ("apiregistration.k8s.io/v1", &["APIService"]),
    ("apiregistration.k8s.io/v1beta1", &["APIService"]),
    ("certificates.k8s.io/v1", &["CertificateSigningRequest"]),
    (
        "certificates.k8s.io/v1beta1",
        &["CertificateSigningRequest"],
    ),
    (
        "flowcontrol.apiserver.k8s.io/v1beta1",
        &["FlowSchema", "PriorityLevelConfiguration"],
    ),
    ("networking.k8s.io/v1", &["IngressClass"]),
    ("networking.k8s.io/v1beta1", &["IngressClass"]),
    ("node.k8s.io/v1", &["RuntimeClass"]),
    ("node.k8s.io/v1beta1", &["RuntimeClass"]),
    ("policy/v1beta1", &["PodSecurityPolicy"]),
    (
        "rbac.authorization.k8s.io/v1",
        &["ClusterRole", "ClusterRoleBinding"],
    ),
    (
        "rbac.authorization.k8s.io/v1beta1",
        &["ClusterRole", "ClusterRoleBinding"],
    ),
    ("scheduling.k8s.io/v1", &["PriorityClass"]),
    ("scheduling.k8s.io/v1beta1", &["PriorityClass"]),
    (
        "storage.k8s.io/v1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
    (
        "storage.k8s.io/v1beta1",
        &["CSIDriver", "CSINode", "StorageClass", "VolumeAttachment"],
    ),
    (
        "v1",
        &[
            "ComponentStatus",
            "Namespace",
            "Node",
            "NodeProxyOptions",
            "PersistentVolume",
        ],
    ),
];

fn is_cluster_scoped(api_version: &str, kind: &str) -> bool {
    is_in(CLUSTER_SCOPED, api_version, kind)
}

fn is_in(table: &[(&str, &[&str])], api_version: &str, kind: &str) -> bool {
    let mut of_version = table.iter().filter(|(of, _)| *of == api_version);
    of_version.any(|(_, kinds)| kinds.contains(&kind))
}

/// Namespaced kinds that kustomize knows without reading its schema.
const NAMESPACED: &[(&str, &[&str])] = &[
    (
        "apps/v1",
        &[
            "ControllerRevision",
            "DaemonSet",
            "Deployment",
            "ReplicaSet",
            "StatefulSet",
        ],
    ),
    ("autoscaling/v1", &["HorizontalPodAutoscaler", "Scale"]),
    ("autoscaling/v2beta1", &["HorizontalPodAutoscaler"]),
    ("autoscaling/v2beta2", &["HorizontalPodAutoscaler"]),
    ("batch/v1", &["CronJob", "Job"]),
    ("batch/v1beta1", &["CronJob"]),
    ("coordination.k8s.io/v1", &["Lease"]),
    ("coordination.k8s.io/v1beta1", &["Lease"]),
    ("discovery.k8s.io/v1", &["EndpointSlice"]),
    ("discovery.k8s.io/v1beta1", &["EndpointSlice"]),
    ("events.k8s.io/v1", &["Event"]),
    ("events.k8s.io/v1beta1", &["Event"]),
    ("extensions/v1beta1", &["Ingress"]),
    ("networking.k8s.io/v1", &["Ingress", "NetworkPolicy"]),
    ("networking.k8s.io/v1beta1", &["Ingress"]),
    ("policy/v1", &["PodDisruptionBudget"]),
    ("policy/v1beta1", &["PodDisruptionBudget"]),
    ("rbac.authorization.k8s.io/v1", &["Role", "RoleBinding"]),
    (
        "rbac.authorization.k8s.io/v1beta1",
        &["Role", "RoleBinding"],
    ),
    ("storage.k8s.io/v1beta1", &["CSIStorageCapacity"]),
    (
        "v1",
        &[
            "ConfigMap",
            "Endpoints",
            "Event",
            "LimitRange",
            "PersistentVolumeClaim",
            "Pod",
            "PodTemplate",
            "ReplicationController",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
        ],
    ),
];

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct Gvk {
    pub group: String,
    pub version: String,
    pub kind: String,
}

impl Gvk {
    pub fn new(group: &str, version: &str, kind: &str) -> Self {
        Self {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: kind.to_owned(),
        }
    }

    pub fn of_api_version(api_version: &str, kind: &str) -> Self {
        let (group, version) = split_api_version(api_version);
        Self::new(group, version, kind)
    }

    pub fn api_version(&self) -> String {
        join_api_version(&self.group, &self.version)
    }

    pub fn is_cluster_scoped(&self) -> bool {
        is_cluster_scoped(&self.api_version(), &self.kind)
    }

    /// Whether the kind's scope is known without a schema.
    pub fn is_well_known(&self) -> bool {
        self.is_cluster_scoped() || is_in(NAMESPACED, &self.api_version(), &self.kind)
    }

    /// Whether a selector matches this kind; empty parts of it match anything.
    pub fn is_selected(&self, selector: &Self) -> bool {
        (selector.group.is_empty() || selector.group == self.group)
            && (selector.version.is_empty() || selector.version == self.version)
            && (selector.kind.is_empty() || selector.kind == self.kind)
    }

    /// The fallback sort key for kinds.
    pub fn sort_key(&self) -> String {
        let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
        let (group, version) = (or(&self.group, "~G"), or(&self.version, "~V"));
        format!("{group}_{version}_{}", or(&self.kind, "~K"))
    }
}

impl fmt::Display for Gvk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
        let (kind, version) = (or(&self.kind, "[noKind]"), or(&self.version, "[noVer]"));
        write!(f, "{kind}.{version}.{}", or(&self.group, "[noGrp]"))
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct ResId {
    pub gvk: Gvk,
    pub name: String,
    pub namespace: String,
}

/// The namespace recorded for cluster-scoped objects.
pub(super) const NO_NAMESPACE: &str = "_non_namespaceable_";
pub(super) const DEFAULT_NAMESPACE: &str = "default";

impl ResId {
    /// The current id of an object.
    pub fn of(tree: &Tree, root: Id) -> Self {
        let metadata = tree
            .field(root, "metadata")
            .filter(|id| !tree.is_empty(*id));
        let text = |name| {
            let value = metadata.and_then(|id| tree.field(id, name));
            let value = value.filter(|id| !tree.is_empty(*id));
            value.map_or_else(String::new, |id| tree.text(id).to_owned())
        };
        let (api_version, kind) = (
            tree.field_text(root, "apiVersion"),
            tree.field_text(root, "kind"),
        );
        Self {
            gvk: Gvk::of_api_version(api_version, kind),
            name: text("name"),
            namespace: text("namespace"),
        }
    }

    /// The namespace, with `default` if there is none, and `NO_NAMESPACE` for all cluster-scoped
    /// objects.
    pub fn effective_namespace(&self) -> &str {
        if self.gvk.is_cluster_scoped() {
            NO_NAMESPACE
        } else if self.namespace.is_empty() {
            DEFAULT_NAMESPACE
        } else {
            &self.namespace
        }
    }

    pub fn is_same_namespace(&self, other: &Self) -> bool {
        self.effective_namespace() == other.effective_namespace()
    }

    pub fn is_same(&self, other: &Self) -> bool {
        self.name == other.name && self.gvk == other.gvk && self.is_same_namespace(other)
    }

    /// A key that is equal for equal ids.
    pub fn key(&self) -> Key {
        let namespace = self.effective_namespace().to_owned();
        Key(self.gvk.clone(), self.name.clone(), namespace)
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(Gvk, String, String);

impl fmt::Display for ResId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let or = |text: &str, none: &str| if text.is_empty() { none } else { text }.to_owned();
        let (name, namespace) = (or(&self.name, "[noName]"), or(&self.namespace, "[noNs]"));
        write!(f, "{}/{name}.{namespace}", self.gvk)
    }
}
