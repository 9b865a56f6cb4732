//! What AppRepositories and kubeapps' command line say about a repository. Main type: [`Opening`].

use crate::{
    CatalogError, Filter, Form, RepoId, Repository, Store,
    sync::{CatalogSync, Source, shown},
};
use std::{sync::Arc, time::Duration};
use tiphys_repo::{ChartRemote, OciRemote, RemoteOptions, RepoAccess, Secret};

/// For one request.
const TIMEOUT: Duration = Duration::from_secs(180);

pub(crate) struct Opening {
    pub id: RepoId,
    /// http or https; of a registry also `oci://`.
    pub url: String,
    pub is_registry: bool,
    pub oci_repositories: Vec<String>,
    pub form: Form,
    pub filter: Filter,
    /// The whole header.
    pub authorization: Secret,
    /// PEM text.
    pub ca_data: String,
    pub skip_tls: bool,
    pub pass_credentials: bool,
    pub proxy: String,
    /// The User-Agent; empty: this program's.
    pub agent: String,
}

impl Opening {
    /// # Errors
    /// The URL of a registry is none.
    pub fn open(self, store: Arc<Store>) -> Result<CatalogSync, CatalogError> {
        let url = self.url.trim();
        let access = RepoAccess {
            authorization: self.authorization,
            ca_data: self.ca_data,
            insecure: self.skip_tls,
            proxy: self.proxy,
            ..RepoAccess::public(url)
        };
        let options = RemoteOptions {
            pass_credentials: self.pass_credentials,
            agent: self.agent,
            timeout: TIMEOUT,
        };
        // Its user and password are for the requests alone; kubeapps has them in its rows.
        let shown = match self.form {
            Form::Kubeapps => url.to_owned(),
            Form::Helm => shown(url),
        };
        let mut repository = Repository {
            id: self.id,
            url: shown,
            form: self.form,
            filter: self.filter,
        };
        let mut registry = None;
        if self.is_registry {
            if let Some(rest) = repository.url.strip_prefix("oci://") {
                repository.url = format!("https://{rest}");
            }
            let remote = OciRemote::new(access.clone(), &options)?;
            registry = Some(Source {
                remote,
                repositories: self.oci_repositories,
            });
        }
        let sync = CatalogSync::new(store, ChartRemote::new(access, options), repository);
        Ok(match registry {
            Some(registry) => sync.with_registry(registry),
            None => sync,
        })
    }
}
