//! Charts of repositories: from a repository's index to the files of one version.
//!
//! Main type: [`Charts`]. Indexes are kept on disk and asked for again only when they are older
//! than [`INDEX_TTL`], and then downloaded only when they changed; archives are kept unpacked, by
//! what identifies them in the index.

mod divide;
mod index;
mod known_index;
mod on_disk;
mod open_text;
mod remote;
mod spool;

pub use divide::{Divider, Place, Undivided};
pub use index::{limits as index_limits, whole as whole_index};
pub use remote::{ChartRemote, Fetched, Known};
pub use spool::{Seekable, Spooled};

pub use index::{index_versions, read_index};

use crate::{
    RepoAccess, RepoError, Since, SourceLimits,
    acceptances::Acceptances,
    busy::Busy,
    chart::{ChartName, has_charts},
    git::Commit,
    git::UnpackedFile,
    ground::blocking,
    ground::hex,
    http::{Downloads, Question, Validators},
    known_answers::KnownAnswers,
    oci::{self, Oci},
    refusals::{self, Refusals},
    spool::Spool,
    unpacked::{Epoch, Unpacked, UnpackedKey},
    url::refuse,
    versions,
};
use index::Entries;
use known_index::KnownIndexes;
use on_disk::OnDisk;
use sha2::{Digest as _, Sha256};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};
use tempfile::NamedTempFile;
use tiphys_api::{
    access::shown_url,
    repo_url::{Form, RepoUrl},
};
use tiphys_render::helm::{Limits, chart::archive_files};

/// How long an index serves without a question to its server.
const INDEX_TTL: Duration = Duration::from_secs(180);
/// The largest index that a catalogue reads.
const INDEX_BYTES: u64 = 128 << 20;
/// How the names of indexes begin that are not complete yet.
const INCOMPLETE: &str = ".tmp";
/// The largest archive, packed.
const ARCHIVE_BYTES: u64 = 64 << 20;
/// Charts whose commit is remembered.
const READY: u64 = 10_000;
/// How long a version is not looked up in the index: nobody should replace an archive by another of
/// the same version, but some do.
const READY_TTL: Duration = Duration::from_secs(24 * 3600);
/// Charts whose versions are remembered.
const ENTRIES: u64 = 2_000;

/// A downloaded index.
struct Index {
    asked: Instant,
    version: Validators,
    path: PathBuf,
    /// Of its content.
    digest: String,
}

type Key = [u8; 32];

/// All chart repositories.
pub(crate) struct Charts {
    downloads: Arc<Downloads>,
    /// For charts in registries.
    oci: Arc<Oci>,
    unpacked: Arc<Unpacked>,
    folder: PathBuf,
    /// The largest index.
    index_bytes: u64,
    /// Of an archive that is unpacked.
    limits: Limits,
    indexes: Mutex<HashMap<Key, Arc<Index>>>,
    /// What the next process is to know of them.
    known: KnownIndexes,
    /// The versions of a chart, as of an index that was asked for at that time.
    entries: moka::sync::Cache<(Key, String), (Instant, Arc<Entries>)>,
    ready: moka::sync::Cache<(Key, String, String), (Epoch, Commit)>,
    refusals: Refusals,
    busy: Busy<(Key, String)>,
}

impl Charts {
    /// `folder` is for the indexes of one process at a time; it is created when it is needed.
    pub fn new(
        downloads: Arc<Downloads>,
        oci: Arc<Oci>,
        unpacked: Arc<Unpacked>,
        folder: PathBuf,
        limits: &SourceLimits,
    ) -> Self {
        remove_incomplete(&folder);
        Self {
            downloads,
            oci,
            unpacked,
            folder,
            index_bytes: limits.index_bytes,
            limits: limits.of_charts(),
            indexes: Mutex::default(),
            known: KnownIndexes::new(KnownAnswers::none()),
            entries: moka::sync::Cache::new(ENTRIES),
            ready: moka::sync::Cache::builder()
                .max_capacity(READY)
                .time_to_live(READY_TTL)
                .build(),
            refusals: Refusals::keeping(Acceptances::none()),
            busy: Busy::default(),
        }
    }

    /// The same, whose indexes the next process knows.
    pub fn keeping(self, answers: KnownAnswers, accepted: Acceptances) -> Self {
        Self {
            refusals: Refusals::keeping(accepted),
            known: KnownIndexes::new(answers),
            ..self
        }
    }

