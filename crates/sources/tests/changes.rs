//! Which sources a repo-server is asked about, and whether they have changed.

use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    io::{self, Read as _, Write as _},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
    time::Duration,
};
use tempfile::TempDir;
use tiphys_api::{
    AppProject, operation::RefTarget, repository::Repository,
    rpc::commit::CommitHydratedManifestsRequest,
};
use tiphys_cluster::{Settings, records::RepoSecret};
use tiphys_repo::{FilePattern, RepoServer, RepoServerOptions, Repos, Since};
use tiphys_sources::{AppRequest, Before, SourceRequest, Sources, TreeRequest};

const OLD: &str = "1111111111111111111111111111111111111111";
const NEW: &str = "2222222222222222222222222222222222222222";

/// Sources of a repo-server that is away: whoever asks it fails.
fn of_nobody(cache: &TempDir) -> Sources {
    with_settings(cache, Some(away()), Settings::default())
}

fn away() -> RepoServer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    at(address)
}

/// One that does not know what it is asked for.
fn foreign() -> RepoServer {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    thread::spawn(move || {
        let (connection, _) = listener.accept()?;
        refuse_all(connection)
    });
    at(address)
}

/// Answers each request over HTTP/2 that there is no such method, until the client has gone.
fn refuse_all(mut connection: TcpStream) -> io::Result<()> {
    const DATA: u8 = 0;
    const HEADERS: u8 = 1;
    const SETTINGS: u8 = 4;
    const END_STREAM: u8 = 1;
    connection.read_exact(&mut [0; "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".len()])?;
    connection.write_all(&[0, 0, 0, SETTINGS, 0, 0, 0, 0, 0])?;
    loop {
        let mut head = [0; 9];
        connection.read_exact(&mut head)?;
        let [a, b, c, kind, flags, stream @ ..] = head;
        let length = u32::from_be_bytes([0, a, b, c]);
        io::copy(&mut (&connection).take(length.into()), &mut io::sink())?;
        match kind {
            // Acknowledges them.
            SETTINGS if flags == 0 => {
                connection.write_all(&[0, 0, 0, SETTINGS, 1, 0, 0, 0, 0])?;
            }
            HEADERS | DATA if flags & END_STREAM != 0 => {
                // `:status: 200` by its number, and the code for "unimplemented".
                let fields = b"\x88\x00\x0bgrpc-status\x0212";
                let length = u8::try_from(fields.len()).expect("short");
                connection.write_all(&[0, 0, length, HEADERS, 4 | END_STREAM])?;
                connection.write_all(&stream)?;
                connection.write_all(fields)?;
            }
            _ => {}
        }
    }
}

fn at(address: String) -> RepoServer {
    let server = RepoServer::new(RepoServerOptions {
        address,
        timeout: Duration::from_secs(60),
        plaintext: true,
        trusted: Vec::new(),
        identity: None,
    });
    server.expect("an address")
}

fn with_settings(cache: &TempDir, server: Option<RepoServer>, settings: Settings) -> Sources {
    let settings = Arc::new(settings);
    let mut project = AppProject::default();
    project.spec.source_repos = vec!["*".to_owned()];
    let project = Arc::new(project);
    Sources::with(
        Repos::new(cache.path().to_owned()),
        server,
        move || Arc::clone(&settings),
        move |_| Some(Arc::clone(&project)),
    )
}

fn target() -> RefTarget {
    RefTarget {
        repo: Some(Repository::default()),
        target_revision: Some(NEW.to_owned()),
        chart: None,
    }
}

/// A source whose Application lists the paths that matter.
fn request(source: Value, refs: &[&str]) -> SourceRequest {
    let refs = refs.iter().map(|name| ((*name).to_owned(), target()));
    let app = AppRequest {
        instance: "web".to_owned(),
        generate_paths: ".".to_owned(),
        several: true,
        refs: refs.collect(),
        ..AppRequest::default()
    };
    SourceRequest {
        app: Arc::new(app),
        repository: Repository::default(),
        source: serde_json::from_value(source).expect("a source"),
        revision: NEW.to_owned(),
    }
}

fn before(revision: &str) -> Before {
    Before {
        revision: revision.to_owned(),
        refs: BTreeMap::new(),
    }
}

/// R118: a copy without history cannot tell what changed between two commits.
#[tokio::test]
async fn a_repository_with_a_depth_is_not_compared() {
    let cache = TempDir::new().expect("a folder");
    let sources = of_nobody(&cache);
    let plain = request(
        json!({"repoURL": "https://git.invalid/r", "path": "a"}),
        &[],
    );
    let shallow = SourceRequest {
        repository: Repository {
            depth: 1,
            ..Repository::default()
        },
        ..plain.clone()
    };
    let asked = sources.pin(&plain, &before(OLD), Since::Recently).await;
    asked.expect_err("the repo-server is asked");
    let pinned = sources.pin(&shallow, &before(OLD), Since::Recently).await;
    assert_eq!(pinned.expect("nobody is asked"), NEW);
    let changed = sources.changed(&shallow, &before(OLD)).await;
    assert!(changed.expect("nobody is asked"), "it may have");
}

