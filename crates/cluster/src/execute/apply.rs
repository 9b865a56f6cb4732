//! Applying: as kubectl does on the client's side, and on the server's side.

use super::{Job, bytes_of, invalid};
use crate::{
    apply::patch::{ThreeWay, content_type},
    error::Error,
    request::{APPLY_PATCH, Call, backoff},
};
use http::Method;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tiphys_apimachinery::{Object, patch::last_applied, schema};
use tiphys_engine::sync::effect::EffectOk;

/// As kubectl: how often a patch is made anew after a conflict.
const CONFLICTS: u32 = 5;
/// From here on the patch is sent without a resourceVersion: an object that changes all the time must not escape.
const CONDITIONAL: u32 = 3;

impl Job<'_> {
    pub(super) async fn apply_client_side(&self) -> Result<EffectOk, Error> {
        if self.target.name().is_empty() {
            return Err(invalid(&self.key(), format!("from {}: cannot use generate name with apply", self.target.generate_name())));
        }
        let reconciled = self.reconcile_role().await?;
        let modified = last_applied::with_annotation(&self.target);
        let mut done = self.create_or_patch(&modified).await?;
        if reconciled {
            done.message = format!("{} reconciled. {}", self.kind.print_name(self.target.name()), done.message);
        }
        Ok(done)
    }

    /// What is known of the live object decides what is tried first; what the server answers decides what is done.
    async fn create_or_patch(&self, modified: &Object) -> Result<EffectOk, Error> {
        let known = self.executor.cache.as_ref().and_then(|c| {
            let live = c.get(&self.key())?;
            // A body in another version cannot be the base of a patch.
            Some(if live.gvk == self.kind.gvk { c.object(&self.key()) } else { None })
        });
        let mut current = match known {
            Some(Some(body)) => Some(body),
            // It is there but its body is not kept, or there is no cache to ask.
            Some(None) => Some(Arc::new(self.get().await?)),
            None if self.executor.cache.is_some() => None,
            None => match self.get().await {
                Ok(object) => Some(Arc::new(object)),
                Err(e) if e.is_not_found() => None,
                Err(e) => return Err(e),
            },
        };
        for attempt in 0..=CONFLICTS {
            let Some(live) = current else {
                match self.post(modified, &self.executor.manager).await {
                    Err(e) if e.is_already_exists() => {
                        current = Some(Arc::new(self.get().await?));
                        continue;
                    }
                    result => return result.map(|live| self.done(live, "created")),
                }
            };
            match self.patch_from(&live, modified, attempt < CONDITIONAL).await {
                Ok(done) => return Ok(done),
                // Deleted since it was seen.
                Err(e) if e.is_not_found() && !is_namespace_missing(&e, self.namespace()) => current = None,
                Err(e) if e.is_conflict() && attempt < CONFLICTS => {
                    if attempt >= 2 {
                        tokio::time::sleep(backoff(Duration::from_millis(20), attempt)).await;
                    }
                    current = match self.get().await {
                        Ok(object) => Some(Arc::new(object)),
                        Err(e) if e.is_not_found() => None,
                        Err(e) => return Err(e),
                    };
                }
                Err(e) if self.force && (e.is_conflict() || e.code() == Some(422)) => {
                    return self.delete_and_create(&live, modified, "configured").await;
                }
                Err(e) => return Err(e),
            }
        }
        Err(invalid(&self.key(), "the object keeps being deleted and created by somebody else"))
    }

    /// One three-way patch; `conditional` makes the server refuse it when the object has changed since `live`.
    async fn patch_from(&self, live: &Object, modified: &Object, conditional: bool) -> Result<EffectOk, Error> {
        let problem = |e: tiphys_apimachinery::patch::PatchError| invalid(&self.key(), e);
        let three = ThreeWay::new(live, modified).map_err(problem)?;
        let mut ty = schema::builtin().type_for(&self.kind.gvk);
        loop {
            let Some(mut patch) = three.patch(ty, true).map_err(problem)? else {
                return Ok(self.done(live.clone(), "unchanged"));
            };
            if conditional && !live.resource_version().is_empty() {
                patch["metadata"]["resourceVersion"] = json!(live.resource_version());
            }
            let call = Call::new(Method::PATCH, self.path()).query("fieldManager", &self.executor.manager);
            match self.send(call.with_body(content_type(ty), patch.to_string())).await {
                // A kind we know that this server serves by a CRD: it has no strategic merge.
                Err(e) if e.code() == Some(415) && ty.is_some() => ty = None,
                result => return result.map(|live| self.done(live, "configured")),
            }
        }
    }

    pub(super) async fn apply_server_side(&self) -> Result<EffectOk, Error> {
        let mut config = Object::clone(&self.target);
        config.metadata_mut().remove("managedFields");
        let call = Call::new(Method::PATCH, self.path()).query("fieldManager", &self.executor.manager).query("force", "true");
        let mut result = Err(invalid(&self.key(), "was not applied"));
        for attempt in 0..=CONFLICTS {
            result = self.send(call.clone().with_body(APPLY_PATCH, bytes_of(&config)?)).await;
            match &result {
                // Only the server's own races; conflicts between managers are forced.
                Err(e) if e.is_conflict() && attempt < CONFLICTS => tokio::time::sleep(backoff(Duration::from_millis(10), attempt)).await,
                Err(e) if self.force && (e.is_conflict() || e.code() == Some(422)) => {
                    let live = self.get().await?;
                    return self.delete_and_create(&live, &config, "serverside-applied").await;
                }
                _ => break,
            }
        }
        result.map(|live| self.done(live, "serverside-applied"))
    }

    /// What `kubectl auth reconcile` adds to applying: a binding's role cannot be changed in place, so the binding is made anew.
    async fn reconcile_role(&self) -> Result<bool, Error> {
        if self.target.group() != "rbac.authorization.k8s.io" || self.executor.dry_run {
            return Ok(false);
        }
        let Some(wanted) = self.target.0.get("roleRef") else { return Ok(true) };
        let live = match self.get().await {
            Ok(live) => live,
            Err(e) if e.is_not_found() => return Ok(true),
            Err(e) => return Err(e),
        };
        let same = |field: &str| {
            live.0.get("roleRef").and_then(|r| r.get(field)).and_then(Value::as_str) == wanted.get(field).and_then(Value::as_str)
        };
        if !(same("kind") && same("name")) {
            self.executor.delete_uid(&self.kind, &self.key(), live.uid(), "Background").await?;
            self.wait_until_gone(live.uid()).await?;
        }
        Ok(true)
    }
}

/// `namespaces "x" not found` answers a write of an object in it; the object itself is not what is missing.
fn is_namespace_missing(error: &Error, namespace: &str) -> bool {
    error.to_string() == format!("namespaces {namespace:?} not found")
}
