//! Parses the payloads of all webhook providers into a [`Push`]. Missing or null fields count as
//! empty, a field of the wrong type refuses the request, and lists are truncated, files to
//! [`MAX_FILES`].

use super::{
    Refusal,
    provider::Provider,
    pull::{self, Pull},
    registry::{self, Pushed},
};
use http::HeaderMap;
use serde::{
    Deserialize, Deserializer,
    de::{DeserializeOwned, IgnoredAny, SeqAccess, Visitor},
};
use std::{fmt, marker::PhantomData};

/// Maximum number of files kept from a push. With more, the changed files count as unknown.
const MAX_FILES: usize = 100_000;
/// Maximum number of references and of clone URLs in one push.
const MAX_FEW: usize = 1_000;

/// The changed references of a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Push {
    /// The repository's web URLs.
    pub urls: Vec<String>,
    /// Branches and tags.
    pub revisions: Vec<String>,
    /// Whether the default branch may be among the revisions.
    pub head: bool,
    /// The changed files; empty if unknown.
    pub files: Vec<String>,
}

/// A parsed event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Push(Push),
    /// Concerns ApplicationSets only.
    Pull(Pull),
    Registry(Pushed),
}

/// Parses the payload; `None` if nothing changed that an Application or a set can follow.
pub fn read(
    provider: Provider,
    headers: &HeaderMap,
    content: &[u8],
) -> Result<Option<Event>, Refusal> {
    match provider {
        Provider::Ghcr => Ok(registry::ghcr(content)?.map(Event::Registry)),
        Provider::Harbor => Ok(registry::harbor(content)?.map(Event::Registry)),
        Provider::GitHub if provider.event(headers) == "pull_request" => {
            Ok(pull::github(content)?.map(Event::Pull))
        }
        Provider::GitLab if is_merge_request(provider.event(headers), content) => {
            Ok(pull::gitlab(content)?.map(Event::Pull))
        }
        Provider::AzureDevOps if is_azure_pull(content) => {
            Ok(pull::azure(content)?.map(Event::Pull))
        }
        _ => Ok(push(provider, headers, content)?.map(Event::Push)),
    }
}

fn push(provider: Provider, headers: &HeaderMap, content: &[u8]) -> Result<Option<Push>, Refusal> {
    let push = match (provider, provider.event(headers)) {
        (Provider::GitHub, "ping") | (Provider::BitbucketServer, "diagnostics:ping") => None,
        (Provider::GitHub | Provider::Gogs, _) => {
            Some(json::<Commits>(content)?.push(|c| &c.repository, |web| &web.html_url))
        }
        (Provider::GitLab, "System Hook") if !is_system_push(content)? => None,
        (Provider::GitLab, _) => {
            Some(json::<Commits>(content)?.push(|c| &c.project, |web| &web.web_url))
        }
        (Provider::AzureDevOps, _) => azure(content)?,
        (Provider::Bitbucket, _) => Some(bitbucket(content)?),
        (Provider::BitbucketServer, _) => Some(bitbucket_server(content)?),
        (Provider::Ghcr | Provider::Harbor, _) => None,
    };
    Ok(push.filter(|push| !push.urls.is_empty()))
}

pub fn json<T: DeserializeOwned>(content: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(content).map_err(|_| Refusal::Failed)
}

/// `main` of `refs/heads/main`.
pub fn revision(reference: &str) -> String {
    reference
        .splitn(3, '/')
        .last()
        .unwrap_or_default()
        .to_owned()
}

/// Treats null like a missing value.
pub fn or_default<'de, D: Deserializer<'de>, T: Deserialize<'de> + Default>(
    deserializer: D,
) -> Result<T, D::Error> {
    Option::<T>::deserialize(deserializer).map(Option::unwrap_or_default)
}

/// A list truncated to `MAX` entries.
struct List<T, const MAX: usize>(Vec<T>);

