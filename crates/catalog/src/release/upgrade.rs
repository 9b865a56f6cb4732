//! Another version for a source: what becomes of its values, and what that changes.
//!
//! Main function: [`plan`]; main types: [`Wanted`] and [`Plan`]. Nothing is written.

use super::{
    Chosen, Facts, Manifests, Origin,
    applied::{entered, of_parameters},
    digest_of,
    merge::{self, Conflict, Merged, Prefer, Values},
    parse_values, schema, text,
};
use crate::{
    CatalogError, RepoId, Store, blocking, model::ChartVersion, store::Kept, sync::CatalogSync,
};
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{
    rpc::catalog::{self as rpc, UpgradeResponse},
    source::{ApplicationSource, HelmParameter},
};
use tiphys_gocompat::yaml;
use tiphys_render::{
    SourceFiles,
    helm::{Limits, chart::archive_files},
};

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    pub source: ApplicationSource,
    /// The version that is installed: what the target revision was resolved to, or itself.
    pub installed: String,
    /// The digest of that version when it was installed; empty if nobody knows.
    pub digest: String,
    /// `None`: the newest.
    pub version: Option<String>,
    pub prefer: Prefer,
    /// Values that count in any case.
    pub decided: Values,
    pub facts: Facts,
}

/// What would be written, and what that would change.
#[derive(Clone, Debug)]
pub struct Plan {
    pub repo: RepoId,
    pub chart: String,
    pub from: String,
    pub to: String,
    /// Of the new version.
    pub digest: String,
    pub merged: Merged,
    /// The conflicts that `decided` does not decide.
    pub undecided: Vec<Conflict>,
    /// What could not be done or is worth to know.
    pub notes: Vec<String>,
    pub source: ApplicationSource,
    /// `None`: they cannot be rendered here; a note says why.
    pub before: Option<Manifests>,
    pub after: Option<Manifests>,
}

impl Plan {
    /// What changes in the cluster, as far as it is known.
    pub fn difference(&self) -> Option<String> {
        let (before, after) = (self.before.as_ref()?, self.after.as_ref()?);
        Some(super::difference(before, after))
    }

    /// As the API answers. `repository` is what users call it.
    pub fn response(self, chosen: &Chosen, origin: &Origin, repository: &str) -> UpgradeResponse {
        let known = (origin, repository.to_owned(), self.digest.clone());
        let application = chosen.replaced(self.source.clone(), Some(&known));
        let text = |value: Option<&Value>| value.map(ToString::to_string).unwrap_or_default();
        let is_open = |path: &str| self.undecided.iter().any(|open| open.path == path);
        let conflicts = self.merged.conflicts.iter().map(|conflict| rpc::Conflict {
            decided: !is_open(&conflict.path),
            path: conflict.path.clone(),
            old: text(conflict.old.as_ref()),
            ours: conflict.ours.to_string(),
            theirs: text(conflict.theirs.as_ref()),
        });
        let versions = origin.chart.versions.iter();
        let difference = self.difference();
        let manifests = self.after.as_ref().map(Manifests::text);
        UpgradeResponse {
            application,
            conflicts: conflicts.collect(),
            compared: difference.is_some(),
            difference: difference.unwrap_or_default(),
            values: yaml::to_string(&self.merged.values.clone().into()),
            versions: versions.map(|version| version.version.clone()).collect(),
            from: self.from,
            to: self.to,
            taken_from_new: self.merged.taken_from_new,
            gone: self.merged.gone,
            removed_in_chart: self.merged.removed_in_chart,
            unknown_to_chart: self.merged.unknown_to_chart,
            notes: self.notes,
            manifests: manifests.unwrap_or_default(),
        }
    }
}