    /// The version that a target revision stands for. An exact one is not looked up.
    pub async fn resolve(
        &self,
        chart: ChartName<'_>,
        revision: &str,
        since: Since,
    ) -> Result<String, RepoError> {
        let revision = if revision.is_empty() { "*" } else { revision };
        if versions::is_exact(revision) {
            return Ok(revision.to_owned());
        }
        if chart.is_in_registry() {
            return self.oci.resolve_chart(chart, revision, since).await;
        }
        let entries = self.entries(chart, since).await?;
        let tags = entries.tags();
        let picked = versions::pick(revision, &tags);
        picked.map(str::to_owned).map_err(|e| RepoError::NoVersion {
            reason: e.to_string(),
        })
    }

    /// The files of one version, as a commit of our own. `version` may be a range.
    pub async fn files(
        &self,
        chart: ChartName<'_>,
        version: &str,
        since: Since,
    ) -> Result<Commit, RepoError> {
        if chart.is_in_registry() {
            return self.oci.chart(chart, version, since).await;
        }
        if matches!(since, Since::Recently)
            && versions::is_exact(version)
            && let Some(ready) = self.last(chart, version)
        {
            return Ok(ready);
        }
        let named = [
            b"version".as_slice(),
            &chart.access.fingerprint(),
            chart.name.as_bytes(),
            version.as_bytes(),
        ];
        let by_name = UnpackedKey::new(&named);
        let epoch = self.unpacked.epoch();
        let (failed, may_pass) = match self.entries(chart, since).await {
            Ok(entries) => match self
                .download(chart, (&entries, version), &by_name, since)
                .await
            {
                Ok(found) => {
                    let ready = (epoch, found.clone());
                    self.ready.insert(ready_key(chart, version), ready);
                    return Ok(found);
                }
                Err(e) => {
                    // With a digest the index says which archive it is, and that one is not here.
                    let entry = entries.get(version);
                    let may_be_it = entry.is_some_and(|entry| entry.digest.is_empty());
                    let may_pass = may_be_it && e.is_away();
                    (e, may_pass)
                }
            },
            Err(e) => {
                let may_pass = e.retryable();
                (e, may_pass)
            }
        };
        if failed.is_refusal() {
            // Whoever has the archive does not give it any more, nor later in an outage.
            self.ready.invalidate(&ready_key(chart, version));
            self.unpacked.forget_kept("Helm chart", by_name).await;
        }
        let of_index = (chart.access.fingerprint(), String::new());
        self.refusals.learn(&of_index).await;
        // As a process that went on would have it in memory.
        if !may_pass || since != Since::Recently || !self.refusals.is_accepted(&of_index) {
            return Err(failed);
        }
        // What was downloaded before outlives an outage of its repository.
        let kept = self.unpacked.kept_before(by_name).await?;
        let kept = kept.ok_or_else(|| failed.clone())?;
        tracing::warn!(error = %failed, chart = chart.name, version, "using the chart as it was downloaded before");
        Ok(kept)
    }

    /// A version that was returned before, from memory.
    pub fn last(&self, chart: ChartName<'_>, version: &str) -> Option<Commit> {
        if chart.is_in_registry() {
            return self.oci.last_chart(chart, version);
        }
        if self.is_refused(chart.access) {
            return None;
        }
        let (epoch, commit) = self.ready.get(&ready_key(chart, version))?;
        let is_good = self.unpacked.still_has(epoch) && !commit.0.is_damaged();
        is_good.then_some(commit)
    }

    /// The charts of a repository, with their versions.
    pub async fn list(&self, access: &RepoAccess) -> Result<Vec<(String, Vec<String>)>, RepoError> {
        if has_charts(&access.url) {
            return Err(RepoError::Unsupported(format!(
                "{}: a registry does not list the charts in it",
                shown_url(&access.url)
            )));
        }
        let index = self.index(access, Since::now()).await?;
        let path = index.path.clone();
        let broken = broken_index(access);
        blocking(move || {
            let charts = OnDisk::open(&path).and_then(|index| index.charts());
            charts.map_err(|e| broken(&e))
        })
        .await
    }