impl<T, const MAX: usize> Default for List<T, MAX> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<'de, T: Deserialize<'de>, const MAX: usize> Deserialize<'de> for List<T, MAX> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Items<T, const MAX: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MAX: usize> Visitor<'de> for Items<T, MAX> {
            type Value = Vec<T>;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Vec<T>, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < MAX {
                    match items.next_element()? {
                        Some(item) => kept.push(item),
                        None => return Ok(kept),
                    }
                }
                while items.next_element::<IgnoredAny>()?.is_some() {}
                Ok(kept)
            }
        }
        deserializer
            .deserialize_seq(Items::<T, MAX>(PhantomData))
            .map(Self)
    }
}

/// GitHub and Gogs (with `repository`), GitLab (with `project`): one reference, and the files
/// changed by its commits.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Commits {
    #[serde(rename = "ref", deserialize_with = "or_default")]
    reference: String,
    #[serde(deserialize_with = "or_default")]
    repository: Web,
    #[serde(deserialize_with = "or_default")]
    project: Web,
    #[serde(deserialize_with = "or_default")]
    commits: Files,
    /// GitLab only; higher than the number of listed commits if there are many.
    #[serde(deserialize_with = "or_default")]
    total_commits_count: u64,
}

impl Commits {
    fn push(mut self, of: impl Fn(&Self) -> &Web, url: impl Fn(&Web) -> &String) -> Push {
        let commits = std::mem::take(&mut self.commits);
        let (web, revision) = (of(&self), revision(&self.reference));
        let urls = Some(url(web))
            .filter(|url| !url.is_empty())
            .into_iter()
            .cloned()
            .collect();
        Push {
            urls,
            head: web.default_branch == revision,
            revisions: vec![revision],
            files: commits.known(self.total_commits_count),
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Web {
    #[serde(deserialize_with = "or_default")]
    html_url: String,
    #[serde(deserialize_with = "or_default")]
    web_url: String,
    #[serde(deserialize_with = "or_default")]
    default_branch: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Commit {
    #[serde(deserialize_with = "or_default")]
    added: List<String, MAX_FILES>,
    #[serde(deserialize_with = "or_default")]
    modified: List<String, MAX_FILES>,
    #[serde(deserialize_with = "or_default")]
    removed: List<String, MAX_FILES>,
}

/// The files of all commits.
#[derive(Default)]
struct Files {
    names: Vec<String>,
    commits: u64,
}

impl Files {
    /// The file names; empty if not all of them are known.
    fn known(self, commits: u64) -> Vec<String> {
        if self.names.len() >= MAX_FILES || self.commits < commits {
            Vec::new()
        } else {
            self.names
        }
    }
}

impl<'de> Deserialize<'de> for Files {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct All;
        impl<'de> Visitor<'de> for All {
            type Value = Files;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list of commits")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut commits: A) -> Result<Files, A::Error> {
                let mut files = Files::default();
                while let Some(commit) = commits.next_element::<Option<Commit>>()? {
                    let Commit {
                        added,
                        modified,
                        removed,
                    } = commit.unwrap_or_default();
                    files
                        .names
                        .extend(added.0.into_iter().chain(modified.0).chain(removed.0));
                    files.names.truncate(MAX_FILES);
                    files.commits += 1;
                }
                Ok(files)
            }
        }
        deserializer.deserialize_seq(All)
    }
}

/// Merge requests have a hook of their own, and the system's.
fn is_merge_request(event: &str, content: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct System {
        #[serde(deserialize_with = "or_default")]
        object_kind: String,
    }
    let of_system = || json::<System>(content).is_ok_and(|s| s.object_kind == "merge_request");
    event == "Merge Request Hook" || event == "System Hook" && of_system()
}

/// Azure DevOps names the event in the content alone.
fn is_azure_pull(content: &[u8]) -> bool {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(rename = "eventType", deserialize_with = "or_default")]
        event_type: String,
    }
    json::<Event>(content).is_ok_and(|event| event.event_type.starts_with("git.pullrequest."))
}

