//! The recorded conversations with hosts of Git (kind `unit`, operations `scm_*` and `pr_*`): what
//! Argo CD made of a host's answers. Main type: [`Recorded`].

use super::server::{Asked, Reply, Server, decoded, pairs};
use base64::Engine as _;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use tiphys_api::ApplicationSet;
use tiphys_appset::unit::{self, Param};
use tiphys_appset::{Answer, Facts, Need, NeedError, PullRequest, Repository, RepositoryId};
use tiphys_gocompat::sprig::Sources;
use tiphys_repo::{
    Repos, Secret,
    scm::{Account, Login},
};
use tiphys_sources::ask_host;

/// How the recordings name their server.
const RECORDED: &str = "http://scm.example.test";
/// How large a page is is ours to say, and that the first one is the first.
const SIZES: [&str; 3] = ["limit", "per_page", "pagelen"];

type Verdict = Result<(), String>;

/// Whether a case is a conversation with a host.
pub fn is_one(case: &Value) -> bool {
    let op = case["op"].as_str().unwrap_or_default();
    op.starts_with("scm_") || op.starts_with("pr_")
}

/// Runs cases, one after another.
pub struct Recorded {
    runtime: tokio::runtime::Runtime,
    repos: Repos,
}

impl Recorded {
    pub fn new() -> Self {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .expect("a runtime");
        Self {
            runtime,
            // Nothing is written there.
            repos: Repos::new(std::env::temp_dir().join("tiphys-no-repositories")),
        }
    }

    /// `case`: with its fixtures in their places.
    pub fn run(&self, case: &Value) -> Verdict {
        self.runtime.block_on(async {
            let exchanges = case["exchanges"].as_array().cloned().unwrap_or_default();
            let strange = Arc::new(Mutex::new(Vec::new()));
            let (played, seen) = (exchanges.clone(), Arc::clone(&strange));
            let server = Server::start(move |own, asked| {
                play(&played, own, asked).unwrap_or_else(|| {
                    let line = format!("{} {} {:?}", asked.method, asked.path, asked.query);
                    seen.lock().expect("no panic").push(line);
                    Reply::new(500, "")
                })
            })
            .await;
            let world = World {
                repos: &self.repos,
                provider: &case["provider"],
                account: account(&exchanges, &server.url),
                url: &server.url,
            };
            let verdict = world.run(case).await;
            let is_silent = server.asked().is_empty() && !exchanges.is_empty();
            match strange.lock().expect("no panic").first() {
                Some(line) => Err(format!("nothing is recorded for {line}")),
                None if is_silent => Err("nothing is asked".to_owned()),
                None => verdict,
            }
        })
    }
}

/// The recorded answer to a request.
fn play(exchanges: &[Value], own: &str, asked: &Asked) -> Option<Reply> {
    let plain = |mut query: BTreeMap<String, String>| {
        query.retain(|name, value| {
            !SIZES.contains(&name.as_str()) && (name.as_str(), value.as_str()) != ("page", "1")
        });
        query
    };
    let path = |path: &str| decoded(path.trim_end_matches('/'));
    let found = exchanges.iter().find(|exchange| {
        exchange["method"] == *asked.method
            && asked.body.is_empty()
            && path(&text(&exchange["path"])) == path(&asked.path)
            && plain(pairs(&text(&exchange["query"]))) == plain(asked.query.clone())
    })?;
    for name in ["Authorization", "Private-Token"] {
        if let Some(wanted) = found[name].as_str()
            && asked.header(&name.to_ascii_lowercase()) != wanted
        {
            return Some(Reply::new(401, "{}"));
        }
    }
    let status = found["status"].as_u64().and_then(|n| u16::try_from(n).ok());
    let mut reply = Reply::new(status?, text(&found["body"]).replace(RECORDED, own));
    for (name, value) in found["headers"].as_object().into_iter().flatten() {
        reply = reply.header(
            &name.to_ascii_lowercase(),
            text(value).replace(RECORDED, own),
        );
    }
    Some(reply)
}

/// As whom the recorded client asked.
fn account(exchanges: &[Value], url: &str) -> Account {
    let first = exchanges.first().unwrap_or(&Value::Null);
    let authorization = text(&first["Authorization"]);
    let token = first["Private-Token"].as_str();
    let token = token.or_else(|| authorization.strip_prefix("Bearer "));
    let login = match (token, authorization.strip_prefix("Basic ")) {
        (Some(token), _) => Login::Token(Secret::new(token)),
        (None, Some(both)) => {
            let both = base64::engine::general_purpose::STANDARD.decode(both);
            let both = String::from_utf8(both.expect("base64")).expect("text");
            let (username, password) = both.split_once(':').expect("a name and a password");
            Login::Password {
                username: username.to_owned(),
                secret: Secret::new(password),
            }
        }
        (None, None) => Login::Anonymous,
    };
    Account {
        login,
        api: url.to_owned(),
        ..Account::default()
    }
}

