//! Server-side apply, and the migration of an object from client-side apply.

use super::{Applied, Applier, Explanation, Failure, Item, SERVER_SIDE_MANAGER};
use crate::request::{APPLY_PATCH, JSON_PATCH};
use http::Method;
use tiphys_apimachinery::{
    Object,
    patch::{last_applied, migrate},
};

/// How often the migration is retried if the object changes in the meantime.
const CONFLICTS: u32 = 5;

impl Applier {
    pub(super) async fn server_side(&self, item: &Item) -> Result<Applied, Failure> {
        let before = match self.settings.explain {
            true => match self.get(item).await {
                // An object that cannot be read would look like a new one.
                Err(e) if self.settings.compare && !e.is_not_found() => return Err(e),
                read => read.ok(),
            },
            false => None,
        };
        let force = Some(self.settings.force_conflicts);
        let mut live = self
            .apply_patch(item, &item.object, &self.settings.manager, force)
            .await
            .map_err(Failure::server_side)?;
        if !self.settings.compare {
            self.take_over(item, &mut live, force).await;
        }
        let explanation = self
            .settings
            .explain
            .then(|| Explanation::ownership(before.as_ref(), &live, &self.settings));
        Ok(Applied {
            verb: "serverside-applied",
            live,
            before,
            explanation,
        })
    }

    /// Takes over what was applied client-side. What fails is tried again by the next apply.
    async fn take_over(&self, item: &Item, live: &mut Object, force: Option<bool>) {
        match self.keep_last_applied(item, live).await {
            Err(e) => self.warn(&format!(
                "failed to migrate {} for Server-Side Apply. This is non-fatal and will be retried next time you apply. Error: {e}",
                last_applied::ANNOTATION
            )),
            Ok(()) => match self.migrate(item, live).await {
                Err(e) => self.warn(&format!(
                    "server rejected managed fields migration to Server-Side Apply. This is non-fatal and will be retried next time you \
                     apply. Error: {e}"
                )),
                // Applying again removes what the configuration no longer contains.
                Ok(true) => match self.apply_patch(item, &item.object, &self.settings.manager, force).await {
                    Ok(again) => *live = again,
                    Err(e) => self.warn(&format!(
                        "failed to re-apply configuration after performing Server-Side Apply migration. This is non-fatal and will be \
                         retried next time you apply. Error: {e}"
                    )),
                },
                Ok(false) => {}
            },
        }
    }

    async fn apply_patch(
        &self,
        item: &Item,
        object: &Object,
        manager: &str,
        force: Option<bool>,
    ) -> Result<Object, Failure> {
        let mut call = self.write(Method::PATCH, self.path(item)?, manager);
        if let Some(force) = force {
            call = call.query("force", if force { "true" } else { "false" });
        }
        Ok(self
            .http
            .json(&call.with_body(APPLY_PATCH, super::bytes(object)?))
            .await?)
    }

    /// Gives the last-applied annotation a field manager of its own, so that switching back to
    /// client-side apply stays possible.
    async fn keep_last_applied(&self, item: &Item, live: &mut Object) -> Result<(), Failure> {
        let Some(text) = live.annotation(last_applied::ANNOTATION) else {
            return Ok(());
        };
        if self.settings.manager != SERVER_SIDE_MANAGER
            || !migrate::owners(live, "Apply", &migrate::last_applied_field()).is_empty()
        {
            return Ok(());
        }
        let mut only = Object::skeleton(&item.kind.gvk, live.namespace(), live.name());
        only.set_annotation(last_applied::ANNOTATION, text);
        *live = self
            .apply_patch(item, &only, migrate::LAST_APPLIED_MANAGER, None)
            .await?;
        Ok(())
    }

    /// Migrates the fields owned by client-side apply. True if there were any.
    async fn migrate(&self, item: &Item, live: &mut Object) -> Result<bool, Failure> {
        let clients = migrate::owners(live, "Update", &migrate::last_applied_field());
        let mut last = None;
        for _ in 0..CONFLICTS {
            let patch = migrate::json_patch(live, &clients, &self.settings.manager, "")
                .map_err(|e| Failure::text(e.to_string()))?;
            let Some(patch) = patch else { return Ok(false) };
            let call = self.write(Method::PATCH, self.path(item)?, &self.settings.manager);
            match self
                .http
                .json(&call.with_body(JSON_PATCH, patch.to_string()))
                .await
                .map_err(Failure::from)
            {
                Ok(moved) => {
                    *live = moved;
                    return Ok(true);
                }
                Err(e) if e.is("Conflict") => {
                    last = Some(e);
                    *live = self.get(item).await?;
                }
                Err(e) => return Err(e),
            }
        }
        last.map_or(Ok(false), Err)
    }
}
