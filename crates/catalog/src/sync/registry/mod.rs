//! Reading charts from a registry, which has no index: every tag is a version.
//!
//! Main type: [`Source`]. A tag is pulled as it is written, and each digest only once; what it parses
//! to is for sorting. Some tags that were read are asked for in each sync: one that names another
//! digest by now is pulled again.

mod deprecated;
mod known;
mod pull;

use super::{CatalogSync, SyncReport, files::patiently};
use crate::{
    CatalogError,
    index::{Note, newest_first},
    model::{Chart, ChartFiles, ChartVersion, RepoRef},
    repository::{Form, sha256},
    store::{FilesOutcome, FilesRow, RepoState, StoredSection},
};
use deprecated::Deprecated;
use jiff::Timestamp;
use known::{Known, Wanted};
use pull::{Found, Pulled, looked_again, pull_all};
use std::collections::{BTreeMap, HashSet};
use tiphys_gocompat::semver::Version;
use tiphys_repo::{OciRemote, RepoError, version_of_tag};

/// Tags after which what was pulled is stored.
const BATCH: usize = 20;

/// The charts of a registry.
pub struct Source {
    pub remote: OciRemote,
    /// Repositories below its path; empty: those that the registry lists.
    pub repositories: Vec<String>,
}

impl CatalogSync {
    pub(super) async fn read_registry(
        &self,
        source: &Source,
        mut state: RepoState,
    ) -> Result<SyncReport, CatalogError> {
        // A filter that cannot be run must not cost a pull.
        self.repository.filter.compile()?;
        let mut repositories = source.repositories.clone();
        if repositories.is_empty() {
            repositories = source.remote.listed().await?;
        }
        let mut report = SyncReport::default();
        let (mut kept, mut seen, mut tags) = (HashSet::new(), HashSet::new(), String::new());
        let (mut changed, mut noted) = (Vec::new(), HashSet::new());
        let (mut unknown, mut first) = (0, None);
        for name in repositories
            .iter()
            .filter(|name| seen.insert((*name).clone()))
        {
            let id = format!("{}/{}", self.repository.id.name, name.replace('/', "%2F"));
            match self.read_chart(source, name, &id, &mut report).await? {
                Read::Kept(of, is_changed) => {
                    changed.extend(is_changed.then(|| id.clone()));
                    kept.insert(id);
                    tags.push_str(&format!("{name} {of}\n"));
                }
                Read::Unknown(e) => {
                    kept.insert(id);
                    // That it does not have the repository is something that it says.
                    if !matches!(e, RepoError::NotFound { .. }) {
                        unknown += 1;
                    }
                    tracing::warn!(repository = name, error = %e, "its tags cannot be listed");
                    first.get_or_insert(e);
                }
                Read::None => {
                    noted.insert(id);
                }
            }
        }
        // Of some of many, the others count; a registry that says nothing at all was not read.
        if let Some(e) = first.filter(|_| unknown == seen.len()) {
            return Err(e.into());
        }
        report.failed_files += unknown;
        if !seen.is_empty() {
            let all = kept.clone();
            report.removed = self
                .with_store(move |store, repository| {
                    store.remove_others(&repository.id, &all, &noted)
                })
                .await?;
        }
        report.charts = kept.len();
        self.read_icons(Some(&changed)).await?;
        state.checksum = sha256(tags.as_bytes());
        state.our_checksum.clone_from(&state.checksum);
        state.skipped = report.skipped;
        self.finish(state).await?;
        Ok(report)
    }