struct World<'c> {
    repos: &'c Repos,
    provider: &'c Value,
    account: Account,
    url: &'c str,
}

impl World<'_> {
    async fn run(&self, case: &Value) -> Verdict {
        let op = text(&case["op"]);
        let ours = match op.as_str() {
            "scm_repos" | "pr_filtered" => self.params(case).await,
            _ => self.direct(case, &op).await,
        };
        let expected = match &case["result"] {
            Value::Array(items) if op == "pr_filtered" || op == "pr_list" => {
                items.iter().map(pull).collect()
            }
            Value::Array(items) => items.iter().map(repository).collect(),
            Value::Null => json!([]),
            other => other.clone(),
        };
        match (ours, case["error"].as_str()) {
            (Err(_), Some(_)) => Ok(()),
            (Ok(ours), None) if ours == expected => Ok(()),
            (Ok(ours), None) => Err(format!("{ours} instead of {expected}")),
            (Ok(ours), Some(error)) => Err(format!("{ours} instead of the error {error}")),
            (Err(why), None) => Err(format!("the error {why}")),
        }
    }

    /// One question.
    async fn direct(&self, case: &Value, op: &str) -> Result<Value, String> {
        let (mut needs, set) = (Vec::new(), self.set(case)?);
        let facts = Facts::default();
        // The first need of the set knows the provider.
        let _ = unit::params(&set, &facts, &mut sources());
        needs.extend(facts.missing());
        let need = needs.pop().ok_or("the set needs nothing")?;
        let provider = need.provider().cloned().ok_or("it asks no host")?;
        let of = &case["repo"];
        let need = match op {
            "scm_list_repos" | "pr_list" => need,
            "scm_branches" => Need::Branches {
                provider,
                repository: listed(of),
            },
            "scm_has_path" => Need::HasPath {
                provider,
                repository: listed(of),
                path: text(&case["path"]),
            },
            other => return Err(format!("nothing can run {other}")),
        };
        let answer = self.answer(&need).await.map_err(|e| e.to_string())?;
        Ok(match answer {
            Answer::Repositories(found) => found.iter().map(shown).collect(),
            Answer::PullRequests(found) => found.iter().map(shown_pull).collect(),
            Answer::HasPath(has) => has.into(),
            _ => return Err("another kind of answer".to_owned()),
        })
    }

    /// The parameters of the generator, with its filters.
    async fn params(&self, case: &Value) -> Result<Value, String> {
        let (set, mut facts) = (self.set(case)?, Facts::default());
        loop {
            match unit::params(&set, &facts, &mut sources()) {
                Ok(sets) => {
                    let sets = sets.into_iter().map(|set| Param::Map(set).to_json());
                    return Ok(sets.map(|set| of_params(&set)).collect());
                }
                Err(error) if error.is_missing() => {
                    for need in facts.missing() {
                        let answer = self.answer(&need).await;
                        facts.add(need, answer);
                    }
                }
                Err(error) => return Err(error.to_string()),
            }
        }
    }

    /// A set with the recorded provider.
    fn set(&self, case: &Value) -> Result<ApplicationSet, String> {
        let (its, url) = (self.provider, self.url);
        let (mut host, of_pulls) = match text(&its["type"]).as_str() {
            "*scm_provider.GithubProvider" => (
                json!({"github": {
                    "organization": its["organization"], "api": url,
                    "allBranches": its["allBranches"],
                    "excludeArchivedRepos": its["excludeArchivedRepos"],
                }}),
                false,
            ),
            "*scm_provider.GitlabProvider" => (
                json!({"gitlab": {
                    "group": its["organization"], "api": url, "topic": its["topic"],
                    "allBranches": its["allBranches"],
                    "includeSubgroups": its["includeSubgroups"],
                    "includeSharedProjects": its["includeSharedProjects"],
                    "includeArchivedRepos": its["includeArchivedRepos"],
                }}),
                false,
            ),
            "*scm_provider.GiteaProvider" => (
                json!({"gitea": {
                    "owner": its["owner"], "api": url, "allBranches": its["allBranches"],
                    "excludeArchivedRepos": its["excludeArchivedRepos"],
                }}),
                false,
            ),
            "*scm_provider.BitBucketCloudProvider" => (
                json!({"bitbucket": {
                    "owner": its["owner"], "user": "", "allBranches": its["allBranches"],
                }}),
                false,
            ),
            "*scm_provider.BitbucketServerProvider" => (
                json!({"bitbucketServer": {
                    "project": its["projectKey"], "api": url, "allBranches": its["allBranches"],
                }}),
                false,
            ),
            "*pull_request.BitbucketService" => (
                json!({"bitbucketServer": {
                    "project": its["projectKey"], "repo": its["repositorySlug"], "api": url,
                }}),
                true,
            ),
            "*pull_request.BitbucketCloudService" => (
                json!({"bitbucket": {
                    "owner": its["owner"], "repo": its["repositorySlug"], "api": url,
                }}),
                true,
            ),
            "*pull_request.GitLabService" => (
                json!({"gitlab": {
                    "project": its["project"], "api": url, "labels": its["labels"],
                    "pullRequestState": its["pullRequestState"],
                }}),
                true,
            ),
            "*scm_provider.MockProvider" => (json!({"github": {"organization": "o"}}), false),
            "*pull_request.FakeService" => (json!({"github": {"owner": "o", "repo": "r"}}), true),
            other => return Err(format!("nothing plays {other}")),
        };
        host["filters"] = case["filters"].clone();
        let generator = match of_pulls {
            true => json!({"pullRequest": host}),
            false => {
                host["cloneProtocol"] = text(&case["clone_protocol"]).into();
                json!({"scmProvider": host})
            }
        };
        serde_json::from_value(json!({
            "metadata": {"name": "set", "namespace": "argocd"},
            "spec": {"goTemplate": of_pulls, "generators": [generator], "template": {}},
        }))
        .map_err(|e| e.to_string())
    }

    /// What the host answers, or the list that takes its place.
    async fn answer(&self, need: &Need) -> Result<Answer, NeedError> {
        let listed_here = self.provider["repos"].as_array();
        if let Some(pulls) = self.provider["pull_requests"].as_array() {
            return Ok(Answer::PullRequests(
                pulls.iter().map(listed_pull).collect(),
            ));
        }
        let Some(repos) = listed_here else {
            return ask_host(self.repos, need, &self.account).await;
        };
        let all: Vec<Repository> = repos.iter().map(listed).collect();
        let mut found: Vec<Repository> = Vec::new();
        for repo in all {
            let is_new = match need {
                Need::Repositories(_) => found.iter().all(|f| f.repository != repo.repository),
                Need::Branches { repository, .. } => {
                    repo.repository == repository.repository
                        && found.iter().all(|f| f.branch != repo.branch)
                }
                Need::HasPath {
                    repository, path, ..
                } => return Ok(Answer::HasPath(repository.repository == *path)),
                _ => return Err(NeedError::failed("not in a list")),
            };
            if is_new {
                found.push(repo);
            }
        }
        Ok(Answer::Repositories(found))
    }
}

