//! The commit server, asked by our own client and byte by byte.

use crate::world::World;
use prost::Message as _;
use std::time::Duration;
use tiphys_api::{
    repository::Repository,
    rpc::commit::{CommitHydratedManifestsRequest, HydratedManifestDetails, PathDetails},
};
use tiphys_repo::{CommitServer, RepoError, Repos, Since};

const METHOD: &str = "CommitService/CommitHydratedManifests";

fn request(url: &str, path: &str) -> CommitHydratedManifestsRequest {
    let manifest = r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#;
    CommitHydratedManifestsRequest {
        repo: Some(Repository {
            repo: url.to_owned(),
            ..Repository::default()
        }),
        sync_branch: "env/dev".to_owned(),
        target_branch: "env/dev".to_owned(),
        dry_sha: "1".repeat(40),
        commit_message: "Hydrate".to_owned(),
        paths: vec![PathDetails {
            path: path.to_owned(),
            manifests: vec![HydratedManifestDetails {
                manifest_json: manifest.to_owned(),
            }],
            commands: Vec::new(),
        }],
        ..CommitHydratedManifestsRequest::default()
    }
}

#[tokio::test]
async fn our_controllers_push_through_it() {
    let world = World::of_commits().await;
    let (path, _) = world.repository("r.git", &[("a.yaml", "a: b\n")]);
    let url = path.display().to_string();
    let address = format!("localhost:{}", world.port);
    let server = CommitServer::new(&address, Duration::from_secs(60)).expect("an address");
    let sha = server.commit(request(&url, "web")).await.expect("a commit");
    let repos = Repos::new(world.dir.path().join("other"));
    let access = tiphys_repo::RepoAccess::public(&url);
    let found = repos.resolve(&access, "env/dev", Since::now()).await;
    assert_eq!(found.expect("a branch").sha, sha);
    let again = server.commit(request(&url, "web")).await;
    assert_eq!(again.expect("the same commit"), sha);
    let refused = server.commit(request(&url, "../web")).await;
    let Err(RepoError::RepoServer {
        message, retryable, ..
    }) = refused
    else {
        panic!("{refused:?}");
    };
    assert!(
        message.contains("leaves the repository") && !retryable,
        "{message}"
    );
}

#[tokio::test]
async fn what_is_missing_is_told() {
    let world = World::of_commits().await;
    let whole = request("/nowhere", "web");
    for (request, expected) in [
        (
            CommitHydratedManifestsRequest {
                repo: None,
                ..whole.clone()
            },
            "repo is required",
        ),
        (request("", "web"), "repo URL is required"),
        (
            CommitHydratedManifestsRequest {
                target_branch: String::new(),
                ..whole.clone()
            },
            "target branch is required",
        ),
        (
            CommitHydratedManifestsRequest {
                sync_branch: String::new(),
                ..whole.clone()
            },
            "sync branch is required",
        ),
        (whole.clone(), "repository not found: /nowhere"),
    ] {
        let answer = world.raw(METHOD, &request.encode_to_vec()).await;
        assert_ne!(answer.status, "0");
        assert_eq!(answer.message, expected);
    }
    // It serves nothing of a repo-server.
    let other = "repository.RepoServerService/ResolveRevision";
    assert_eq!(world.raw(other, &[]).await.status, "12");
}
