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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ContactWatch, OciRemote, RemoteOptions,
        entry::{Common, no_look_ups},
        shares::Shares,
    };
    use std::{sync::Arc, time::Duration};
    use tiphys_testkit::charts::{Answer, FileServer, basic};

    fn options() -> RemoteOptions {
        RemoteOptions {
            pass_credentials: false,
            agent: String::new(),
            timeout: Duration::from_secs(30),
        }
    }

    fn page_of(names: &[String], next: &str) -> String {
        let results = names.iter().map(|name| serde_json::json!({"name": name}));
        serde_json::json!({"results": results.collect::<Vec<_>>(), "next": next}).to_string()
    }

    #[tokio::test]
    async fn pages_of_docker_hub() {
        let server = FileServer::start();
        let base = server.url();
        let path = "/v2/namespaces/acme/repositories/";
        let first = format!("{path}?page_size=100&ordering=name&content_types=helm");
        let second = format!("{path}?page=2");
        let text = page_of(&["web".to_owned()], &format!("{base}{second}"));
        server.serve(&first, text.as_str());
        server.serve(&second, page_of(&["api".to_owned()], "").as_str());
        let common = Arc::new(Common {
            shares: Shares::new(1),
            contacts: ContactWatch::default(),
            look_ups: no_look_ups(),
        });
        let downloads = Downloads::new(Duration::from_secs(30), common);
        let mut access = RepoAccess::public("oci://registry-1.docker.io/acme");
        access.username = "ann".to_owned();
        access.password = "hunter2".into();
        let listed = of_hub(&downloads, &access, (&base, "acme")).await;
        assert_eq!(listed.expect("a list"), ["web", "api"]);
        let asked = server.received();
        assert!(asked.iter().all(|request| request.authorization.is_empty()));
        let text = page_of(&[], "https://elsewhere.example/v2/");
        server.serve(&second, text.as_str());
        let refused = of_hub(&downloads, &access, (&base, "acme")).await;
        let refused = refused.expect_err("refused").to_string();
        assert!(refused.contains("on another host"), "{refused}");
        assert!(is_hub("registry-1.docker.io") && !is_hub("docker.io.example"));
    }

    #[tokio::test]
    async fn charts_of_a_project_of_harbor() {
        let server = FileServer::start();
        let only = |body: String| Answer {
            only_for: Some(("ann", "hunter2")),
            ..body.as_str().into()
        };
        let api = "/api/v2.0/projects/acme/repositories";
        // More than one page: images, and below a path two charts.
        let mut names: Vec<String> = (0..PAGE).map(|n| format!("acme/image-{n}")).collect();
        let list = |names: &[String]| {
            let found = names.iter().map(|name| serde_json::json!({"name": name}));
            serde_json::json!(found.collect::<Vec<_>>()).to_string()
        };
        let page_at = |number: usize| format!("{api}?page={number}&page_size={PAGE}");
        names[3] = "acme/charts/web".to_owned();
        server.serve(&page_at(1), only(list(&names)));
        let more = [
            "acme/charts/deep/api".to_owned(),
            "acme/charts/image".to_owned(),
        ];
        server.serve(&page_at(2), only(list(&more)));
        for (name, found) in [
            ("charts%252Fweb", "[{}]"),
            ("charts%252Fdeep%252Fapi", "[{}]"),
            ("charts%252Fimage", "[]"),
        ] {
            let path = format!("{api}/{name}/artifacts?q=type%3DCHART&page=1&page_size=1");
            server.serve(&path, only(found.to_owned()));
        }
        let mut access = RepoAccess::public(format!("{}/acme/charts", server.url()));
        access.username = "ann".to_owned();
        access.password = "hunter2".into();
        let remote = OciRemote::new(access, &options()).expect("a registry");
        let listed = remote.listed().await.expect("a list");
        assert_eq!(listed, ["web", "deep/api"]);
        let asked = server.received();
        let of_api = asked.iter().filter(|r| r.path.starts_with("/api/"));
        assert!(of_api.clone().count() >= 5);
        assert!(
            of_api
                .into_iter()
                .all(|r| r.authorization == basic("ann", "hunter2"))
        );
        // Neither a Harbor nor a list.
        let other = FileServer::start();
        let access = RepoAccess::public(format!("{}/acme", other.url()));
        let remote = OciRemote::new(access, &options()).expect("a registry");
        let refused = remote.listed().await.expect_err("no list").to_string();
        assert!(refused.contains("not found"), "{refused}");
    }
}
