//! Bitbucket Cloud. Main functions: [`repositories`] and [`pull_requests`].

use super::{
    Account, Login, PullRequest, Repository, RepositoryId, Scm, ScmError, http::Session, or_default,
};
use reqwest::Url;
use serde::{Deserialize, de::DeserializeOwned};
use tiphys_api::application_set::hosts::{
    PullRequestGeneratorBitbucket, SCMProviderGeneratorBitbucket,
};

const PUBLIC: &str = "https://api.bitbucket.org/2.0";

#[derive(Deserialize)]
struct Page<T> {
    values: Vec<T>,
    #[serde(default, deserialize_with = "or_default")]
    next: String,
}

#[derive(Deserialize)]
struct Repo {
    slug: String,
    #[serde(default, deserialize_with = "or_default")]
    uuid: String,
    links: Links,
    /// Null if the repository is empty, or has no branch of the name that is set.
    #[serde(default, deserialize_with = "or_default")]
    mainbranch: Named,
}

#[derive(Deserialize)]
struct Links {
    clone: Vec<Link>,
}

#[derive(Deserialize)]
struct Link {
    name: String,
    href: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    target: Target,
}

#[derive(Deserialize)]
struct Target {
    hash: String,
}

#[derive(Deserialize)]
struct Pull {
    id: i64,
    title: String,
    source: Source,
    destination: Destination,
    #[serde(default, deserialize_with = "or_default")]
    author: Author,
}

#[derive(Deserialize)]
struct Source {
    branch: Named,
    commit: Target,
}

#[derive(Deserialize)]
struct Destination {
    branch: Named,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Author {
    #[serde(deserialize_with = "or_default")]
    nickname: String,
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    _: &SCMProviderGeneratorBitbucket,
) -> Result<Session<'a>, ScmError> {
    sign_in(scm, account, "")
}

fn sign_in<'a>(scm: &'a Scm, account: &Account, api: &str) -> Result<Session<'a>, ScmError> {
    let named = [api, &account.api, PUBLIC];
    let base = named.into_iter().find(|api| !api.is_empty());
    let mut session = Session::new(scm, account, base.unwrap_or_default())?;
    session.header("accept", "application/json")?;
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
    first: Url,
) -> Result<Vec<T>, ScmError> {
    let split = |url: &Url, page: Page<T>| {
        let next = match page.next.as_str() {
            "" => None,
            next => Some(session.same_origin(url, next)?),
        };
        Ok((page.values, next))
    };
    session.follow(first, split).await
}

pub async fn repositories(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorBitbucket,
    protocol: &str,
) -> Result<Vec<Repository>, ScmError> {
    let owner = settings.owner.as_str();
    let query = [("role", "member"), ("pagelen", "100")];
    let first = session.url(&["repositories", owner], &query)?;
    let protocol = if protocol.is_empty() { "ssh" } else { protocol };
    let mut found = Vec::new();
    for repo in pages::<Repo>(session, first).await? {
        let mut links = repo.links.clone.into_iter();
        let link = links.find(|link| link.name == protocol).ok_or_else(|| {
            ScmError::settings(format!(
                "error fetching clone url for repo {}: unknown clone protocol for Bitbucket cloud \
                 {protocol}",
                repo.slug
            ))
        })?;
        if repo.mainbranch.name.is_empty() && !settings.all_branches {
            if has_branches(session, owner, &repo.slug).await? {
                return Err(no_main_branch(owner, &repo.slug));
            }
            continue;
        }
        found.push(Repository {
            organization: owner.to_owned(),
            name: repo.slug,
            id: RepositoryId::Text(repo.uuid),
            url: link.href,
            branch: repo.mainbranch.name,
            sha: String::new(),
            labels: Vec::new(),
        });
    }
    Ok(found)
}

/// Whether a repository has any branches: one that is not empty may still have no main branch.
async fn has_branches(session: &Session<'_>, owner: &str, slug: &str) -> Result<bool, ScmError> {
    let path = ["repositories", owner, slug, "refs", "branches"];
    let url = session.url(&path, &[("pagelen", "1")])?;
    let (page, _) = session.get::<Page<Named>>(&url).await?;
    Ok(!page.values.is_empty())
}

/// If it were left out, what was generated for it would be deleted.
fn no_main_branch(owner: &str, slug: &str) -> ScmError {
    ScmError::settings(format!(
        "repository {owner}/{slug} has branches, but no main branch: set its main branch on \
         Bitbucket, or allBranches in the generator"
    ))
}

pub async fn branches(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorBitbucket,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    let owner = settings.owner.as_str();
    let path = ["repositories", owner, &of.name, "refs", "branches"];
    let branches = if settings.all_branches {
        let first = session.url(&path, &[("pagelen", "100")])?;
        pages::<Branch>(session, first).await?
    } else {
        // Bitbucket documents no escape for the slashes of a name.
        let name: Vec<&str> = of.branch.split('/').collect();
        let url = session.url(&[&path[..], &name[..]].concat(), &[])?;
        vec![session.get::<Branch>(&url).await?.0]
    };
    let at = |branch: Branch| of.at(branch.name, branch.target.hash);
    Ok(branches.into_iter().map(at).collect())
}

pub async fn has_path(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorBitbucket,
    of: &Repository,
    path: &str,
) -> Result<bool, ScmError> {
    let owner = settings.owner.as_str();
    let mut parts = vec!["repositories", owner, &of.name, "src", &of.sha];
    parts.extend(path.split('/'));
    let url = session.url(&parts, &[("format", "meta")])?;
    session.exists(&url).await
}

pub async fn pull_requests(
    scm: &Scm,
    account: &Account,
    settings: &PullRequestGeneratorBitbucket,
) -> Result<Vec<PullRequest>, ScmError> {
    let session = sign_in(scm, account, &settings.api)?;
    let (owner, repo) = (settings.owner.as_str(), settings.repo.as_str());
    let path = ["repositories", owner, repo, "pullrequests"];
    let first = session.url(&path, &[("pagelen", "50")])?;
    let pulls = pages::<Pull>(&session, first).await?;
    let shown = pulls.into_iter().map(|pull| PullRequest {
        number: pull.id,
        title: pull.title,
        branch: pull.source.branch.name,
        target_branch: pull.destination.branch.name,
        head_sha: pull.source.commit.hash,
        author: pull.author.nickname,
        labels: None,
    });
    Ok(shown.collect())
}
