//! Validation errors (422): the checks that users run into most often, with the real server's
//! wording.
//!
//! Main function: [`check`]. It collects causes; it changes nothing.

mod admission_policies;
mod autoscaling;
mod certificates;
mod claim_status;
mod data;
mod devices;
mod endpoints;
mod flow;
mod labels;
mod limits;
pub mod meta;
mod network;
mod node_annotations;
mod nodes;
mod pod;
pub mod qos;
mod rbac;
mod registration;
pub mod rules;
pub mod service;
mod slice_devices;
mod slices;
mod storage;
pub mod url;
mod volume_sources;
mod volumes;
mod webhooks;
mod workloads;

pub use claim_status::forget_deallocated;
pub use devices::admin_access;
pub use nodes::is_system_class;
pub use pod::annotations::MIRROR;
pub use pod::resources::{
    Amounts, add, aggregate, allows_overcommit, is_huge_pages, is_supported_of_pods,
};

use crate::base::Part;
use crate::catalog::Resource;
use crate::convert;
use crate::status::Cause;
use rules::At;
use tiphys_apimachinery::Object;

/// All errors in an object; `old` is set for updates, `part` is the written part.
pub fn check(resource: &Resource, object: &Object, old: Option<&Object>, part: Part) -> Vec<Cause> {
    let mut causes = old
        .map(|old| meta::check_update(object, old))
        .unwrap_or_default();
    let runs_pods =
        matches!(resource.group.as_str(), "" | "apps" | "batch") && resource.custom.is_none();
    if let Some(found) = runs_pods
        .then(|| workloads::check(resource, object, old, part))
        .flatten()
    {
        causes.extend(found);
    } else {
        causes.extend(meta::check_kind(resource, object, old, part));
        match part {
            Part::Status => check_status(resource, object, old, &mut causes),
            _ => check_main(resource, object, old, part, &mut causes),
        }
    }
    if causes.is_empty() && old.is_none() {
        return meta::check_common(object);
    }
    causes
}

fn check_status(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    causes: &mut Vec<Cause>,
) {
    match resource.table.as_str() {
        "/services" => service::check_status(object, old, causes),
        "flowcontrol.apiserver.k8s.io/flowschemas"
        | "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations" => {
            flow::status(object, old, causes);
        }
        "/persistentvolumeclaims" => volumes::claim_status(object, old, causes),
        "resource.k8s.io/resourceclaims" => claim_status::claim_status(object, old, causes),
        "apiregistration.k8s.io/apiservices" => registration::status(object, old, causes),
        "/resourcequotas" => limits::quota_status(object, old, causes),
        "/namespaces" => nodes::namespace_status(object, causes),
        "/nodes" => nodes::node_update(object, old, causes),
        "policy/poddisruptionbudgets" => nodes::disruption_status(object, old, causes),
        "autoscaling/horizontalpodautoscalers" => {
            autoscaling::autoscaler_status(object, old, causes)
        }
        "certificates.k8s.io/certificatesigningrequests" => {
            certificates::request(object, old, Part::Status, causes)
        }
        "storage.k8s.io/volumeattachments" => storage::attachment_status(object, old, causes),
        "admissionregistration.k8s.io/validatingadmissionpolicies" => {
            admission_policies::policy_status(object, old, causes)
        }
        "networking.k8s.io/ingresses" => network::load_balancer(
            &At::of(object, old, "status").get("loadBalancer.ingress"),
            false,
            causes,
        ),
        _ => {}
    }
}

