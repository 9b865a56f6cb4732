//! The policies and webhooks of a cluster, compiled when one of them changes. Main type: [`Hooks`].

use super::policy::Policy;
use super::webhook::Hook;
use crate::reader::Reader;
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::Object;

/// The API group of policies, bindings and webhook configurations. They do not apply to objects of
/// this group.
pub const GROUP: &str = "admissionregistration.k8s.io";

/// A policy with its bindings, in the order of their names.
pub struct Bound {
    pub policy: Policy,
    pub bindings: Vec<Arc<Object>>,
}

#[derive(Default)]
pub struct Hooks {
    pub validating: Vec<Bound>,
    pub mutating: Vec<Bound>,
    pub validating_webhooks: Vec<Hook>,
    pub mutating_webhooks: Vec<Hook>,
}

impl Hooks {
    /// Whether anything may change the object of a write.
    pub fn may_change(&self) -> bool {
        !self.mutating.is_empty() || !self.mutating_webhooks.is_empty()
    }

    /// Whether a write may have to wait for an external server.
    pub fn calls_out(&self) -> bool {
        !self.validating_webhooks.is_empty() || !self.mutating_webhooks.is_empty()
    }

    pub fn read(cluster: &dyn Reader) -> Self {
        let list = |resource: &str| -> Vec<Arc<Object>> {
            cluster
                .all_stored(&format!("{GROUP}/{resource}"), None)
                .iter()
                .map(|stored| stored.object())
                .collect()
        };
        let bound = |policies: &str, bindings: &str| {
            let bindings = list(bindings);
            let mut all = Vec::new();
            for policy in list(policies) {
                let of = |b: &&Arc<Object>| {
                    b.pointer("/spec/policyName").and_then(Value::as_str) == Some(policy.name())
                };
                let bindings: Vec<Arc<Object>> = bindings.iter().filter(of).cloned().collect();
                if !bindings.is_empty() {
                    all.push(Bound {
                        policy: Policy::compile(&policy),
                        bindings,
                    });
                }
            }
            all
        };
        Self {
            validating: bound(
                "validatingadmissionpolicies",
                "validatingadmissionpolicybindings",
            ),
            validating_webhooks: list("validatingwebhookconfigurations")
                .iter()
                .flat_map(|c| Hook::of(c))
                .collect(),
            mutating_webhooks: list("mutatingwebhookconfigurations")
                .iter()
                .flat_map(|c| Hook::of(c))
                .collect(),
            mutating: bound(
                "mutatingadmissionpolicies",
                "mutatingadmissionpolicybindings",
            ),
        }
    }
}
