//! The sources of an Application or of an operation, their revisions, and the manifests rendered
//! from them.
//!
//! Main types: [`RequestedSources`] and [`RenderedSources`]. Nothing is loaded here.

use std::sync::Arc;
use tiphys_api::{
    Application,
    operation::{SyncOperation, SyncOperationResult},
    source::ApplicationSource,
};
use tiphys_apimachinery::Kept;
use tiphys_engine::types::{Condition, ConditionType};
use tiphys_repo::Manifests;
use tiphys_sources::SignatureTrust;

/// The sources of an Application or of an operation.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequestedSources {
    pub list: Vec<ApplicationSource>,
    /// Whether they are in `spec.sources`, even if there is only one.
    pub several: bool,
}

impl RequestedSources {
    pub fn of(app: &Application) -> Result<Self, String> {
        Self::new(app.spec.source.as_ref(), &app.spec.sources)
            .ok_or_else(|| "spec.source is missing".to_owned())
    }

    /// The sources of the operation, else those of the Application.
    pub fn of_operation(operation: &SyncOperation, app: &Application) -> Result<Self, String> {
        Self::new(operation.source.as_ref(), &operation.sources).map_or_else(|| Self::of(app), Ok)
    }

    /// The sources and revisions recorded by a sync that was started. `None`: it did not get that
    /// far.
    pub fn resumed(result: &SyncOperationResult) -> Option<(Self, Vec<String>)> {
        let one = Some(&result.source).filter(|source| **source != ApplicationSource::default());
        let wanted = Self::new(one, &result.sources)?;
        let revisions = if wanted.several {
            result.revisions.clone()
        } else {
            vec![result.revision.clone()]
        };
        let resolved = revisions.len() == wanted.list.len()
            && revisions.iter().all(|revision| !revision.is_empty());
        resolved.then_some((wanted, revisions))
    }

    fn new(one: Option<&ApplicationSource>, several: &[ApplicationSource]) -> Option<Self> {
        match (several, one) {
            ([], None) => None,
            ([], Some(one)) => Some(Self {
                list: vec![one.clone()],
                several: false,
            }),
            (several, _) => Some(Self {
                list: several.to_vec(),
                several: true,
            }),
        }
    }

    /// The revision of each source: the operation's if it names them, else the source's own.
    pub fn revisions(&self, operation: &SyncOperation) -> Vec<String> {
        let one = std::slice::from_ref(&operation.revision);
        let named = if self.several {
            operation.revisions.as_slice()
        } else {
            one
        };
        let revision = |(i, source): (usize, &ApplicationSource)| {
            named
                .get(i)
                .filter(|r| !r.is_empty())
                .unwrap_or(&source.target_revision)
                .clone()
        };
        self.list.iter().enumerate().map(revision).collect()
    }
}

/// The rendered revisions in the status's form: `revision` for one source, `revisions` for several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Revisions {
    pub one: String,
    pub several: Vec<String>,
}

impl Revisions {
    pub fn new(wanted: &RequestedSources, revisions: Vec<String>) -> Self {
        if wanted.several {
            return Self {
                one: String::new(),
                several: revisions,
            };
        }
        Self {
            one: revisions.into_iter().next().unwrap_or_default(),
            several: Vec::new(),
        }
    }
}

/// For display: several revisions are separated by spaces.
pub fn shown(revision: &str, revisions: &[String]) -> String {
    if revisions.is_empty() {
        revision.to_owned()
    } else {
        revisions.join(" ")
    }
}

/// The revisions of the last comparison, one per source.
pub fn compared(app: &Application, wanted: &RequestedSources) -> Vec<String> {
    let sync = &app.status.sync;
    if wanted.several {
        sync.revisions.clone()
    } else {
        vec![sync.revision.clone()]
    }
}

/// The desired state of an Application according to Git.
#[derive(Clone)]
pub struct RenderedSources {
    pub wanted: RequestedSources,
    /// Of each source.
    pub manifests: Vec<Arc<Manifests>>,
    /// What is wrong with the signatures of their commits: nothing of them may be synced then.
    pub denials: Vec<String>,
    /// What that was decided by.
    pub trust: SignatureTrust,
}

impl RenderedSources {
    pub fn revisions(&self) -> Revisions {
        Revisions::new(
            &self.wanted,
            self.manifests.iter().map(|m| m.revision.clone()).collect(),
        )
    }

    /// The types of the sources, in order.
    pub fn types(&self) -> Vec<String> {
        self.manifests
            .iter()
            .map(|m| m.source_type.clone())
            .collect()
    }

    /// A digest that is equal for equal objects.
    pub fn digest(&self) -> String {
        self.manifests
            .iter()
            .map(|m| m.digest.as_str())
            .collect::<Vec<_>>()
            .join(" ")
    }

    pub fn objects(&self) -> Vec<Arc<Kept>> {
        self.manifests
            .iter()
            .flat_map(|m| m.objects.iter().cloned())
            .collect()
    }

    /// A condition for each source whose commit is not signed as demanded.
    pub fn denied(&self) -> Vec<Condition> {
        self.denials
            .iter()
            .map(|why| Condition::new(ConditionType::ComparisonError, why.clone()))
            .collect()
    }

    pub fn is_whole(&self) -> bool {
        self.manifests.iter().all(|m| m.errors.is_empty())
    }

    /// The errors of the renderers, as one condition each.
    pub fn broken(&self) -> Vec<Condition> {
        let all = self.manifests.len();
        let of_source = |(i, m): (usize, &Arc<Manifests>)| {
            let text = |e: &tiphys_render::ManifestError| {
                format!(
                    "Failed to load target state: failed to generate manifest for source {} of {all}: {e}",
                    i + 1
                )
            };
            m.errors
                .iter()
                .map(|e| Condition::new(ConditionType::ComparisonError, text(e)))
                .collect::<Vec<_>>()
        };
        self.manifests
            .iter()
            .enumerate()
            .flat_map(of_source)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn wanted(spec: &Value) -> RequestedSources {
        let app: Application =
            serde_json::from_value(json!({"spec": spec})).expect("an Application");
        RequestedSources::of(&app).expect("sources")
    }

    #[test]
    fn an_operations_revisions_come_first() {
        let source =
            |revision: &str| json!({"repoURL": "r", "targetRevision": revision, "path": "p"});
        let operation: SyncOperation =
            serde_json::from_value(json!({"revision": "one", "revisions": ["first", ""]}))
                .expect("an operation");
        let single = wanted(&json!({"source": source("a")}));
        assert_eq!(
            (single.several, single.revisions(&operation)),
            (false, vec!["one".to_owned()])
        );
        assert_eq!(single.revisions(&SyncOperation::default()), ["a"]);
        let several =
            wanted(&json!({"source": source("x"), "sources": [source("a"), source("b")]}));
        assert_eq!(
            (several.several, several.revisions(&operation)),
            (true, vec!["first".to_owned(), "b".to_owned()])
        );
        let revisions = Revisions::new(&several, vec!["1".into(), "2".into()]);
        assert_eq!(
            (shown(&revisions.one, &revisions.several), revisions.one),
            ("1 2".to_owned(), String::new())
        );
    }
}
