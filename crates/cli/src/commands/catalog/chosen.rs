//! The source of an Application that is a chart. Main type: [`Chosen`].

use super::{called, failed};
use crate::client::{Client, Failure};
use std::collections::BTreeMap;
use tiphys_api::{
    Application, rpc::application::ApplicationUpdateRequest, source::ApplicationSource,
};
use tiphys_catalog::{
    Store,
    release::{ANNOTATION, Facts, Origin, annotations},
};
use tiphys_gocompat::semver::Version;

pub struct Chosen<'a> {
    pub app: &'a Application,
    pub source: &'a ApplicationSource,
    /// What its target revision was resolved to; empty before the first comparison.
    pub revision: &'a str,
    /// Its place in `spec.sources`; `None`: it is `spec.source`.
    at: Option<usize>,
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
    pub fn one(app: &'a Application, position: Option<usize>) -> Result<Self, Failure> {
        let name = &app.metadata.name;
        let mut all = Self::all(app);
        if let Some(position) = position {
            all.retain(|chosen| chosen.at.map_or(1, |at| at + 1) == position);
        }
        match all.len() {
            1 => Ok(all.remove(0)),
            0 => Err(Failure::error(format!(
                "application '{name}' has no chart as its source"
            ))),
            _ => Err(Failure::error(format!(
                "application '{name}' has several charts: say which with --source-position"
            ))),
        }
    }

    /// The version that is installed, or asked for.
    pub fn version(&self) -> Option<&'a str> {
        let known = [self.revision, self.source.target_revision.as_str()];
        known.into_iter().find(|text| Version::parse(text).is_ok())
    }

    /// The chart that it is from.
    pub fn origin(&self, store: &Store) -> Result<Origin, Failure> {
        let origin = Origin::of(store, self.source).map_err(failed)?;
        origin.ok_or_else(|| {
            let ApplicationSource {
                chart, repo_url, ..
            } = self.source;
            Failure::error(format!(
                "no repository of the catalogue has chart {chart:?} of {}",
                tiphys_api::access::shown_url(repo_url)
            ))
        })
    }

    /// The digest of the installed version, as its annotations say.
    pub fn digest(&self) -> String {
        let of = |key: &str| {
            let found = self
                .app
                .metadata
                .annotations
                .get(&format!("{ANNOTATION}/{key}"));
            found.map_or("", String::as_str)
        };
        let is_this = Some(of("version")) == self.version() && of("chart") == self.name();
        if is_this { of("digest") } else { "" }.to_owned()
    }

    fn name(&self) -> &str {
        let chart = &self.source.chart;
        chart.rsplit('/').next().unwrap_or_default()
    }

    pub fn facts(&self) -> Facts {
        let spec = &self.app.spec;
        Facts {
            name: self.app.metadata.name.clone(),
            namespace: spec.destination.namespace.clone(),
            project: spec.project.clone(),
            now: jiff::Timestamp::now(),
        }
    }

    /// Writes another source in its place. `origin`: the chart is in the catalogue, and its digest
    /// is this.
    pub async fn replace(
        &self,
        client: &Client,
        source: ApplicationSource,
        origin: Option<(&Origin, &str)>,
    ) -> Result<(), Failure> {
        let mut app = self.app.clone();
        let known = &mut app.metadata.annotations;
        known.extend(self.annotations(&source.target_revision, origin));
        match self.at {
            None => app.spec.source = Some(source),
            Some(at) => app.spec.sources[at] = source,
        }
        let request = ApplicationUpdateRequest {
            project: Some(app.spec.project.clone()),
            application: app,
            validate: Some(true),
        };
        let _: Application = client
            .unary("/application.ApplicationService/Update", request)
            .await?;
        Ok(())
    }

    fn annotations(
        &self,
        version: &str,
        origin: Option<(&Origin, &str)>,
    ) -> BTreeMap<String, String> {
        match origin {
            Some((origin, digest)) => {
                annotations(&called(&origin.repo), &origin.chart.name, version, digest)
            }
            // The others, if there are any, still hold.
            None => {
                let all = annotations("", self.name(), version, "");
                let stays = |key: &String| !key.ends_with("/repository");
                all.into_iter().filter(|(key, _)| stays(key)).collect()
            }
        }
    }
}
