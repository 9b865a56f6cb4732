//! Charts of a registry as a catalogue reads them: lists of tags, and archives with their digests.
//! Nothing is kept here but what a registry said about credentials.
//!
//! Main type: [`OciRemote`].

use super::{
    LAYER_BYTES,
    address::{is_tag, version_of},
    catalogues,
    manifest::Manifest,
    registry::{Place, Registry},
};
use crate::{
    ContactWatch, RepoAccess, RepoError, Secret,
    chart::RemoteOptions,
    common::{Common, no_look_ups},
    http::Downloads,
    shares::Shares,
    url::refuse,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde::Deserialize;
use std::{collections::BTreeMap, sync::Arc};

/// Where VMware's registries list the charts below a path.
const INDEX: &str = "charts-index";
const INDEX_LAYER: &str = "application/vnd.vmware.charts.index.layer.v1+json";

/// An archive of a chart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OciChart {
    /// Of its manifest.
    pub digest: String,
    pub archive: Vec<u8>,
}

/// The charts below a path of a registry.
pub struct OciRemote {
    registry: Registry,
    /// For lists that are not the registry's own.
    downloads: Downloads,
    /// Where Docker Hub's API is.
    hub: String,
    access: RepoAccess,
}

impl OciRemote {
    /// The URL has the scheme oci or https, or http for a registry without TLS.
    ///
    /// # Errors
    /// It has another one, or the Authorization header is neither Basic nor Bearer.
    pub fn new(mut access: RepoAccess, options: &RemoteOptions) -> Result<Self, RepoError> {
        // If another one is already installed, that is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let url = access.url.trim().to_owned();
        let (scheme, rest) = url.split_once("://").unwrap_or(("", &url));
        match scheme.to_ascii_lowercase().as_str() {
            "oci" | "https" => {}
            "http" => access.plain_http = true,
            _ => return Err(refuse(&url, "a registry is oci://, https:// or http://")),
        }
        access.url = format!("oci://{rest}");
        let header = std::mem::take(&mut access.authorization);
        if !header.is_empty() {
            sign(&mut access, header.expose())?;
        }
        let common = Arc::new(Common {
            shares: Shares::new(1),
            contacts: ContactWatch::default(),
            look_ups: no_look_ups(),
        });
        Ok(Self {
            downloads: Downloads::new(options.timeout, Arc::clone(&common)),
            hub: catalogues::HUB.to_owned(),
            registry: Registry::new(options.timeout, common),
            access,
        })
    }

    /// Asks for Docker Hub's lists somewhere else, for tests.
    #[doc(hidden)]
    pub fn with_hub(mut self, url: impl Into<String>) -> Self {
        self.hub = url.into();
        self
    }

    /// The tags of a repository below the path, as they are written.
    pub async fn tags(&self, repository: &str) -> Result<Vec<String>, RepoError> {
        let place = Place::of(&self.access, Some(repository))?;
        self.registry.tags(&place).await
    }

    /// The chart that a tag names; `None`: there is none.
    pub async fn chart(&self, repository: &str, tag: &str) -> Result<Option<OciChart>, RepoError> {
        match self.digest(repository, tag).await? {
            Some(digest) => self.chart_at(repository, digest).await.map(Some),
            None => Ok(None),
        }
    }

    /// The digest of the manifest that a tag names now; `None`: there is no such tag.
    pub async fn digest(&self, repository: &str, tag: &str) -> Result<Option<String>, RepoError> {
        let place = Place::of(&self.access, Some(repository))?;
        if !is_tag(tag) {
            return Ok(None);
        }
        self.registry.digest(&place, tag).await
    }

    /// The chart whose manifest has a digest.
    pub async fn chart_at(&self, repository: &str, digest: String) -> Result<OciChart, RepoError> {
        let place = Place::of(&self.access, Some(repository))?;
        let manifest = self.manifest(&place, &digest).await?;
        let unfit = |reason| RepoError::Artifact { reason };
        let layer = manifest.chart().map_err(unfit)?;
        let archive = self.registry.blob(&place, layer, LAYER_BYTES).await?;
        Ok(OciChart { digest, archive })
    }

