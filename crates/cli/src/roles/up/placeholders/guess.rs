//! Guesses the definition of a kind from its name and the manifests that use it. No I/O.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use tiphys_apimachinery::{Gvk, Object};

/// The label of placeholders.
pub const PLACEHOLDER: &str = "tiphys.dev/placeholder";
/// The health script for objects without a controller.
pub const HEALTH: &str = "hs = {}\nhs.status = \"Healthy\"\nhs.message = \"placeholder definition: no controller works on this kind\"\nreturn hs\n";

/// Groups of the API server itself: a kind or version that is missing there was removed or is
/// misspelt.
const BUILT_IN: [&str; 20] = [
    "admissionregistration.k8s.io",
    "apiextensions.k8s.io",
    "apiregistration.k8s.io",
    "apps",
    "argoproj.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "certificates.k8s.io",
    "coordination.k8s.io",
    "discovery.k8s.io",
    "events.k8s.io",
    "extensions",
    "flowcontrol.apiserver.k8s.io",
    "networking.k8s.io",
    "node.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
];
/// Tiphys's own kinds in `argoproj.io`; the others (Rollouts, Workflows) are treated like any other
/// kind.
const OURS: [&str; 3] = ["Application", "ApplicationSet", "AppProject"];

/// Cluster-scoped kinds of widely used operators whose names do not begin with `Cluster`.
const CLUSTER_WIDE: [(&str, &str); 34] = [
    ("gateway.networking.k8s.io", "GatewayClass"),
    ("snapshot.storage.k8s.io", "VolumeSnapshotClass"),
    ("snapshot.storage.k8s.io", "VolumeSnapshotContent"),
    ("karpenter.sh", "NodePool"),
    ("karpenter.sh", "NodeClaim"),
    ("karpenter.sh", "Provisioner"),
    ("karpenter.k8s.aws", "EC2NodeClass"),
    ("karpenter.k8s.aws", "AWSNodeTemplate"),
    ("templates.gatekeeper.sh", "ConstraintTemplate"),
    ("constraints.gatekeeper.sh", ""),
    ("mutations.gatekeeper.sh", ""),
    ("pkg.crossplane.io", ""),
    ("apiextensions.crossplane.io", ""),
    ("operator.tigera.io", ""),
    ("crd.projectcalico.org", "IPPool"),
    ("crd.projectcalico.org", "GlobalNetworkPolicy"),
    ("crd.projectcalico.org", "FelixConfiguration"),
    ("crd.projectcalico.org", "BGPConfiguration"),
    ("crd.projectcalico.org", "BGPPeer"),
    ("projectcalico.org", "GlobalNetworkPolicy"),
    ("projectcalico.org", "IPPool"),
    ("cilium.io", "CiliumLoadBalancerIPPool"),
    ("cilium.io", "CiliumBGPPeeringPolicy"),
    ("cilium.io", "CiliumL2AnnouncementPolicy"),
    ("cilium.io", "CiliumClusterwideNetworkPolicy"),
    ("cilium.io", "CiliumExternalWorkload"),
    ("config.openshift.io", ""),
    ("operator.openshift.io", ""),
    ("security.openshift.io", "SecurityContextConstraints"),
    ("project.openshift.io", "Project"),
    ("machineconfiguration.openshift.io", ""),
    ("nfd.k8s-sigs.io", "NodeFeatureRule"),
    ("secrets-store.csi.x-k8s.io", "SecretProviderClassPodStatus"),
    ("capsule.clastix.io", "Tenant"),
];

/// A kind used in manifests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    pub gvk: Gvk,
    /// A manifest sets a namespace.
    named_namespace: bool,
}

impl Missing {
    /// The kind of a placeholder.
    pub fn of_definition(definition: &Value) -> Option<Self> {
        let text = |pointer: &str| {
            definition
                .pointer(pointer)
                .and_then(Value::as_str)
                .map(str::to_owned)
        };
        let gvk = Gvk {
            group: text("/spec/group")?,
            version: text("/spec/versions/0/name")?,
            kind: text("/spec/names/kind")?,
        };
        Some(Self {
            gvk,
            named_namespace: text("/spec/scope")? == "Namespaced",
        })
    }

    pub fn is_namespaced(&self) -> bool {
        let Gvk { group, kind, .. } = &self.gvk;
        let listed = CLUSTER_WIDE
            .iter()
            .any(|(g, k)| g == group && (k.is_empty() || k == kind));
        // `Cluster` itself is a database or a cluster-api object. These are namespaced, as is
        // everything else of cluster-api.
        let by_name = kind.starts_with("Cluster")
            && kind != "Cluster"
            && !group.ends_with("cluster.x-k8s.io");
        self.named_namespace || !(listed || by_name)
    }

    /// kubectl's guess, except for `gateways`.
    fn plural(&self) -> String {
        let singular = self.gvk.kind.to_lowercase();
        match singular.strip_suffix('y') {
            _ if singular.ends_with("endpoints") => singular,
            Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
            Some(_) => format!("{singular}s"),
            None if singular.ends_with('s') => format!("{singular}es"),
            None => format!("{singular}s"),
        }
    }

