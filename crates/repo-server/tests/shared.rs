//! Repo-servers that share what they render.

use crate::world::{World, repo, request, text};
use futures::future::BoxFuture;
use std::{
    collections::BTreeMap,
    fs,
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_api::{
    operation::RefTarget,
    project::SourceIntegrity,
    repository::{Repository, RevisionMetadata},
    rpc::repo_server::{
        GitDirectoriesRequest, GitDirectoriesResponse, GitFilesRequest, GitFilesResponse,
        ManifestRequest, ManifestResponse, RepoAppDetailsResponse, RepoServerAppDetailsQuery,
        RepoServerRevisionMetadataRequest, UpdateRevisionForPathsRequest,
    },
    source::{ApplicationSource, ApplicationSourceHelm},
};
use tiphys_repo::Repos;
use tiphys_repo_server::{Shared, SharedCache};
use tiphys_testkit::{
    charts::{FileServer, index, plain_chart},
    git_server::{Server, Setup},
};

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<BTreeMap<String, Vec<u8>>>>);

impl SharedCache for Memory {
    fn get(&self, name: String) -> BoxFuture<'_, Option<Vec<u8>>> {
        Box::pin(async move { self.0.lock().expect("no panic").get(&name).cloned() })
    }

    fn put(&self, name: String, json: Vec<u8>, _: Duration) -> BoxFuture<'_, ()> {
        Box::pin(async move { drop(self.0.lock().expect("no panic").insert(name, json)) })
    }
}

impl Memory {
    fn shared(&self) -> Shared {
        Shared {
            cache: Arc::new(self.clone()),
            keep: Duration::from_secs(60),
        }
    }

    fn names(&self) -> Vec<String> {
        let kept = self.0.lock().expect("no panic");
        kept.keys().cloned().collect()
    }

    fn change(&self, from: &str, to: &str) {
        for value in self.0.lock().expect("no panic").values_mut() {
            let text = String::from_utf8(value.clone()).expect("JSON");
            *value = text.replace(from, to).into_bytes();
        }
    }
}

const FILES: &[(&str, &str)] = &[(
    "a/map.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: map}\ndata: {mark: <&>}\n",
)];

