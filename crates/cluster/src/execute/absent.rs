//! What it means that something was not found. The answer names the object: it is gone. It names
//! none, as while a kind is not served, or from a proxy in between: that says nothing of the
//! object, unless the kind itself is gone, and its objects with it.

use super::Executor;
use crate::{Known, error::Error};
use tiphys_apimachinery::{Gvk, ResourceKey};
use tiphys_engine::types::KindInfo as _;

impl Executor {
    /// The answer about an object, or `None` if it says that there is none.
    ///
    /// # Errors
    /// Every other one, also "not found" of a kind that still exists.
    pub(super) async fn unless_gone<T>(
        &self,
        gvk: &Gvk,
        key: &ResourceKey,
        answer: Result<T, Error>,
    ) -> Result<Option<T>, Error> {
        match answer {
            Err(e) if self.is_gone(&e, gvk, key).await => Ok(None),
            answer => answer.map(Some),
        }
    }

    /// Whether an answer says that an object is gone, alone or with its kind.
    pub(super) async fn is_gone(&self, error: &Error, gvk: &Gvk, key: &ResourceKey) -> bool {
        if !error.is_not_found() {
            return false;
        }
        if error.is_absent(&key.name) {
            return true;
        }
        // Discovery may be older than the answer.
        let Ok(kinds) = self.discovery.refresh().await else {
            return false;
        };
        let kind = gvk.group_kind();
        let only = Known::Resources(vec![key.clone()]);
        let cache = self.cache.as_ref();
        kinds.preferred(&kind).is_none()
            && kinds.failure(&kind).is_none()
            && cache.is_none_or(|cache| cache.truly_gone(&only).is_ok())
    }
}
