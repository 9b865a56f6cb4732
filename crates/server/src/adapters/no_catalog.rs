//! A server without a chart catalogue. Main type: [`NoCatalog`].

use crate::ports::Catalog;
use async_trait::async_trait;
use std::sync::Arc;
use tiphys_catalog::{
    CatalogError, RepoId, Store, apprepository::NewRepository, model::RepoRef, sync::CatalogSync,
};

/// Knows no charts.
pub struct NoCatalog;

fn absent() -> CatalogError {
    CatalogError::NotFound("the catalogue".to_owned())
}

#[async_trait]
impl Catalog for NoCatalog {
    fn store(&self) -> Option<Arc<Store>> {
        None
    }

    async fn visitor(&self, _: &RepoId, _: &RepoRef) -> Result<CatalogSync, CatalogError> {
        Err(absent())
    }

    async fn create(&self, _: &NewRepository) -> Result<(), CatalogError> {
        Err(absent())
    }

    async fn delete(&self, _: &RepoId) -> Result<(), CatalogError> {
        Err(absent())
    }

    async fn resync(&self, _: &RepoId) -> Result<(), CatalogError> {
        Err(absent())
    }
}
