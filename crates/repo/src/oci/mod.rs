//! OCI registries: charts in them, and sources that are artifacts of them.
//!
//! Main type: [`Oci`]. A tag is looked up again when it is older than [`TAG_TTL`]; what a digest
//! names never changes, and is kept unpacked. Rules that a reader may look for are in [`auth`]: who
//! receives credentials.

mod address;
mod answers;
mod auth;
mod catalogues;
mod download;
pub(crate) mod layer;
mod manifest;
mod named;
mod registry;
mod remote;
#[cfg(test)]
mod tests;
pub(crate) mod unpack;

pub(crate) use crate::chart::is_source;
pub(crate) use named::Named;
pub use remote::{OciChart, OciRemote, version_of_tag};

use crate::{
    Contact, ContactKind, RegistryRequest, RepoAccess, RepoError, Since, SourceLimits,
    acceptances::Acceptances,
    busy::Busy,
    chart::ChartName,
    common::Common,
    git::Commit,
    known_answers::KnownAnswers,
    refusals::Refusals,
    room::Room,
    unpacked::{Epoch, Unpacked, UnpackedKey},
    versions,
};
use address::{is_digest, is_tag, tag_of};
use download::no_manifest;
use layer::LayerLimits;
use manifest::Manifest;
use registry::{Place, Registry};
use std::{
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_api::repository::OCIMetadata;
use tokio::sync::Semaphore;

/// How long a tag, or the list of them, serves without a question to the registry.
const TAG_TTL: Duration = Duration::from_secs(180);
/// The largest layer that is in memory, packed: a chart.
const LAYER_BYTES: u64 = 64 << 20;
/// Repositories whose tags are remembered.
const LISTS: u64 = 1_000;
/// Tags whose digest is remembered.
const DIGESTS: u64 = 20_000;
/// Artifacts that are unpacked at a time.
const AT_A_TIME: usize = 2;
/// Bytes of layers that are on disk until they are unpacked.
const WAITING_BYTES: u64 = 4 << 30;
/// Artifacts whose commit is remembered.
const READY: u64 = 10_000;
const READY_TTL: Duration = Duration::from_secs(24 * 3600);
const MANIFESTS: u64 = 1_000;
/// Artifacts that could not be unpacked: trying again would cost as much as the first time.
const REFUSED: u64 = 1_000;
const REFUSED_TTL: Duration = Duration::from_secs(3600);

/// The fingerprint of an access, and what it reads.
type Key = ([u8; 32], String);

/// All OCI registries.
pub(crate) struct Oci {
    registry: Registry,
    common: Arc<Common>,
    unpacked: Arc<Unpacked>,
    /// For what is being downloaded.
    folder: PathBuf,
    limits: SourceLimits,
    lists: moka::sync::Cache<Key, (Instant, Arc<Vec<String>>)>,
    digests: moka::sync::Cache<Key, (Instant, String)>,
    /// Both for the next process.
    known: KnownAnswers,
    manifests: moka::sync::Cache<Key, Arc<Manifest>>,
    ready: moka::sync::Cache<Key, (Epoch, Commit)>,
    refused: moka::sync::Cache<Key, RepoError>,
    /// By repository: a registry may give one and refuse the other.
    refusals: Refusals,
    /// For layers until they are unpacked.
    room: Room,
    /// To unpack artifacts.
    places: Arc<Semaphore>,
    busy: Busy<Key>,
}

impl Oci {
    /// `folder` is created when it is needed.
    pub fn new(
        timeout: Duration,
        common: Arc<Common>,
        (unpacked, folder): (Arc<Unpacked>, PathBuf),
        limits: &SourceLimits,
    ) -> Self {
        Self {
            registry: Registry::new(timeout, Arc::clone(&common)),
            common,
            unpacked,
            folder,
            limits: limits.clone(),
            lists: moka::sync::Cache::new(LISTS),
            digests: moka::sync::Cache::new(DIGESTS),
            known: KnownAnswers::none(),
            manifests: moka::sync::Cache::new(MANIFESTS),
            ready: moka::sync::Cache::builder()
                .max_capacity(READY)
                .time_to_live(READY_TTL)
                .build(),
            refused: moka::sync::Cache::builder()
                .max_capacity(REFUSED)
                .time_to_live(REFUSED_TTL)
                .build(),
            refusals: Refusals::keeping(Acceptances::none()),
            room: Room::new(WAITING_BYTES),
            places: Arc::new(Semaphore::new(AT_A_TIME)),
            busy: Busy::default(),
        }
    }

    /// The same, which keeps what tags are there and what they name for the next process.
    pub fn keeping(self, known: KnownAnswers, accepted: Acceptances) -> Self {
        Self {
            refusals: Refusals::keeping(accepted),
            known,
            ..self
        }
    }

    /// Whether the registry responds and accepts the credentials.
    pub async fn test(&self, access: &RepoAccess) -> Result<(), RepoError> {
        let mut place = Place::of(access, None)?;
        // Not for what is in it: the path of charts is no repository.
        place.address.repository.clear();
        let begun = Instant::now();
        let answered = self.registry.ping(&place).await;
        if !is_source(&access.url) {
            return answered;
        }
        let request = (RegistryRequest::TestRepo, "");
        self.told(&place, request, begun, answered)
    }

    /// The tags of a repository in its registry's order, with `+` for `_` as versions have it.
    pub async fn tags(
        &self,
        access: &RepoAccess,
        since: Since,
    ) -> Result<Arc<Vec<String>>, RepoError> {
        self.tags_of_source(&Place::of(access, None)?, since).await
    }

    async fn tags_of_source(
        &self,
        place: &Place<'_>,
        since: Since,
    ) -> Result<Arc<Vec<String>>, RepoError> {
        if let Some(known) = self.known_list(place, since) {
            return Ok(known);
        }
        let request = (RegistryRequest::GetTags, "");
        let begun = Instant::now();
        let answered = self.list(place, since).await;
        self.told(place, request, begun, answered)
    }

    /// The version of a chart that a revision stands for. An exact one is not looked up.
    pub async fn resolve_chart(
        &self,
        chart: ChartName<'_>,
        revision: &str,
        since: Since,
    ) -> Result<String, RepoError> {
        let place = Place::of(chart.access, Some(chart.name))?;
        let list = self.list(&place, since).await?;
        let no_version = |e: versions::VersionError| RepoError::NoVersion {
            reason: e.to_string(),
        };
        let picked = versions::pick(revision, &list).map_err(no_version)?;
        if versions::is_exact(picked) {
            return Ok(picked.to_owned());
        }
        // Charts have versions: another tag, such as `latest`, is none.
        versions::pick(revision, &[] as &[&str])
            .map(str::to_owned)
            .map_err(no_version)
    }

    /// The files of one version of a chart, as a commit of our own. `version` may be a range.
    pub async fn chart(
        &self,
        chart: ChartName<'_>,
        version: &str,
        since: Since,
    ) -> Result<Commit, RepoError> {
        let resolved;
        let version = if versions::is_exact(version) {
            version
        } else {
            let range = if version.is_empty() { "*" } else { version };
            resolved = self.resolve_chart(chart, range, since).await?;
            &resolved
        };
        self.tagged(chart, version, &tag_of(version), since).await
    }

    /// The same of the version that has a tag.
    pub async fn tagged(
        &self,
        chart: ChartName<'_>,
        version: &str,
        tag: &str,
        since: Since,
    ) -> Result<Commit, RepoError> {
        if matches!(since, Since::Recently)
            && let Some(ready) = self.last_chart(chart, version)
        {
            return Ok(ready);
        }
        let place = Place::of(chart.access, Some(chart.name))?;
        self.learn(&place).await;
        let by_name = unpacked_key("oci version", &place, version);
        let epoch = self.unpacked.epoch();
        let found = match self.digest(&place, tag, since).await {
            Ok(Some(digest)) => self.download_chart(&place, &digest, &by_name).await,
            Ok(None) => Err(RepoError::NoChart {
                chart: chart.name.to_owned(),
                version: version.to_owned(),
                url: tiphys_api::access::shown_url(&chart.access.url),
            }),
            // What was downloaded before outlives an outage of its registry, as it would in the
            // memory of a process that went on.
            Err(e) if self.may_stand_in(&place, since) && e.retryable() => {
                match self.unpacked.kept_before(by_name).await? {
                    Some(kept) => {
                        tracing::warn!(error = %e, chart = chart.name, version, "using the chart as it was downloaded before");
                        return Ok(kept);
                    }
                    None => Err(e),
                }
            }
            Err(e) => Err(e),
        };
        if found.as_ref().is_err_and(is_gone) {
            self.ready.invalidate(&chart_key(chart, version));
            self.unpacked.forget_kept("OCI Helm chart", by_name).await;
        }
        let found = found?;
        let ready = (epoch, found.clone());
        self.ready.insert(chart_key(chart, version), ready);
        Ok(found)
    }

    /// A version of a chart that was returned before, from memory.
    pub fn last_chart(&self, chart: ChartName<'_>, version: &str) -> Option<Commit> {
        let place = Place::of(chart.access, Some(chart.name)).ok()?;
        self.ready(&place, &chart_key(chart, version))
    }

    /// The digest that a revision of a source stands for: a tag, a digest, or else a range of
    /// versions.
    pub async fn resolve(
        &self,
        access: &RepoAccess,
        revision: &str,
        since: Since,
    ) -> Result<String, RepoError> {
        if is_digest(revision) {
            return Ok(revision.to_owned());
        }
        let place = Place::of(access, None)?;
        if let Some(known) = self.known(&place, revision, since) {
            return Ok(known);
        }
        let request = (RegistryRequest::ResolveRevision, revision);
        let begun = Instant::now();
        let answered = self.look_up(&place, revision, since).await;
        self.told(&place, request, begun, answered)
    }

    /// What a revision stands for, from memory.
    fn known(&self, place: &Place<'_>, revision: &str, since: Since) -> Option<String> {
        let tag = tag_of(revision);
        if is_tag(&tag) {
            return self.known_digest(place, &tag, since);
        }
        if !versions::is_constraint(revision) {
            return None;
        }
        let list = self.known_list(place, since)?;
        let picked = versions::pick(revision, &list).ok()?;
        self.known_digest(place, &tag_of(picked), since)
    }

    async fn look_up(
        &self,
        place: &Place<'_>,
        revision: &str,
        since: Since,
    ) -> Result<String, RepoError> {
        let absent = |tag: &str, why: &str| RepoError::NoVersion {
            reason: format!(
                "cannot get digest for revision {tag}: {}:{tag}: {why}",
                place.address.shown
            ),
        };
        let tag = tag_of(revision);
        let mut why = "invalid reference";
        if is_tag(&tag) {
            if let Some(digest) = self.digest(place, &tag, since).await? {
                return Ok(digest);
            }
            why = "not found";
        }
        if !versions::is_constraint(revision) {
            return Err(absent(revision, why));
        }
        let list = self.tags_of_source(place, since).await?;
        let picked = versions::pick(revision, &list).map_err(|e| RepoError::NoVersion {
            reason: format!("no version for constraints: {e}"),
        })?;
        let digest = self.digest(place, &tag_of(picked), since).await?;
        digest.ok_or_else(|| absent(picked, "not found"))
    }

    /// The files of an artifact, as a commit of our own. What a digest names never changes, but
    /// the registry may refuse it by now: who does not want to know what was there before has the
    /// registry asked.
    pub async fn files(
        &self,
        access: &RepoAccess,
        digest: &str,
        since: Since,
    ) -> Result<Commit, RepoError> {
        if since == Since::Recently
            && let Some(ready) = self.last(access, digest)
        {
            return Ok(ready);
        }
        let place = Place::of(access, None)?;
        self.learn(&place).await;
        let epoch = self.unpacked.epoch();
        let request = (RegistryRequest::Extract, digest);
        let begun = Instant::now();
        let answer = async {
            if is_digest(digest) && self.is_to_ask(&place, digest, since).await? {
                let found = self.ask_digest(&place, digest).await?;
                found.ok_or_else(|| no_manifest(&place, digest))?;
            }
            self.download(&place, digest).await
        };
        let answered = answer.await;
        if answered.as_ref().is_err_and(is_gone) {
            self.ready.invalidate(&source_key(access, digest));
            let by_content = unpacked_key("oci source", &place, digest);
            self.unpacked.forget_kept("OCI artifact", by_content).await;
        }
        let found = self.told(&place, request, begun, answered)?;
        let ready = (epoch, found.clone());
        self.ready.insert(source_key(access, digest), ready);
        Ok(found)
    }

    /// An artifact that was returned before, from memory.
    pub fn last(&self, access: &RepoAccess, digest: &str) -> Option<Commit> {
        self.ready(&Place::of(access, None).ok()?, &source_key(access, digest))
    }

    /// What the author of an artifact says about it.
    pub async fn metadata(
        &self,
        access: &RepoAccess,
        revision: &str,
    ) -> Result<OCIMetadata, RepoError> {
        let digest = self.resolve(access, revision, Since::Recently).await?;
        let place = Place::of(access, None)?;
        let manifest = match self.known_manifest(&place, &digest) {
            Some(known) => known,
            None => {
                let request = (RegistryRequest::DigestMetadata, digest.as_str());
                let begun = Instant::now();
                let answered = self.manifest(&place, &digest).await;
                self.told(&place, request, begun, answered)?
            }
        };
        let of = |name: &str| manifest.annotation(&format!("org.opencontainers.image.{name}"));
        Ok(OCIMetadata {
            created_at: of("created"),
            authors: of("authors"),
            docs_url: of("documentation"),
            // Argo CD leaves it empty.
            image_url: String::new(),
            source_url: of("source"),
            version: of("version"),
            description: of("description"),
        })
    }

    /// Tells of a request for a source, and passes its outcome on.
    fn told<T>(
        &self,
        place: &Place<'_>,
        (request, revision): (RegistryRequest, &str),
        begun: Instant,
        outcome: Result<T, RepoError>,
    ) -> Result<T, RepoError> {
        self.common.contacts.tell(&Contact {
            repository: &place.address.shown,
            kind: ContactKind::Registry(request),
            revision,
            took: begun.elapsed(),
            is_failed: outcome.is_err(),
        });
        outcome
    }

    fn ready(&self, place: &Place<'_>, key: &Key) -> Option<Commit> {
        if self.is_refused(place) {
            return None;
        }
        let (epoch, commit) = self.ready.get(key)?;
        let is_good = self.unpacked.still_has(epoch) && !commit.0.is_damaged();
        is_good.then_some(commit)
    }
}

/// Whether the registry does not give it any more: then it is not served later in an outage either.
fn is_gone(e: &RepoError) -> bool {
    let is_absent = matches!(e, RepoError::NoChart { .. } | RepoError::NoVersion { .. });
    is_absent || e.is_refusal()
}

/// `name`: a tag or a digest.
fn place_key(place: &Place<'_>, name: &str) -> Key {
    let repository = &place.address.repository;
    (place.access.fingerprint(), format!("{repository} {name}"))
}

fn refusal_key(place: &Place<'_>) -> Key {
    (place.access.fingerprint(), place.address.repository.clone())
}

fn source_key(access: &RepoAccess, digest: &str) -> Key {
    (access.fingerprint(), format!("source {digest}"))
}

fn chart_key(chart: ChartName<'_>, version: &str) -> Key {
    let name = format!("chart {} {version}", chart.name);
    (chart.access.fingerprint(), name)
}

fn unpacked_key(kind: &str, place: &Place<'_>, name: &str) -> UnpackedKey {
    UnpackedKey::new(&[
        kind.as_bytes(),
        &place.access.fingerprint(),
        place.address.repository.as_bytes(),
        name.as_bytes(),
    ])
}

/// For fuzzing: reads a manifest, the two ways it is used, and checks what is found in it.
#[doc(hidden)]
pub fn read_manifest(text: &[u8]) -> Result<(), String> {
    let Ok(manifest) = Manifest::parse(text) else {
        return Ok(());
    };
    manifest.annotation("org.opencontainers.image.created");
    let _ = manifest.chart();
    match manifest.content(&SourceLimits::default().layer_types) {
        Ok(found) if !found.layer.media_type.contains("tar") => Err(format!(
            "the content is in a layer of type {}",
            found.layer.media_type
        )),
        _ => Ok(()),
    }
}

/// For fuzzing: unpacks a layer, and checks that nothing leaves it.
#[doc(hidden)]
pub fn read_layer(layer: &[u8]) -> Result<(), String> {
    let limits = LayerLimits {
        bytes: 16 << 20,
        entries: 1000,
        rooted: true,
    };
    for is_packed in [false, true] {
        let files = layer::files(layer, (is_packed, false), limits, |content, _| {
            std::io::copy(content, &mut std::io::sink()).map_err(|e| e.to_string())
        });
        let files = files.unwrap_or_default();
        let leaves = |path: &&String| {
            path.is_empty() || path.split('/').any(|part| matches!(part, "" | "." | ".."))
        };
        if let Some(path) = files.keys().find(leaves) {
            return Err(format!("a file has the path {path:?}"));
        }
    }
    Ok(())
}

/// For fuzzing: reads what a registry says about how to sign requests, and a token.
#[doc(hidden)]
pub fn read_challenge(text: &[u8]) -> Result<(), String> {
    let header = String::from_utf8_lossy(text);
    if let Some(auth::Challenge::Bearer { realm, .. }) = auth::challenge([header.as_ref()])
        && let Ok(realm) = reqwest::Url::parse(&realm)
        && let Ok(registry) = reqwest::Url::parse("https://registry.example.com")
        && auth::trust(&registry, &realm) == auth::Trust::Credentials
        && realm
            .host_str()
            .is_none_or(|host| host != "example.com" && !host.ends_with(".example.com"))
    {
        return Err(format!("{realm} is trusted"));
    }
    let _ = auth::token(text);
    Ok(())
}