    /// The repositories below the path: as VMware's registries, Harbor or Docker Hub list them.
    ///
    /// # Errors
    /// It lists none.
    pub async fn listed(&self) -> Result<Vec<String>, RepoError> {
        let url = &self.access.url;
        let rest = url.split_once("://").map_or(url.as_str(), |(_, rest)| rest);
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let host = host.rsplit('@').next().unwrap_or_default();
        let path = path.trim_matches('/');
        let (downloads, access) = (&self.downloads, &self.access);
        if catalogues::is_hub(host) {
            let namespace = (self.hub.as_str(), path);
            return catalogues::of_hub(downloads, access, namespace).await;
        }
        let absent = match self.indexed().await {
            Err(e @ RepoError::Artifact { .. }) if !path.is_empty() => e,
            indexed => return indexed,
        };
        let scheme = if access.plain_http { "http" } else { "https" };
        let base = format!("{scheme}://{host}");
        let found = catalogues::of_harbor(downloads, access, (&base, path)).await?;
        found.ok_or(absent)
    }

    /// The list that VMware's registries have as an artifact.
    async fn indexed(&self) -> Result<Vec<String>, RepoError> {
        #[derive(Deserialize)]
        struct Index {
            #[serde(default)]
            entries: BTreeMap<String, serde::de::IgnoredAny>,
        }
        let place = Place::of(&self.access, Some(INDEX))?;
        let absent = || RepoError::Artifact {
            reason: format!("{}:latest: not found", place.address.shown),
        };
        let digest = self.registry.digest(&place, "latest").await?;
        let manifest = self.manifest(&place, &digest.ok_or_else(absent)?).await?;
        let unfit = |reason| RepoError::Artifact { reason };
        let layer = manifest.only_layer(INDEX_LAYER).map_err(unfit)?;
        let text = self.registry.blob(&place, layer, LAYER_BYTES).await?;
        let index: Index = serde_json::from_slice(&text).map_err(|e| RepoError::Corrupt {
            url: place.address.shown.clone(),
            reason: e.to_string(),
        })?;
        Ok(index.entries.into_keys().collect())
    }

    async fn manifest(&self, place: &Place<'_>, digest: &str) -> Result<Manifest, RepoError> {
        let text = self.registry.manifest(place, digest).await?;
        let text = text.ok_or_else(|| RepoError::Artifact {
            reason: format!("{}@{digest}: not found", place.address.shown),
        })?;
        Manifest::parse(&text).map_err(|e| RepoError::Artifact {
            reason: format!("error decoding oci manifest for digest {digest}: {e}"),
        })
    }
}

/// The version that a tag stands for: registries have no `+` in tags.
pub fn version_of_tag(tag: &str) -> String {
    version_of(tag)
}

/// Takes the credentials of an Authorization header apart.
fn sign(access: &mut RepoAccess, header: &str) -> Result<(), RepoError> {
    let unusable = || {
        RepoError::Unsupported(
            "the Authorization header for a registry is neither Basic nor Bearer".to_owned(),
        )
    };
    let (scheme, value) = header.trim().split_once(' ').ok_or_else(unusable)?;
    match scheme.to_ascii_lowercase().as_str() {
        "bearer" => access.bearer_token = Secret::new(value.trim()),
        "basic" => {
            let pair = STANDARD.decode(value.trim()).map_err(|_| unusable())?;
            let pair = String::from_utf8(pair).map_err(|_| unusable())?;
            let (user, password) = pair.split_once(':').ok_or_else(unusable)?;
            user.clone_into(&mut access.username);
            access.password = Secret::new(password);
        }
        _ => return Err(unusable()),
    }
    Ok(())
}
