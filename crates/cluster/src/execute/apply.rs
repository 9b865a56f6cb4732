//! Applying, client-side like kubectl and server-side.

use super::{Job, NAMELESS, bytes_of, invalid, remove};
use crate::{
    apply::patch::{ThreeWay, content_type},
    error::Error,
    request::{APPLY_PATCH, Call, backoff},
};
use http::Method;
use serde_json::{Value, json};
use std::{sync::Arc, time::Duration};
use tiphys_apimachinery::{Object, patch::last_applied, schema};
use tiphys_engine::{diff, sync::effect::EffectOk};

/// How often a patch is recomputed after a conflict, as in kubectl.
const CONFLICTS: u32 = 5;
/// From this attempt on the patch is sent without a resourceVersion, so that an object that changes
/// constantly can be applied too.
const CONDITIONAL: u32 = 3;

impl Job<'_> {
    pub(super) async fn apply_client_side(&self) -> Result<EffectOk, Error> {
        let reconciled = self.reconcile_role().await?;
        self.take_back().await?;
        let modified = last_applied::with_annotation(&self.target);
        let mut done = self.create_or_patch(&modified).await?;
        if reconciled {
            done.message = format!(
                "{} reconciled. {}",
                self.kind.print_name(self.target.name()),
                done.message
            );
        }
        Ok(done)
    }

    /// The object is first looked up by name, so it must have one.
    pub(super) fn check_name(&self) -> Result<(), Error> {
        match (self.target.name(), self.target.generate_name()) {
            ("", "") => Err(invalid(&self.key(), NAMELESS)),
            ("", prefix) => Err(invalid(
                &self.key(),
                format!("from {prefix}: cannot use generate name with apply"),
            )),
            _ => Ok(()),
        }
    }

    /// Like `kubectl apply --dry-run=client`: computes the patch and applies it to a copy, so that
    /// an object that cannot be patched fails before anything is applied. Returns the verb.
    pub(super) async fn client_dry_run(&self) -> Result<&'static str, Error> {
        let Some(live) = self.known_live().await? else {
            return Ok("created");
        };
        let problem = |e: tiphys_apimachinery::patch::PatchError| invalid(&self.key(), e);
        let modified = last_applied::with_annotation(&self.target);
        let mut three = ThreeWay::new(&live, &modified).map_err(problem)?;
        three.fold_string_data();
        let ty = schema::builtin().type_for(&self.kind.gvk);
        let Some(patch) = three.keyed_patch(ty).map_err(problem)? else {
            return Ok("unchanged");
        };
        three.apply_locally(&patch, ty).map_err(problem)?;
        Ok("configured")
    }

    /// The live object if the cache has one; `None` without a cache.
    async fn known_live(&self) -> Result<Option<Arc<Object>>, Error> {
        let Some(cache) = self.executor.cache.as_ref() else {
            return Ok(None);
        };
        let Some(known) = cache.get(&self.key()) else {
            return Ok(None);
        };
        let body = cache
            .object(&self.key())
            .filter(|_| known.gvk == self.kind.gvk);
        if body.is_some() {
            return Ok(body);
        }
        match self.get().await {
            Ok(live) => Ok(Some(Arc::new(live))),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The known live object decides what is tried first; the server's response decides what
    /// happens.
    async fn create_or_patch(&self, modified: &Object) -> Result<EffectOk, Error> {
        let known = self.executor.cache.as_ref().and_then(|c| {
            let live = c.get(&self.key())?;
            // A payload in another version cannot be the base of a patch.
            Some(if live.gvk == self.kind.gvk {
                c.object(&self.key())
            } else {
                None
            })
        });
        let mut current = match known {
            Some(Some(body)) => Some(body),
            // It exists but its payload is not kept, or there is no cache.
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
            match self
                .patch_from(&live, modified, attempt < CONDITIONAL)
                .await
            {
                Ok(done) => return Ok(done),
                // Deleted since it was read.
                Err(e) if e.is_not_found() && !is_namespace_missing(&e, self.namespace()) => {
                    current = None
                }
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
        Err(invalid(
            &self.key(),
            "the object keeps being deleted and created by somebody else",
        ))
    }

    /// One three-way patch; with `conditional` the server refuses it if the object has changed
    /// since `live`.
    async fn patch_from(
        &self,
        live: &Object,
        modified: &Object,
        conditional: bool,
    ) -> Result<EffectOk, Error> {
        let problem = |e: tiphys_apimachinery::patch::PatchError| invalid(&self.key(), e);
        let mut three = ThreeWay::new(live, modified).map_err(problem)?;
        three.fold_string_data();
        let mut ty = schema::builtin().type_for(&self.kind.gvk);
        loop {
            let Some(mut patch) = three.keyed_patch(ty).map_err(problem)? else {
                return Ok(self.done(live.clone(), "unchanged"));
            };
            if conditional && !live.resource_version().is_empty() {
                patch["metadata"]["resourceVersion"] = json!(live.resource_version());
            }
            let call =
                Call::new(Method::PATCH, self.path()).query("fieldManager", &self.executor.manager);
            match self
                .send(call.with_body(content_type(ty), patch.to_string()))
                .await
            {
                // A built-in kind that this server serves through a CRD: strategic merge patches
                // are not supported.
                Err(e) if e.code() == Some(415) && ty.is_some() => ty = None,
                result => return result.map(|live| self.done(live, "configured")),
            }
        }
    }

    pub(super) async fn apply_server_side(&self) -> Result<EffectOk, Error> {
        let mut config = Object::clone(&self.target);
        config.metadata_mut().remove("managedFields");
        let kept = self.hand_over(&config).await?;
        let call = Call::new(Method::PATCH, self.path())
            .query("fieldManager", &self.executor.manager)
            .query("force", "true");
        if let Some(kept) = kept {
            self.send(call.clone().with_body(APPLY_PATCH, bytes_of(&kept)?))
                .await?;
        }
        let mut result = Err(invalid(&self.key(), "was not applied"));
        for attempt in 0..=CONFLICTS {
            result = self
                .send(call.clone().with_body(APPLY_PATCH, bytes_of(&config)?))
                .await;
            match &result {
                // Only the server's own races; field manager conflicts are forced.
                Err(e) if e.is_conflict() && attempt < CONFLICTS => {
                    tokio::time::sleep(backoff(Duration::from_millis(10), attempt)).await
                }
                Err(e) if self.force && (e.is_conflict() || e.code() == Some(422)) => {
                    let live = self.get().await?;
                    return self
                        .delete_and_create(&live, &config, "serverside-applied")
                        .await;
                }
                _ => break,
            }
        }
        result.map(|live| self.done(live, "serverside-applied"))
    }

    /// Migrates fields that we applied in other ways, so that a server-side apply removes those
    /// that left the configuration. Returns a configuration to apply first, because no manager owns
    /// a `data` key that came from `stringData`.
    async fn hand_over(&self, config: &Object) -> Result<Option<Object>, Error> {
        let live = self
            .executor
            .cache
            .as_ref()
            .and_then(|cache| cache.object(&self.key()));
        let Some(live) = live.filter(|_| !self.executor.dry_run) else {
            return Ok(None);
        };
        if remove::updates(&live, &self.executor.manager) {
            self.executor
                .migrate(&self.kind, &self.key(), live.uid(), &self.executor.manager)
                .await?;
        }
        let orphaned = diff::orphaned_keys(config, &live);
        if orphaned.is_empty() {
            return Ok(None);
        }
        let mut kept = config.clone();
        let data = kept.0.entry("data").or_insert_with(|| json!({}));
        for key in orphaned {
            data[&key] = live.0["data"][&key].clone();
        }
        Ok(Some(kept))
    }

    /// Removes fields that we applied server-side and that are no longer desired; the client-side
    /// three-way patch that follows does not know about them.
    async fn take_back(&self) -> Result<(), Error> {
        let live = self
            .executor
            .cache
            .as_ref()
            .and_then(|cache| cache.object(&self.key()));
        if self.executor.dry_run
            || live.is_none_or(|live| diff::applied_server_side(&self.target, &live).is_empty())
        {
            return Ok(());
        }
        let mut config = Object::clone(&self.target);
        config.metadata_mut().remove("managedFields");
        let call = Call::new(Method::PATCH, self.path())
            .query("fieldManager", &self.executor.manager)
            .query("force", "true");
        match self
            .send(call.with_body(APPLY_PATCH, bytes_of(&config)?))
            .await
        {
            Ok(_) => {}
            // It may be applied client-side because it cannot be applied server-side. What remains
            // shows as a difference.
            Err(e) if e.code().is_some_and(|code| code < 500) => {
                tracing::warn!(key = %self.key(), "{e}")
            }
            Err(e) => return Err(e),
        }
        Ok(())
    }

    /// `kubectl auth reconcile` in addition to applying: a binding's role is immutable, so the
    /// binding is recreated.
    async fn reconcile_role(&self) -> Result<bool, Error> {
        if self.target.group() != "rbac.authorization.k8s.io" || self.executor.dry_run {
            return Ok(false);
        }
        let Some(wanted) = self.target.0.get("roleRef") else {
            return Ok(true);
        };
        let live = match self.get().await {
            Ok(live) => live,
            Err(e) if e.is_not_found() => return Ok(true),
            Err(e) => return Err(e),
        };
        let same = |field: &str| {
            live.0
                .get("roleRef")
                .and_then(|r| r.get(field))
                .and_then(Value::as_str)
                == wanted.get(field).and_then(Value::as_str)
        };
        if !(same("kind") && same("name")) {
            self.executor
                .delete_uid(&self.kind, &self.key(), live.uid(), "Background")
                .await?;
            self.wait_until_gone(live.uid()).await?;
        }
        Ok(true)
    }
}

/// A write of an object in a missing namespace returns `namespaces "x" not found`; that is not
/// about the object itself.
fn is_namespace_missing(error: &Error, namespace: &str) -> bool {
    error.to_string() == format!("namespaces {namespace:?} not found")
}
