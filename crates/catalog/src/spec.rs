//! What a user enters about a repository. Main type: [`RepoSpec`].
//!
//! It is kept with its secrets, in a database that only its owner may read.

use crate::{
    CatalogError, Filter, Form, RepoId, Repository, Store,
    model::RepoRef,
    store::RepoStatus,
    sync::{CatalogSync, Source},
};
use serde::{Deserialize, Serialize};
use std::{sync::Arc, time::Duration};
use tiphys_repo::{ChartRemote, OciRemote, RemoteOptions, RepoAccess, Secret};

/// For one request.
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RepoSpec {
    /// http or https for a repository with an index; `oci://` for a path of a registry.
    pub url: String,
    /// Charts below the path of a registry; empty: those that the registry lists.
    pub oci_repositories: Vec<String>,
    /// The registry has no TLS.
    pub plain_http: bool,
    pub username: String,
    pub password: String,
    /// PEM text.
    pub ca_data: String,
    pub insecure: bool,
    pub pass_credentials: bool,
    pub filter: Filter,
}

impl RepoSpec {
    /// As it is stored.
    ///
    /// # Errors
    /// The URL is neither http nor https, or the filter is no program.
    pub fn text(&self) -> Result<String, CatalogError> {
        let scheme = self
            .url
            .split_once("://")
            .map(|(scheme, _)| scheme.to_lowercase());
        let is_oci = scheme.as_deref() == Some("oci");
        if !is_oci && !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(CatalogError::Invalid(
                "the URL of a chart repository begins with http://, https:// or oci://".to_owned(),
            ));
        }
        if !(is_oci || self.oci_repositories.is_empty() && !self.plain_http) {
            return Err(CatalogError::Invalid(
                "only registries, at oci://, have repositories to name".to_owned(),
            ));
        }
        self.filter.compile()?;
        Ok(serde_json::to_string(self)?)
    }

    /// What reads a repository that a user entered.
    ///
    /// # Errors
    /// Nobody entered it, or what was stored cannot be read.
    pub fn sync(store: Arc<Store>, status: &RepoStatus) -> Result<CatalogSync, CatalogError> {
        if status.spec.is_empty() {
            return Err(CatalogError::Invalid(format!(
                "repository {:?} is synced by another program",
                status.id.name
            )));
        }
        let spec: Self = serde_json::from_str(&status.spec)?;
        spec.opened(store, &status.id)
    }

    /// What fetches charts of a repository, whoever entered it. For those of a cluster, whose
    /// credentials are there, it asks without any.
    ///
    /// # Errors
    /// What was stored cannot be read, or the URL is none.
    pub fn visitor(
        store: Arc<Store>,
        status: &RepoStatus,
        of: &RepoRef,
    ) -> Result<CatalogSync, CatalogError> {
        if !status.spec.is_empty() {
            return Self::sync(store, status);
        }
        let (scheme, rest) = of.url.split_once("://").unwrap_or(("https", &of.url));
        let is_registry = store.is_registry(&status.id)?;
        let spec = Self {
            url: if is_registry {
                format!("oci://{rest}")
            } else {
                of.url.clone()
            },
            plain_http: is_registry && scheme == "http",
            ..Self::default()
        };
        spec.opened(store, &status.id)
    }

    fn opened(self, store: Arc<Store>, id: &RepoId) -> Result<CatalogSync, CatalogError> {
        let is_oci = self.url.to_lowercase().starts_with("oci://");
        let access = RepoAccess {
            username: self.username,
            password: Secret::new(self.password),
            ca_data: self.ca_data,
            insecure: self.insecure,
            plain_http: self.plain_http,
            ..RepoAccess::public(&self.url)
        };
        let options = RemoteOptions {
            pass_credentials: self.pass_credentials,
            agent: String::new(),
            timeout: TIMEOUT,
        };
        let registry = match is_oci {
            false => None,
            true => Some(Source {
                remote: OciRemote::new(access.clone(), &options)?,
                repositories: self.oci_repositories,
            }),
        };
        let repository = Repository {
            id: id.clone(),
            // It is shown with every chart.
            url: crate::sync::shown(&self.url),
            form: Form::Helm,
            filter: self.filter,
        };
        let sync = CatalogSync::new(store, ChartRemote::new(access, options), repository);
        Ok(match registry {
            Some(registry) => sync.with_registry(registry),
            None => sync,
        })
    }
}
