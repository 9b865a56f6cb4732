//! Details of single calls that clients rely on.

use crate::world::{World, repo, request, text};
use tiphys_api::{
    project::{
        SourceIntegrity, SourceIntegrityGit, SourceIntegrityGitPolicy, SourceIntegrityGitPolicyGPG,
        SourceIntegrityGitPolicyRepo,
    },
    repository::{Repository, RevisionMetadata},
    rpc::repo_server::{
        AppList, GitDirectoriesRequest, GitDirectoriesResponse, GitFilesRequest, GitFilesResponse,
        HelmChartsRequest, HelmChartsResponse, ListAppsRequest, ListRefsRequest, ManifestRequest,
        ManifestResponse, Refs, RepoServerRevisionMetadataRequest, TestRepositoryRequest,
        TestRepositoryResponse,
    },
};
use tiphys_testkit::{
    Repo,
    charts::{Answer, FileServer, index},
    git_server::{Server, Setup},
    registry::Registry,
};

const CONFIG_MAP: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n";

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_is_json_and_names_no_cluster() {
    let world = World::plain().await;
    let (path, sha) = world.repository("r", &[("a/a.yaml", CONFIG_MAP)]);
    let asked = request(&path, "a");
    let found: ManifestResponse = world
        .ask("GenerateManifest", &asked)
        .await
        .expect("manifests");
    let first: serde_json::Value = serde_json::from_str(&found.manifests[0]).expect("JSON");
    assert_eq!(first["kind"], "ConfigMap");
    assert_eq!(found.manifests.len(), 1);
    assert_eq!(
        (found.source_type.as_str(), &found.revision),
        ("Directory", &sha)
    );
    assert_eq!((found.namespace.as_str(), found.server.as_str()), ("", ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_name_no_folder_of_the_server() {
    let (world, served) = (World::plain().await, tempfile::tempdir().expect("a folder"));
    let files = [
        (
            "broken/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: [}\n",
        ),
        ("chart/Chart.yaml", "[]\n"),
    ];
    tiphys_repo::Repos::init_example(&served.path().join("r"), files).expect("it is made");
    let server = Server::start(served.path(), Setup::default());
    for folder in ["broken", "chart", "none", "../x"] {
        let plain = request(std::path::Path::new(&server.url("/r")), folder);
        let asked: Result<ManifestResponse, _> = world.ask("GenerateManifest", &plain).await;
        let (_, message) = asked.expect_err("it cannot be rendered");
        assert!(!message.contains(&text(world.dir.path())), "{message}");
    }
}

async fn test(world: &World, repo: Repository) -> Result<(), String> {
    let asked = TestRepositoryRequest { repo: Some(repo) };
    let tested: Result<TestRepositoryResponse, _> = world.ask("TestRepository", &asked).await;
    let tested = tested.map_err(|(_, message)| message)?;
    assert!(!tested.verified_repository, "as Argo CD's");
    Ok(())
}

#[tokio::test(flavor = "multi_thread")]
async fn repositories_are_tested_by_their_type() {
    let (world, registry) = (World::plain().await, Registry::start());
    let (path, _) = world.repository("r", &[("a", "a")]);
    let of_type = |url: &str, type_: &str| Repository {
        type_: type_.to_owned(),
        insecure_oci_force_http: true,
        ..repo(url).expect("one")
    };
    let (good, missing) = (text(&path), format!("{}-none", text(&path)));
    for type_ in ["", "git"] {
        let tested = test(&world, of_type(&good, type_)).await;
        assert_eq!(tested, Ok(()), "{type_}");
        let failed = test(&world, of_type(&missing, type_)).await;
        let failed = failed.expect_err("it is not there");
        let doing =
            "error testing repository connectivity: unable to ls-remote HEAD on repository: ";
        assert!(failed.starts_with(doing), "{failed}");
    }
    let failed = test(&world, of_type(&good, "svn")).await;
    assert_eq!(
        failed,
        Err("unsupported repository type \"svn\"".to_owned())
    );

    // A registry is only asked whether it is one, also without credentials.
    let artifacts = of_type(&format!("oci://{}/team/app", registry.host()), "oci");
    let charts = Repository {
        enable_oci: true,
        ..of_type(&registry.host(), "helm")
    };
    for repository in [artifacts, charts] {
        registry.server.serve("/v2/", "{}");
        assert_eq!(test(&world, repository.clone()).await, Ok(()));
        assert_eq!(registry.server.paths(), ["/v2/"]);
        let broken = Answer {
            status: 503,
            ..Answer::default()
        };
        registry.server.serve("/v2/", broken);
        let failed = test(&world, repository).await.expect_err("it is away");
        let doing = "error testing repository connectivity: ";
        assert!(failed.starts_with(doing), "{failed}");
        registry.server.paths();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refs_are_listed_in_order() {
    let world = World::plain().await;
    let repository = Repo::with(&[("a", "a")]);
    for name in ["heads/zeta", "heads/alpha", "tags/v2", "tags/v1"] {
        repository.set_reference(&format!("refs/{name}"), &repository.head());
    }
    let ask = async |repo: Option<Repository>| {
        let asked = ListRefsRequest { repo };
        world.ask::<_, Refs>("ListRefs", &asked).await
    };
    let refs = ask(repo(&repository.url())).await.expect("refs");
    assert_eq!(refs.branches, ["alpha", "main", "zeta"]);
    assert_eq!(refs.tags, ["v1", "v2"]);
    for (repo, message) in [
        (None, "must pass a valid repo"),
        (repo(""), "repository URL \"\" is invalid"),
    ] {
        let refused = ask(repo).await.map_err(|(_, message)| message);
        assert_eq!(refused, Err(message.to_owned()));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn metadata_is_of_a_commit() {
    let world = World::plain().await;
    let (path, _) = world.repository("r", &[("a", "a")]);
    for name in ["main", "HEAD", "", "v1"] {
        let asked = RepoServerRevisionMetadataRequest {
            repo: repo(&text(&path)),
            revision: name.to_owned(),
            ..RepoServerRevisionMetadataRequest::default()
        };
        let refused: Result<RevisionMetadata, _> = world.ask("GetRevisionMetadata", &asked).await;
        let (_, message) = refused.expect_err("it is no commit");
        assert_eq!(message, format!("revision {name} must be resolved"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_of_charts_is_asked_for_each_time() {
    let (world, server) = (World::plain().await, FileServer::start());
    let asked = HelmChartsRequest {
        repo: repo(&server.url()),
    };
    for version in ["1.0.0", "1.1.0"] {
        let listed = index(&[("web", version, "web.tgz", "")]);
        server.serve("/index.yaml", listed.as_str());
        let found: HelmChartsResponse = world.ask("GetHelmCharts", &asked).await.expect("charts");
        assert_eq!(found.items[0].versions, [version]);
    }
}

/// Whoever asked before, and without a demand.
#[tokio::test(flavor = "multi_thread")]
async fn signatures_are_demanded_of_files_each_time() {
    let world = World::plain().await;
    std::fs::create_dir(world.dir.path().join("keys")).expect("made");
    let (path, sha) = world.repository("r", &[("app/a.yaml", CONFIG_MAP)]);
    let policy = SourceIntegrityGitPolicy {
        repos: vec![SourceIntegrityGitPolicyRepo {
            url: "*".to_owned(),
        }],
        gpg: Some(SourceIntegrityGitPolicyGPG {
            mode: "head".to_owned(),
            keys: vec!["0000000000000000".to_owned()],
        }),
    };
    let demand = SourceIntegrity {
        git: Some(SourceIntegrityGit {
            policies: vec![policy],
        }),
    };
    let unsigned = format!("GIT/GPG: Failed verifying revision {sha} by ");
    for demanded in [None, Some(demand)] {
        let files = GitFilesRequest {
            repo: repo(&text(&path)),
            revision: "main".to_owned(),
            source_integrity: demanded.clone(),
            ..GitFilesRequest::default()
        };
        let folders = GitDirectoriesRequest {
            repo: repo(&text(&path)),
            revision: "main".to_owned(),
            source_integrity: demanded.clone(),
            ..GitDirectoriesRequest::default()
        };
        let files: Result<GitFilesResponse, _> = world.ask("GetGitFiles", &files).await;
        let folders: Result<GitDirectoriesResponse, _> =
            world.ask("GetGitDirectories", &folders).await;
        let files = files.map(|found| found.map.into_keys().collect::<Vec<_>>());
        let folders = folders.map(|found| found.paths);
        if demanded.is_none() {
            assert_eq!(files, Ok(vec!["app/a.yaml".to_owned()]));
            assert_eq!(folders, Ok(vec!["app".to_owned()]));
        } else {
            for refused in [files, folders] {
                let (_, message) = refused.expect_err("it is not signed");
                assert!(message.starts_with(&unsigned), "{message}");
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_whose_name_ends_as_that_of_a_chart_makes_one() {
    let world = World::plain().await;
    let (path, _) = world.repository("r", &[("app/MyChart.yaml", CONFIG_MAP)]);
    let asked = ListAppsRequest {
        repo: repo(&text(&path)),
        revision: "main".to_owned(),
        ..ListAppsRequest::default()
    };
    let found: AppList = world.ask("ListApps", &asked).await.expect("apps");
    let apps: Vec<_> = found.apps.into_iter().collect();
    assert_eq!(apps, [("app".to_owned(), "Helm".to_owned())]);
    let asked: ManifestRequest = request(&path, "app");
    let rendered: Result<ManifestResponse, _> = world.ask("GenerateManifest", &asked).await;
    let (_, message) = rendered.expect_err("it is no directory of manifests");
    assert!(message.contains("Chart.yaml file is missing"), "{message}");
}
