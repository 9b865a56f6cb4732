//! Keeps deleted sets with their Applications for a time. Main functions: [`Controller::keep_gone`],
//! [`Controller::keep_going`] and [`expire`].
//!
//! A set without finalizers is gone at once, and its Applications are deleted by Kubernetes. What is
//! kept then is what the last reconcile left, so nothing is kept of a set that was deleted while no
//! controller was running.

use super::{Controller, memory::Last};
use crate::runtime::Turn;
use std::{collections::BTreeSet, sync::Arc, time::Duration};
use tiphys_api::{Application, ApplicationSet, meta::Time};
use tiphys_apimachinery::Object;
use tiphys_appset::{
    deleted_set::{DeletedSet, LABEL, LABEL_VALUE, described},
    reconcile::{Settings, owner_of},
};
use tiphys_cluster::{AppKey, Error, records::Record};
use tokio::task::spawn_blocking;

/// How often what is kept is looked at.
const EVERY: Duration = Duration::from_secs(3600);

impl Controller {
    /// Keeps the set that the last reconcile of this name was of, unless it is still there.
    pub(super) async fn keep_gone(
        &self,
        key: &AppKey,
        now: Option<&ApplicationSet>,
    ) -> Result<(), Error> {
        let Some(last) = self.memory(key).last else {
            return Ok(());
        };
        let uid = &last.set.metadata.uid;
        if now.is_some_and(|now| now.metadata.uid == *uid) {
            return Ok(());
        }
        let settings = self.settings.of_reconcile(&self.records.settings());
        let lost = self.lost(&last);
        self.keep_set(&last.set, lost, &settings).await?;
        self.remember(key, None);
        Ok(())
    }

    /// Keeps a set that is being deleted, before its Applications go.
    pub(super) async fn keep_going(
        &self,
        set: &Arc<ApplicationSet>,
        settings: &Settings,
    ) -> Result<(), Error> {
        let finalizers = &set.metadata.finalizers;
        let is_orphaning = finalizers.iter().any(|finalizer| finalizer == "orphan");
        let lost = match settings.may_delete(set) && !is_orphaning {
            true => self.owned(set),
            // They stay.
            false => Vec::new(),
        };
        self.keep_set(set, lost, settings).await?;
        // What was there before the deletion began says no more which Applications go.
        let key = AppKey::new(&set.metadata.namespace, &set.metadata.name);
        self.forget_last(Some(&key));
        Ok(())
    }

    /// The Applications that go with a set, or went already. One that is there and no longer belongs
    /// to it was released.
    fn lost(&self, last: &Last) -> Vec<Arc<Application>> {
        let uid = &last.set.metadata.uid;
        let mut lost = self.owned(&last.set);
        lost.retain(|app| owner_of(app).is_some_and(|owner| owner.uid == *uid));
        let gone = last.owned.iter().filter(|app| {
            let (namespace, name) = (&app.metadata.namespace, &app.metadata.name);
            self.records.applications.get(namespace, name).is_none()
        });
        lost.extend(gone.cloned());
        lost
    }

    /// An answer that stays the same does not hold a deletion up: then the set is not kept.
    async fn keep_set(
        &self,
        set: &Arc<ApplicationSet>,
        lost: Vec<Arc<Application>>,
        settings: &Settings,
    ) -> Result<(), Error> {
        if self.settings.dry_run {
            return Ok(());
        }
        let records = &self.records;
        let name = DeletedSet::secret_name(&set.metadata.uid);
        let secret = records.secrets.get(&records.namespace, &name);
        let exists = secret.is_some();
        let (of, settings, now) = (Arc::clone(set), settings.clone(), self.now());
        let namespace = records.namespace.clone();
        let packed = spawn_blocking(move || {
            let before = secret.as_deref().and_then(read);
            packed(
                &of,
                before.as_ref(),
                &lost,
                &settings,
                (namespace.as_str(), now),
            )
        });
        let (new, missing) = match packed.await.unwrap_or_else(|e| Err(e.to_string())) {
            Ok(Some(packed)) => packed,
            Ok(None) => return Ok(()),
            Err(problem) => {
                warn(set, &format!("is not kept: {problem}"));
                return Ok(());
            }
        };
        let written = match exists {
            true => records.secrets.update(&new).await,
            false => records.secrets.create(&new).await,
        };
        match written {
            Err(error) if may_pass(&error, exists) => return Err(error),
            // Argo CD's own manifest does not permit it, for example.
            Err(error) => warn(set, &format!("is not kept: {error}")),
            Ok(_) if missing > 0 => warn(
                set,
                &format!("is kept without {missing} of its Applications, for lack of room"),
            ),
            Ok(_) => {}
        }
        Ok(())
    }