/// Plans the upgrade of a source to another version of its chart. `visitor` reads the repository.
///
/// # Errors
/// There is no such version, its archive is another one than the catalogue knows, or it does not
/// render with the values.
pub async fn plan(
    store: Arc<Store>,
    visitor: &CatalogSync,
    origin: &Origin,
    wanted: Wanted,
) -> Result<Plan, CatalogError> {
    let to = target(origin, &wanted)?.clone();
    let archive = visitor.archive(&origin.chart, &to).await?;
    let mut notes = Vec::new();
    let from = origin.installed(&wanted.installed).cloned();
    let before = match &from {
        None => None,
        Some(from) if !same_digest(&wanted.digest, &from.digest) => {
            notes.push(format!(
                "{} {} is not the one that was installed: its digest differs",
                origin.chart.name, from.version
            ));
            None
        }
        Some(from) => match visitor.archive(&origin.chart, from).await {
            Ok(archive) => Some(archive),
            Err(e) => {
                notes.push(format!("{} cannot be read: {e}", from.version));
                None
            }
        },
    };
    let planning = Planning {
        store,
        revision: origin.revision(&to).to_owned(),
        address: origin.address(),
        repo: origin.repo.clone(),
        from: from.map_or_else(|| wanted.installed.clone(), |from| from.version),
        to,
        wanted,
        notes,
    };
    blocking(move || planning.run(before.as_deref(), &archive)).await
}

fn target<'a>(origin: &'a Origin, wanted: &Wanted) -> Result<&'a ChartVersion, CatalogError> {
    let name = &origin.chart.name;
    if let Some(version) = &wanted.version {
        let found = origin.installed(version);
        let absent = || CatalogError::NotFound(format!("version {version:?} of chart {name:?}"));
        return found.ok_or_else(absent);
    }
    let newest = origin.newer(&wanted.installed);
    let found = newest.as_ref().and_then(|version| origin.version(version));
    found.ok_or_else(|| {
        CatalogError::Invalid(format!(
            "the catalogue has no version of {name} after {}",
            wanted.installed
        ))
    })
}

/// Digests with and without the name of the algorithm. What is not known is not compared.
fn same_digest(a: &str, b: &str) -> bool {
    let bare = |digest: &str| digest.trim_start_matches("sha256:").to_lowercase();
    a.is_empty() || b.is_empty() || bare(a) == bare(b)
}

struct Planning {
    store: Arc<Store>,
    address: String,
    repo: RepoId,
    from: String,
    to: ChartVersion,
    /// What the source says for it.
    revision: String,
    wanted: Wanted,
    notes: Vec<String>,
}

impl Planning {
    fn run(mut self, before: Option<&[u8]>, after: &[u8]) -> Result<Plan, CatalogError> {
        let helm = self.wanted.source.helm.clone().unwrap_or_default();
        let digest = digest_of(&self.to.digest, after);
        let theirs = self.defaults(after, &self.to.version.clone(), &digest)?;
        let old = self.old_defaults(before)?;
        let (ours, is_text) = entered(&self.wanted.source)?;
        let merged = match &old {
            Some(old) => merge::merge(old, &ours, &theirs, self.wanted.prefer),
            None => {
                self.notes.push(format!(
                    "the defaults of {} are not known, so your values stay as they are",
                    self.from
                ));
                Merged {
                    values: ours.clone(),
                    ..Merged::default()
                }
            }
        };
        let mut merged = merged;
        if let Some(old) = &old {
            self.parameters(old, &helm.parameters, &theirs, &mut merged)?;
        }
        let mut source = self.wanted.source.clone();
        source.target_revision.clone_from(&self.revision);
        self.put_values(&mut source, &mut merged, is_text);
        let is_open = |conflict: &&Conflict| !merge::has(&self.wanted.decided, &conflict.path);
        let undecided = merged.conflicts.iter().filter(is_open).cloned().collect();
        let (before, after) = self.manifests(before, after, &mut source)?;
        Ok(Plan {
            repo: self.repo,
            chart: source.chart.clone(),
            from: self.from,
            to: self.to.version,
            digest,
            merged,
            undecided,
            notes: self.notes,
            source,
            before,
            after,
        })
    }