    /// The name of its CRD.
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural(), self.gvk.group)
    }

    pub fn is_defined_by(&self, definition: &Value) -> bool {
        definition["spec"]["group"] == *self.gvk.group
            && definition["spec"]["names"]["kind"] == *self.gvk.kind
    }

    pub fn definition(&self) -> Value {
        let mut annotations = json!({"tiphys.dev/placeholder-reason": "made by tiphys up: manifests use this kind and nobody defined it"});
        if self.gvk.group.ends_with(".k8s.io") || self.gvk.group.ends_with(".kubernetes.io") {
            annotations["api-approved.kubernetes.io"] = "unapproved, a placeholder".into();
        }
        let kind = &self.gvk.kind;
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": self.name(), "labels": {PLACEHOLDER: "true"}, "annotations": annotations},
            "spec": {
                "group": self.gvk.group, "scope": if self.is_namespaced() { "Namespaced" } else { "Cluster" },
                "names": {"kind": kind, "listKind": format!("{kind}List"), "plural": self.plural(), "singular": kind.to_lowercase()},
                "versions": [version(&self.gvk.version, true)],
            }
        })
    }
}

/// A version of a placeholder.
pub fn version(name: &str, storage: bool) -> Value {
    json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema()}})
}

fn schema() -> Value {
    json!({"type": "object", "description": "A placeholder: anything is taken.", "x-kubernetes-preserve-unknown-fields": true})
}

/// Whether a CRD is marked as a placeholder.
pub fn is_placeholder(definition: &Value) -> bool {
    definition["metadata"]["labels"][PLACEHOLDER] == "true"
}

