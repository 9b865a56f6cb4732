//! What ApplicationSets ask for: files, folders, and the folders of tools.

use crate::world::{World, repo};
use tiphys_api::rpc::repo_server::{
    AppList, GitDirectoriesRequest, GitDirectoriesResponse, GitFilesRequest, GitFilesResponse,
    ListAppsRequest,
};
use tiphys_testkit::Repo;

fn with_links() -> Repo {
    let repo = Repo::new();
    repo.link(&[
        ("envs/a/link.json", "config.json"),
        ("envs/a/out.json", "/etc/passwd"),
        ("folder", "envs/b"),
    ]);
    let files = [
        ("envs/a/config.json", "{\"a\": 1}"),
        ("envs/b/config.json", "{\"b\": 1}"),
        ("envs/b/deep/config.json", "{\"deep\": 1}"),
        (".github/config.json", "{}"),
        ("chart/Chart.yaml", "name: c"),
        ("overlay/kustomization.yaml", ""),
        ("kustomization.yml", ""),
    ];
    repo.commit(&files, &[]);
    repo
}

#[tokio::test(flavor = "multi_thread")]
async fn files_by_both_kinds_of_patterns() {
    let world = World::plain().await;
    let linked = with_links();
    let url = linked.url();
    let ask = async |pattern: &str, is_new: bool| {
        let asked = GitFilesRequest {
            repo: repo(&url),
            revision: "main".to_owned(),
            path: pattern.to_owned(),
            new_git_file_globbing_enabled: is_new,
            ..GitFilesRequest::default()
        };
        let found: Result<GitFilesResponse, _> = world.ask("GetGitFiles", &asked).await;
        found.map(|found| found.map)
    };
    let all = [
        "envs/a/config.json",
        "envs/b/config.json",
        "envs/b/deep/config.json",
    ];
    for (pattern, is_new, expected) in [
        ("envs/*/config.json", false, &all[..]),
        ("envs/*/config.json", true, &all[..2]),
        ("envs/**/config.json", true, &all[..]),
        ("envs/b", false, &all[1..]),
        ("folder/config.json", true, &["folder/config.json"]),
        ("folder/config.json", false, &[]),
        ("envs/{a,b}/config.json", true, &all[..2]),
        (
            "envs/a/*",
            true,
            &["envs/a/config.json", "envs/a/link.json"],
        ),
        ("nothing/*", false, &[]),
    ] {
        let found = ask(pattern, is_new).await.expect("files");
        let paths: Vec<&str> = found.keys().map(String::as_str).collect();
        assert_eq!(paths, expected, "{pattern} {is_new}");
    }
    let found = ask("envs/a/link.json", true).await.expect("files");
    assert_eq!(found["envs/a/link.json"], b"{\"a\": 1}");
    for (pattern, is_new) in [
        ("envs/a/out.json", false),
        ("../x", false),
        (":(glob)*", false),
        ("envs/[a", true),
    ] {
        let (status, message) = ask(pattern, is_new).await.expect_err("refused");
        assert_eq!(status, "13", "{pattern}");
        assert!(
            message.starts_with("unable to list files. repo "),
            "{message}"
        );
        assert!(!message.contains("root:"), "{message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn folders_and_tools() {
    let world = World::plain().await;
    let linked = with_links();
    let url = linked.url();
    let asked = GitDirectoriesRequest {
        repo: repo(&url),
        revision: "HEAD".to_owned(),
        ..GitDirectoriesRequest::default()
    };
    let found: GitDirectoriesResponse = world
        .ask("GetGitDirectories", &asked)
        .await
        .expect("folders");
    let expected = [
        "chart",
        "envs",
        "envs/a",
        "envs/b",
        "envs/b/deep",
        "overlay",
    ];
    assert_eq!(found.paths, expected);
    let gone = GitDirectoriesRequest {
        revision: "gone".to_owned(),
        ..asked
    };
    let refused: Result<GitDirectoriesResponse, _> = world.ask("GetGitDirectories", &gone).await;
    let (status, message) = refused.expect_err("no revision");
    assert_eq!(status, "13");
    assert!(
        message.starts_with("unable to resolve git revision gone: "),
        "{message}"
    );

    let mut asked = ListAppsRequest {
        repo: repo(&url),
        revision: "main".to_owned(),
        ..ListAppsRequest::default()
    };
    let ask = async |asked: &ListAppsRequest| -> Vec<(String, String)> {
        let found: AppList = world.ask("ListApps", asked).await.expect("apps");
        found.apps.into_iter().collect()
    };
    let pair = |folder: &str, tool: &str| (folder.to_owned(), tool.to_owned());
    let chart = pair("chart", "Helm");
    let all = [
        pair(".", "Kustomize"),
        chart.clone(),
        pair("overlay", "Kustomize"),
    ];
    assert_eq!(ask(&asked).await, all);
    asked.enabled_source_types = [("Kustomize".to_owned(), false)].into();
    assert_eq!(ask(&asked).await, [chart]);
}
