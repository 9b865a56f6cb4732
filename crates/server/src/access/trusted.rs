//! The host keys and certificates that repository servers are trusted by.

use super::{Authorized, Guard, Reach, Resource, Verb, Writes};
use crate::{
    ApiError,
    ports::{ConfigMapRecord, StoreResult},
};
use std::collections::BTreeMap;
use tiphys_api::constants::{KNOWN_HOSTS_CM, KNOWN_HOSTS_KEY, TLS_CERTS_CM};

/// Both ConfigMaps as they were read.
pub(crate) struct Trusted {
    hosts: ConfigMapRecord,
    servers: ConfigMapRecord,
}

/// What to change in them.
#[derive(Debug, Default)]
pub(crate) struct TrustedChange {
    /// The new text of known hosts.
    pub known_hosts: Option<String>,
    /// PEM by server name; `None` removes the server.
    pub certificates: BTreeMap<String, Option<String>>,
}

impl Trusted {
    /// The text of `known_hosts`.
    pub(crate) fn known_hosts(&self) -> &str {
        self.hosts
            .data
            .get(KNOWN_HOSTS_KEY)
            .map_or("", String::as_str)
    }

    /// PEM by server name.
    pub(crate) fn certificates(&self) -> &BTreeMap<String, String> {
        &self.servers.data
    }
}

impl Reach {
    /// Policies cannot tell certificates apart: their object is empty, as in Argo CD.
    pub(crate) async fn trusted<A: Verb>(
        &self,
        guard: &Guard,
    ) -> Result<Authorized<Trusted, A>, ApiError> {
        guard.ask(Resource::Certificates, A::ACTION, "", "")?;
        let (hosts, servers) = futures::try_join!(
            self.store.read_config_map(KNOWN_HOSTS_CM),
            self.store.read_config_map(TLS_CERTS_CM),
        )?;
        Ok(Authorized::new(Trusted { hosts, servers }))
    }

    /// Fails with a conflict if a ConfigMap to change is no longer as it was read.
    pub(crate) async fn change_trusted<A: Writes>(
        &self,
        read: &Authorized<Trusted, A>,
        change: TrustedChange,
    ) -> StoreResult<()> {
        if let Some(text) = change.known_hosts {
            let values = BTreeMap::from([(KNOWN_HOSTS_KEY.to_owned(), Some(text))]);
            let version = &read.hosts.version;
            self.store
                .set_in_config_map(KNOWN_HOSTS_CM, version, &values)
                .await?;
        }
        if !change.certificates.is_empty() {
            let version = &read.servers.version;
            self.store
                .set_in_config_map(TLS_CERTS_CM, version, &change.certificates)
                .await?;
        }
        Ok(())
    }
}
