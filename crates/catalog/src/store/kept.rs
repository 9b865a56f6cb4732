//! Defaults of versions that are installed somewhere. They outlive their version and repository,
//! because the next upgrade merges them.

use super::{Store, sql::values};
use crate::CatalogError;

/// The defaults of one version.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Kept {
    /// Of the archive, or of a registry's manifest; with or without `sha256:`.
    pub digest: String,
    /// values.yaml.
    pub defaults: String,
}

impl Store {
    /// `address` is that of an [`Origin`](crate::release::Origin).
    ///
    /// # Errors
    /// The database fails.
    pub fn keep(&self, address: &str, version: &str, kept: &Kept) -> Result<(), CatalogError> {
        self.transaction(|sql| {
            sql.execute(
                "INSERT INTO tiphys_kept (address, version, digest, defaults)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT (address, version) DO UPDATE SET digest = $5, defaults = $6",
                values![
                    address,
                    version,
                    &kept.digest,
                    &kept.defaults,
                    &kept.digest,
                    &kept.defaults
                ],
            )?;
            Ok(())
        })
    }

    /// # Errors
    /// The database fails.
    pub fn kept(&self, address: &str, version: &str) -> Result<Option<Kept>, CatalogError> {
        let rows = self.read(|sql| {
            sql.query(
                "SELECT digest, defaults FROM tiphys_kept WHERE address = $1 AND version = $2",
                values![address, version],
            )
        })?;
        Ok(rows.first().map(|row| Kept {
            digest: row.text(0).to_owned(),
            defaults: row.text(1).to_owned(),
        }))
    }
}
