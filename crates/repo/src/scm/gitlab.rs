//! GitLab. Main functions: [`repositories`] and [`pull_requests`].

use super::{
    Account, Login, PullRequest, Repository, RepositoryId, Scm, ScmError, clone_url, http::Session,
    or_default, pages::Numbered,
};
use serde::{Deserialize, de::IgnoredAny};
use tiphys_api::application_set::hosts::{PullRequestGeneratorGitLab, SCMProviderGeneratorGitlab};

const PUBLIC: &str = "https://gitlab.com";
const PAGES: Numbered = Numbered {
    size: ("per_page", 100),
};

#[derive(Deserialize)]
struct Project {
    id: i64,
    path: String,
    namespace: Namespace,
    #[serde(default, deserialize_with = "or_default")]
    default_branch: String,
    #[serde(default, deserialize_with = "or_default")]
    ssh_url_to_repo: String,
    #[serde(default, deserialize_with = "or_default")]
    http_url_to_repo: String,
    #[serde(default, deserialize_with = "or_default")]
    topics: Vec<String>,
    /// What topics were called before 14.5.
    #[serde(default, deserialize_with = "or_default")]
    tag_list: Vec<String>,
}

#[derive(Deserialize)]
struct Namespace {
    #[serde(default, deserialize_with = "or_default")]
    full_path: String,
}

#[derive(Deserialize)]
struct Numbers {
    id: i64,
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
struct MergeRequest {
    iid: i64,
    title: String,
    source_branch: String,
    target_branch: String,
    /// Null while GitLab still computes it.
    sha: String,
    #[serde(default, deserialize_with = "or_default")]
    labels: Vec<String>,
    #[serde(default, deserialize_with = "or_default")]
    author: Author,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Author {
    username: String,
}

pub async fn session<'a>(
    scm: &'a Scm,
    account: &Account,
    settings: &SCMProviderGeneratorGitlab,
) -> Result<Session<'a>, ScmError> {
    sign_in(scm, account, &settings.api)
}

fn sign_in<'a>(scm: &'a Scm, account: &Account, api: &str) -> Result<Session<'a>, ScmError> {
    let named = [api, &account.api, PUBLIC];
    let named = named.into_iter().find(|api| !api.is_empty());
    let named = named.unwrap_or_default().trim_end_matches('/');
    let base = match named.ends_with("/api/v4") {
        true => named.to_owned(),
        false => format!("{named}/api/v4"),
    };
    let mut session = Session::new(scm, account, &base)?;
    session.header("accept", "application/json")?;
    if let Login::Token(token) = &account.login {
        session.header("private-token", token.expose())?;
    }
    Ok(session)
}

pub async fn repositories(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorGitlab,
    protocol: &str,
) -> Result<Vec<Repository>, ScmError> {
    let text = |yes: bool| if yes { "true" } else { "false" };
    let mut query = vec![
        ("include_subgroups", text(settings.include_subgroups)),
        (
            "with_shared",
            text(settings.include_shared_projects.unwrap_or(true)),
        ),
        ("topic", settings.topic.as_str()),
    ];
    if settings.include_archived_repos {
        query.push(("archived", "true"));
    }
    let path = ["groups", settings.group.as_str(), "projects"];
    let mut found = Vec::new();
    for project in session.list::<Project>(&path, &query, PAGES).await? {
        let urls = (
            project.ssh_url_to_repo.as_str(),
            project.http_url_to_repo.as_str(),
        );
        let url = clone_url(protocol, "Gitlab", urls)?.to_owned();
        found.push(Repository {
            organization: project.namespace.full_path,
            name: project.path,
            id: RepositoryId::Number(project.id),
            url,
            branch: project.default_branch,
            sha: String::new(),
            labels: match project.topics.is_empty() {
                true => project.tag_list,
                false => project.topics,
            },
        });
    }
    Ok(found)
}

/// The number of a project, which need not be escaped.
async fn number(session: &Session<'_>, of: &Repository) -> Result<String, ScmError> {
    if let RepositoryId::Number(number) = of.id {
        return Ok(number.to_string());
    }
    let path = format!("{}/{}", of.organization, of.name);
    let url = session.url(&["projects", &path], &[])?;
    let (project, _) = session.get::<Numbers>(&url).await?;
    Ok(project.id.to_string())
}

pub async fn branches(
    session: &Session<'_>,
    settings: &SCMProviderGeneratorGitlab,
    of: &Repository,
) -> Result<Vec<Repository>, ScmError> {
    if !settings.all_branches && of.branch.is_empty() {
        return Ok(Vec::new());
    }
    let number = number(session, of).await?;
    let path = ["projects", number.as_str(), "repository", "branches"];
    let asked = if settings.all_branches {
        session.list::<Branch>(&path, &[], PAGES).await
    } else {
        let mut path = path.to_vec();
        path.push(&of.branch);
        let url = session.url(&path, &[])?;
        session
            .get::<Branch>(&url)
            .await
            .map(|(branch, _)| vec![branch])
    };
    let branches = match asked {
        Ok(branches) => branches,
        // A project without commits has no branches; one that is hidden is not known to have none.
        Err(error) if error.is_not_found() && !error.says("Project Not Found") => Vec::new(),
        Err(error) => return Err(error),
    };
    let at = |branch: Branch| of.at(branch.name, branch.commit.id);
    Ok(branches.into_iter().map(at).collect())
}

pub async fn has_path(
    session: &Session<'_>,
    _: &SCMProviderGeneratorGitlab,
    of: &Repository,
    path: &str,
) -> Result<bool, ScmError> {
    let number = number(session, of).await?;
    let repository = ["projects", number.as_str(), "repository"];
    let at = |last: &[&str], query: &[(&str, &str)]| {
        session.url(&[&repository[..], last].concat(), query)
    };
    let branch = of.branch.as_str();
    let file = at(&["files", path], &[("ref", branch)])?;
    match session.get::<IgnoredAny>(&file).await {
        Ok(_) => return Ok(true),
        Err(error) if error.is_not_found() => {}
        Err(error) => return Err(error),
    }
    let folder = at(&["tree"], &[("path", path), ("ref", branch)])?;
    match session.get::<Vec<IgnoredAny>>(&folder).await {
        // Git has no empty folders.
        Ok((entries, _)) => Ok(!entries.is_empty()),
        Err(error) if error.is_not_found() => Ok(false),
        Err(error) => Err(error),
    }
}

pub async fn pull_requests(
    scm: &Scm,
    account: &Account,
    settings: &PullRequestGeneratorGitLab,
) -> Result<Vec<PullRequest>, ScmError> {
    let session = sign_in(scm, account, &settings.api)?;
    let labels = settings.labels.join(",");
    let mut query = Vec::new();
    if !labels.is_empty() {
        query.push(("labels", labels.as_str()));
    }
    if !settings.pull_request_state.is_empty() {
        query.push(("state", settings.pull_request_state.as_str()));
    }
    let path = ["projects", settings.project.as_str(), "merge_requests"];
    let listed = session.list::<MergeRequest>(&path, &query, PAGES).await?;
    let shown = listed.into_iter().map(|request| PullRequest {
        number: request.iid,
        title: request.title,
        branch: request.source_branch,
        target_branch: request.target_branch,
        head_sha: request.sha,
        author: request.author.username,
        labels: Some(request.labels),
    });
    Ok(shown.collect())
}