/// Whether a placeholder is unchanged.
pub fn is_untouched(definition: &Value) -> bool {
    let versions = definition["spec"]["versions"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    versions
        .iter()
        .all(|v| v["schema"]["openAPIV3Schema"] == schema())
}

/// Whether two definitions define the same kind.
pub fn same_kind(a: &Value, b: &Value) -> bool {
    a["spec"]["group"] == b["spec"]["group"]
        && a["spec"]["names"]["kind"] == b["spec"]["names"]["kind"]
}

/// Whether the API server would refuse to update the placeholder to this CRD, or would keep both.
pub fn cannot_be_applied_over(wanted: &Value, placeholder: &Value) -> bool {
    wanted["spec"]["scope"] != placeholder["spec"]["scope"]
        || wanted["metadata"]["name"] != placeholder["metadata"]["name"]
}

/// Prepares a saved object for creation; returns its namespace, or `None` if it has none and needs
/// one.
pub fn place(object: &mut Object, namespaced: bool) -> Option<String> {
    let metadata = object
        .0
        .get_mut("metadata")
        .and_then(Value::as_object_mut)?;
    for field in [
        "uid",
        "resourceVersion",
        "creationTimestamp",
        "generation",
        "managedFields",
        "selfLink",
        "deletionTimestamp",
    ] {
        metadata.remove(field);
    }
    if !namespaced {
        metadata.remove("namespace");
        return Some(String::new());
    }
    metadata
        .get("namespace")
        .and_then(Value::as_str)
        .map(str::to_owned)
}

/// The kinds that the Applications use.
#[derive(Default)]
pub struct Used {
    /// Kinds that may need a CRD, by group and kind.
    pub kinds: BTreeMap<(String, String), Missing>,
    versions: Vec<Gvk>,
    /// Names of CRDs that an Application contains.
    brought: Vec<String>,
    /// Their manifests.
    pub definitions: Vec<Value>,
}

impl Used {
    /// Records a resource; returns whether its manifest must be read.
    pub fn add(&mut self, gvk: &Gvk, name: &str) -> bool {
        if gvk.kind == "CustomResourceDefinition" {
            self.brought.push(name.to_owned());
            return true;
        }
        let built_in = BUILT_IN.contains(&gvk.group.as_str())
            || gvk.group == "storage.k8s.io"
            || gvk.group == "resource.k8s.io";
        let other_of_argo = gvk.group == "argoproj.io" && !OURS.contains(&gvk.kind.as_str());
        if gvk.version.is_empty() || !gvk.group.contains('.') || (built_in && !other_of_argo) {
            return false;
        }
        self.versions.push(gvk.clone());
        let missing = || Missing {
            gvk: gvk.clone(),
            named_namespace: false,
        };
        self.kinds
            .entry((gvk.group.clone(), gvk.kind.clone()))
            .or_insert_with(missing);
        true
    }

    /// `usual`: the destination namespace, used for manifests that set none.
    pub fn read(&mut self, manifest: &Value, usual: &str) {
        let text = |pointer: &str| {
            manifest
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        let gvk = Gvk::from_api_version(text("/apiVersion"), text("/kind"));
        if gvk.kind == "CustomResourceDefinition" {
            return self.definitions.push(manifest.clone());
        }
        if let Some(known) = self.kinds.get_mut(&(gvk.group, gvk.kind)) {
            let namespace = text("/metadata/namespace");
            known.named_namespace |= !namespace.is_empty() && namespace != usual;
        }
    }

    /// Whether an Application contains the CRD itself.
    pub fn brings(&self, missing: &Missing) -> bool {
        let by_name = |name: &String| {
            let kind = missing.gvk.kind.to_lowercase();
            name.split_once('.').is_some_and(|(plural, group)| {
                group == missing.gvk.group
                    && (plural == missing.plural() || plural.starts_with(&kind))
            })
        };
        self.definitions.iter().any(|d| missing.is_defined_by(d))
            || self.brought.iter().any(by_name)
    }

    /// A version that is used in manifests and missing in the placeholder.
    pub fn version_lacking(&self, placeholder: &Value) -> Option<String> {
        let has = |version: &str| {
            placeholder["spec"]["versions"]
                .as_array()
                .is_some_and(|all| all.iter().any(|v| v["name"] == *version))
        };
        let of_it = |g: &&Gvk| {
            placeholder["spec"]["group"] == *g.group
                && placeholder["spec"]["names"]["kind"] == *g.kind
        };
        self.versions
            .iter()
            .filter(of_it)
            .find(|g| !has(&g.version))
            .map(|g| g.version.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn missing(group: &str, kind: &str) -> Missing {
        let mut used = Used::default();
        used.add(
            &Gvk {
                group: group.into(),
                version: "v1".into(),
                kind: kind.into(),
            },
            "x",
        );
        used.kinds
            .into_values()
            .next()
            .unwrap_or_else(|| panic!("{group}/{kind} is not guessed"))
    }

    #[test]
    fn plurals_are_guessed_as_kubectl_does() {
        for (kind, name) in [
            ("Certificate", "certificates.cert-manager.io"),
            ("Policy", "policies.cert-manager.io"),
            ("Ingress", "ingresses.cert-manager.io"),
            ("Gateway", "gateways.cert-manager.io"),
            ("MyEndpoints", "myendpoints.cert-manager.io"),
        ] {
            assert_eq!(missing("cert-manager.io", kind).name(), name);
        }
    }

    #[test]
    fn scopes() {
        for (group, kind, namespaced) in [
            ("cert-manager.io", "Certificate", true),
            ("cert-manager.io", "ClusterIssuer", false),
            ("postgresql.cnpg.io", "Cluster", true),
            ("cluster.x-k8s.io", "ClusterClass", true),
            ("gateway.networking.k8s.io", "GatewayClass", false),
            ("constraints.gatekeeper.sh", "K8sRequiredLabels", false),
            ("argoproj.io", "Rollout", true),
        ] {
            assert_eq!(
                missing(group, kind).is_namespaced(),
                namespaced,
                "{group} {kind}"
            );
        }
        let mut used = Used::default();
        used.add(
            &Gvk {
                group: "a.io".into(),
                version: "v1".into(),
                kind: "ClusterThing".into(),
            },
            "x",
        );
        let thing = |namespace: &str| json!({"apiVersion": "a.io/v1", "kind": "ClusterThing", "metadata": {"name": "x", "namespace": namespace}});
        used.read(&thing("default"), "default");
        assert!(
            !used.kinds.values().any(Missing::is_namespaced),
            "it was given that of the destination"
        );
        used.read(&thing("n"), "default");
        assert!(
            used.kinds.values().all(Missing::is_namespaced),
            "the manifest says so"
        );
    }

    #[test]
    fn what_the_server_has_itself_or_somebody_brings_is_not_made_up() {
        let mut used = Used::default();
        for (group, kind) in [
            ("networking.k8s.io", "Ingress"),
            ("", "Pot"),
            ("argoproj.io", "Application"),
            ("apps", "Deploymnt"),
        ] {
            used.add(
                &Gvk {
                    group: group.into(),
                    version: "v1beta1".into(),
                    kind: kind.into(),
                },
                "x",
            );
        }
        assert!(used.kinds.is_empty(), "{:?}", used.kinds);
        used.add(
            &Gvk {
                group: "apiextensions.k8s.io".into(),
                version: "v1".into(),
                kind: "CustomResourceDefinition".into(),
            },
            "gateways.a.io",
        );
        assert!(
            used.brings(&missing("a.io", "Gateway")) && !used.brings(&missing("b.io", "Gateway"))
        );
    }

    #[test]
    fn a_real_definition_is_told_from_a_placeholder() {
        let placeholder = missing("a.io", "Widget").definition();
        assert!(is_untouched(&placeholder));
        let mut real = placeholder.clone();
        real["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = json!({"type": "object"});
        assert!(
            !is_untouched(&real)
                && same_kind(&real, &placeholder)
                && !cannot_be_applied_over(&real, &placeholder)
        );
        real["spec"]["scope"] = "Cluster".into();
        assert!(cannot_be_applied_over(&real, &placeholder));
    }
}
