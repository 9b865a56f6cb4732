//! GitHub and GitHub Enterprise. Main functions: [`repositories`] and [`pull_requests`].

use super::{
    Account, Login, PullRequest, Repository, RepositoryId, Scm, ScmError, clone_url, has_all,
    http::Session, or_default, pages::Numbered,
};
use crate::{RepoAccess, tokens::Identity};
use reqwest::Url;
use serde::Deserialize;
use tiphys_api::application_set::hosts::{PullRequestGeneratorGithub, SCMProviderGeneratorGithub};

const PUBLIC: &str = "https://api.github.com";
const PAGES: Numbered = Numbered {
    size: ("per_page", 100),
};

#[derive(Deserialize)]
struct Repo {
    id: i64,
    name: String,
    owner: User,
    #[serde(default, deserialize_with = "or_default")]
    default_branch: String,
    #[serde(default, deserialize_with = "or_default")]
    ssh_url: String,
    #[serde(default, deserialize_with = "or_default")]
    clone_url: String,
    #[serde(default, deserialize_with = "or_default")]
    archived: bool,
    #[serde(default, deserialize_with = "or_default")]
    topics: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    login: String,
    #[serde(rename = "type")]
    kind: String,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    commit: Commit,
}

#[derive(Deserialize)]
struct Commit {
    sha: String,
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
    labels: Vec<Label>,
}

#[derive(Deserialize)]
struct Side {
    #[serde(rename = "ref")]
    name: String,
    sha: String,
}

#[derive(Deserialize)]
struct Label {
    #[serde(default, deserialize_with = "or_default")]
    name: String,
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    settings: &SCMProviderGeneratorGithub,
) -> Result<Session<'a>, ScmError> {
    sign_in(scm, account, &settings.api, &settings.organization).await
}

/// `owner`: whose installation of an App is used.
async fn sign_in<'a>(
    scm: &'a Scm,
    account: &Account,
    api: &str,
    owner: &str,
) -> Result<Session<'a>, ScmError> {
    let named = match &account.login {
        _ if !api.is_empty() => api,
        Login::GitHubApp { api, .. } if !api.is_empty() => api,
        _ => &account.api,
    };
    let base = base(named)?;
    let mut session = Session::new(scm, account, &base)?;
    session.header("accept", "application/vnd.github+json")?;
    session.header("x-github-api-version", "2022-11-28")?;
    match &account.login {
        Login::Anonymous => {}
        Login::Token(token) => {
            session.header("authorization", &format!("Bearer {}", token.expose()))?;
        }
        Login::Password { username, secret } => session.basic(username, secret.expose())?,
        Login::GitHubApp {
            id,
            installation,
            key,
            ..
        } => {
            let app = Identity::GitHubApp {
                id: *id,
                installation: *installation,
                key: key.clone(),
                api: base.clone(),
            };
            let access = at_owner(account, &base, owner, app)?;
            session.installed(access, owner).await?;
        }
    }
    Ok(session)
}

/// How the token of an App's installation at an owner is got.
fn at_owner(
    account: &Account,
    base: &str,
    owner: &str,
    app: Identity,
) -> Result<RepoAccess, ScmError> {
    // The owner of this repository is whose installation is looked for.
    let mut url = Url::parse(base).map_err(|e| ScmError::settings(format!("{base:?}: {e}")))?;
    url.set_path(&format!("/{owner}/repositories"));
    Ok(RepoAccess {
        url: url.to_string(),
        identity: Some(app),
        ca_data: account.ca_data.clone(),
        insecure: account.insecure,
        proxy: account.proxy.clone(),
        no_proxy: account.no_proxy.clone(),
        ..RepoAccess::default()
    })
}

/// The address of the API; that of GitHub Enterprise is below the named one.
fn base(api: &str) -> Result<String, ScmError> {
    let api = api.trim_end_matches('/');
    if api.is_empty() {
        return Ok(PUBLIC.to_owned());
    }
    let url = Url::parse(api).map_err(|_| ScmError::settings(format!("{api:?} is no address")))?;
    let host = url.host_str().unwrap_or_default();
    let is_api = host.starts_with("api.") || host.contains(".api.") || api.ends_with("/api/v3");
    Ok(match is_api {
        true => api.to_owned(),
        false => format!("{api}/api/v3"),
    })
}

pub async fn repositories(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorGithub,
    protocol: &str,
) -> Result<Vec<Repository>, ScmError> {
    let owner = settings.organization.as_str();
    let path = ["orgs", owner, "repos"];
    let repos = match session.list::<Repo>(&path, &[], PAGES).await {
        Ok(repos) => repos,
        Err(error) if error.is_not_found() && is_user(session, owner).await? => {
            let (path, query) = (["users", owner, "repos"], [("type", "owner")]);
            session.list::<Repo>(&path, &query, PAGES).await?
        }
        Err(error) => return Err(error),
    };
    let mut found = Vec::new();
    for repo in repos {
        let url = clone_url(protocol, "GitHub", (&repo.ssh_url, &repo.clone_url))?.to_owned();
        if settings.exclude_archived_repos && repo.archived {
            continue;
        }
        found.push(Repository {
            organization: repo.owner.login,
            name: repo.name,
            id: RepositoryId::Number(repo.id),
            url,
            branch: repo.default_branch,
            sha: String::new(),
            labels: repo.topics,
        });
    }
    Ok(found)
}

/// Whether an account is no organization. One that is hidden must not be taken for a user: only its
/// public repositories would be listed.
async fn is_user(session: &Session<'_>, owner: &str) -> Result<bool, ScmError> {
    let url = session.url(&["users", owner], &[])?;
    match session.get::<User>(&url).await {
        Ok((user, _)) => Ok(user.kind == "User"),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

pub async fn branches(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorGithub,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    let (owner, name) = (of.organization.as_str(), of.name.as_str());
    let branches = if settings.all_branches {
        let path = ["repos", owner, name, "branches"];
        session.list::<Branch>(&path, &[], PAGES).await?
    } else {
        let url = session.url(&["repos", owner, name, "branches", &of.branch], &[])?;
        match session.get::<Branch>(&url).await {
            Ok((branch, _)) => vec![branch],
            // That the repository is hidden reads otherwise.
            Err(error) if error.is_not_found() && error.says("Branch not found") => Vec::new(),
            Err(error) => return Err(error),
        }
    };
    let at = |branch: Branch| of.at(branch.name, branch.commit.sha);
    Ok(branches.into_iter().map(at).collect())
}

pub async fn has_path(
    session: &Session<'_>,
    _: &SCMProviderGeneratorGithub,
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
    settings: &PullRequestGeneratorGithub,
) -> Result<Vec<PullRequest>, ScmError> {
    let session = sign_in(scm, account, &settings.api, &settings.owner).await?;
    let path = ["repos", settings.owner.as_str(), &settings.repo, "pulls"];
    let pulls = session.list::<Pull>(&path, &[], PAGES).await?;
    let shown = pulls.into_iter().filter_map(|pull| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_the_api_is() {
        for (named, api) in [
            ("", PUBLIC),
            ("https://git.example.com", "https://git.example.com/api/v3"),
            ("https://git.example.com/", "https://git.example.com/api/v3"),
            (
                "https://git.example.com/api/v3/",
                "https://git.example.com/api/v3",
            ),
            ("https://api.github.com/", "https://api.github.com"),
            ("https://x.api.ghe.example", "https://x.api.ghe.example"),
        ] {
            assert_eq!(base(named).ok().as_deref(), Some(api), "{named}");
        }
        assert!(base("git.example.com").is_err());
    }
}
