//! Gitea. Main functions: [`repositories`] and [`pull_requests`].

use super::{
    Account, CONCURRENT, Login, PullRequest, Repository, RepositoryId, Scm, ScmError, clone_url,
    has_all, http::Session, or_default, pages::Numbered,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::Deserialize;
use tiphys_api::application_set::hosts::{PullRequestGeneratorGitea, SCMProviderGeneratorGitea};

/// The most that Gitea gives unless its administrator says otherwise.
const PAGES: Numbered = Numbered {
    size: ("limit", 50),
};

#[derive(Deserialize)]
struct Repo {
    id: i64,
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    default_branch: String,
    #[serde(default, deserialize_with = "or_default")]
    ssh_url: String,
    #[serde(default, deserialize_with = "or_default")]
    html_url: String,
    #[serde(default, deserialize_with = "or_default")]
    archived: bool,
}

#[derive(Deserialize)]
struct Named {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    commit: Commit,
}

#[derive(Deserialize)]
struct Commit {
    id: String,
}

#[derive(Deserialize)]
struct Pull {
    number: i64,
    title: String,
    head: Side,
    base: Side,
    #[serde(default, deserialize_with = "or_default")]
    user: User,
    #[serde(default, deserialize_with = "or_default")]
    labels: Vec<Named>,
}

#[derive(Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    login: String,
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    settings: &SCMProviderGeneratorGitea,
) -> Result<Session<'a>, ScmError> {
    sign_in(scm, account, &settings.api)
}

fn sign_in<'a>(scm: &'a Scm, account: &Account, api: &str) -> Result<Session<'a>, ScmError> {
    let base = format!("{}/api/v1", api.trim_end_matches('/'));
    let mut session = Session::new(scm, account, &base)?;
    session.header("accept", "application/json")?;
    if let Login::Token(token) = &account.login {
        session.header("authorization", &format!("token {}", token.expose()))?;
    }
    Ok(session)
}

pub async fn repositories(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorGitea,
    protocol: &str,
) -> Result<Vec<Repository>, ScmError> {
    let owner = settings.owner.as_str();
    let path = ["orgs", owner, "repos"];
    let repos = session.list::<Repo>(&path, &[], PAGES).await?;
    let wanted = repos
        .into_iter()
        .filter(|repo| !(settings.exclude_archived_repos && repo.archived));
    let found = wanted.map(|repo| with_labels(session, owner, repo, protocol));
    stream::iter(found).buffered(CONCURRENT).try_collect().await
}

async fn with_labels(
    session: &Session<'_>,
    owner: &str,
    repo: Repo,
    protocol: &str,
) -> Result<Repository, ScmError> {
    let url = clone_url(protocol, "Gitea", (&repo.ssh_url, &repo.html_url))?.to_owned();
    let path = ["repos", owner, &repo.name, "labels"];
    let labels = session.list::<Named>(&path, &[], PAGES).await?;
    Ok(Repository {
        organization: owner.to_owned(),
        id: RepositoryId::Number(repo.id),
        url,
        branch: repo.default_branch,
        sha: String::new(),
        labels: labels.into_iter().map(|label| label.name).collect(),
        name: repo.name,
    })
}

pub async fn branches(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorGitea,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    let path = ["repos", settings.owner.as_str(), &of.name, "branches"];
    let branches = if settings.all_branches {
        session.list::<Branch>(&path, &[], PAGES).await?
    } else {
        let url = session.url(&[&path[..], &[&of.branch]].concat(), &[])?;
        vec![session.get::<Branch>(&url).await?.0]
    };
    let at = |branch: Branch| of.at(branch.name, branch.commit.id);
    Ok(branches.into_iter().map(at).collect())
}

pub async fn has_path(
    session: &Session<'_>,
    _: &SCMProviderGeneratorGitea,
    of: &Repository,
    path: &str,
) -> Result<bool, ScmError> {
    let mut parts = vec!["repos", of.organization.as_str(), &of.name, "contents"];
    parts.extend(path.split('/'));
    let url = session.url(&parts, &[("ref", &of.branch)])?;
    session.exists(&url).await
}

pub async fn pull_requests(
    scm: &Scm,
    account: &Account,
    settings: &PullRequestGeneratorGitea,
) -> Result<Vec<PullRequest>, ScmError> {
    let session = sign_in(scm, account, &settings.api)?;
    let path = ["repos", settings.owner.as_str(), &settings.repo, "pulls"];
    let pulls = session.list::<Pull>(&path, &[("state", "open")], PAGES);
    let shown = pulls.await?.into_iter().filter_map(|pull| {
        let labels: Vec<String> = pull.labels.into_iter().map(|label| label.name).collect();
        has_all(&labels, &settings.labels).then_some(PullRequest {
            number: pull.number,
            title: pull.title,
            branch: pull.head.name,
            target_branch: pull.base.name,
            head_sha: pull.head.sha,
            author: pull.user.login,
            labels: Some(labels).filter(|labels| !labels.is_empty()),
        })
    });
    Ok(shown.collect())
}
