//! What generators ask of the outside, and its answers.
//!
//! Main types: [`Need`] and [`Facts`]. Generating is pure: a caller runs it, fetches what is named
//! in `Outcome::Needs`, adds the answers and runs it again. An answer is either complete or an
//! error; an error is never an empty answer.

use crate::error::{GenerateError, NeedError};
use serde_json::Value;
use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet},
};
use tiphys_api::application_set::hosts::{PullRequestGenerator, SCMProviderGenerator};

/// A question. Two equal questions have the same answer within one reconcile.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Need {
    /// The cluster Secrets of the controller's namespace.
    Clusters,
    /// Whether an AppProject of this name exists in the controller's namespace.
    Project(String),
    /// The directories of a tree that contain files, and their parents.
    Directories(Tree),
    /// The files of a tree that a pattern selects, with their content.
    Files { tree: Tree, pattern: String },
    /// The data of a ConfigMap in the controller's namespace.
    ConfigMap(String),
    /// The objects behind a clusterDecisionResource in the controller's namespace.
    Decisions(Decisions),
    /// What a plugin answers to a body; the ConfigMap says where it listens.
    Plugin { config_map: String, body: String },
    /// The repositories of a provider, on their default branch.
    Repositories(Provider),
    /// The branches of one of them.
    Branches {
        provider: Provider,
        repository: Repository,
    },
    /// Whether a path exists on the branch of a repository.
    HasPath {
        provider: Provider,
        repository: Repository,
        path: String,
    },
    /// The open pull requests of a repository.
    PullRequests(Provider),
}

impl Need {
    /// The provider that is asked.
    pub fn provider(&self) -> Option<&Provider> {
        match self {
            Self::Repositories(provider)
            | Self::Branches { provider, .. }
            | Self::HasPath { provider, .. }
            | Self::PullRequests(provider) => Some(provider),
            _ => None,
        }
    }
}

/// Refuses to ask a provider at an address that is not in a list; an empty list permits all.
/// Addresses are compared as they are written, as Argo CD does, except for a slash at the end.
pub fn permitted(need: &Need, allowed: &[String]) -> Result<(), NeedError> {
    let Some(provider) = need.provider() else {
        return Ok(());
    };
    let address = match need {
        Need::PullRequests(_) => address_of_pull_requests(&provider.pull_requests()),
        _ => address_of_scm(&provider.scm()),
    };
    let plain = |address: &str| address.trim_end_matches('/').to_owned();
    let is_it = |permitted: &String| plain(permitted) == plain(&address);
    if address.is_empty() || allowed.is_empty() || allowed.iter().any(is_it) {
        return Ok(());
    }
    Err(NeedError::failed(format!(
        "scm provider not allowed: scm provider {address:?} not allowed, must use one of the \
         following: {}",
        allowed.join(", ")
    )))
}

/// The address of the provider that is used where several are named.
fn address_of_scm(generator: &SCMProviderGenerator) -> String {
    let of = generator;
    let named = [
        of.github.as_ref().map(|its| &its.api),
        of.gitlab.as_ref().map(|its| &its.api),
        of.gitea.as_ref().map(|its| &its.api),
        of.bitbucket_server.as_ref().map(|its| &its.api),
        of.azure_dev_ops.as_ref().map(|its| &its.api),
    ];
    named
        .into_iter()
        .flatten()
        .next()
        .cloned()
        .unwrap_or_default()
}

fn address_of_pull_requests(generator: &PullRequestGenerator) -> String {
    let of = generator;
    let named = [
        of.github.as_ref().map(|its| &its.api),
        of.gitlab.as_ref().map(|its| &its.api),
        of.gitea.as_ref().map(|its| &its.api),
        of.bitbucket_server.as_ref().map(|its| &its.api),
        of.bitbucket.as_ref().map(|its| &its.api),
        of.azuredevops.as_ref().map(|its| &its.api),
    ];
    named
        .into_iter()
        .flatten()
        .next()
        .cloned()
        .unwrap_or_default()
}

/// A tree of a Git repository.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Tree {
    pub repo_url: String,
    pub revision: String,
    /// The project whose credentials may be used; empty if it is not known yet, then only those of
    /// no project.
    pub project: String,
}