    /// Reads the tags of one repository that are not known yet.
    async fn read_chart(
        &self,
        source: &Source,
        name: &str,
        id: &str,
        report: &mut SyncReport,
    ) -> Result<Read, CatalogError> {
        let listed = patiently(|| source.remote.tags(name)).await;
        let listed = match listed {
            Ok(listed) => listed,
            Err(e) => {
                self.note(id, "", format!("its tags cannot be listed: {e}"))
                    .await?;
                return Ok(Read::Unknown(e));
            }
        };
        let chart_id = id.to_owned();
        let (before, known, was_deprecated) = self
            .with_store(move |store, repository| {
                let id = &repository.id;
                let deprecated = store.is_deprecated(id, &chart_id)?;
                let tags = store.tags(id, &chart_id)?;
                Ok((store.chart(id, &chart_id)?, tags, deprecated))
            })
            .await?;
        let (mut wanted, other) = sorted(&listed);
        let mut chart = before.unwrap_or_default();
        let mut deprecated = Deprecated::new(&chart, was_deprecated);
        let mut known = Known::new(known, &chart, &wanted);
        let address = self.address(name);
        known.keep(&mut chart, address.as_deref());
        let mut digests = looked_again(source, name, &mut known).await;
        wanted.retain(|(_, tag)| !known.0.contains_key(tag) || digests.contains_key(tag));
        let mut notes: Vec<Note> = other
            .into_iter()
            .map(|tag| note(&tag, "the tag is no version"))
            .collect();
        report.skipped += i64::try_from(notes.len()).unwrap_or(i64::MAX);
        report.replaced += digests.len();
        let tags: Vec<String> = wanted.into_iter().map(|(_, tag)| tag).collect();
        let (mut is_first, mut is_kept) = (true, false);
        let mut batches: Vec<&[String]> = tags.chunks(BATCH).collect();
        if batches.is_empty() {
            batches.push(&[]);
        }
        for batch in batches {
            let found = pull_all(source, name, batch, (&mut digests, &known)).await;
            let (mut rows, now) = (Vec::new(), Timestamp::now().as_millisecond());
            for (tag, digest, found) in found {
                match found {
                    Ok(Found::Same(version)) => known.add(&tag, version, &digest, now),
                    Ok(Found::Pulled(pulled)) => {
                        report.files += 1;
                        let version = pulled.metadata.version.clone();
                        let is_taken = known.is_taken(&chart, &tag, (&version, &digest));
                        known.add(&tag, version, &digest, now);
                        if !is_taken {
                            deprecated.add(&pulled.metadata);
                            rows.push(self.add(&mut chart, id, name, *pulled, is_first));
                            is_first = false;
                        }
                    }
                    Err(e) => {
                        // The first to be asked for again.
                        known
                            .0
                            .entry(tag.clone())
                            .and_modify(|tag| tag.looked_at = 0);
                        notes.push(note(&tag, &e.to_string()));
                        report.failed_files += 1;
                    }
                }
            }
            known.keep(&mut chart, address.as_deref());
            let stored = StoredSection {
                deprecated: deprecated.is(&chart),
                chart: Some(chart.clone()),
                key: id.to_owned(),
                notes: notes.clone(),
                ..StoredSection::default()
            };
            is_kept = self.store_chart(stored, rows, &known).await?;
        }
        report.changed += usize::from(is_kept && !is_first);
        if is_kept {
            let tags: Vec<String> = known.0.into_keys().collect();
            return Ok(Read::Kept(tags.join(" "), !is_first));
        }
        for note in notes {
            self.note(id, &note.version, note.reason).await?;
        }
        Ok(Read::None)
    }

    /// Of a repository of charts, without a tag; kubeapps shows others.
    fn address(&self, name: &str) -> Option<String> {
        let url = self.repository.url.trim_end_matches('/');
        (self.repository.form != Form::Kubeapps).then(|| format!("{url}/{name}"))
    }