    async fn download(
        &self,
        chart: ChartName<'_>,
        (entries, version): (&Entries, &str),
        by_name: &UnpackedKey,
        since: Since,
    ) -> Result<Commit, RepoError> {
        let absent = || RepoError::NoChart {
            chart: chart.name.to_owned(),
            version: version.to_owned(),
            url: shown_url(&chart.access.url),
        };
        let entry = entries.get(version).ok_or_else(absent)?;
        let Some(url) = entry.urls.first() else {
            return Err(RepoError::NoVersion {
                reason: format!("chart {:?} has no downloadable URLs", chart.name),
            });
        };
        if let Some(named) = oci::Named::of(url, chart.access, chart.pass_credentials) {
            let named = named?;
            let of = ChartName {
                access: &named.access,
                name: &named.name,
                pass_credentials: false,
            };
            return self.oci.tagged(of, &named.tag, &named.tag, since).await;
        }
        let url = archive_url(&chart.access.url, url)?;
        let fingerprint = chart.access.fingerprint();
        let _one = self.busy.wait(&(fingerprint, url.clone())).await;
        let by_content = UnpackedKey::new(&[
            b"archive",
            &fingerprint,
            url.as_bytes(),
            entry.digest.as_bytes(),
        ]);
        // Without a digest nothing tells whether the archive is another one by now.
        if !entry.digest.is_empty()
            && let Some(kept) = self.unpacked.kept(by_content).await?
        {
            return Ok(kept);
        }
        let question = Question {
            url: &url,
            with_credentials: chart.pass_credentials || is_same_origin(&url, &chart.access.url),
            limit: ARCHIVE_BYTES,
            known: None,
        };
        let archive = self.downloads.get(chart.access, &question).await?;
        let archive = archive.unwrap_or_default().content;
        let digest = entry.digest.trim_start_matches("sha256:");
        let found = crate::ground::hex(&Sha256::digest(&archive));
        // Helm checks it for no repository, so it does not keep the chart from being rendered.
        if !digest.is_empty() && !found.eq_ignore_ascii_case(digest) {
            tracing::warn!(
                repository = shown_url(&chart.access.url),
                "chart {:?} {version}: the index says digest {digest}, the archive has {found}",
                chart.name
            );
        }
        let (unpacked, shown, by_name) = (Arc::clone(&self.unpacked), shown_url(&url), *by_name);
        let limits = self.limits;
        blocking(move || {
            let files = archive_files(&archive, &limits);
            let files = files.map_err(|e| RepoError::Corrupt {
                url: shown,
                reason: e.to_string(),
            })?;
            let list = files.0.iter();
            let list = list.map(|(path, content)| UnpackedFile::new(path, content));
            unpacked.put(&[by_content, by_name], list)
        })
        .await
    }

    async fn entries(&self, chart: ChartName<'_>, since: Since) -> Result<Arc<Entries>, RepoError> {
        let index = self.index(chart.access, since).await?;
        let key = (chart.access.fingerprint(), chart.name.to_owned());
        if let Some((asked, entries)) = self.entries.get(&key)
            && asked == index.asked
        {
            return Ok(entries);
        }
        let (path, name) = (index.path.clone(), chart.name.to_owned());
        let (broken, url) = (broken_index(chart.access), chart.access.url.clone());
        let entries = blocking(move || {
            let entries = OnDisk::open(&path).and_then(|index| index.entries(&name));
            let entries = entries.map_err(|e| broken(&e))?;
            entries.ok_or_else(|| RepoError::NoVersion {
                reason: format!("chart '{name}' not found in index of {}", shown_url(&url)),
            })
        })
        .await?;
        for warning in &entries.warnings {
            tracing::warn!(repository = shown_url(&chart.access.url), "{warning}");
        }
        let entries = Arc::new(entries);
        self.entries
            .insert(key, (index.asked, Arc::clone(&entries)));
        Ok(entries)
    }

    /// What the next index is written to.
    async fn begin_index(&self) -> Result<Spool<NamedTempFile>, RepoError> {
        let folder = self.folder.clone();
        let file = blocking(move || {
            std::fs::create_dir_all(&folder).map_err(|e| not_kept(&e))?;
            let file = tempfile::Builder::new()
                .prefix(INCOMPLETE)
                .tempfile_in(&folder);
            file.map_err(|e| not_kept(&e))
        });
        Ok(Spool::new(file.await?))
    }

