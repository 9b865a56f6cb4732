//! The sources of an Application that others read files of: those with a `ref`.
//!
//! Main type: [`RefSources`]. The rules are Argo CD's, and the same for whoever asks.

use std::collections::BTreeMap;
use tiphys_api::{operation::RefTarget, repository::Repository, source::ApplicationSource};
use tiphys_repo::{RenderError, RepoError};

/// Why the `ref`s of an Application cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RefError {
    #[error("sources.ref {0} cannot contain any special characters except '_' and '-'")]
    Name(String),
    #[error("invalid sources: multiple sources had the same `ref` key")]
    Twice,
}

/// The sources that have a `ref`, by that name, with their positions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RefSources<'a>(BTreeMap<&'a str, (usize, &'a ApplicationSource)>);

impl<'a> RefSources<'a> {
    /// # Errors
    /// A name that files cannot be referred to with, or that two sources have.
    pub fn of(sources: &'a [ApplicationSource]) -> Result<Self, RefError> {
        let mut found = BTreeMap::new();
        let named = sources.iter().enumerate();
        for (i, source) in named.filter(|(_, source)| !source.ref_.is_empty()) {
            let name = source.ref_.as_str();
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
            if !name.chars().all(is_plain) {
                return Err(RefError::Name(name.to_owned()));
            }
            if found.insert(name, (i, source)).is_some() {
                return Err(RefError::Twice);
            }
        }
        Ok(Self(found))
    }

    /// Each with its position among the Application's sources.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &'a ApplicationSource)> {
        self.0.values().copied()
    }

    /// What requests name them by. `at`: the repository and the revision of each.
    pub fn targets(
        &self,
        mut at: impl FnMut(usize, &ApplicationSource) -> (Repository, String),
    ) -> BTreeMap<String, RefTarget> {
        let target = |(name, (i, source)): (&&str, &(usize, &ApplicationSource))| {
            let (repository, revision) = at(*i, source);
            let target = RefTarget {
                repo: Some(repository),
                target_revision: Some(revision),
                chart: Some(source.chart.clone()).filter(|chart| !chart.is_empty()),
            };
            ((*name).to_owned(), target)
        };
        self.0.iter().map(target).collect()
    }
}

/// Whether the target is a chart, of which no files can be read.
pub fn is_chart(target: &RefTarget) -> bool {
    target.chart.as_ref().is_some_and(|chart| !chart.is_empty())
}

/// Fails if a source reads files of one that is a chart.
pub fn no_charts<'a>(
    referred: impl IntoIterator<Item = &'a str>,
    refs: &BTreeMap<String, RefTarget>,
) -> Result<(), RepoError> {
    let mut targets = referred.into_iter().filter_map(|name| refs.get(name));
    if targets.any(is_chart) {
        let text = "source has a 'chart' field defined, but Helm charts are not yet not supported for 'ref' sources";
        return Err(RenderError::Source(text.to_owned()).into());
    }
    Ok(())
}