    /// The defaults of an archive, with the files of values that the source names in it.
    fn defaults(
        &self,
        archive: &[u8],
        version: &str,
        digest: &str,
    ) -> Result<Values, CatalogError> {
        let files = archive_files(archive, &Limits::default());
        let files = files.map_err(|e| CatalogError::Invalid(format!("{version}: {e}")))?;
        let read = |name: &str| {
            let content = files.read(name.trim_start_matches("./"));
            let content = content.map_err(|e| CatalogError::Invalid(e.to_string()))?;
            let text = content.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
            Ok::<_, CatalogError>(text.unwrap_or_default())
        };
        let defaults = read("values.yaml")?;
        let mut values = parse_values(&defaults, "the chart's values")?;
        let kept = Kept {
            digest: digest.to_owned(),
            defaults,
        };
        self.store.keep(&self.address, version, &kept)?;
        for name in self.value_files() {
            merge::overlay(&mut values, &parse_values(&read(name)?, name)?);
        }
        Ok(values)
    }

    fn value_files(&self) -> impl Iterator<Item = &str> {
        let helm = self.wanted.source.helm.iter();
        helm.flat_map(|helm| helm.value_files.iter().map(String::as_str))
    }

    /// Those of the version that is installed: from its archive, or as they were kept.
    fn old_defaults(&mut self, archive: Option<&[u8]>) -> Result<Option<Values>, CatalogError> {
        if let Some(archive) = archive {
            let digest = digest_of(&self.wanted.digest, archive);
            return self.defaults(archive, &self.from, &digest).map(Some);
        }
        let kept = self.store.kept(&self.address, &self.from)?;
        let kept = kept.filter(|kept| same_digest(&kept.digest, &self.wanted.digest));
        let values = kept.map(|kept| parse_values(&kept.defaults, "the old defaults"));
        values.transpose()
    }

    /// Conflicts of parameters, which stay as they are.
    fn parameters(
        &mut self,
        old: &Values,
        parameters: &[HelmParameter],
        theirs: &Values,
        merged: &mut Merged,
    ) -> Result<(), CatalogError> {
        let given = of_parameters(parameters)?;
        for conflict in merge::merge(old, &given, theirs, Prefer::Ours).conflicts {
            let path = &conflict.path;
            let note = format!("the parameter {path} stays, although its default changed");
            self.notes.push(note);
            merged.taken_from_new.retain(|taken| taken != path);
            merged.conflicts.retain(|known| known.path != *path);
        }
        Ok(())
    }

    /// Writes the values where the user has them.
    fn put_values(&self, source: &mut ApplicationSource, merged: &mut Merged, is_text: bool) {
        let helm = source.helm.get_or_insert_default();
        let old_text = std::mem::take(&mut helm.values);
        helm.values_object = None;
        let decided = &self.wanted.decided;
        if is_text && decided.is_empty() {
            helm.values = text::without(&old_text, &merged.dropped, &merged.values);
            return;
        }
        merge::overlay(&mut merged.values, decided);
        if merged.values.is_empty() {
            return;
        }
        let values = Value::Object(merged.values.clone());
        if is_text {
            helm.values = yaml::to_string(&values);
        } else {
            helm.values_object = Some((&values).into());
        }
    }

    fn manifests(
        &mut self,
        before: Option<&[u8]>,
        after: &[u8],
        source: &mut ApplicationSource,
    ) -> Result<(Option<Manifests>, Option<Manifests>), CatalogError> {
        let is_elsewhere = |name: &str| name.starts_with('$') || name.contains("://");
        if self.value_files().any(is_elsewhere) {
            let note = "values are in files of another source, so manifests are not compared here";
            self.notes.push(note.to_owned());
            return Ok((None, None));
        }
        let facts = self.wanted.facts.clone();
        let (after, unknown) = Manifests::render(after, source, &facts)?;
        if !unknown.is_empty() {
            // Else nobody could render it.
            source.helm.get_or_insert_default().skip_schema_validation = true;
            let notes = unknown.iter().map(|reference| schema::note(reference));
            self.notes.extend(notes);
        }
        let old = ApplicationSource {
            target_revision: self.from.clone(),
            ..self.wanted.source.clone()
        };
        let before = before.map(|archive| Manifests::render(archive, &old, &facts));
        let before = match before {
            None => None,
            Some(Ok((before, _))) => Some(before),
            Some(Err(e)) => {
                self.notes.push(e.to_string());
                None
            }
        };
        Ok((before, Some(after)))
    }
}
