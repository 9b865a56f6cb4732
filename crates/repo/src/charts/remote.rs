//! One chart repository as its documents: the index, archives and pictures, as a catalogue reads
//! them. Nothing is kept here.
//!
//! Main type: [`ChartRemote`]. The addresses, limits and the rule who receives credentials are
//! those of [`super::Charts`].

use super::{
    ARCHIVE_BYTES, INDEX_BYTES, Origin, address_in, archive_url, folder_of, index_url,
    spool::{self, Spooled},
};
use crate::{
    ContactWatch, RepoAccess, RepoError, Secret,
    chart::RemoteOptions,
    common::{Common, no_look_ups},
    http::{About, Downloads, Question, Validators},
    oci::{Named, OciRemote},
    shares::Shares,
    url::{percent_decode, refuse},
};
use std::sync::Arc;
use tiphys_api::access::shown_url;

/// The largest picture, as it is served.
const PICTURE_BYTES: u64 = 1 << 20;

/// What a server said about the version of a document that is there already; empty: nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Known {
    pub etag: String,
    pub modified: String,
}

/// A document and what its server said about it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fetched {
    pub content: Vec<u8>,
    /// Its content type, or empty.
    pub kind: String,
    pub version: Known,
}

/// A chart repository.
pub struct ChartRemote {
    downloads: Downloads,
    access: RepoAccess,
    /// Whose address counts as the repository's own.
    origin: Option<Origin>,
    /// What addresses in the index are relative to; `None`: the repository's URL is none.
    folder: Option<reqwest::Url>,
    options: RemoteOptions,
}

impl ChartRemote {
    /// User and password in the URL count as credentials, unless there are others.
    pub fn new(mut access: RepoAccess, options: RemoteOptions) -> Self {
        // If another one is already installed, that is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
        if let Ok(url) = reqwest::Url::parse(access.url.trim())
            && !access.has_credentials()
            && !url.username().is_empty()
        {
            access.username = percent_decode(url.username());
            access.password = Secret::new(percent_decode(url.password().unwrap_or_default()));
        }
        let common = Arc::new(Common {
            shares: Shares::new(1),
            contacts: ContactWatch::default(),
            look_ups: no_look_ups(),
        });
        let mut downloads = Downloads::new(options.timeout, common).with_common_clients();
        if !options.agent.is_empty() {
            downloads = downloads.named(options.agent.clone());
        }
        Self {
            downloads,
            origin: Origin::of(&access.url),
            folder: folder_of(&access.url).ok(),
            access,
            options,
        }
    }

    /// The index; `None` if the server says that it is the known one.
    pub async fn index(&self, known: &Known) -> Result<Option<Spooled>, RepoError> {
        let url = index_url(&self.access.url)?;
        let validators = validators(known);
        let question = Question {
            url: &url,
            with_credentials: true,
            limit: INDEX_BYTES,
            known: validators.as_ref(),
        };
        let mut spool = spool::begun();
        let found = self.downloads.get_into(&self.access, &question, &mut spool);
        match found.await? {
            None => Ok(None),
            Some(about) => Ok(Some(spool::finished(spool, version(&about)).await?)),
        }
    }

    /// The address of an archive or a picture that the index writes so.
    pub fn address(&self, written: &str) -> Result<String, RepoError> {
        match &self.folder {
            Some(folder) => address_in(folder, written),
            None => archive_url(&self.access.url, written),
        }
    }

    /// An archive, by the address in the index, which may be in a registry; `None` if it is the known
    /// one.
    pub async fn archive(
        &self,
        written: &str,
        known: &Known,
    ) -> Result<Option<Fetched>, RepoError> {
        if let Some(named) = Named::of(written, &self.access, self.options.pass_credentials) {
            let Named { access, name, tag } = named?;
            let remote = OciRemote::new(access, &self.options)?;
            let absent = || RepoError::Artifact {
                reason: format!("{}: not found", shown_url(written)),
            };
            let chart = remote.chart(&name, &tag).await?.ok_or_else(absent)?;
            return Ok(Some(Fetched {
                content: chart.archive,
                ..Fetched::default()
            }));
        }
        self.named(written, ARCHIVE_BYTES, known).await
    }

    /// A picture, by the address in the index; `None` if it is the known one.
    pub async fn picture(
        &self,
        written: &str,
        known: &Known,
    ) -> Result<Option<Fetched>, RepoError> {
        self.named(written, PICTURE_BYTES, known).await
    }

    async fn named(
        &self,
        written: &str,
        limit: u64,
        known: &Known,
    ) -> Result<Option<Fetched>, RepoError> {
        if written.is_empty() {
            return Err(refuse(&self.access.url, "the index names no address"));
        }
        let url = self.address(written)?;
        // Without any, nobody is to be kept from them.
        let to_all = self.options.pass_credentials || !self.access.has_credentials();
        let is_own = || self.origin.as_ref().is_some_and(|own| own.is_of(&url));
        let trusted = to_all || is_own();
        self.get(&url, trusted, limit, known).await
    }

    async fn get(
        &self,
        url: &str,
        with_credentials: bool,
        limit: u64,
        known: &Known,
    ) -> Result<Option<Fetched>, RepoError> {
        let validators = validators(known);
        let question = Question {
            url,
            with_credentials,
            limit,
            known: validators.as_ref(),
        };
        let found = self.downloads.get(&self.access, &question).await?;
        Ok(found.map(|document| Fetched {
            version: version(&document.about),
            kind: document.about.kind,
            content: document.content,
        }))
    }
}

fn validators(known: &Known) -> Option<Validators> {
    let is_known = *known != Known::default();
    is_known.then(|| Validators::new(&known.etag, &known.modified))
}

fn version(about: &About) -> Known {
    let (etag, modified) = about.version.texts();
    Known { etag, modified }
}