/// R131.
#[tokio::test]
async fn what_cannot_have_changed_is_not_asked_for() {
    let cache = TempDir::new().expect("a folder");
    let sources = of_nobody(&cache);
    let app = json!({"repoURL": "https://git.invalid/r", "path": "a"});
    let values = json!({"repoURL": "https://git.invalid/v", "ref": "values"});
    for (source, with_values, revision, changed) in [
        (&app, false, NEW, Some(false)),
        (&app, false, OLD, None),
        // It may read of the other one.
        (&app, true, NEW, None),
        (&values, true, OLD, Some(false)),
    ] {
        let refs: &[&str] = if with_values { &["values"] } else { &[] };
        let request = request(source.clone(), refs);
        let found = sources.changed(&request, &before(revision)).await.ok();
        assert_eq!(found, changed, "{source} {with_values} {revision}");
    }
}

const FAULTY: &str = "https://git.invalid/r";
const FAULT: &str =
    "failed to get repo \"https://git.invalid/r\": Secret s: data.insecure is \"yes\"";

fn faulty(url: &str) -> Repository {
    let repository = Repository {
        repo: url.to_owned(),
        ..Repository::default()
    };
    repository.with_fault("Secret s: data.insecure is \"yes\"".to_owned())
}

/// R126: without its credentials, or with those of a template, it would be asked as someone else.
#[tokio::test]
async fn a_repository_with_a_fault_is_not_asked() {
    let cache = TempDir::new().expect("a folder");
    let sources = of_nobody(&cache);
    let url = FAULTY;
    let plain = request(json!({"repoURL": url, "path": "a"}), &[]);
    let own = SourceRequest {
        repository: faulty(url),
        ..plain.clone()
    };
    let of_values = RefTarget {
        repo: Some(faulty(url)),
        ..target()
    };
    let app = AppRequest {
        refs: BTreeMap::from([("values".to_owned(), of_values)]),
        ..(*plain.app).clone()
    };
    let other = SourceRequest {
        app: Arc::new(app),
        ..plain
    };
    let fault = FAULT;
    for request in [own, other] {
        let refused = sources.pin(&request, &before(""), Since::Recently).await;
        let refused = refused.expect_err("it is not asked");
        assert_eq!(refused.to_string(), fault);
    }
    let commit = CommitHydratedManifestsRequest {
        repo: Some(faulty(url)),
        ..CommitHydratedManifestsRequest::default()
    };
    let refused = sources.commit_hydrated(commit, "", 0).await;
    let refused = refused.expect_err("nothing is pushed to it");
    assert_eq!(refused.to_string(), fault);
}

/// R126: whoever asks, in this process and through a repo-server.
#[tokio::test]
async fn no_question_reaches_a_repository_with_a_fault() {
    let cache = TempDir::new().expect("a folder");
    let settings = Settings {
        repositories: vec![RepoSecret {
            secret_name: "s".to_owned(),
            managed: false,
            value: faulty(FAULTY),
        }],
        ..Settings::default()
    };
    let plain = request(json!({"repoURL": FAULTY, "path": "a"}), &[]);
    let request = SourceRequest {
        repository: faulty(FAULTY),
        ..plain
    };
    for server in [None, Some(away())] {
        let is_remote = server.is_some();
        let sources = with_settings(&cache, server, settings.clone());
        let repository = sources.repository(FAULTY, "team");
        let tree = TreeRequest {
            repo_url: FAULTY.to_owned(),
            revision: NEW.to_owned(),
            project: "team".to_owned(),
            is_fresh: false,
        };
        let pattern = FilePattern::Git("*".to_owned());
        let source = &request.source;
        let refusals = [
            sources.tree_files(&tree, pattern).await.err(),
            sources.tree_folders(&tree).await.err(),
            sources.tree_tools(&tree).await.err(),
            sources
                .resolve(&repository, source, NEW, Since::Recently)
                .await
                .err(),
            sources.changed(&request, &before(OLD)).await.err(),
            sources.manifests(&request, None).await.err(),
            sources.details(&request).await.err(),
            sources.metadata(&repository, NEW).await.err(),
            sources.refs(&repository).await.err(),
            sources.test(&repository).await.err(),
        ];
        for (i, refusal) in refusals.into_iter().enumerate() {
            let told = refusal.map(|refusal| refusal.to_string());
            assert_eq!(told.as_deref(), Some(FAULT), "{i} {is_remote}");
        }
    }
}

/// R126: a repo-server of Argo CD would have charts fetched from it without its credentials.
#[tokio::test]
async fn a_request_for_a_chart_lists_no_repository_with_a_fault() {
    let cache = TempDir::new().expect("a folder");
    let chart = json!({"repoURL": "https://other.invalid", "chart": "c"});
    let folder = json!({"repoURL": "https://git.invalid/r", "path": "a"});
    let fault = "failed to get repo \"https://charts.invalid\", which the request would list";
    let asked = "code = Unimplemented";
    for (server, source, type_, wanted) in [
        (foreign(), &chart, "helm", fault),
        (foreign(), &chart, "git", asked),
        (foreign(), &folder, "helm", asked),
        // Nobody knows whether that one is ours.
        (away(), &chart, "helm", "code = Unavailable"),
    ] {
        let request = request(source.clone(), &[]);
        let value = Repository {
            name: "charts".to_owned(),
            type_: type_.to_owned(),
            ..faulty("https://charts.invalid")
        };
        let settings = Settings {
            repositories: vec![RepoSecret {
                secret_name: "s".to_owned(),
                managed: false,
                value,
            }],
            ..Settings::default()
        };
        let sources = with_settings(&cache, Some(server), settings);
        let failed = sources.manifests(&request, None).await;
        let failed = failed.expect_err("none makes them").to_string();
        assert!(failed.contains(wanted), "{wanted}: {failed}");
    }
}