#[tokio::test(flavor = "multi_thread")]
async fn manifests_are_rendered_by_one_of_them() {
    let memory = Memory::default();
    let (first, second) = (
        World::sharing(memory.shared()).await,
        World::sharing(memory.shared()).await,
    );
    let (path, sha) = first.repository("r", FILES);
    let asked = request(&path, "a");
    let rendered = first.client().manifests(&asked).await.expect("rendered");
    let begin = format!("mfst|annotation:app.kubernetes.io/instance|web|{sha}|prod|");
    let names = memory.names();
    assert!(
        names.len() == 1 && names[0].starts_with(&begin),
        "{names:?}"
    );
    assert!(names[0].ends_with("|nil"), "{names:?}");

    // From now on nobody can render it.
    fs::remove_dir_all(&path).expect("gone");
    let at_commit = ManifestRequest {
        revision: sha.clone(),
        ..asked
    };
    let client = second.client();
    let found = client.manifests(&at_commit).await.expect("shared");
    assert_eq!(
        (&found.revision, &found.source_type),
        (&rendered.revision, &rendered.source_type)
    );
    assert_eq!(*found.objects, *rendered.objects);
    let demanding = SourceIntegrity::default();
    for (why, request) in [
        (
            "wanted anew",
            ManifestRequest {
                no_cache: true,
                ..at_commit.clone()
            },
        ),
        (
            "signatures are demanded",
            ManifestRequest {
                source_integrity: Some(demanding),
                ..at_commit.clone()
            },
        ),
        (
            "for another namespace",
            ManifestRequest {
                namespace: "other".to_owned(),
                ..at_commit.clone()
            },
        ),
    ] {
        assert!(client.manifests(&request).await.is_err(), "{why}");
    }
    memory.change("ConfigMap", "ConfigMop");
    let changed = client.manifests(&at_commit).await;
    assert!(changed.is_err(), "the hash is another one");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_metadata_of_a_commit_is_read_by_one_of_them() {
    let memory = Memory::default();
    let (first, second) = (
        World::sharing(memory.shared()).await,
        World::sharing(memory.shared()).await,
    );
    let (path, sha) = first.repository("r", FILES);
    let query = RepoServerRevisionMetadataRequest {
        repo: repo(&text(&path)),
        revision: sha.clone(),
        ..RepoServerRevisionMetadataRequest::default()
    };
    let ask = async |world: &World, query: &RepoServerRevisionMetadataRequest| {
        let found = world.ask::<_, RevisionMetadata>("GetRevisionMetadata", query);
        found.await
    };
    let read = ask(&first, &query).await.expect("read");
    assert_eq!(
        memory.names(),
        [format!("revisionmetadata|{}|{sha}", text(&path))]
    );
    fs::remove_dir_all(&path).expect("gone");
    assert_eq!(ask(&second, &query).await, Ok(read));
    let demanding = RepoServerRevisionMetadataRequest {
        source_integrity: Some(SourceIntegrity::default()),
        ..query
    };
    assert!(ask(&second, &demanding).await.is_err());
}

/// A whole SHA is resolved without a question to the repository.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_shared_is_for_those_whom_the_repository_accepts() {
    let memory = Memory::default();
    let (first, second) = (
        World::sharing(memory.shared()).await,
        World::sharing(memory.shared()).await,
    );
    let (path, sha) = first.repository("r", FILES);
    let setup = Setup {
        user: Some(("ann", "hunter2")),
        ..Setup::default()
    };
    let server = Server::start(first.dir.path(), setup);
    let url = server.url("/r");
    let with = |password: &str| Repository {
        username: "ann".to_owned(),
        password: password.to_owned(),
        ..repo(&url).expect("one")
    };
    let manifests = |password: &str| ManifestRequest {
        repo: Some(with(password)),
        application_source: Some(ApplicationSource {
            repo_url: url.clone(),
            path: "a".to_owned(),
            ..ApplicationSource::default()
        }),
        revision: sha.clone(),
        ..request(&path, "a")
    };
    let query = |password: &str| RepoServerRevisionMetadataRequest {
        repo: Some(with(password)),
        revision: sha.clone(),
        ..RepoServerRevisionMetadataRequest::default()
    };
    let ask = async |world: &World, password: &str| {
        let (asked, query) = (manifests(password), query(password));
        let found = world.ask::<_, ManifestResponse>("GenerateManifest", &asked);
        let found = found.await;
        let metadata = world.ask::<_, RevisionMetadata>("GetRevisionMetadata", &query);
        (found, metadata.await)
    };
    let (rendered, read) = ask(&first, "hunter2").await;
    let (rendered, read) = (rendered.expect("rendered"), read.expect("read"));
    assert_eq!(memory.names().len(), 2, "{:?}", memory.names());

    let fetches = server.count("fetch");
    for (refused, unread) in [ask(&second, "wrong").await, ask(&first, "wrong").await] {
        refused.expect_err("it does not know the password");
        unread.expect_err("it does not know the password");
    }
    let (shared, known) = ask(&second, "hunter2").await;
    assert_eq!(shared.expect("shared").manifests, rendered.manifests);
    assert_eq!(known.expect("shared"), read);
    assert_eq!(server.count("fetch"), fetches, "{:?}", server.log());
}

