//! Replacing, updating, and recreating objects that cannot be changed in place.

use super::{Job, bytes_of, invalid};
use crate::{
    error::Error,
    request::{Call, JSON, backoff},
};
use http::Method;
use std::time::Duration;
use tiphys_apimachinery::{Object, patch::last_applied};
use tiphys_engine::sync::effect::EffectOk;
use tokio::time::Instant;

const CONFLICTS: u32 = 5;
/// How long to wait for a deleted object to disappear before it is recreated.
const GONE: Duration = Duration::from_secs(60);

impl Job<'_> {
    /// Like `kubectl replace`: overwrites the current object.
    pub(super) async fn replace(&self) -> Result<EffectOk, Error> {
        let live = self.put("kubectl-replace").await?;
        Ok(self.done(live, "replaced"))
    }

    /// A PUT over the live object: for CRDs and namespaces, which must not be deleted together with
    /// their content.
    pub(super) async fn update(&self) -> Result<EffectOk, Error> {
        let live = self.put("argocd-application-controller").await?;
        Ok(self.done(live, "updated"))
    }

    async fn put(&self, manager: &str) -> Result<Object, Error> {
        let mut object = Object::clone(&self.target);
        if object.annotation(last_applied::ANNOTATION).is_some() {
            last_applied::write(&mut object);
        }
        for attempt in 0..=CONFLICTS {
            let live = self.get().await?;
            object
                .metadata_mut()
                .insert("resourceVersion".to_owned(), live.resource_version().into());
            let call = Call::new(Method::PUT, self.path()).query("fieldManager", manager);
            match self.send(call.with_body(JSON, bytes_of(&object)?)).await {
                Err(e) if e.is_conflict() && attempt < CONFLICTS => {
                    tokio::time::sleep(backoff(Duration::from_millis(10), attempt)).await
                }
                result => return result,
            }
        }
        Err(invalid(
            &self.key(),
            "keeps changing while it is being replaced",
        ))
    }

    /// Like `kubectl replace --force`.
    pub(super) async fn recreate(&self, verb: &str) -> Result<EffectOk, Error> {
        let live = self.get().await;
        match self.executor.unless_gone(&self.key(), live).await? {
            Some(live) => self.delete_and_create(&live, &self.target, verb).await,
            None => self
                .create("kubectl-replace")
                .await
                .map(|live| self.done(live, verb)),
        }
    }

    /// Deletes the live object, waits until it is gone and creates the new one; if that fails, the
    /// old one is restored.
    pub(super) async fn delete_and_create(
        &self,
        live: &Object,
        new: &Object,
        verb: &str,
    ) -> Result<EffectOk, Error> {
        if self.executor.dry_run {
            return Ok(self.done(live.clone(), verb));
        }
        self.executor
            .delete_uid(&self.kind, &self.key(), live.uid(), "Background")
            .await?;
        self.wait_until_gone(live.uid()).await?;
        let error = match self.post(new, &self.executor.manager).await {
            Ok(created) => return Ok(self.done(created, verb)),
            Err(error) => error,
        };
        let mut old = live.clone();
        for field in [
            "resourceVersion",
            "uid",
            "creationTimestamp",
            "generation",
            "managedFields",
            "deletionTimestamp",
            "deletionGracePeriodSeconds",
            "selfLink",
        ] {
            old.metadata_mut().remove(field);
        }
        match self.post(&old, &self.executor.manager).await {
            Ok(_) => Err(error),
            Err(lost) => Err(invalid(
                &self.key(),
                format!(
                    "An error occurred force-replacing the existing object with the newly provided one:\n\n{error}.\n\n\
                     Additionally, an error occurred attempting to restore the original object:\n\n{lost}"
                ),
            )),
        }
    }

    pub(super) async fn wait_until_gone(&self, uid: &str) -> Result<(), Error> {
        let deadline = Instant::now() + GONE;
        let mut attempt = 0;
        loop {
            let live = self.get().await;
            match self.executor.unless_gone(&self.key(), live).await? {
                None => return Ok(()),
                Some(object) if object.uid() != uid => return Ok(()),
                Some(object) if Instant::now() > deadline => {
                    let finalizers = object.finalizers().join(", ");
                    let what = if finalizers.is_empty() {
                        String::new()
                    } else {
                        format!(", its finalizers are {finalizers}")
                    };
                    return Err(invalid(
                        &self.key(),
                        format!(
                            "was deleted to be made anew but is still there after {}s{what}",
                            GONE.as_secs()
                        ),
                    ));
                }
                Some(_) => {
                    tokio::time::sleep(
                        backoff(Duration::from_millis(10), attempt).min(Duration::from_secs(1)),
                    )
                    .await
                }
            }
            attempt += 1;
        }
    }
}
