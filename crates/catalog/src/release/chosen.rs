//! The source of an Application that is a chart. Main type: [`Chosen`].

use super::{ANNOTATION, Facts, Origin, annotations};
use crate::CatalogError;
use std::collections::BTreeMap;
use tiphys_api::{Application, source::ApplicationSource};
use tiphys_gocompat::semver::Version;

pub struct Chosen<'a> {
    pub app: &'a Application,
    pub source: &'a ApplicationSource,
    /// What its target revision was resolved to; empty before the first comparison.
    pub revision: &'a str,
    /// Its place in `spec.sources`; `None`: it is `spec.source`.
    pub(super) at: Option<usize>,
}

impl<'a> Chosen<'a> {
    /// The sources that are charts.
    pub fn all(app: &'a Application) -> Vec<Self> {
        let (spec, synced) = (&app.spec, &app.status.sync);
        let single = spec.source.iter().map(|source| Self {
            app,
            source,
            revision: &synced.revision,
            at: None,
        });
        let several = spec.sources.iter().enumerate().map(|(at, source)| Self {
            app,
            source,
            revision: synced.revisions.get(at).map_or("", String::as_str),
            at: Some(at),
        });
        let all: Vec<Self> = if spec.sources.is_empty() {
            single.collect()
        } else {
            several.collect()
        };
        let is_chart = |chosen: &Self| !chosen.source.chart.is_empty();
        all.into_iter().filter(is_chart).collect()
    }

    /// The only one, or the one at a position that counts from 1.
    ///
    /// # Errors
    /// There is none, or several without a position.
    pub fn one(app: &'a Application, position: Option<usize>) -> Result<Self, CatalogError> {
        let name = &app.metadata.name;
        let mut all = Self::all(app);
        if let Some(position) = position {
            all.retain(|chosen| chosen.at.map_or(1, |at| at + 1) == position);
        }
        match all.len() {
            1 => Ok(all.remove(0)),
            0 => Err(CatalogError::Invalid(format!(
                "application '{name}' has no chart as its source"
            ))),
            _ => Err(CatalogError::Invalid(format!(
                "application '{name}' has several charts: say which with its source position"
            ))),
        }
    }

    /// The version that is installed, or asked for.
    pub fn version(&self) -> Option<&'a str> {
        let known = [self.revision, self.source.target_revision.as_str()];
        known.into_iter().find(|text| Version::parse(text).is_ok())
    }

    /// That no repository has its chart.
    pub fn unknown(&self) -> CatalogError {
        let ApplicationSource {
            chart, repo_url, ..
        } = self.source;
        let url = tiphys_api::access::shown_url(repo_url);
        CatalogError::NotFound(format!("chart {chart:?} of {url}"))
    }

    fn noted(&self, key: &str) -> &'a str {
        let found = self
            .app
            .metadata
            .annotations
            .get(&format!("{ANNOTATION}/{key}"));
        found.map_or("", String::as_str)
    }

    /// The digest of the installed version, as its annotations say.
    pub fn digest(&self) -> String {
        let is_version = Some(self.noted("version")) == self.version();
        let is_this = is_version && self.noted("chart") == self.name();
        let digest = if is_this { self.noted("digest") } else { "" };
        digest.to_owned()
    }

    /// The repository and the chart that it was installed from, as its annotations say; `None`: it
    /// did not come from the catalogue.
    pub fn came_from(&self) -> Option<String> {
        let repository = self.noted("repository");
        let is_this = !repository.is_empty() && self.noted("chart") == self.name();
        is_this.then(|| format!("{repository}/{}", self.name()))
    }

    fn name(&self) -> &str {
        let chart = &self.source.chart;
        chart.rsplit('/').next().unwrap_or_default()
    }

    /// For its manifests.
    pub fn facts(&self) -> Facts {
        let spec = &self.app.spec;
        Facts {
            name: self.app.metadata.name.clone(),
            namespace: spec.destination.namespace.clone(),
            project: spec.project.clone(),
            now: jiff::Timestamp::now(),
        }
    }

    /// The Application with another source in its place. `origin`: the chart, what users call its
    /// repository, and the version's digest, if the catalogue has them.
    pub fn replaced(
        &self,
        source: ApplicationSource,
        origin: Option<&(&Origin, String, String)>,
    ) -> Application {
        let mut app = self.app.clone();
        let known = &mut app.metadata.annotations;
        known.extend(self.annotations(&source.target_revision, origin));
        match self.at {
            None => app.spec.source = Some(source),
            Some(at) => app.spec.sources[at] = source,
        }
        app
    }

    fn annotations(
        &self,
        version: &str,
        origin: Option<&(&Origin, String, String)>,
    ) -> BTreeMap<String, String> {
        if let Some((origin, repository, digest)) = origin {
            return annotations(repository, &origin.place().1, version, digest);
        }
        // The repository's name still holds, if there is one.
        let mut all = annotations("", self.name(), version, "");
        all.remove(&format!("{ANNOTATION}/repository"));
        all
    }
}