    /// The index, at most [`INDEX_TTL`] old or asked for since a time. One download at a time for
    /// each repository.
    async fn index(&self, access: &RepoAccess, since: Since) -> Result<Arc<Index>, RepoError> {
        let key = access.fingerprint();
        let url = index_url(&access.url)?;
        let _one = self.busy.wait(&(key, url.clone())).await;
        let known = {
            let indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
            indexes.get(&key).cloned()
        };
        if let Some(known) = &known {
            let good = match since {
                Since::Recently => known.asked.elapsed() < INDEX_TTL,
                Since::At(time) => known.asked >= time,
            };
            if good && known.path.exists() {
                return Ok(Arc::clone(known));
            }
        }
        let known = match known.filter(|known| known.path.exists()) {
            Some(known) => Some(known),
            None => {
                let before = self.known.find(&key, self.path(&key), self.index_bytes);
                before.await.map(Arc::new)
            }
        };
        let (asked, clock) = (Instant::now(), SystemTime::now());
        let answer = self.ask(access, (key, &url), asked, known.clone()).await;
        let verdict = refusals::verdict(&answer);
        self.refusals.hear(&(key, String::new()), verdict).await;
        match answer {
            Ok(index) => {
                self.known.keep(&key, clock, &index).await;
                let index = Arc::new(index);
                self.remember(key, &index);
                Ok(index)
            }
            Err(e) => {
                if e.is_refusal() {
                    // An answer is worth more than what another process was told.
                    self.known.forget(&key).await;
                    self.forget(&key);
                }
                let Some(known) = known.filter(|_| e.is_away()) else {
                    return Err(e);
                };
                // If it is of an earlier process, it need not be read for the next question again.
                self.remember(key, &known);
                let serves = since == Since::Recently && known.asked.elapsed() < INDEX_TTL;
                if serves { Ok(known) } else { Err(e) }
            }
        }
    }

    /// Downloads the index if it is not the known one.
    async fn ask(
        &self,
        access: &RepoAccess,
        (key, url): (Key, &str),
        asked: Instant,
        known: Option<Arc<Index>>,
    ) -> Result<Index, RepoError> {
        let question = Question {
            url,
            with_credentials: true,
            limit: self.index_bytes,
            known: known.as_ref().map(|known| &known.version),
        };
        let mut spool = self.begin_index().await?;
        let answer = self.downloads.get_into(access, &question, &mut spool);
        let answer = answer.await?;
        match (answer, known) {
            (Some(about), _) => {
                let (file, digest) = spool.finish().await?;
                let path = self.path(&key);
                blocking(move || {
                    file.persist(&path).map_err(|e| not_kept(&e.error))?;
                    Ok(Index {
                        asked,
                        version: about.version,
                        path,
                        digest,
                    })
                })
                .await
            }
            (None, Some(known)) => Ok(Index {
                asked,
                version: known.version.clone(),
                path: known.path.clone(),
                digest: known.digest.clone(),
            }),
            (None, None) => Err(RepoError::Internal("no index was received".to_owned())),
        }
    }

    fn path(&self, key: &Key) -> PathBuf {
        self.folder.join(hex(key))
    }

    /// Whether the repository refused the credentials when it was asked last.
    fn is_refused(&self, access: &RepoAccess) -> bool {
        self.refusals.has(&(access.fingerprint(), String::new()))
    }

    fn forget(&self, key: &Key) {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        indexes.remove(key);
    }

    fn remember(&self, key: Key, index: &Arc<Index>) {
        let mut indexes = self.indexes.lock().unwrap_or_else(PoisonError::into_inner);
        indexes.insert(key, Arc::clone(index));
    }
}

/// Removes what a process left that was killed while it received an index.
fn remove_incomplete(folder: &Path) {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    for file in files {
        let name = file.file_name();
        if name.to_string_lossy().starts_with(INCOMPLETE) {
            // A file that cannot be removed only wastes space.
            let _ = std::fs::remove_file(file.path());
        }
    }
}

fn not_kept(e: &std::io::Error) -> RepoError {
    RepoError::Internal(format!("cannot keep the index of a repository: {e}"))
}

fn ready_key(chart: ChartName<'_>, version: &str) -> (Key, String, String) {
    let key = chart.access.fingerprint();
    (key, chart.name.to_owned(), version.to_owned())
}

fn broken_index(access: &RepoAccess) -> impl Fn(&str) -> RepoError + Send + 'static {
    let url = shown_url(&access.url);
    move |reason| RepoError::Corrupt {
        url: url.clone(),
        reason: format!("its index.yaml cannot be read: {reason}"),
    }
}

fn parsed(url: &str) -> Result<reqwest::Url, RepoError> {
    let mut parsed = reqwest::Url::parse(url.trim()).map_err(|e| refuse(url, &e.to_string()))?;
    if !matches!(parsed.scheme(), "http" | "https") {
        return Err(refuse(url, "a chart repository is an http or https URL"));
    }
    // They are sent as a header, and only to this origin.
    let _ = parsed.set_username("");
    let _ = parsed.set_password(None);
    Ok(parsed)
}

/// The folder of a repository, with a slash at the end, so that others can be relative to it.
fn folder_of(url: &str) -> Result<reqwest::Url, RepoError> {
    let mut folder = parsed(url)?;
    let path = format!("{}/", folder.path().trim_end_matches('/'));
    folder.set_path(&path);
    Ok(folder)
}

fn index_url(repository: &str) -> Result<String, RepoError> {
    relative(repository, "index.yaml")
}

