//! Registries that list their repositories in an API of their own: Docker Hub and Harbor.
//!
//! Main functions: [`of_hub`] and [`of_harbor`]. Both are asked page by page, within limits.

use crate::{
    RepoAccess, RepoError,
    http::{Downloads, Question},
};
use serde::{Deserialize, de::DeserializeOwned};

/// Where Docker Hub's API is; its registry is on another host.
pub(super) const HUB: &str = "https://hub.docker.com";
/// Repositories on one page, and pages.
const PAGE: usize = 100;
const PAGES: usize = 500;
/// One page.
const BYTES: u64 = 8 << 20;

/// Whether a registry's host is Docker Hub's.
pub(super) fn is_hub(host: &str) -> bool {
    matches!(
        host,
        "docker.io" | "index.docker.io" | "registry-1.docker.io" | "registry.hub.docker.com"
    )
}

/// The repositories with charts of a namespace. Credentials of the registry are for another host.
pub(super) async fn of_hub(
    downloads: &Downloads,
    access: &RepoAccess,
    (base, namespace): (&str, &str),
) -> Result<Vec<String>, RepoError> {
    #[derive(Deserialize)]
    struct Page {
        next: Option<String>,
        #[serde(default)]
        results: Vec<Named>,
    }
    let first = format!(
        "{base}/v2/namespaces/{namespace}/repositories/?page_size={PAGE}&ordering=name\
         &content_types=helm"
    );
    let (mut url, mut names) = (first, Vec::new());
    for _ in 0..PAGES {
        let page: Page = page(downloads, access, &url, false).await?;
        names.extend(page.results.into_iter().map(|found| found.name));
        match page.next.filter(|next| !next.is_empty()) {
            None => return Ok(names),
            Some(next) if next.starts_with(&format!("{base}/")) => url = next,
            Some(_) => {
                return Err(corrupt(&url, "its next page is on another host"));
            }
        }
    }
    Err(over(&url))
}

/// The repositories below `PROJECT[/PATH]` that have charts, relative to it; `None`: the registry
/// is no Harbor.
pub(super) async fn of_harbor(
    downloads: &Downloads,
    access: &RepoAccess,
    (base, path): (&str, &str),
) -> Result<Option<Vec<String>>, RepoError> {
    let project = path.split('/').next().unwrap_or_default();
    let api = format!("{base}/api/v2.0/projects/{project}/repositories");
    let mut names = Vec::new();
    for number in 1..=PAGES {
        let url = format!("{api}?page={number}&page_size={PAGE}");
        let found: Vec<Named> = match page(downloads, access, &url, true).await {
            // No Harbor answers so, or it has no such project.
            Err(RepoError::Status { status: 404, .. } | RepoError::Corrupt { .. })
                if number == 1 =>
            {
                return Ok(None);
            }
            found => found?,
        };
        let count = found.len();
        for Named { name } in found {
            let below = name
                .strip_prefix(path)
                .and_then(|rest| rest.strip_prefix('/'));
            let within = name.strip_prefix(project).and_then(|n| n.strip_prefix('/'));
            if let (Some(below), Some(within)) = (below, within)
                && has_charts(downloads, access, &api, within).await?
            {
                names.push(below.to_owned());
            }
        }
        if count < PAGE {
            return Ok(Some(names));
        }
    }
    Err(over(&api))
}

#[derive(Deserialize)]
struct Named {
    name: String,
}

/// Harbor wants the slashes of a repository's name encoded twice.
async fn has_charts(
    downloads: &Downloads,
    access: &RepoAccess,
    api: &str,
    repository: &str,
) -> Result<bool, RepoError> {
    let name = repository.replace('/', "%252F");
    let url = format!("{api}/{name}/artifacts?q=type%3DCHART&page=1&page_size=1");
    let found: Vec<serde::de::IgnoredAny> = page(downloads, access, &url, true).await?;
    Ok(!found.is_empty())
}

async fn page<T: DeserializeOwned>(
    downloads: &Downloads,
    access: &RepoAccess,
    url: &str,
    with_credentials: bool,
) -> Result<T, RepoError> {
    let question = Question {
        url,
        with_credentials,
        limit: BYTES,
        known: None,
    };
    let found = downloads.get(access, &question).await?;
    let content = found.unwrap_or_default().content;
    serde_json::from_slice(&content).map_err(|e| corrupt(url, &e.to_string()))
}

fn corrupt(url: &str, reason: &str) -> RepoError {
    RepoError::Corrupt {
        url: tiphys_api::access::shown_url(url),
        reason: reason.to_owned(),
    }
}

fn over(url: &str) -> RepoError {
    RepoError::OverLimit {
        url: tiphys_api::access::shown_url(url),
        excess: format!("more than {PAGES} pages of repositories"),
    }
}
