//! The archive of one version, as the catalogue showed it.

use super::{CatalogSync, files::patiently, storing::checked};
use crate::{
    CatalogError, blocking,
    model::{Chart, ChartVersion},
    store::tag_of,
};
use tiphys_repo::Known;

impl CatalogSync {
    /// Fetches it. What has another digest than the catalogue knows is refused: it is not what was
    /// shown.
    ///
    /// # Errors
    /// It cannot be fetched, or is another one.
    pub async fn archive(
        &self,
        chart: &Chart,
        version: &ChartVersion,
    ) -> Result<Vec<u8>, CatalogError> {
        if self.registry.is_some() {
            return self.pulled(chart, version).await;
        }
        let url = version.urls.iter().flatten().next().ok_or_else(|| {
            CatalogError::Invalid(format!("chart {:?} has no downloadable URLs", chart.name))
        })?;
        let nothing = Known::default();
        let fetched = patiently(|| self.remote.archive(url, &nothing)).await?;
        let (archive, digest) = (fetched.unwrap_or_default().content, version.digest.clone());
        blocking(move || {
            checked(&archive, &digest).map_err(CatalogError::Invalid)?;
            Ok(archive)
        })
        .await
    }

    async fn pulled(&self, chart: &Chart, version: &ChartVersion) -> Result<Vec<u8>, CatalogError> {
        let absent = || {
            let (name, version) = (&chart.name, &version.version);
            CatalogError::NotFound(format!("{name} {version}"))
        };
        let source = self.registry.as_ref().ok_or_else(absent)?;
        let chart_id = chart.id.clone();
        let tags = self
            .with_store(move |store, repository| store.tags(&repository.id, &chart_id))
            .await?;
        let tag = tag_of(&tags, version).unwrap_or(&version.version);
        let name = chart.path();
        let pulled = patiently(|| source.remote.chart(&name, tag)).await?;
        let pulled = pulled.ok_or_else(absent)?;
        if !version.digest.is_empty() && pulled.digest != version.digest {
            let (wanted, found) = (&version.digest, &pulled.digest);
            return Err(CatalogError::Invalid(format!(
                "digest differs: the catalogue has {wanted}, the registry {found}"
            )));
        }
        Ok(pulled.archive)
    }
}
