//! What a user enters about a repository. Main type: [`RepoSpec`].
//!
//! It is kept with its secrets, in a database that only its owner may read.

use crate::{CatalogError, Filter, Form, RepoId, Repository, store::RepoStatus};
use serde::{Deserialize, Serialize};
use std::time::Duration;
use tiphys_repo::{ChartRemote, RemoteOptions, RepoAccess, Secret};

/// For one request.
const TIMEOUT: Duration = Duration::from_secs(120);

#[derive(Clone, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct RepoSpec {
    /// http or https.
    pub url: String,
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
        if !matches!(scheme.as_deref(), Some("http" | "https")) {
            return Err(CatalogError::Invalid(
                "the URL of a chart repository begins with http:// or https://".to_owned(),
            ));
        }
        self.filter.compile()?;
        Ok(serde_json::to_string(self)?)
    }

    /// What is needed to read a repository that a user entered.
    ///
    /// # Errors
    /// Nobody entered it, or what was stored cannot be read.
    pub fn open(status: &RepoStatus) -> Result<(Repository, ChartRemote), CatalogError> {
        let id = &status.id;
        if status.spec.is_empty() {
            return Err(CatalogError::Invalid(format!(
                "repository {:?} is synced by another program",
                id.name
            )));
        }
        let spec: Self = serde_json::from_str(&status.spec)?;
        Ok(spec.parts(id))
    }

    fn parts(self, id: &RepoId) -> (Repository, ChartRemote) {
        let access = RepoAccess {
            username: self.username,
            password: Secret::new(self.password),
            ca_data: self.ca_data,
            insecure: self.insecure,
            ..RepoAccess::public(&self.url)
        };
        let options = RemoteOptions {
            pass_credentials: self.pass_credentials,
            agent: String::new(),
            timeout: TIMEOUT,
        };
        let repository = Repository {
            id: id.clone(),
            // It is shown with every chart.
            url: crate::sync::shown(&self.url),
            form: Form::Helm,
            filter: self.filter,
        };
        (repository, ChartRemote::new(access, options))
    }
}
