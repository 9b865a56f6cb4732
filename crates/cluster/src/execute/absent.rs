//! Which answers to a write or a read say that an object is gone; the cache has the same rule.

use super::Executor;
use crate::{discovery::Kind, error::Error};
use std::sync::Arc;
use tiphys_apimachinery::{Gvk, ResourceKey};
use tiphys_engine::types::KindInfo as _;
use tokio::time::Instant;

impl Executor {
    /// The answer about an object, or `None` if it says that the object is gone.
    ///
    /// # Errors
    /// Every other one, also "not found" of a kind that still exists.
    pub(super) async fn unless_gone<T>(
        &self,
        key: &ResourceKey,
        answer: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match answer {
            Ok(answer) => Ok(Some(answer)),
            Err(error) if self.says_gone(&error, key).await => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Whether an answer says that an object is gone, alone or with its kind.
    pub(super) async fn says_gone(&self, error: &Error, key: &ResourceKey) -> bool {
        error.is_absent(&key.name) || (error.is_not_found() && self.is_kind_gone(key).await)
    }

    /// The kind of an object that is to be removed, or `None` if it is gone, and the object with
    /// it.
    pub(super) async fn kind_unless_gone(
        &self,
        gvk: &Gvk,
        key: &ResourceKey,
    ) -> Result<Option<Arc<Kind>>, Error> {
        match self.kind(gvk, key).await {
            Ok(kind) => Ok(Some(kind)),
            Err(Error::Invalid { .. }) if self.is_kind_gone(key).await => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn is_kind_gone(&self, key: &ResourceKey) -> bool {
        if let Some(cache) = &self.cache {
            return cache.is_kind_gone(key).await;
        }
        // Only discovery can tell.
        let Ok(kinds) = self.discovery.after(Instant::now()).await else {
            return false;
        };
        let kind = key.group_kind();
        kinds.preferred(&kind).is_none() && kinds.failure(&kind).is_none()
    }
}
