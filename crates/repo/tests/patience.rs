//! How patiently Git servers are asked for their refs, and what is told of waiting.

use std::{
    net::{Shutdown, TcpListener, TcpStream},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    ContactKind, ContactWatch, ManifestRequest, RepoAccess, RepoError, RepoOptions, Repos, Retry,
    Since, SourceLimits,
};
use tiphys_testkit::git_server::{Server, Setup};

const FILES: [(&str, &str); 1] = [(
    "app/a.yaml",
    "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n",
)];

/// Repositories whose look-ups are counted.
struct Counting {
    repos: Repos,
    look_ups: Arc<AtomicUsize>,
    _cache: tempfile::TempDir,
}

impl Counting {
    fn new(sources: SourceLimits) -> Self {
        let (cache, look_ups) = (
            tempfile::tempdir().expect("a folder"),
            Arc::new(AtomicUsize::new(0)),
        );
        let counted = Arc::clone(&look_ups);
        let options = RepoOptions {
            sources,
            timeout: Duration::from_secs(60),
            contacts: ContactWatch::new(move |contact| {
                if contact.kind == ContactKind::LsRemote {
                    counted.fetch_add(1, Ordering::Relaxed);
                }
            }),
            ..RepoOptions::default()
        };
        Self {
            repos: Repos::with_options(cache.path(), options),
            look_ups,
            _cache: cache,
        }
    }

    async fn resolved(&self, url: &str) -> Result<String, RepoError> {
        let access = RepoAccess::public(url);
        let found = self.repos.resolve(&access, "main", Since::now()).await;
        found.map(|found| found.sha)
    }

    /// Since this was called last.
    fn look_ups(&self) -> usize {
        self.look_ups.swap(0, Ordering::Relaxed)
    }
}

fn tried(attempts: u32) -> SourceLimits {
    SourceLimits {
        look_up_retry: Retry {
            attempts,
            pause: Duration::from_millis(1),
            ..Retry::default()
        },
        ..SourceLimits::default()
    }
}

fn pipe(mut from: TcpStream, mut to: TcpStream) {
    std::thread::spawn(move || {
        // Whoever goes away ends it.
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
}

/// What is in front of a server and drops the first connections. Its address.
fn flaky(server: &Server, dropped: usize) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let own = listener.local_addr().expect("address").port();
    let url = server.url("");
    let port = url.rsplit(':').next().and_then(|port| port.parse().ok());
    let port: u16 = port.expect("a port");
    std::thread::spawn(move || {
        for (number, stream) in listener.incoming().flatten().enumerate() {
            if number < dropped {
                drop(stream);
                continue;
            }
            let other = TcpStream::connect(("127.0.0.1", port)).expect("it listens");
            let clone = |stream: &TcpStream| stream.try_clone().expect("a handle");
            pipe(clone(&stream), clone(&other));
            pipe(other, stream);
        }
    });
    format!("http://127.0.0.1:{own}/r.git")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn refs_are_asked_for_as_often_as_is_wanted() {
    let dir = tempfile::tempdir().expect("a folder");
    let sha = Repos::init_example(&dir.path().join("r.git"), FILES).expect("a repository");
    let server = Server::start(dir.path(), Setup::default());
    let (once, thrice) = (Counting::new(tried(1)), Counting::new(tried(3)));

    let failed = once.resolved(&flaky(&server, 2)).await;
    let failed = failed.expect_err("the connection is dropped");
    assert!(matches!(failed, RepoError::Unreachable { .. }), "{failed}");
    assert_eq!(once.look_ups(), 1);

    let found = thrice.resolved(&flaky(&server, 2)).await;
    assert_eq!(found.expect("the third attempt succeeds"), sha);
    assert_eq!(thrice.look_ups(), 3);
    let failed = thrice.resolved(&flaky(&server, usize::MAX)).await;
    failed.expect_err("it never succeeds");
    assert_eq!(thrice.look_ups(), 3);

    // What will not change is not asked for again.
    let absent = thrice.resolved(&server.url("/none.git")).await;
    let absent = absent.expect_err("there is none");
    assert!(matches!(absent, RepoError::NotFound { .. }), "{absent}");
    assert_eq!(thrice.look_ups(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_for_refs_has_a_timeout_of_its_own() {
    let silent = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = silent.local_addr().expect("address").port();
    let patient = Counting::new(SourceLimits {
        look_up_timeout: Some(Duration::from_secs(1)),
        ..SourceLimits::default()
    });
    let url = format!("http://127.0.0.1:{port}/r.git");
    let failed = patient.resolved(&url).await.expect_err("it is silent");
    assert_eq!(
        failed.to_string(),
        format!("repository {url} did not answer within 1 s")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_wait_for_a_turn_is_told() {
    let dir = tempfile::tempdir().expect("a folder");
    let repository = dir.path().join("r");
    let sha = Repos::init_example(&repository, FILES).expect("a repository");
    let waits = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&waits);
    let contacts = ContactWatch::default().with_waits(move |_| {
        counted.fetch_add(1, Ordering::Relaxed);
    });
    let options = RepoOptions {
        contacts,
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(dir.path().join("cache"), options);
    let request = ManifestRequest {
        access: RepoAccess::public(repository.display().to_string()),
        source: ApplicationSource {
            path: "app".to_owned(),
            ..ApplicationSource::default()
        },
        sha,
        ..ManifestRequest::default()
    };
    repos.manifests(request).await.expect("rendered");
    assert!(waits.load(Ordering::Relaxed) > 0);
}