/// A server may give commits to some that it does not give to others.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_that_no_ref_names_is_read_by_each() {
    let memory = Memory::default();
    let (first, second) = (
        World::sharing(memory.shared()).await,
        World::sharing(memory.shared()).await,
    );
    let (path, sha) = first.repository("r", FILES);
    let server = Server::start(first.dir.path(), Setup::default());
    let url = server.url("/r");
    let asked = ManifestRequest {
        repo: repo(&url),
        application_source: Some(ApplicationSource {
            repo_url: url.clone(),
            path: "a".to_owned(),
            ..ApplicationSource::default()
        }),
        revision: sha,
        ..request(&path, "a")
    };
    first.client().manifests(&asked).await.expect("rendered");
    assert_eq!(memory.names().len(), 1, "{:?}", memory.names());
    let changes = [("elsewhere", Some("x"))];
    Repos::commit_files(&path, "main", &changes, "Change").expect("a commit");
    let fetches = server.count("fetch");
    for _ in 0..2 {
        second.client().manifests(&asked).await.expect("rendered");
    }
    assert!(server.count("fetch") > fetches, "{:?}", server.log());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rendered_of_other_repositories_is_not_shared() {
    let memory = Memory::default();
    let (world, charts) = (World::sharing(memory.shared()).await, FileServer::start());
    let listed = index(&[("web", "1.0.0", "web.tgz", "")]);
    charts.serve("/index.yaml", listed.into_bytes());
    charts.serve("/web.tgz", plain_chart("web", "1.0.0", &[]));
    let chart = format!(
        "apiVersion: v2\nname: c\nversion: 1.0.0\ndependencies:\n- name: web\n  version: 1.0.0\n  repository: {}\n",
        charts.url()
    );
    let (path, _) = world.repository("r", &[("chart/Chart.yaml", chart.as_str())]);
    let rendered = world.client().manifests(&request(&path, "chart")).await;
    rendered.expect("rendered");
    assert_eq!(memory.names(), Vec::<String>::new());
}

/// What is read twice is told apart by its name only if it is read at one commit.
#[tokio::test(flavor = "multi_thread")]
async fn a_repository_at_several_commits_is_rendered_as_asked() {
    let memory = Memory::default();
    let world = World::sharing(memory.shared()).await;
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: m}\ndata: {v: '{{ .Values.one }} {{ .Values.two }}'}\n";
    let files = [
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        ),
        ("chart/templates/m.yaml", template),
        ("one.yaml", "one: 1"),
        ("two.yaml", "two: 1"),
    ];
    let (path, first) = world.repository("r", &files);
    let changes = [("one.yaml", Some("one: 2")), ("two.yaml", Some("two: 2"))];
    let second = Repos::commit_files(&path, "main", &changes, "Change").expect("a commit");
    let target = |sha: &String| RefTarget {
        repo: repo(&text(&path)),
        target_revision: Some(sha.clone()),
        chart: None,
    };
    let client = world.client();
    for (one, two, expected) in [
        (&first, &second, "1 2"),
        (&second, &second, "2 2"),
        (&second, &first, "2 1"),
        (&first, &first, "1 1"),
    ] {
        let plain = request(&path, "chart");
        let source = plain.application_source.clone().expect("it has one");
        let files = ["$one/one.yaml", "$two/two.yaml"].map(str::to_owned);
        let asked = ManifestRequest {
            has_multiple_sources: true,
            application_source: Some(ApplicationSource {
                helm: Some(Box::new(ApplicationSourceHelm {
                    value_files: files.to_vec(),
                    ..ApplicationSourceHelm::default()
                })),
                ..source
            }),
            ref_sources: BTreeMap::from([
                ("$one".to_owned(), target(one)),
                ("$two".to_owned(), target(two)),
            ]),
            ..plain
        };
        let found = client.manifests(&asked).await.expect("manifests");
        let object = found.objects[0].object();
        assert_eq!(object.str_at("/data/v"), expected);
    }
    assert_eq!(memory.names().len(), 2, "{:?}", memory.names());
}

