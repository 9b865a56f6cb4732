//! The public keys that commits are verified with.

use super::{Authorized, Guard, Reach, Resource, Verb, Writes};
use crate::{
    ApiError,
    ports::{ConfigMapRecord, StoreResult},
};
use std::collections::BTreeMap;
use tiphys_api::constants::GPG_KEYS_CM;

/// The ConfigMap as it was read.
pub(crate) struct PublicKeys(ConfigMapRecord);

impl PublicKeys {
    /// Armored keys by their ids.
    pub(crate) fn texts(&self) -> &BTreeMap<String, String> {
        &self.0.data
    }
}

impl Reach {
    /// Policies cannot tell keys apart: their object is empty, as in Argo CD.
    pub(crate) async fn public_keys<A: Verb>(
        &self,
        guard: &Guard,
    ) -> Result<Authorized<PublicKeys, A>, ApiError> {
        guard.ask(Resource::GpgKeys, A::ACTION, "", "")?;
        let read = self.store.read_config_map(GPG_KEYS_CM).await?;
        Ok(Authorized::new(PublicKeys(read)))
    }

    /// Sets or removes keys. Fails with a conflict if they are no longer as they were read.
    pub(crate) async fn change_public_keys<A: Writes>(
        &self,
        read: &Authorized<PublicKeys, A>,
        change: &BTreeMap<String, Option<String>>,
    ) -> StoreResult<()> {
        let version = &read.0.version;
        self.store
            .set_in_config_map(GPG_KEYS_CM, version, change)
            .await
    }
}
