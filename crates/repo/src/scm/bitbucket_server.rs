//! Bitbucket Server and Data Center. Main functions: [`repositories`] and [`pull_requests`].

use super::{
    Account, CONCURRENT, Login, PullRequest, Repository, RepositoryId, Scm, ScmError, clone_url,
    http::Session, or_default,
};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use reqwest::Url;
use serde::{Deserialize, de::DeserializeOwned};
use tiphys_api::application_set::hosts::{
    PullRequestGeneratorBitbucketServer, SCMProviderGeneratorBitbucketServer,
};

const LIMIT: &str = "100";

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<T> {
    values: Vec<T>,
    is_last_page: bool,
    next_page_start: Option<u64>,
}

#[derive(Deserialize)]
struct Repo {
    id: i64,
    name: String,
    #[serde(default, deserialize_with = "or_default")]
    slug: String,
    project: Project,
    #[serde(default, deserialize_with = "or_default")]
    links: Links,
}

#[derive(Deserialize)]
struct Project {
    key: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Links {
    #[serde(deserialize_with = "or_default")]
    clone: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    name: String,
    href: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    display_id: String,
    latest_commit: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    id: i64,
    title: String,
    from_ref: Branch,
    to_ref: Target,
    #[serde(default, deserialize_with = "or_default")]
    author: Author,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Target {
    display_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Author {
    user: User,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct User {
    name: String,
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    settings: &SCMProviderGeneratorBitbucketServer,
) -> Result<Session<'a>, ScmError> {
    sign_in(scm, account, &settings.api)
}

fn sign_in<'a>(scm: &'a Scm, account: &Account, api: &str) -> Result<Session<'a>, ScmError> {
    let named = api.trim_end_matches('/');
    let named = named.strip_suffix("/rest").unwrap_or(named);
    let mut session = Session::new(scm, account, &format!("{named}/rest/api/1.0"))?;
    session.header("accept", "application/json")?;
    // Without these, the server takes it for a forged request of a browser.
    session.header("x-atlassian-token", "no-check")?;
    session.header("x-requested-with", "XMLHttpRequest")?;
    match &account.login {
        Login::Password { username, secret } => session.basic(username, secret.expose())?,
        Login::Token(token) => {
            session.header("authorization", &format!("Bearer {}", token.expose()))?;
        }
        _ => {}
    }
    Ok(session)
}

async fn pages<T: DeserializeOwned + Send + 'static>(
    session: &Session<'_>,
    path: &[&str],
) -> Result<Vec<T>, ScmError> {
    let split = |url: &Url, page: Page<T>| {
        let next = match (page.is_last_page, page.next_page_start) {
            (true, _) => None,
            (false, Some(start)) => {
                let start = start.to_string();
                Some(session.url(path, &[("limit", LIMIT), ("start", &start)])?)
            }
            (false, None) => return Err(session.wrong(url, "the next page has no number")),
        };
        Ok((page.values, next))
    };
    let first = session.url(path, &[("limit", LIMIT)])?;
    session.follow(first, split).await
}

/// The name of a repository in paths, which may differ from the one that people see.
fn slug(of: &Repository) -> &str {
    let last = of.url.rsplit('/').next().unwrap_or_default();
    let last = last.strip_suffix(".git").unwrap_or(last);
    if last.is_empty() { &of.name } else { last }
}

async fn default_branch(
    session: &Session<'_>,
    project: &str,
    slug: &str,
) -> Result<Option<Branch>, ScmError> {
    let path = ["projects", project, "repos", slug, "branches", "default"];
    let url = session.url(&path, &[])?;
    match session.get_optional::<Branch>(&url).await {
        Ok((branch, _)) => Ok(branch),
        // One is set that does not exist.
        Err(error) if error.is_not_found() => Ok(None),
        Err(error) => Err(error),
    }
}

pub async fn repositories(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorBitbucketServer,
    protocol: &str,
) -> Result<Vec<Repository>, ScmError> {
    let path = ["projects", settings.project.as_str(), "repos"];
    let repos = pages::<Repo>(session, &path).await?;
    // Their list does not name the default branches.
    let found = repos
        .into_iter()
        .map(|repo| with_branch(session, repo, protocol));
    let found = stream::iter(found).buffered(CONCURRENT);
    let found: Vec<Option<Repository>> = found.try_collect().await?;
    Ok(found.into_iter().flatten().collect())
}

async fn with_branch(
    session: &Session<'_>,
    repo: Repo,
    protocol: &str,
) -> Result<Option<Repository>, ScmError> {
    let link = |name: &str| {
        let mut links = repo.links.clone.iter();
        let link = links.find(|link| link.name == name);
        link.map(|link| link.href.as_str()).unwrap_or_default()
    };
    let urls = (link("ssh"), link("http"));
    let url = clone_url(protocol, "Bitbucket Server", urls)?.to_owned();
    let slug = match repo.slug.as_str() {
        "" => &repo.name,
        slug => slug,
    };
    let branch = default_branch(session, &repo.project.key, slug).await?;
    Ok(branch.map(|branch| Repository {
        organization: repo.project.key,
        name: repo.name,
        id: RepositoryId::Number(repo.id),
        url,
        branch: branch.display_id,
        sha: branch.latest_commit,
        labels: Vec::new(),
    }))
}

pub async fn branches(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorBitbucketServer,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    let (project, slug) = (of.organization.as_str(), slug(of));
    let branches = if settings.all_branches {
        pages::<Branch>(session, &["projects", project, "repos", slug, "branches"]).await?
    } else {
        let branch = default_branch(session, project, slug).await?;
        branch.into_iter().collect()
    };
    let at = |branch: Branch| of.at(branch.display_id, branch.latest_commit);
    Ok(branches.into_iter().map(at).collect())
}

pub async fn has_path(
    session: &Session<'_>,
    _: &SCMProviderGeneratorBitbucketServer,
    of: &Repository,
    path: &str,
) -> Result<bool, ScmError> {
    let (project, slug) = (of.organization.as_str(), slug(of));
    let mut parts = vec!["projects", project, "repos", slug, "browse"];
    parts.extend(path.split('/'));
    let query = [
        ("at", of.branch.as_str()),
        ("limit", LIMIT),
        ("type", "true"),
    ];
    let url = session.url(&parts, &query)?;
    session.exists(&url).await
}

pub async fn pull_requests(
    scm: &Scm,
    account: &Account,
    settings: &PullRequestGeneratorBitbucketServer,
) -> Result<Vec<PullRequest>, ScmError> {
    let session = sign_in(scm, account, &settings.api)?;
    let (project, repo) = (settings.project.as_str(), settings.repo.as_str());
    let path = ["projects", project, "repos", repo, "pull-requests"];
    let pulls = pages::<Pull>(&session, &path).await?;
    let shown = pulls.into_iter().map(|pull| PullRequest {
        number: pull.id,
        title: pull.title,
        branch: pull.from_ref.display_id,
        target_branch: pull.to_ref.display_id,
        head_sha: pull.from_ref.latest_commit,
        author: pull.author.user.name,
        // Its API has no labels here.
        labels: Some(Vec::new()),
    });
    Ok(shown.collect())
}