/// The address of an archive: absolute as it is written, else relative to the folder of the index,
/// with the repository's query.
fn archive_url(repository: &str, written: &str) -> Result<String, RepoError> {
    match reqwest::Url::parse(written) {
        Ok(absolute) => Ok(absolute.into()),
        Err(_) => relative(repository, written),
    }
}

/// The same in the folder of the index.
fn address_in(folder: &reqwest::Url, written: &str) -> Result<String, RepoError> {
    match reqwest::Url::parse(written) {
        Ok(absolute) => Ok(absolute.into()),
        Err(_) => joined(folder, written),
    }
}

fn relative(repository: &str, written: &str) -> Result<String, RepoError> {
    joined(&folder_of(repository)?, written)
}

fn joined(folder: &reqwest::Url, written: &str) -> Result<String, RepoError> {
    let joined = folder.join(written);
    let mut joined = joined.map_err(|e| refuse(written, &e.to_string()))?;
    if joined.origin() == folder.origin() {
        joined.set_query(folder.query());
    }
    Ok(joined.into())
}

/// Where credentials may be sent: scheme, host and port.
#[derive(PartialEq, Eq)]
struct Origin(Form, String, Option<u16>);

impl Origin {
    fn of(url: &str) -> Option<Self> {
        let url = RepoUrl::parse(url.split('?').next().unwrap_or(url)).ok()?;
        Some(Self(url.form, url.host, url.port))
    }

    fn is_of(&self, url: &str) -> bool {
        Self::of(url).as_ref() == Some(self)
    }
}

fn is_same_origin(a: &str, b: &str) -> bool {
    Origin::of(a).is_some_and(|origin| origin.is_of(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn incomplete_indexes_do_not_stay() {
        let dir = tempfile::tempdir().expect("a folder");
        let folder = dir.path().join("indexes");
        remove_incomplete(&folder);
        assert!(!folder.exists(), "nothing is created");
        std::fs::create_dir(&folder).expect("a folder");
        for name in [".tmpAb12", "0a1b"] {
            std::fs::write(folder.join(name), "x").expect("a file");
        }
        remove_incomplete(&folder);
        let left = std::fs::read_dir(&folder).expect("it is there");
        let left: Vec<_> = left.flatten().map(|file| file.file_name()).collect();
        assert_eq!(left, ["0a1b"]);
    }

    #[test]
    fn addresses_of_archives() {
        for (repository, written, address) in [
            ("http://h/rel/a", "demo.tgz", "http://h/rel/a/demo.tgz"),
            ("http://h/rel/a/", "demo.tgz", "http://h/rel/a/demo.tgz"),
            (
                "http://h/rel/a?token=t1",
                "demo.tgz",
                "http://h/rel/a/demo.tgz?token=t1",
            ),
            (
                "http://h/rel/b",
                "sub/demo.tgz",
                "http://h/rel/b/sub/demo.tgz",
            ),
            ("http://h/rel/c", "/pk/demo.tgz", "http://h/pk/demo.tgz"),
            (
                "http://h/rel/d",
                "../../pk/demo.tgz",
                "http://h/pk/demo.tgz",
            ),
            (
                "http://h/rel/e?token=t1",
                "//other/pk/demo.tgz",
                "http://other/pk/demo.tgz",
            ),
            (
                "http://h/rel/e?token=t1",
                "http://h/demo.tgz",
                "http://h/demo.tgz",
            ),
            ("https://u:p@h/a", "demo.tgz", "https://h/a/demo.tgz"),
        ] {
            let found = archive_url(repository, written).expect("an address");
            assert_eq!(found, address, "{repository} {written}");
        }
        let index = index_url("http://h/rel/a?token=t1").expect("an address");
        assert_eq!(index, "http://h/rel/a/index.yaml?token=t1");
        for repository in ["/srv/charts", "ftp://h/a", "h/a", ""] {
            let refused = index_url(repository);
            assert!(
                matches!(refused, Err(RepoError::BadUrl { .. })),
                "{repository}"
            );
        }
    }

    #[test]
    fn credentials_stay_with_their_origin() {
        for (archive, repository, same) in [
            ("https://h/a.tgz", "https://h/charts", true),
            ("https://h:443/a.tgz", "https://H/charts?token=t", true),
            ("https://h:8443/a.tgz", "https://h/charts", false),
            ("http://h/a.tgz", "https://h/charts", false),
            ("https://h.evil.org/a.tgz", "https://h/charts", false),
            ("https://h@evil.org/a.tgz", "https://h/charts", false),
        ] {
            assert_eq!(is_same_origin(archive, repository), same, "{archive}");
        }
    }
}
