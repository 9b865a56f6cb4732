//! What it means that something was not found. The answer names the object: it is gone. It names
//! none, as while a kind is not served, or from a proxy in between: that says nothing of the
//! object, unless the kind itself is gone, and its objects with it.

use super::{Known, LiveCache};
use crate::error::Error;
use tiphys_apimachinery::ResourceKey;
use tiphys_engine::types::KindInfo as _;
use tokio::time::Instant;

impl LiveCache {
    /// Whether an answer says that an object is gone, alone or with its kind.
    pub(crate) async fn says_gone(&self, error: &Error, key: &ResourceKey) -> bool {
        error.is_absent(&key.name) || (error.is_not_found() && self.is_kind_gone(key).await)
    }

    /// Whether no version of the object's kind is served any more, and nothing defines it.
    /// Discovery is asked anew, because what is known may be older than the question.
    pub(crate) async fn is_kind_gone(&self, key: &ResourceKey) -> bool {
        let Ok(kinds) = self.discovery().after(Instant::now()).await else {
            return false;
        };
        let kind = key.group_kind();
        let known = Known::Resources(vec![key.clone()]);
        kinds.preferred(&kind).is_none()
            && kinds.failure(&kind).is_none()
            && self.truly_gone(&known).is_ok()
    }
}