    /// Adds a version; `newest`: what the chart says about itself is what this version says.
    fn add(
        &self,
        chart: &mut Chart,
        id: &str,
        name: &str,
        pulled: Pulled,
        newest: bool,
    ) -> FilesRow {
        let Pulled {
            tag,
            digest,
            metadata,
            files,
        } = pulled;
        let is_kubeapps = self.repository.form == Form::Kubeapps;
        let repo = self.repo_ref();
        let of_version = |version: &str| Version::parse(version).ok();
        let is_newest = chart.versions.iter().all(|known| {
            let (known, this) = (of_version(&known.version), of_version(&metadata.version));
            newest_first(this.as_ref(), known.as_ref()).is_le()
        });
        if newest && is_newest {
            let annotations = metadata.annotations.unwrap_or_default();
            let (icon, raw) = (chart.icon.clone(), chart.raw_icon.take());
            *chart = Chart {
                id: id.to_owned(),
                name: metadata.name,
                repo: repo.clone(),
                description: metadata.description,
                home: metadata.home,
                keywords: metadata.keywords,
                maintainers: Some(metadata.maintainers.unwrap_or_default()),
                sources: metadata.sources.clone(),
                raw_icon: raw.filter(|_| icon == metadata.icon),
                icon: metadata.icon,
                icon_content_type: std::mem::take(&mut chart.icon_content_type),
                category: annotations.get("category").cloned().unwrap_or_default(),
                versions: std::mem::take(&mut chart.versions),
            };
        }
        let address = self.address(name);
        let mut version = ChartVersion {
            version: metadata.version.clone(),
            app_version: metadata.app_version,
            digest: digest.clone(),
            urls: match address {
                None => metadata.sources,
                Some(address) => Some(vec![format!("{address}:{tag}")]),
            },
            ..ChartVersion::default()
        };
        if is_kubeapps {
            version.readme.clone_from(&files.readme);
            version.values.clone_from(&files.values);
            version.schema.clone_from(&files.schema);
            version.additional_values = Some(files.additional_values.clone());
        }
        chart
            .versions
            .retain(|known| known.version != version.version);
        chart.versions.push(version);
        chart.versions.sort_by(|a, b| {
            newest_first(
                of_version(&a.version).as_ref(),
                of_version(&b.version).as_ref(),
            )
        });
        FilesRow {
            chart_id: id.to_owned(),
            version: metadata.version,
            outcome: FilesOutcome::Read(Box::new(ChartFiles {
                id: String::new(),
                readme: files.readme,
                values: files.values,
                // kubeapps has them in the chart only.
                additional_values: if is_kubeapps {
                    BTreeMap::new()
                } else {
                    files.additional_values
                },
                schema: files.schema,
                repo,
                digest,
            })),
        }
    }

    /// Stores what is known of a chart by now. Returns whether it is in the catalogue.
    async fn store_chart(
        &self,
        mut stored: StoredSection,
        rows: Vec<FilesRow>,
        known: &Known,
    ) -> Result<bool, CatalogError> {
        let known = known.clone();
        stored.notes.extend(known.conflicts());
        let now = Timestamp::now().as_second();
        self.with_store(move |store, repository| {
            let chart = stored.chart.as_ref();
            let Some(chart) = chart.filter(|chart| !chart.versions.is_empty()) else {
                return Ok(false);
            };
            if let Some(filter) = repository.filter.compile()?
                && !filter.keeps(chart)?
            {
                return Ok(false);
            }
            let read = known.0.iter().map(|(tag, read)| (tag, &read.version));
            let text = serde_json::to_string(&read.collect::<BTreeMap<_, _>>())?;
            stored.sha = sha256(text.as_bytes());
            let key = stored.key.clone();
            store.put_sections(&repository.id, &[stored], now)?;
            store.put_files(&repository.id, &rows, now)?;
            // Last: a tag that is known is not pulled again.
            store.put_tags(&repository.id, &key, &known.0)?;
            Ok(true)
        })
        .await
    }

    fn repo_ref(&self) -> RepoRef {
        let id = &self.repository.id;
        RepoRef {
            namespace: id.namespace.clone(),
            name: id.name.clone(),
            url: self.repository.url.clone(),
            form: String::new(),
        }
    }

    async fn note(&self, id: &str, version: &str, reason: String) -> Result<(), CatalogError> {
        tracing::warn!(chart = id, version, "{reason}");
        let (id, note) = (id.to_owned(), note(version, &reason));
        self.with_store(move |store, repository| {
            let now = Timestamp::now().as_second();
            store.put_notes(&repository.id, &id, &[note], now)
        })
        .await
    }
}

/// What became of a chart.
enum Read {
    /// With its tags, and whether something was read of it.
    Kept(String, bool),
    /// The registry did not say.
    Unknown(RepoError),
    None,
}

fn note(version: &str, reason: &str) -> Note {
    Note {
        version: version.to_owned(),
        reason: reason.to_owned(),
        is_shown: false,
    }
}

/// The tags that are versions, the newest first, and the others.
fn sorted(tags: &[String]) -> (Vec<Wanted>, Vec<String>) {
    let (mut versions, mut other) = (Vec::new(), Vec::new());
    for tag in tags {
        match Version::parse(&version_of_tag(tag)) {
            Ok(version) => versions.push((version, tag.clone())),
            Err(_) => other.push(tag.clone()),
        }
    }
    versions.sort_by(|a: &Wanted, b| newest_first(Some(&a.0), Some(&b.0)));
    (versions, other)
}