fn check_main(
    resource: &Resource,
    object: &Object,
    old: Option<&Object>,
    part: Part,
    causes: &mut Vec<Cause>,
) {
    let spec = At::of(object, old, "spec");
    match resource.table.as_str() {
        "/services" => service::check(object, old, causes),
        "/configmaps" => data::config_map(object, old, causes),
        "/secrets" => data::secret(object, old, causes),
        "/endpoints" => endpoints::endpoints(object, old, causes),
        "/events" => endpoints::event(object, old, !resource.group.is_empty(), causes),
        "discovery.k8s.io/endpointslices" => endpoints::slice(object, old, causes),
        "coordination.k8s.io/leases" => spec.walk(endpoints::LEASE, causes),
        "/persistentvolumeclaims" => volumes::claim(object, old, causes),
        "networking.k8s.io/ingresses" => network::ingress(object, old, causes),
        "networking.k8s.io/ingressclasses" => network::ingress_class(object, old, causes),
        "networking.k8s.io/networkpolicies" => network::network_policy(object, old, causes),
        "networking.k8s.io/ipaddresses" => network::ip_address(object, old, causes),
        "networking.k8s.io/servicecidrs" => network::service_cidr(object, old, causes),
        "rbac.authorization.k8s.io/roles" => rbac::role(object, old, true, causes),
        "rbac.authorization.k8s.io/clusterroles" => rbac::role(object, old, false, causes),
        "rbac.authorization.k8s.io/rolebindings" => rbac::binding(object, old, true, causes),
        "rbac.authorization.k8s.io/clusterrolebindings" => {
            rbac::binding(object, old, false, causes)
        }
        "autoscaling/horizontalpodautoscalers" => {
            // Checked in the stored form.
            let mut kept = object.clone();
            convert::to_storage(resource, &mut kept);
            autoscaling::autoscaler(&kept, old, causes);
        }
        "policy/poddisruptionbudgets" => nodes::disruption_budget(object, old, causes),
        "scheduling.k8s.io/priorityclasses" => nodes::priority_class(object, old, causes),
        "node.k8s.io/runtimeclasses" => nodes::runtime_class(object, old, causes),
        "/namespaces" if old.is_none() => nodes::namespace(object, causes),
        "/namespaces" if part == Part::Finalize => nodes::finalize(object, causes),
        "/nodes" => nodes::node(object, old, causes),
        "/limitranges" => limits::limit_range(object, old, causes),
        "/resourcequotas" => limits::quota(object, old, causes),
        "/persistentvolumes" => volumes::volume(object, old, causes),
        "admissionregistration.k8s.io/validatingwebhookconfigurations" => {
            webhooks::configuration(object, old, false, causes)
        }
        "admissionregistration.k8s.io/mutatingwebhookconfigurations" => {
            webhooks::configuration(object, old, true, causes)
        }
        "admissionregistration.k8s.io/validatingadmissionpolicies" => {
            admission_policies::policy(object, old, false, causes)
        }
        "admissionregistration.k8s.io/mutatingadmissionpolicies" => {
            admission_policies::policy(object, old, true, causes)
        }
        "admissionregistration.k8s.io/validatingadmissionpolicybindings" => {
            admission_policies::policy_binding(object, old, true, causes)
        }
        "admissionregistration.k8s.io/mutatingadmissionpolicybindings" => {
            admission_policies::policy_binding(object, old, false, causes)
        }
        "resource.k8s.io/resourceclaims" => devices::claim(object, old, causes),
        "resource.k8s.io/resourceclaimtemplates" => devices::template(object, old, causes),
        "resource.k8s.io/deviceclasses" => devices::class(object, old, causes),
        "resource.k8s.io/resourceslices" => slices::slice(object, old, causes),
        "certificates.k8s.io/certificatesigningrequests" => {
            certificates::request(object, old, part, causes)
        }
        "flowcontrol.apiserver.k8s.io/flowschemas" => flow::schema(object, old, causes),
        "flowcontrol.apiserver.k8s.io/prioritylevelconfigurations" => {
            flow::priority_level(object, old, causes)
        }
        "apps/controllerrevisions" => flow::controller_revision(object, old, causes),
        "apiregistration.k8s.io/apiservices" => registration::service(object, old, causes),
        "storage.k8s.io/storageclasses" => storage::class(object, old, causes),
        "storage.k8s.io/volumeattachments" => storage::attachment(object, old, causes),
        "storage.k8s.io/csidrivers" => storage::driver(object, old, causes),
        "storage.k8s.io/csinodes" => storage::node(object, old, causes),
        "storage.k8s.io/csistoragecapacities" => storage::capacity(object, old, causes),
        "storage.k8s.io/volumeattributesclasses" => storage::attributes_class(object, old, causes),
        _ => {}
    }
}

/// Whether the kind checks metadata changes beyond the checks of all kinds.
pub fn looks_at_updates(resource: &Resource, part: Part) -> bool {
    meta::looks_at_updates(resource, part)
}

/// Validates the approval of a certificate request.
pub fn decision(object: &Object, old: &Object) -> Vec<Cause> {
    let mut causes = Vec::new();
    certificates::request(object, Some(old), Part::Approval, &mut causes);
    causes
}

/// Validates a Scale.
pub fn scale(scale: &Object) -> Vec<Cause> {
    let mut causes = meta::check_scale(scale);
    At::of(scale, None, "spec")
        .get("replicas")
        .check(&[rules::Check::AtLeast(0)], &mut causes);
    causes
}

/// Validates the metadata of an embedded object.
pub fn embedded(metadata: &serde_json::Value, path: &str) -> Vec<Cause> {
    meta::embedded(metadata, path)
}
