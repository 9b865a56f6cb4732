//! Azure DevOps, the service and servers. Main functions: [`repositories`] and [`pull_requests`].

use super::{
    Account, Login, PullRequest, Repository, RepositoryId, Scm, ScmError, has_all, http::Session,
    or_default, pages::Bounds,
};
use serde::{
    Deserialize,
    de::{DeserializeOwned, IgnoredAny},
};
use tiphys_api::application_set::hosts::{
    PullRequestGeneratorAzureDevOps, SCMProviderGeneratorAzureDevOps,
};

const PUBLIC: &str = "https://dev.azure.com";
/// Versions of the API, the newest first: a server knows those up to its own release.
const VERSIONS: [&str; 6] = ["7.1", "7.0", "6.0", "5.1", "5.0", "4.1"];
const BRANCH: &str = "refs/heads/";
const NO_REPOSITORY: &str = "GitRepositoryNotFoundException";
const NO_ITEM: &str = "GitItemNotFoundException";
/// The server is older than the version that it was asked for.
const TOO_NEW: &str = "VssVersionOutOfRangeException";
/// The other one, `ProjectDoesNotExistException`, also says that the account may not see it.
const NO_PROJECT: &str = "ProjectDoesNotExistWithNameException";
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

/// The API of an organization, or of a server's collection.
pub struct Api<'a> {
    session: Session<'a>,
    scm: &'a Scm,
}

impl Api<'_> {
    /// A resource, in the newest version that the server knows. Which one that is, is remembered:
    /// a list asks many questions.
    async fn get<T>(&self, path: &[&str], query: &[(&str, &str)]) -> Result<T, ScmError>
    where
        T: DeserializeOwned + Send + 'static,
    {
        let origin = self.session.url(&[], &[])?.origin().ascii_serialization();
        let mut version = self.scm.versions.get(&origin).unwrap_or_default();
        loop {
            let query = [query, &[("api-version", VERSIONS[version])]].concat();
            let url = self.session.url(path, &query)?;
            match self.session.get::<T>(&url).await {
                Err(error) if error.is_named(TOO_NEW) && version + 1 < VERSIONS.len() => {
                    version += 1;
                    self.scm.versions.insert(origin.clone(), version);
                }
                answered => return answered.map(|(value, _)| value),
            }
        }
    }
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    settings: &SCMProviderGeneratorAzureDevOps,
) -> Result<Api<'a>, ScmError> {
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
) -> Result<Api<'a>, ScmError> {
    let named = [api, &account.api, PUBLIC];
    let named = named.into_iter().find(|api| !api.is_empty());
    let named = named.unwrap_or_default();
    // A server's collection may be written with the folder that it is in: `tfs/DefaultCollection`.
    let organization: Vec<&str> = organization.trim_matches('/').split('/').collect();
    let base = Session::new(scm, account, named)?.url(&organization, &[])?;
    let mut session = Session::new(scm, account, base.as_str())?;
    session.header("accept", "application/json")?;
    if let Login::Token(token) = &account.login
        && !token.is_empty()
    {
        session.basic("", token.expose())?;
    }
    Ok(Api { session, scm })
}

pub async fn repositories(
    api: &Api<'_>,
    settings: &SCMProviderGeneratorAzureDevOps,
    _: &str,
) -> Result<Vec<Repository>, ScmError> {
    let project = settings.team_project.as_str();
    let path = [project, "_apis", "git", "repositories"];
    let list: List<Repo> = api.get(&path, &[]).await?;
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

/// Something in a repository.
fn within<'p>(project: &'p str, repository: &'p str, last: &[&'p str]) -> Vec<&'p str> {
    let path = [project, "_apis", "git", "repositories", repository];
    [&path[..], last].concat()
}

pub async fn branches(
    api: &Api<'_>,
    settings: &SCMProviderGeneratorAzureDevOps,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    let path = within(&settings.team_project, &of.name, &["stats", "branches"]);
    let asked = if settings.all_branches {
        let list = api.get::<List<Branch>>(&path, &[]).await;
        list.map(|list| list.value)
    } else {
        // The list names branches as refs do, and looks them up without.
        let name = of.branch.strip_prefix(BRANCH).unwrap_or(&of.branch);
        let branch = api.get::<Branch>(&path, &[("name", name)]).await;
        branch.map(|branch| vec![branch])
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
    api: &Api<'_>,
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
    let items = within(&settings.team_project, id, &["items"]);
    match api.get::<IgnoredAny>(&items, &query).await {
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
    let api = sign_in(scm, account, &settings.api, &settings.organization)?;
    let pulls = match active(&api, &settings.project).await {
        Ok(pulls) => pulls,
        // Azure DevOps has no status of its own for it.
        Err(ScmError::Status { url, said, key, .. } | ScmError::NotFound { url, said, key })
            if key == NO_PROJECT =>
        {
            return Err(ScmError::NotFound { url, said, key });
        }
        Err(error) => return Err(error),
    };
    let shown = pulls.into_iter().filter_map(|pull| of_pull(pull, settings));
    Ok(shown.collect())
}

/// All active pull requests of a project.
async fn active(api: &Api<'_>, project: &str) -> Result<Vec<Pull>, ScmError> {
    let path = [project, "_apis", "git", "pullrequests"];
    let url = api.session.url(&path, &[])?;
    let (mut all, mut bounds, top) = (Vec::new(), Bounds::default(), SIZE.to_string());
    loop {
        let skip = all.len().to_string();
        let query = [
            ("searchCriteria.status", "active"),
            ("$top", top.as_str()),
            ("$skip", skip.as_str()),
        ];
        let page: List<Pull> = api.get(&path, &query).await?;
        let count = page.value.len();
        bounds.take(&api.session, &url, count)?;
        all.extend(page.value);
        if count < SIZE {
            return Ok(all);
        }
    }
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
