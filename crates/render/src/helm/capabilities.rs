//! `.Capabilities`: what charts see of the cluster and of Helm.
//!
//! Main types: [`Capabilities`] and [`KubeVersion`]. No cluster is asked: without other input a
//! chart gets what `helm template` of Helm 4.2.4 assumes.

use tiphys_gocompat::text::quote;

/// `.Capabilities.HelmVersion.Version`.
pub const HELM_VERSION: &str = "v4.2.4";
pub(super) const HELM_GO: &str = "go1.26.8";
/// The minor version of Kubernetes that this Helm is built for.
pub(super) const KUBE_CLIENT: &str = "v1.36";

/// A version of Kubernetes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeVersion {
    /// As given, with a leading `v`.
    pub version: String,
    /// Only its numbers, with a leading `v`; constraints are checked against it.
    pub normalized: String,
    pub major: String,
    pub minor: String,
}

impl KubeVersion {
    /// Parses what `--kube-version` accepts: at least two numbers, with any suffix.
    pub fn parse(text: &str) -> Result<Self, String> {
        let body = text.trim_start();
        let body = body.strip_prefix('v').unwrap_or(body);
        let end = body
            .find(|c: char| !c.is_ascii_digit() && c != '.')
            .unwrap_or(body.len());
        let mut components = Vec::new();
        for part in body[..end].split('.') {
            // A dot without a number after it does not belong to the version.
            if part.is_empty() {
                break;
            }
            components.push(part);
        }
        if components.is_empty() {
            return Err(format!("could not parse {} as version", quote(text)));
        }
        if components.len() < 2 {
            return Err(format!("illegal version string {}", quote(text)));
        }
        let mut numbers = Vec::new();
        for (i, component) in components.into_iter().enumerate() {
            // Only the first number may not begin with a zero.
            if i == 0 && component.len() > 1 && component.starts_with('0') {
                return Err(format!(
                    "illegal zero-prefixed version component {} in {}",
                    quote(component),
                    quote(text)
                ));
            }
            let number: u64 = component.parse().map_err(|_| {
                let (component, text) = (quote(component), quote(text));
                format!("illegal non-numeric version component {component} in {text}: strconv.ParseUint: parsing {component}: value out of range")
            })?;
            numbers.push(number.to_string());
        }
        Ok(Self {
            version: if text.starts_with('v') {
                text.to_owned()
            } else {
                format!("v{text}")
            },
            normalized: format!("v{}", numbers.join(".")),
            major: numbers[0].clone(),
            minor: numbers[1].clone(),
        })
    }
}

/// The content of `.Capabilities`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Capabilities {
    pub kube_version: KubeVersion,
    pub api_versions: Vec<String>,
}

impl Default for Capabilities {
    fn default() -> Self {
        let kube_version = KubeVersion {
            version: "v1.36.0".into(),
            normalized: "v1.36.0".into(),
            major: "1".into(),
            minor: "36".into(),
        };
        Self {
            kube_version,
            api_versions: API_VERSIONS.iter().map(|v| (*v).to_owned()).collect(),
        }
    }
}

/// The groups and versions that are built into Helm, in its order.
const API_VERSIONS: &[&str] = &[
    "v1",
    "admissionregistration.k8s.io/v1",
    "admissionregistration.k8s.io/v1alpha1",
    "admissionregistration.k8s.io/v1beta1",
    "internal.apiserver.k8s.io/v1alpha1",
    "apps/v1",
    "apps/v1beta1",
    "apps/v1beta2",
    "authentication.k8s.io/v1",
    "authentication.k8s.io/v1alpha1",
    "authentication.k8s.io/v1beta1",
    "authorization.k8s.io/v1",
    "authorization.k8s.io/v1beta1",
    "autoscaling/v1",
    "autoscaling/v2",
    "batch/v1",
    "batch/v1beta1",
    "certificates.k8s.io/v1",
    "certificates.k8s.io/v1beta1",
    "certificates.k8s.io/v1alpha1",
    "coordination.k8s.io/v1alpha2",
    "coordination.k8s.io/v1beta1",
    "coordination.k8s.io/v1",
    "discovery.k8s.io/v1",
    "discovery.k8s.io/v1beta1",
    "events.k8s.io/v1",
    "events.k8s.io/v1beta1",
    "extensions/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1",
    "flowcontrol.apiserver.k8s.io/v1beta1",
    "flowcontrol.apiserver.k8s.io/v1beta2",
    "flowcontrol.apiserver.k8s.io/v1beta3",
    "networking.k8s.io/v1",
    "networking.k8s.io/v1beta1",
    "node.k8s.io/v1",
    "node.k8s.io/v1alpha1",
    "node.k8s.io/v1beta1",
    "policy/v1",
    "policy/v1beta1",
    "rbac.authorization.k8s.io/v1",
    "rbac.authorization.k8s.io/v1beta1",
    "rbac.authorization.k8s.io/v1alpha1",
    "resource.k8s.io/v1",
    "resource.k8s.io/v1beta2",
    "resource.k8s.io/v1beta1",
    "resource.k8s.io/v1alpha3",
    "scheduling.k8s.io/v1alpha2",
    "scheduling.k8s.io/v1beta1",
    "scheduling.k8s.io/v1",
    "storage.k8s.io/v1beta1",
    "storage.k8s.io/v1",
    "storage.k8s.io/v1alpha1",
    "storagemigration.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1beta1",
    "apiextensions.k8s.io/v1",
];
