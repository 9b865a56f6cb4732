//! Servers that send too much or nothing: what they have is refused, and nobody else waits for them.

use crate::local::{cm, names, source};
use std::{
    io::{BufRead as _, BufReader, Write as _},
    net::TcpListener,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};
use tiphys_repo::{
    ChartRemote, ErrorKind, Known, ManifestRequest, Manifests, RemoteOptions, RepoAccess,
    RepoError, RepoOptions, Repos,
};

static BLOCK: [u8; 1 << 20] = [b' '; 1 << 20];

/// A server that answers with this head, and then sends until its client has had enough.
struct Sending {
    url: String,
    blocks: Arc<AtomicUsize>,
}

impl Sending {
    fn start(head: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("bound"));
        let blocks = Arc::new(AtomicUsize::new(0));
        let sent = Arc::clone(&blocks);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                // To the end of its head: what it asks for does not matter.
                let mut lines = BufReader::new(&stream).lines();
                while lines
                    .next()
                    .is_some_and(|line| line.is_ok_and(|line| !line.is_empty()))
                {}
                let mut stream = &stream;
                let mut outcome = stream.write_all(head.as_bytes());
                while outcome.is_ok() {
                    outcome = stream.write_all(&BLOCK);
                    sent.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        Self { url, blocks }
    }
}

/// The largest index of a catalogue, however it is sent. It is never in memory as a whole.
#[tokio::test]
async fn a_large_index_is_refused_where_it_ends() {
    let sending = Sending::start("HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n");
    let options = RemoteOptions {
        pass_credentials: false,
        agent: String::new(),
        timeout: Duration::from_secs(120),
    };
    let remote = ChartRemote::new(RepoAccess::public(&sending.url), options);
    let outcome = remote.index(&Known::default()).await.map(|_| ());
    let refused = outcome.expect_err("128 MiB and more");
    let want = format!(
        "repository {}/index.yaml is refused: it has more than 134217728 bytes",
        sending.url
    );
    assert_eq!(refused.to_string(), want);
    assert_eq!(refused.kind(), ErrorKind::User);
}

/// One that says how large it is is not even begun.
#[tokio::test]
async fn an_index_that_is_announced_too_large_is_not_read() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 2000000000\r\n\r\n";
    let (sending, dir) = (Sending::start(head), tempfile::tempdir().expect("a folder"));
    let repos = Repos::new(dir.path());
    let refused = repos.charts(&RepoAccess::public(&sending.url)).await;
    let refused = refused.expect_err("2 GB");
    let want = format!(
        "repository {}/index.yaml is refused: it has more than ",
        sending.url
    );
    assert!(refused.to_string().starts_with(&want), "{refused}");
    assert!(!refused.retryable());
    // What fits between the two of them, and no more.
    let blocks = sending.blocks.load(Ordering::Relaxed);
    assert!(blocks < 100, "{blocks} MiB were sent");
}

async fn rendered(
    repos: &Repos,
    access: &RepoAccess,
    sha: &str,
    path: &str,
) -> Result<Arc<Manifests>, RepoError> {
    let request = ManifestRequest {
        access: access.clone(),
        source: source(path),
        sha: sha.to_owned(),
        ..ManifestRequest::default()
    };
    repos.manifests(request).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_base_that_never_answers_is_given_up() {
    // The system accepts connections to it, and nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = silent.local_addr().expect("bound");
    let dir = tempfile::tempdir().expect("a folder");
    let base = |name: &str| format!("resources: ['http://{address}/{name}']\n");
    let (of_git, of_web) = (base("base.git//app?ref=main"), base("base.yaml"));
    let text = cm("a", "1");
    let path = dir.path().join("r.git");
    let files = [
        ("git/kustomization.yaml", of_git.as_str()),
        ("web/kustomization.yaml", of_web.as_str()),
        ("plain/a.yaml", text.as_str()),
    ];
    let sha = Repos::init_example(&path, files).expect("a repository");
    let options = RepoOptions {
        timeout: Duration::from_secs(1),
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(dir.path().join("cache"), options);
    let access = RepoAccess::public(path.to_str().expect("UTF-8"));
    let render = |path| rendered(&repos, &access, &sha, path);
    let (git, web, plain) = tokio::join!(render("git"), render("web"), render("plain"));
    for (what, outcome) in [("git", git), ("web", web)] {
        let given_up = outcome.expect_err(what);
        let is_timeout = matches!(given_up, RepoError::Timeout { seconds: 1, .. });
        assert!(is_timeout && given_up.retryable(), "{what}: {given_up}");
        let told = given_up.to_string();
        assert!(told.contains(&address.to_string()), "{what}: {told}");
    }
    assert_eq!(names(&plain.expect("nobody waits for it")), ["a"]);
}
