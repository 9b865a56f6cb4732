//! Events about pull requests, which concern ApplicationSets only. Main type: [`Pull`].

use super::{
    Refusal,
    payload::{json, or_default},
};
use serde::Deserialize;
use tiphys_api::application_set::hosts::PullRequestGenerator;

/// A pull request was opened, changed or closed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Pull {
    GitHub {
        owner: String,
        repo: String,
        /// The host of its API.
        host: String,
    },
    GitLab {
        /// Its number.
        project: String,
        /// Its path with the groups.
        path: String,
        host: String,
    },
    AzureDevOps {
        project: String,
        repo: String,
    },
}

impl Pull {
    /// Whether a generator lists the pull requests of this repository.
    pub fn concerns(&self, generator: &PullRequestGenerator) -> bool {
        match self {
            Self::GitHub { owner, repo, host } => generator.github.as_ref().is_some_and(|its| {
                its.owner.eq_ignore_ascii_case(owner)
                    && its.repo.eq_ignore_ascii_case(repo)
                    && is_at(&its.api, "https://api.github.com/", host)
            }),
            Self::GitLab {
                project,
                path,
                host,
            } => generator.gitlab.as_ref().is_some_and(|its| {
                (its.project == *project || its.project.eq_ignore_ascii_case(path))
                    && is_at(&its.api, "https://gitlab.com/", host)
            }),
            Self::AzureDevOps { project, repo } => generator
                .azuredevops
                .as_ref()
                .is_some_and(|its| its.project == *project && its.repo == *repo),
        }
    }
}

/// Whether the address of an API, or the public one, is on a host.
fn is_at(api: &str, public: &str, host: &str) -> bool {
    let api = if api.is_empty() { public } else { api };
    host_of(api).is_some_and(|named| named.eq_ignore_ascii_case(host))
}

/// The host of a URL, without user and port.
fn host_of(url: &str) -> Option<String> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = rest.split(['/', '?', '#']).next()?;
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    let host = host.split(':').next()?;
    (!host.is_empty()).then(|| host.to_owned())
}

/// GitHub's event `pull_request`; `None` if nothing changed that a generator sees.
pub fn github(content: &[u8]) -> Result<Option<Pull>, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(deserialize_with = "or_default")]
        action: String,
        #[serde(deserialize_with = "or_default")]
        repository: Repository,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Repository {
        #[serde(deserialize_with = "or_default")]
        name: String,
        #[serde(deserialize_with = "or_default")]
        url: String,
        #[serde(deserialize_with = "or_default")]
        owner: Owner,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Owner {
        #[serde(deserialize_with = "or_default")]
        login: String,
    }
    const ACTIONS: [&str; 6] = [
        "opened",
        "closed",
        "synchronize",
        "labeled",
        "reopened",
        "unlabeled",
    ];
    let Event { action, repository } = json(content)?;
    let host = host_of(&repository.url);
    Ok(host
        .filter(|_| ACTIONS.contains(&action.as_str()))
        .map(|host| Pull::GitHub {
            owner: repository.owner.login,
            repo: repository.name,
            host,
        }))
}

/// GitLab's merge requests.
pub fn gitlab(content: &[u8]) -> Result<Option<Pull>, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(deserialize_with = "or_default")]
        object_attributes: Attributes,
        #[serde(deserialize_with = "or_default")]
        project: Project,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Attributes {
        #[serde(deserialize_with = "or_default")]
        action: String,
        #[serde(deserialize_with = "or_default")]
        target_project_id: i64,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Project {
        #[serde(deserialize_with = "or_default")]
        web_url: String,
        #[serde(deserialize_with = "or_default")]
        path_with_namespace: String,
    }
    const ACTIONS: [&str; 5] = ["open", "close", "reopen", "update", "merge"];
    let event: Event = json(content)?;
    let attributes = event.object_attributes;
    let host = host_of(&event.project.web_url);
    Ok(host
        .filter(|_| ACTIONS.contains(&attributes.action.as_str()))
        .map(|host| Pull::GitLab {
            project: attributes.target_project_id.to_string(),
            path: event.project.path_with_namespace,
            host,
        }))
}

/// Azure DevOps' pull requests, of any kind of event about them.
pub fn azure(content: &[u8]) -> Result<Option<Pull>, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(deserialize_with = "or_default")]
        resource: Resource,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Resource {
        #[serde(deserialize_with = "or_default")]
        repository: Repository,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Repository {
        #[serde(deserialize_with = "or_default")]
        name: String,
        #[serde(deserialize_with = "or_default")]
        project: Project,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Project {
        #[serde(deserialize_with = "or_default")]
        name: String,
    }
    let Repository { name, project } = json::<Event>(content)?.resource.repository;
    Ok((!name.is_empty()).then_some(Pull::AzureDevOps {
        project: project.name,
        repo: name,
    }))
}