/// GitLab's system hooks report many other events, which are ignored.
fn is_system_push(content: &[u8]) -> Result<bool, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct System {
        #[serde(deserialize_with = "or_default")]
        object_kind: String,
        #[serde(deserialize_with = "or_default")]
        event_name: String,
    }
    let System {
        object_kind,
        event_name,
    } = json(content)?;
    let is_push = |kind: &str| matches!(kind, "push" | "tag_push");
    let known = || {
        ["project_", "user_", "key_", "group_"]
            .iter()
            .any(|family| event_name.starts_with(family))
    };
    match is_push(&object_kind) || is_push(&event_name) {
        true => Ok(true),
        false if known() => Ok(false),
        false => Err(Refusal::Failed),
    }
}

fn azure(content: &[u8]) -> Result<Option<Push>, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(rename = "eventType", deserialize_with = "or_default")]
        event_type: String,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct GitPush {
        #[serde(deserialize_with = "or_default")]
        resource: Resource,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Resource {
        #[serde(deserialize_with = "or_default")]
        ref_updates: List<Named, MAX_FEW>,
        #[serde(deserialize_with = "or_default")]
        repository: Repository,
    }
    #[derive(Default, Deserialize)]
    #[serde(default, rename_all = "camelCase")]
    struct Repository {
        #[serde(deserialize_with = "or_default")]
        remote_url: String,
        #[serde(deserialize_with = "or_default")]
        default_branch: String,
    }
    let event: Event = json(content).map_err(|_| Refusal::Payload)?;
    match event.event_type.as_str() {
        "git.push" => {}
        "build.complete" => return Ok(None),
        _ => return Err(Refusal::Failed),
    }
    let Resource {
        ref_updates,
        repository,
    } = json::<GitPush>(content)?.resource;
    let head = ref_updates
        .0
        .iter()
        .any(|update| update.name == repository.default_branch);
    let revisions = ref_updates
        .0
        .iter()
        .map(|update| revision(&update.name))
        .collect();
    Ok(Some(Push {
        urls: vec![repository.remote_url],
        revisions,
        head,
        files: Vec::new(),
    }))
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    #[serde(deserialize_with = "or_default")]
    name: String,
    #[serde(deserialize_with = "or_default")]
    href: String,
}

/// The payload names neither the default branch nor the changed files.
fn bitbucket(content: &[u8]) -> Result<Push, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(deserialize_with = "or_default")]
        repository: Repository,
        #[serde(deserialize_with = "or_default")]
        push: Changes,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Repository {
        #[serde(deserialize_with = "or_default")]
        links: Links,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Links {
        #[serde(deserialize_with = "or_default")]
        html: Named,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Changes {
        #[serde(deserialize_with = "or_default")]
        changes: List<Change, MAX_FEW>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Change {
        /// Null when the branch was deleted.
        #[serde(deserialize_with = "or_default")]
        new: Named,
    }
    let event: Event = json(content)?;
    let revisions = event
        .push
        .changes
        .0
        .into_iter()
        .map(|change| change.new.name)
        .collect();
    Ok(Push {
        urls: vec![event.repository.links.html.href],
        revisions,
        head: true,
        files: Vec::new(),
    })
}

/// Like Bitbucket's, with several clone URLs.
fn bitbucket_server(content: &[u8]) -> Result<Push, Refusal> {
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Event {
        #[serde(deserialize_with = "or_default")]
        repository: Repository,
        #[serde(deserialize_with = "or_default")]
        changes: List<Change, MAX_FEW>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Repository {
        #[serde(deserialize_with = "or_default")]
        links: Links,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Links {
        #[serde(deserialize_with = "or_default")]
        clone: List<Named, MAX_FEW>,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Change {
        #[serde(rename = "ref", deserialize_with = "or_default")]
        reference: Reference,
    }
    #[derive(Default, Deserialize)]
    #[serde(default)]
    struct Reference {
        #[serde(deserialize_with = "or_default")]
        id: String,
    }
    let event: Event = json(content)?;
    let links = event
        .repository
        .links
        .clone
        .0
        .into_iter()
        .filter(|link| matches!(link.name.as_str(), "http" | "ssh"));
    let revisions = event
        .changes
        .0
        .iter()
        .map(|change| revision(&change.reference.id))
        .collect();
    Ok(Push {
        urls: links.map(|link| link.href).collect(),
        revisions,
        head: true,
        files: Vec::new(),
    })
}