    /// Removes what was kept long enough. Returns the Secrets that cannot be read, by name and
    /// version; those known before are not warned of again.
    async fn remove_expired(&self, unreadable: Unreadable) -> Unreadable {
        let Turn::Ours(held) = self.turn() else {
            return unreadable;
        };
        if self.settings.dry_run {
            return unreadable;
        }
        let keep = self.settings.of_reconcile(&self.records.settings());
        let (keep, now) = (keep.keep_deleted, self.now());
        let mut kept = self.records.secrets.list();
        kept.retain(|record| {
            let kind = record.meta.labels.get(LABEL);
            kind.is_some_and(|kind| kind == LABEL_VALUE)
        });
        let judged = spawn_blocking(move || {
            let judge = |record: Arc<Record<Object>>| (is_over(&record, keep, now), record);
            kept.into_iter().map(judge).collect::<Vec<_>>()
        });
        let judged = match judged.await {
            Ok(judged) => judged,
            Err(error) => {
                tracing::warn!(%error, "expired ApplicationSets stay");
                return unreadable;
            }
        };
        let mut still = Unreadable::new();
        for (is_over, record) in judged {
            let meta = &record.meta;
            match is_over {
                Ok(true) => {}
                Ok(false) => continue,
                Err(problem) => {
                    let which = (meta.name.clone(), meta.resource_version.clone());
                    if !unreadable.contains(&which) {
                        tracing::warn!(secret = meta.name, "a deleted ApplicationSet: {problem}");
                    }
                    still.insert(which);
                    continue;
                }
            }
            let secrets = &self.records.secrets;
            let deleted = secrets.delete(&meta.namespace, &meta.name, &meta.uid, "");
            match held.scope(deleted).await {
                Err(error) if !error.is_not_found() => {
                    tracing::warn!(secret = meta.name, %error, "an expired Secret stays");
                }
                _ => {}
            }
        }
        still
    }
}

/// Secrets by name and version.
type Unreadable = BTreeSet<(String, String)>;

fn warn(set: &ApplicationSet, problem: &str) {
    let (applicationset, namespace) = (&set.metadata.name, &set.metadata.namespace);
    tracing::warn!(
        applicationset,
        namespace,
        "the deleted ApplicationSet {problem}"
    );
}

/// What a Secret keeps. One that cannot be read is written anew.
fn read(secret: &Record<Object>) -> Option<DeletedSet> {
    DeletedSet::from_secret(&secret.object().ok()?.into_value()).ok()
}

/// The Secret to write, and how many Applications it lacks; `None`: it is as it should be.
fn packed(
    set: &ApplicationSet,
    before: Option<&DeletedSet>,
    lost: &[Arc<Application>],
    settings: &Settings,
    (namespace, now): (&str, Time),
) -> Result<Option<(Object, usize)>, String> {
    let lost: Vec<&Application> = lost.iter().map(Arc::as_ref).collect();
    let kept = DeletedSet::new(set, before, &lost, settings, now);
    let Some(kept) = kept.filter(|kept| before != Some(kept)) else {
        return Ok(None);
    };
    let new = kept.to_secret(namespace).map_err(|e| e.to_string())?;
    // Less of it may have room in the Secret.
    let missing = DeletedSet::from_secret(&new).map_err(|e| e.to_string())?;
    let new = Object::from_value(new).map_err(|e| e.to_string())?;
    Ok(Some((new, missing.missing)))
}

/// Whether the next attempt may succeed without a change by a user. `exists`: the Secret was to be
/// replaced.
fn may_pass(error: &Error, exists: bool) -> bool {
    let is_behind = match exists {
        true => error.is_not_found(),
        false => error.is_already_exists(),
    };
    !error.is_too_large() && (error.retryable() || error.is_fenced() || is_behind)
}

/// Whether a Secret was kept long enough.
fn is_over(secret: &Record<Object>, keep: Duration, now: Time) -> Result<bool, String> {
    let secret = secret.object().map_err(|e| e.to_string())?.into_value();
    let kept = described(&secret);
    let kept = kept.ok_or("the annotations of its Secret do not say which set it is")?;
    Ok(kept.is_over(keep, now))
}

/// Removes what was kept long enough, again and again.
pub(super) async fn expire(controller: &Controller) {
    let mut settings = controller.records.watch_settings();
    let mut unreadable = Unreadable::new();
    loop {
        unreadable = controller.remove_expired(unreadable).await;
        tokio::select! {
            () = tokio::time::sleep(EVERY) => {}
            changed = settings.changed() => {
                if changed.is_err() {
                    return std::future::pending().await;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_cluster::ApiError;

    #[test]
    fn only_what_may_pass_holds_a_deletion_up() {
        let of = |code, reason: &str, message: &str| {
            Error::Api(ApiError {
                code,
                reason: reason.to_owned(),
                message: message.to_owned(),
                ..ApiError::default()
            })
        };
        for (error, exists, wanted) in [
            (of(503, "ServiceUnavailable", ""), false, true),
            (of(429, "TooManyRequests", ""), true, true),
            (of(409, "Conflict", ""), true, true),
            // The store does not have the last write yet.
            (of(409, "AlreadyExists", ""), false, true),
            (of(404, "NotFound", ""), true, true),
            (of(404, "NotFound", ""), false, false),
            (of(400, "BadRequest", ""), false, false),
            (of(403, "Forbidden", ""), false, false),
            (of(413, "RequestEntityTooLarge", ""), false, false),
            (of(422, "Invalid", ""), true, false),
            (of(500, "", "etcdserver: request is too large"), true, false),
        ] {
            assert_eq!(may_pass(&error, exists), wanted, "{error:?}");
        }
    }
}
