//! The way back to a version of a chart that an Application had, and what that changes.
//!
//! Main functions: [`before`] and [`compared`].

use super::{Chosen, Facts, Manifests, Origin, difference};
use crate::{CatalogError, blocking, sync::CatalogSync};
use tiphys_api::{source::ApplicationSource, status::RevisionHistory};
use tiphys_gocompat::semver::Version;

/// The newest source of the Application's history with the same chart and another version than it
/// has now, or with this one. A range is what it was resolved to.
///
/// # Errors
/// It never had one; its own version is not known; or its history does not tell which of several
/// sources with this chart is meant.
pub fn before(
    chosen: &Chosen<'_>,
    version: Option<&str>,
) -> Result<ApplicationSource, CatalogError> {
    let name = &chosen.app.metadata.name;
    let found = match version {
        Some(version) => had_before(chosen, |revision| revision == version)?,
        None => {
            let now = now(chosen)?;
            had_before(chosen, |revision| revision != now)?
        }
    };
    found.ok_or_else(|| {
        let what = match version {
            Some(version) => format!("version {version:?}"),
            None => "another version".to_owned(),
        };
        CatalogError::Invalid(format!(
            "application '{name}' never had {what} of this chart"
        ))
    })
}

/// The version that the source has now: the one it asks for, even if that was not synced yet, or
/// the one that its range was resolved to.
fn now<'a>(chosen: &Chosen<'a>) -> Result<&'a str, CatalogError> {
    let wanted = &chosen.source.target_revision;
    if Version::parse(wanted).is_ok() {
        return Ok(wanted);
    }
    match chosen.revision {
        "" => Err(CatalogError::Invalid(format!(
            "what {wanted:?} of application '{}' stands for is not known: say which version to go \
             back to",
            chosen.app.metadata.name
        ))),
        revision => Ok(revision),
    }
}

fn had_before(
    chosen: &Chosen<'_>,
    is_wanted: impl Fn(&str) -> bool,
) -> Result<Option<ApplicationSource>, CatalogError> {
    let (app, now) = (chosen.app, chosen.source);
    let is_same =
        |source: &ApplicationSource| source.chart == now.chart && source.repo_url == now.repo_url;
    let namesakes = app.spec.sources.iter().filter(|s| is_same(s)).count();
    for entry in app.status.history.iter().rev() {
        let has_places = chosen.at.is_some() && entry.sources.len() == app.spec.sources.len();
        let all = revisions(entry);
        let same: Vec<_> = all
            .iter()
            .enumerate()
            .filter(|(at, _)| !has_places || Some(*at) == chosen.at)
            .map(|(_, source)| source)
            .filter(|source| is_same(source))
            .collect();
        let Some(found) = same
            .iter()
            .find(|source| is_wanted(&source.target_revision))
        else {
            continue;
        };
        if !has_places && (namesakes > 1 || same.len() > 1) {
            return Err(CatalogError::Invalid(format!(
                "application '{}' has or had several sources with this chart, and its history does \
                 not tell which of them is meant",
                app.metadata.name
            )));
        }
        return Ok(Some((*found).clone()));
    }
    Ok(None)
}

/// The sources of an entry of the history, each with the version that it was resolved to.
fn revisions(entry: &RevisionHistory) -> Vec<ApplicationSource> {
    let resolved = |source: &ApplicationSource, revision: Option<&String>| {
        let mut source = source.clone();
        if let Some(revision) = revision.filter(|revision| !revision.is_empty()) {
            source.target_revision.clone_from(revision);
        }
        source
    };
    if entry.sources.is_empty() {
        return vec![resolved(&entry.source, Some(&entry.revision))];
    }
    let several = entry.sources.iter().enumerate();
    several
        .map(|(at, source)| resolved(source, entry.revisions.get(at)))
        .collect()
}

/// The difference of the manifests of two sources, and why there is none where one of them cannot
/// be rendered here.
pub async fn compared(
    visitor: &CatalogSync,
    origin: &Origin,
    sources: [ApplicationSource; 2],
    facts: &Facts,
) -> (Option<String>, Vec<String>) {
    let (mut sides, mut notes) = (Vec::new(), Vec::new());
    for source in sources {
        match manifests(visitor, origin, source, facts.clone()).await {
            Ok(side) => sides.push(side),
            Err(e) => notes.push(e.to_string()),
        }
    }
    let difference = match &*sides {
        [now, before] => Some(difference(now, before)),
        _ => None,
    };
    (difference, notes)
}

