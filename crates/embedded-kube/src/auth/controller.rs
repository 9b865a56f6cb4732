//! The parts of a controller manager that concern roles and tokens: aggregated cluster roles, and
//! tokens in Secrets.
//!
//! Main function: [`run`], a single task that follows every change.

use super::{Auth, TOKEN_SECRET, jwt::Ref};
use crate::base::{DeleteOptions, Part, Patch, WriteOptions};
use crate::rbac::policy::GROUP;
use crate::rbac::rules::Rule;
use crate::registry::{Event, EventType, Registry};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::selector::LabelSelector;
use tiphys_apimachinery::{Gvr, Object, object::map_entry};
use tokio::sync::mpsc::UnboundedReceiver;
use tokio_util::sync::CancellationToken;

const ACCOUNT: &str = "kubernetes.io/service-account.name";
const ACCOUNT_UID: &str = "kubernetes.io/service-account.uid";

/// Reconciles everything once, then after every change, until `stop`.
pub async fn run(
    auth: Arc<Auth>,
    ca: String,
    mut changes: UnboundedReceiver<Event>,
    stop: CancellationToken,
) {
    let controller = Controller { auth, ca };
    controller.aggregate();
    for secret in controller
        .registry()
        .list(&Gvr::new("", "v1", "secrets"), None)
        .unwrap_or_default()
    {
        controller.fill(&secret);
    }
    loop {
        let event = tokio::select! {
            () = stop.cancelled() => return,
            event = changes.recv() => match event {
                Some(event) => event,
                None => return,
            },
        };
        controller.notice(&event);
    }
}

struct Controller {
    auth: Arc<Auth>,
    ca: String,
}

impl Controller {
    fn registry(&self) -> &Registry {
        &self.auth.registry
    }

    fn notice(&self, event: &Event) {
        let object = &event.object;
        match event.resource.table.as_str() {
            "rbac.authorization.k8s.io/clusterroles" => self.aggregate(),
            "/secrets" if event.kind != EventType::Deleted => self.fill(object),
            "/serviceaccounts" if event.kind != EventType::Modified => {
                let secrets = self
                    .registry()
                    .list(&Gvr::new("", "v1", "secrets"), Some(object.namespace()))
                    .unwrap_or_default();
                for secret in secrets
                    .iter()
                    .filter(|s| s.annotation(ACCOUNT) == Some(object.name()))
                {
                    self.fill(secret);
                }
            }
            _ => {}
        }
    }

    /// Updates each aggregated role with the rules of the roles that its selectors match.
    fn aggregate(&self) {
        let gvr = Gvr::new(GROUP, "v1", "clusterroles");
        let roles = self.registry().list(&gvr, None).unwrap_or_default();
        for role in &roles {
            let Some(selectors) = role
                .pointer("/aggregationRule/clusterRoleSelectors")
                .and_then(Value::as_array)
            else {
                continue;
            };
            let selectors: Vec<LabelSelector> = selectors
                .iter()
                .filter_map(|s| LabelSelector::from_json(s).ok())
                .collect();
            let mut rules: Vec<Rule> = Vec::new();
            for selector in &selectors {
                let chosen = roles
                    .iter()
                    .filter(|r| r.name() != role.name() && selector.matches(&r.labels()));
                for rule in chosen.flat_map(|r| Rule::list(r.0.get("rules"))) {
                    if !rules.contains(&rule) {
                        rules.push(rule);
                    }
                }
            }
            if rules == Rule::list(role.0.get("rules")) {
                continue;
            }
            let rules: Vec<Value> = rules.iter().map(Rule::to_json).collect();
            let config = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole", "metadata": {"name": role.name()}, "rules": rules});
            let Ok(config) = Object::from_value(config) else {
                continue;
            };
            let options = WriteOptions {
                force: true,
                ..WriteOptions::manager("clusterrole-aggregation-controller")
            };
            if let Err(status) = self.registry().patch(
                &gvr,
                ("", role.name()),
                Part::Main,
                &Patch::Apply(config),
                &options,
            ) {
                tracing::warn!(%status, role = role.name(), "cannot aggregate a cluster role");
            }
        }
    }

    /// Puts a token into a Secret that requests one; deletes the Secret of an account that no
    /// longer exists.
    fn fill(&self, secret: &Object) {
        let Some(account) = secret
            .annotation(ACCOUNT)
            .filter(|_| secret.str_at("/type") == TOKEN_SECRET)
        else {
            return;
        };
        let gvr = Gvr::new("", "v1", "secrets");
        let (namespace, name) = (secret.namespace(), secret.name());
        let uid = match self.registry().get(
            &Gvr::new("", "v1", "serviceaccounts"),
            namespace,
            account,
        ) {
            Ok(found)
                if secret
                    .annotation(ACCOUNT_UID)
                    .is_none_or(|uid| uid == found.uid()) =>
            {
                found.uid().to_owned()
            }
            _ => {
                let options = DeleteOptions {
                    uid: Some(secret.uid().to_owned()),
                    ..DeleteOptions::default()
                };
                match self.registry().delete(&gvr, namespace, name, &options) {
                    Err(status) if !status.is_not_found() && !status.is_conflict() => {
                        tracing::warn!(%status, secret = name, "cannot delete the token of an account that is gone");
                    }
                    _ => {}
                }
                return;
            }
        };
        let mut filled = secret.clone();
        filled.set_annotation(ACCOUNT_UID, &uid);
        let has_token = secret.pointer("/data/token").is_some();
        let token = if has_token {
            Ok(String::new())
        } else {
            self.auth.signer.sign_legacy(
                namespace,
                &Ref {
                    name: account.to_owned(),
                    uid,
                },
                name,
            )
        };
        let token = match token {
            Ok(token) => token,
            Err(error) => {
                tracing::error!(%error, secret = name, "cannot sign a token");
                return;
            }
        };
        let data = map_entry(&mut filled.0, "data");
        for (key, text) in [
            ("ca.crt", self.ca.as_str()),
            ("namespace", namespace),
            ("token", token.as_str()),
        ] {
            data.entry(key)
                .or_insert_with(|| STANDARD.encode(text).into());
        }
        if filled != *secret
            && let Err(status) = self.registry().update(
                &gvr,
                namespace,
                filled,
                &WriteOptions::manager("kube-controller-manager"),
            )
            && !status.is_conflict()
            && !status.is_not_found()
        {
            tracing::warn!(%status, secret = name, "cannot write a token");
        }
    }
}