fn sources() -> Sources {
    Sources {
        random: Box::new(|bytes| bytes.fill(7)),
        now: Default::default(),
        zone: || unreachable!("no case needs a zone"),
    }
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

fn texts(value: &Value) -> Vec<String> {
    value.as_array().into_iter().flatten().map(text).collect()
}

fn listed(repo: &Value) -> Repository {
    Repository {
        organization: text(&repo["Organization"]),
        repository: text(&repo["Repository"]),
        repository_id: match &repo["RepositoryId"] {
            Value::Number(id) => RepositoryId::Number(id.as_i64().unwrap_or_default()),
            Value::String(id) => RepositoryId::Text(id.clone()),
            _ => RepositoryId::None,
        },
        url: text(&repo["URL"]),
        branch: text(&repo["Branch"]),
        sha: text(&repo["SHA"]),
        labels: texts(&repo["Labels"]),
    }
}

fn listed_pull(pull: &Value) -> PullRequest {
    PullRequest {
        number: pull["Number"].as_i64().unwrap_or_default(),
        title: text(&pull["Title"]),
        branch: text(&pull["Branch"]),
        target_branch: text(&pull["TargetBranch"]),
        head_sha: text(&pull["HeadSHA"]),
        author: text(&pull["Author"]),
        labels: pull["Labels"].is_array().then(|| texts(&pull["Labels"])),
    }
}

/// Ours and theirs in one form.
fn shown(repo: &Repository) -> Value {
    let id = match &repo.repository_id {
        RepositoryId::None => Value::Null,
        RepositoryId::Number(number) => (*number).into(),
        RepositoryId::Text(text) => text.as_str().into(),
    };
    json!([
        repo.organization,
        repo.repository,
        id,
        repo.url,
        repo.branch,
        repo.sha,
        repo.labels.join(",")
    ])
}

fn repository(theirs: &Value) -> Value {
    shown(&listed(theirs))
}

fn shown_pull(pull: &PullRequest) -> Value {
    json!([
        pull.number.to_string(),
        pull.title,
        pull.branch,
        pull.target_branch,
        pull.head_sha,
        pull.author,
        pull.labels
    ])
}

fn pull(theirs: &Value) -> Value {
    shown_pull(&listed_pull(theirs))
}

fn of_params(set: &Value) -> Value {
    let fields = |names: &[&str]| names.iter().map(|name| set[*name].clone()).collect();
    match set.get("head_sha") {
        Some(_) => fields(&[
            "number",
            "title",
            "branch",
            "target_branch",
            "head_sha",
            "author",
            "labels",
        ]),
        None => fields(&[
            "organization",
            "repository",
            "repository_id",
            "url",
            "branch",
            "sha",
            "labels",
        ]),
    }
}