async fn manifests(
    visitor: &CatalogSync,
    origin: &Origin,
    source: ApplicationSource,
    facts: Facts,
) -> Result<Manifests, CatalogError> {
    let revision = &source.target_revision;
    let version = origin.installed(revision).ok_or_else(|| {
        CatalogError::NotFound(format!("version {revision:?} of {:?}", origin.chart.name))
    })?;
    let archive = visitor.archive(&origin.chart, version).await?;
    let rendered = blocking(move || Manifests::render(&archive, &source, &facts)).await?;
    Ok(rendered.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_api::Application;

    fn source(chart: &str, target: &str) -> ApplicationSource {
        ApplicationSource {
            repo_url: "https://charts.example".to_owned(),
            chart: chart.to_owned(),
            target_revision: target.to_owned(),
            ..ApplicationSource::default()
        }
    }

    fn entry(chart: &str, target: &str, revision: &str) -> RevisionHistory {
        RevisionHistory {
            source: source(chart, target),
            revision: revision.to_owned(),
            ..RevisionHistory::default()
        }
    }

    /// An entry of sources, each told from the others by its path.
    fn entries(sources: &[(&str, &str, &str)]) -> RevisionHistory {
        RevisionHistory {
            sources: several(sources),
            revisions: sources.iter().map(|(_, to, _)| (*to).to_owned()).collect(),
            ..RevisionHistory::default()
        }
    }

    fn several(sources: &[(&str, &str, &str)]) -> Vec<ApplicationSource> {
        let sources = sources.iter().map(|(chart, to, path)| ApplicationSource {
            path: (*path).to_owned(),
            ..source(chart, to)
        });
        sources.collect()
    }

    /// The version that a source goes back to, and its path.
    fn found(
        app: &Application,
        position: Option<usize>,
        version: Option<&str>,
    ) -> Result<(String, String), String> {
        let chosen = Chosen::one(app, position).expect("a chart");
        let source = before(&chosen, version).map_err(|e| e.to_string())?;
        Ok((source.target_revision, source.path))
    }

    #[test]
    fn which_version_was_before() {
        let history = vec![
            entry("web", "1.x", "1.0.0"),
            entry("web", "1.x", "1.1.0"),
            entry("other", "9.0.0", "9.0.0"),
            entry("web", "2.0.0", "2.0.0"),
        ];
        for (now, resolved, to, wanted) in [
            ("2.0.0", "2.0.0", None, Some("1.1.0")),
            // An upgrade that was not synced yet, compared or not.
            ("3.0.0", "3.0.0", None, Some("2.0.0")),
            ("3.0.0", "2.0.0", None, Some("2.0.0")),
            // A range is not what was before what it stands for.
            ("2.x", "2.0.0", None, Some("1.1.0")),
            ("2.x", "2.1.0", None, Some("2.0.0")),
            ("2.x", "", None, None),
            ("2.x", "", Some("1.1.0"), Some("1.1.0")),
            ("2.0.0", "2.0.0", Some("1.0.0"), Some("1.0.0")),
            ("2.0.0", "2.0.0", Some("9.0.0"), None),
        ] {
            let mut app = Application::default();
            app.spec.source = Some(source("web", now));
            resolved.clone_into(&mut app.status.sync.revision);
            app.status.history.clone_from(&history);
            let found = found(&app, None, to).map(|(version, _)| version);
            assert_eq!(found.ok().as_deref(), wanted, "{now} {resolved} {to:?}");
        }
        let mut app = Application::default();
        app.spec.source = Some(source("web", "1.x"));
        "1.1.0".clone_into(&mut app.status.sync.revision);
        app.status.history = vec![entry("web", "1.x", "1.1.0")];
        let never = found(&app, None, None).expect_err("it had one version only");
        assert!(never.contains("never had another version"), "{never}");
    }

    #[test]
    fn a_source_gets_its_own_values_back() {
        let mut app = Application::default();
        app.spec.sources = several(&[("web", "2.0.0", "blue"), ("web", "2.0.0", "green")]);
        app.status.history = vec![
            entries(&[("web", "1.0.0", "blue"), ("web", "1.1.0", "green")]),
            entries(&[("web", "2.0.0", "blue"), ("web", "2.0.0", "green")]),
        ];
        for (position, wanted) in [(1, ("1.0.0", "blue")), (2, ("1.1.0", "green"))] {
            let found = found(&app, Some(position), None).expect("it had one");
            assert_eq!((found.0.as_str(), found.1.as_str()), wanted);
        }
        let other = found(&app, Some(1), Some("1.1.0"));
        other.expect_err("only the other source had it");

        // Places of another number of sources are others.
        app.status.history = vec![entries(&[
            ("api", "7.0.0", ""),
            ("web", "1.0.0", "blue"),
            ("web", "1.1.0", "green"),
        ])];
        let unclear = found(&app, Some(2), None).expect_err("two could be meant");
        assert!(unclear.contains("does not tell which"), "{unclear}");
        app.spec.sources = several(&[("web", "2.0.0", "blue"), ("api", "7.0.0", "")]);
        let unclear = found(&app, Some(1), None).expect_err("two could be meant");
        assert!(unclear.contains("does not tell which"), "{unclear}");
        app.status.history = vec![entry("web", "1.0.0", "1.0.0")];
        let (version, _) = found(&app, Some(1), None).expect("there is only one");
        assert_eq!(version, "1.0.0");
    }
}