/// Which objects a clusterDecisionResource names.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Decisions {
    pub group: String,
    pub version: String,
    /// The plural name.
    pub resource: String,
    /// The name of one object; empty if a selector chooses.
    pub name: String,
    /// A LabelSelector as JSON; `{}` with a name.
    pub selector: String,
}

/// The settings of a provider, as the JSON of its generator without template, values and filters,
/// which do not concern it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Provider(String);

impl Provider {
    pub(crate) fn of_scm(generator: &SCMProviderGenerator) -> Self {
        Self::of(&SCMProviderGenerator {
            filters: Vec::new(),
            requeue_after_seconds: None,
            template: Default::default(),
            values: BTreeMap::new(),
            ..generator.clone()
        })
    }

    pub(crate) fn of_pull_requests(generator: &PullRequestGenerator) -> Self {
        Self::of(&PullRequestGenerator {
            filters: Vec::new(),
            requeue_after_seconds: None,
            template: Default::default(),
            values: BTreeMap::new(),
            continue_on_repo_not_found_error: false,
            ..generator.clone()
        })
    }

    fn of(settings: &impl serde::Serialize) -> Self {
        Self(serde_json::to_string(settings).unwrap_or_default())
    }

    /// The settings of an scmProvider generator.
    pub fn scm(&self) -> SCMProviderGenerator {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The settings of a pullRequest generator.
    pub fn pull_requests(&self) -> PullRequestGenerator {
        serde_json::from_str(&self.0).unwrap_or_default()
    }
}

/// A cluster Secret.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClusterSecret {
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub name: String,
    pub server: String,
    pub project: Option<String>,
}

/// A branch of a repository, as a provider lists it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Repository {
    pub organization: String,
    pub repository: String,
    pub repository_id: RepositoryId,
    pub url: String,
    pub branch: String,
    pub sha: String,
    pub labels: Vec<String>,
}

/// What a provider numbers or names its repositories with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RepositoryId {
    #[default]
    None,
    Number(i64),
    Text(String),
}

/// An open pull request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PullRequest {
    pub number: i64,
    pub title: String,
    pub branch: String,
    pub target_branch: String,
    pub head_sha: String,
    pub author: String,
    /// `None` if the provider gives no list, which JSON shows as null.
    pub labels: Option<Vec<String>>,
}

/// A complete answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Answer {
    Clusters(Vec<ClusterSecret>),
    /// The project exists.
    Project,
    Directories(Vec<String>),
    Files(BTreeMap<String, Vec<u8>>),
    ConfigMap(BTreeMap<String, String>),
    Decisions(Vec<Value>),
    /// The body of a plugin's answer with status 200.
    Plugin(Vec<u8>),
    Repositories(Vec<Repository>),
    HasPath(bool),
    PullRequests(Vec<PullRequest>),
}

/// The answers so far, and which needs had none.
#[derive(Default)]
pub struct Facts {
    answers: HashMap<Need, Result<Answer, NeedError>>,
    missing: RefCell<BTreeSet<Need>>,
    used: RefCell<HashSet<Need>>,
}

impl Facts {
    /// Adds an answer.
    pub fn add(&mut self, need: Need, answer: Result<Answer, NeedError>) {
        self.answers.insert(need, answer);
    }

    /// The answers that were asked for.
    pub fn into_answers(self) -> HashMap<Need, Result<Answer, NeedError>> {
        let used = self.used.into_inner();
        let answers = self.answers.into_iter();
        answers.filter(|(need, _)| used.contains(need)).collect()
    }

    /// The answer to a need; without one, the need is remembered.
    pub(crate) fn ask(&self, need: Need) -> Result<&Answer, GenerateError> {
        match self.answers.get(&need) {
            Some(answer) => {
                self.used.borrow_mut().insert(need);
                answer.as_ref().map_err(|e| e.clone().into())
            }
            None => {
                self.missing.borrow_mut().insert(need);
                Err(GenerateError::Missing)
            }
        }
    }

    /// The needs without answers since the last call.
    pub fn missing(&self) -> Vec<Need> {
        self.missing.take().into_iter().collect()
    }
}

/// The error of an answer of another kind than the need, which only a fault of the caller causes.
pub(crate) fn unexpected() -> GenerateError {
    GenerateError::content("the answer is not of the asked kind")
}
