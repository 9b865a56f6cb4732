//! Azure DevOps. Main functions: [`repositories`] and [`pull_requests`].

use super::{
    Account, Login, PullRequest, Repository, RepositoryId, Scm, ScmError, has_all, http::Session,
    or_default,
};
use reqwest::Url;
use serde::{Deserialize, de::IgnoredAny};
use tiphys_api::application_set::hosts::{
    PullRequestGeneratorAzureDevOps, SCMProviderGeneratorAzureDevOps,
};

const PUBLIC: &str = "https://dev.azure.com";
const VERSION: (&str, &str) = ("api-version", "7.1");
const BRANCH: &str = "refs/heads/";
const NO_REPOSITORY: &str = "GitRepositoryNotFoundException";
const NO_ITEM: &str = "GitItemNotFoundException";
const NO_PROJECT: &str = "The following project does not exist";
/// Pull requests of one page.
const SIZE: usize = 100;

#[derive(Deserialize)]
struct List<T> {
    value: Vec<T>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Repo {
    id: Option<String>,
    name: Option<String>,
    /// Missing if the repository is empty.
    default_branch: Option<String>,
    remote_url: Option<String>,
}

#[derive(Deserialize)]
struct Branch {
    name: String,
    commit: Commit,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Commit {
    commit_id: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Pull {
    pull_request_id: Option<i64>,
    #[serde(default, deserialize_with = "or_default")]
    title: String,
    source_ref_name: Option<String>,
    target_ref_name: Option<String>,
    last_merge_source_commit: Option<Commit>,
    repository: Option<Named>,
    #[serde(default, deserialize_with = "or_default")]
    labels: Vec<Named>,
    #[serde(default, deserialize_with = "or_default")]
    created_by: Person,
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Person {
    unique_name: String,
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    settings: &SCMProviderGeneratorAzureDevOps,
) -> Result<Session<'a>, ScmError> {
    match &account.login {
        Login::Token(token) if !token.is_empty() => {}
        _ => return Err(ScmError::settings("no access token provided")),
    }
    sign_in(scm, account, &settings.api, &settings.organization)
}

fn sign_in<'a>(
    scm: &'a Scm,
    account: &Account,
    api: &str,
    organization: &str,
) -> Result<Session<'a>, ScmError> {
    let named = [api, &account.api, PUBLIC];
    let named = named.into_iter().find(|api| !api.is_empty());
    let named = named.unwrap_or_default();
    let base = Session::new(scm, account, named)?.url(&[organization], &[])?;
    let mut session = Session::new(scm, account, base.as_str())?;
    session.header("accept", "application/json")?;
    if let Login::Token(token) = &account.login
        && !token.is_empty()
    {
        session.basic("", token.expose())?;
    }
    Ok(session)
}

pub async fn repositories(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorAzureDevOps,
    _: &str,
) -> Result<Vec<Repository>, ScmError> {
    let project = settings.team_project.as_str();
    let url = session.url(&[project, "_apis", "git", "repositories"], &[VERSION])?;
    let (list, _) = session.get::<List<Repo>>(&url).await?;
    let shown = list.value.into_iter().filter_map(|repo| {
        Some(Repository {
            organization: settings.organization.clone(),
            name: repo.name?,
            id: RepositoryId::Text(repo.id?),
            url: repo.remote_url?,
            branch: repo.default_branch?,
            sha: String::new(),
            labels: Vec::new(),
        })
    });
    Ok(shown.collect())
}

/// The address of something in a repository.
fn within(
    session: &Session<'_>,
    project: &str,
    repository: &str,
    last: &[&str],
    query: &[(&str, &str)],
) -> Result<Url, ScmError> {
    let path = [project, "_apis", "git", "repositories", repository];
    let query = [query, &[VERSION]].concat();
    session.url(&[&path[..], last].concat(), &query)
}

pub async fn branches(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorAzureDevOps,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    let (project, last) = (settings.team_project.as_str(), ["stats", "branches"]);
    let asked = if settings.all_branches {
        let url = within(session, project, &of.name, &last, &[])?;
        let list = session.get::<List<Branch>>(&url).await;
        list.map(|(list, _)| list.value)
    } else {
        // The list names branches as refs do, and looks them up without.
        let name = of.branch.strip_prefix(BRANCH).unwrap_or(&of.branch);
        let url = within(session, project, &of.name, &last, &[("name", name)])?;
        let branch = session.get::<Branch>(&url).await;
        branch.map(|(branch, _)| vec![branch])
    };
    let branches = match asked {
        Ok(branches) => branches,
        Err(error) if error.is_named(NO_REPOSITORY) => Vec::new(),
        Err(error) => return Err(error),
    };
    let at = |branch: Branch| of.at(branch.name, branch.commit.commit_id);
    Ok(branches.into_iter().map(at).collect())
}

pub async fn has_path(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorAzureDevOps,
    of: &Repository,
    path: &str,
) -> Result<bool, ScmError> {
    let id = match &of.id {
        RepositoryId::Text(id) => id,
        _ => &of.name,
    };
    let query = [
        ("path", path),
        ("versionDescriptor.version", of.branch.as_str()),
    ];
    let project = settings.team_project.as_str();
    let url = within(session, project, id, &["items"], &query)?;
    match session.get::<IgnoredAny>(&url).await {
        Ok(_) => Ok(true),
        Err(error) if error.is_named(NO_ITEM) => Ok(false),
        Err(error) => Err(error),
    }
}

pub async fn pull_requests(
    scm: &Scm,
    account: &Account,
    settings: &PullRequestGeneratorAzureDevOps,
) -> Result<Vec<PullRequest>, ScmError> {
    let session = sign_in(scm, account, &settings.api, &settings.organization)?;
    let path = [settings.project.as_str(), "_apis", "git", "pullrequests"];
    let page = |skip: usize| {
        let (top, skip) = (SIZE.to_string(), skip.to_string());
        let query = [
            ("searchCriteria.status", "active"),
            ("$top", &top),
            ("$skip", &skip),
            VERSION,
        ];
        session.url(&path, &query)
    };
    let mut seen = 0;
    let split = |_: &Url, list: List<Pull>| {
        seen += list.value.len();
        let next = match list.value.len() >= SIZE {
            true => Some(page(seen)?),
            false => None,
        };
        Ok((list.value, next))
    };
    let pulls =
        match session.follow(page(0)?, split).await {
            Ok(pulls) => pulls,
            // Azure DevOps has no status of its own for it.
            Err(
                ScmError::Status { url, said, key, .. } | ScmError::NotFound { url, said, key },
            ) if said.contains(NO_PROJECT) => return Err(ScmError::NotFound { url, said, key }),
            Err(error) => return Err(error),
        };
    let shown = pulls.into_iter().filter_map(|pull| of_pull(pull, settings));
    Ok(shown.collect())
}

fn of_pull(pull: Pull, settings: &PullRequestGeneratorAzureDevOps) -> Option<PullRequest> {
    let short = |name: String| name.replacen(BRANCH, "", 1);
    let labels: Vec<String> = pull.labels.into_iter().map(|label| label.name).collect();
    let wanted = pull.repository?.name == settings.repo && has_all(&labels, &settings.labels);
    let author = pull.created_by.unique_name;
    wanted.then_some(PullRequest {
        number: pull.pull_request_id?,
        title: pull.title,
        branch: short(pull.source_ref_name?),
        target_branch: short(pull.target_ref_name?),
        head_sha: pull.last_merge_source_commit?.commit_id,
        // The part of an address before the @.
        author: author.split('@').next().unwrap_or_default().to_owned(),
        labels: Some(labels),
    })
}