/// What was told of one commit is told of no other, whether or not anything else changed.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_moves_to_a_commit_without_changes() {
    let memory = Memory::default();
    let world = World::sharing(memory.shared()).await;
    let (path, first) = world.repository("r", FILES);
    let client = world.client();
    client.manifests(&request(&path, "a")).await.expect("first");
    let names = memory.names();
    let changes = [("elsewhere", Some("x"))];
    let second = Repos::commit_files(&path, "main", &changes, "Change").expect("a commit");
    let asked = UpdateRevisionForPathsRequest {
        repo: repo(&text(&path)),
        application_source: request(&path, "a").application_source,
        app_name: "web".to_owned(),
        paths: vec!["a".to_owned()],
        synced_revision: first,
        revision: second.clone(),
        ..UpdateRevisionForPathsRequest::default()
    };
    let told = client.update_revision(&asked).await.expect("an answer");
    assert!(!told.changes);
    assert_eq!(memory.names(), names);
    let found = client.manifests(&request(&path, "a")).await;
    assert_eq!(found.expect("rendered").revision, second);
    assert_eq!(memory.names().len(), 2, "each has its own");
}

/// R30. Differs: of what Argo CD's repo-servers tell each other, only manifests and metadata. What
/// else they keep there is read or rendered again, and the answers of ours depend on nobody.
#[tokio::test(flavor = "multi_thread")]
async fn only_manifests_and_metadata_are_shared() {
    let memory = Memory::default();
    let world = World::sharing(memory.shared()).await;
    let (path, sha) = world.repository("r", FILES);
    let client = world.client();
    let asked = request(&path, "a");
    client.manifests(&asked).await.expect("rendered");
    let metadata = RepoServerRevisionMetadataRequest {
        repo: repo(&text(&path)),
        revision: sha.clone(),
        ..RepoServerRevisionMetadataRequest::default()
    };
    let found: RevisionMetadata = world
        .ask("GetRevisionMetadata", &metadata)
        .await
        .expect("metadata");
    assert!(found.date.is_some());
    let files = GitFilesRequest {
        repo: repo(&text(&path)),
        revision: "main".to_owned(),
        path: "a/*.yaml".to_owned(),
        ..GitFilesRequest::default()
    };
    let found: GitFilesResponse = world.ask("GetGitFiles", &files).await.expect("files");
    assert_eq!(found.map.len(), 1);
    let folders = GitDirectoriesRequest {
        repo: repo(&text(&path)),
        revision: "main".to_owned(),
        ..GitDirectoriesRequest::default()
    };
    let found: GitDirectoriesResponse = world
        .ask("GetGitDirectories", &folders)
        .await
        .expect("folders");
    assert_eq!(found.paths, ["a"]);
    let details = RepoServerAppDetailsQuery {
        repo: repo(&text(&path)),
        source: asked.application_source.clone(),
        app_name: "web".to_owned(),
        ..RepoServerAppDetailsQuery::default()
    };
    let found: RepoAppDetailsResponse =
        world.ask("GetAppDetails", &details).await.expect("details");
    assert_eq!(found.type_, "Directory");
    let kinds: Vec<String> = memory
        .names()
        .iter()
        .map(|name| name.split('|').next().unwrap_or_default().to_owned())
        .collect();
    assert_eq!(kinds, ["mfst", "revisionmetadata"]);
}

/// R34. Differs: no failure counts, so nobody is told an old one in place of a render.
#[tokio::test(flavor = "multi_thread")]
async fn no_failure_is_remembered() {
    let memory = Memory::default();
    let world = World::sharing(memory.shared()).await;
    let broken = [
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        ),
        ("chart/templates/a.yaml", "{{ fail \"it is broken\" }}"),
    ];
    let (path, _) = world.repository("r", &broken);
    let asked = request(&path, "chart");
    let client = world.client();
    // Argo CD pauses after three.
    for _ in 0..5 {
        let failed = client.manifests(&asked).await.map(|_| ());
        let failed = failed.expect_err("it is broken").to_string();
        assert!(failed.contains("it is broken"), "{failed}");
        assert!(!failed.contains("(cached)"), "{failed}");
        assert!(memory.names().is_empty(), "{:?}", memory.names());
    }
}
