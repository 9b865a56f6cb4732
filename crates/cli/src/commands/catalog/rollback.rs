//! `catalog rollback`: the version of a chart that an Application had before, with its values.

use super::{called, failed, write};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{
        app::{self, AppRef},
        connect, prompt,
    },
    output::{self, diff},
};
use std::sync::Arc;
use tiphys_api::{source::ApplicationSource, status::RevisionHistory};
use tiphys_catalog::{
    Store,
    release::{Chosen, Origin},
};

/// Go back to the version of the chart that an Application had before
///
/// The version and the values are those of its history. They are written into the Application, so
/// automated syncs keep them.
#[derive(clap::Args)]
pub struct Rollback {
    /// Name of the Application
    app: String,
    /// A version that it had [default: the one before]
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// The chart among several sources, counted from 1
    #[arg(long, value_name = "NUMBER")]
    source_position: Option<usize>,
    /// Namespace of the Application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Rollback {
    pub async fn run(self, store: Arc<Store>, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let app = app::get(&client, &app_ref, None).await?;
        let chosen = Chosen::one(&app, self.source_position).map_err(failed)?;
        let name = &app.metadata.name;
        let before = before(&app.status.history, chosen.source, self.to.as_deref());
        let Some(before) = before else {
            let what = match &self.to {
                Some(version) => format!("version {version:?}"),
                None => "another version".to_owned(),
            };
            return Err(Failure::error(format!(
                "application '{name}' never had {what} of this chart"
            )));
        };
        let (old, new) = (output::yaml(chosen.source)?, output::yaml(&before)?);
        output::print(&diff::normal(&old, &new));
        let version = before.target_revision.clone();
        let question = format!("Roll '{name}' back to {version}? (y/n) ");
        if !self.yes && !prompt::proceed(&question)? {
            return Err(Failure::error("nothing was changed"));
        }
        let origin = Origin::of(&store, &before).map_err(failed)?;
        let digest = origin
            .as_ref()
            .and_then(|origin| origin.installed(&version));
        let digest = digest.map_or(String::new(), |version| version.digest.clone());
        let known = origin
            .as_ref()
            .map(|origin| (origin, called(&origin.repo), digest));
        write(&client, &app, chosen.replaced(before, known.as_ref())).await?;
        output::print(&format!("application '{name}' rolled back to {version}\n"));
        Ok(())
    }
}

/// The newest source of the history with the same chart and another version, or with this one. A
/// range is what it was resolved to.
fn before(
    history: &[RevisionHistory],
    now: &ApplicationSource,
    version: Option<&str>,
) -> Option<ApplicationSource> {
    let was = history.iter().rev().flat_map(|entry| {
        let single = [(&entry.source, &entry.revision)].into_iter();
        let several = entry.sources.iter().zip(&entry.revisions);
        single.chain(several)
    });
    let mut same = was
        .filter(|(source, _)| source.chart == now.chart && source.repo_url == now.repo_url)
        .map(|(source, revision)| {
            let mut source = source.clone();
            if !revision.is_empty() {
                source.target_revision.clone_from(revision);
            }
            source
        });
    match version {
        Some(version) => same.find(|source| source.target_revision == version),
        None => same.find(|source| source.target_revision != now.target_revision),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_version_was_before() {
        let source = |chart: &str, target: &str| ApplicationSource {
            repo_url: "https://charts.example".to_owned(),
            chart: chart.to_owned(),
            target_revision: target.to_owned(),
            ..ApplicationSource::default()
        };
        let entry = |chart: &str, target: &str, revision: &str| RevisionHistory {
            source: source(chart, target),
            revision: revision.to_owned(),
            ..RevisionHistory::default()
        };
        let history = [
            entry("web", "1.x", "1.0.0"),
            entry("web", "1.1.0", "1.1.0"),
            entry("other", "9.0.0", "9.0.0"),
            entry("web", "2.0.0", "2.0.0"),
        ];
        for (now, to, wanted) in [
            ("2.0.0", None, Some("1.1.0")),
            // An upgrade that was not synced yet.
            ("3.0.0", None, Some("2.0.0")),
            ("2.0.0", Some("1.0.0"), Some("1.0.0")),
            ("2.0.0", Some("9.0.0"), None),
        ] {
            let found = before(&history, &source("web", now), to);
            let found = found.map(|source| source.target_revision);
            assert_eq!(found.as_deref(), wanted, "{now} {to:?}");
        }
        assert_eq!(before(&[], &source("web", "1.0.0"), None), None);
    }
}
