//! Repositories that exceed limits, and servers that send endlessly: each is refused by name, at
//! almost no cost.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    path::Path,
    process::{Command, Stdio},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    ErrorKind, GitLimits, ManifestRequest, Manifests, RepoAccess, RepoError, RepoOptions, Repos,
    Since,
};
use tiphys_testkit::{
    archive::{TarEntry, gzip, tar},
    git_server::{Server, Setup},
    registry::{Registry, TAR_GZIP_LAYER},
};

const CM: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n";

/// One test at a time, because some measure the memory of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn git(dir: &Path, args: &[&str], stdin: impl FnOnce(&mut dyn Write)) -> String {
    let names = ["GIT_AUTHOR", "GIT_COMMITTER"].map(|who| {
        [
            (format!("{who}_NAME"), "t"),
            (format!("{who}_EMAIL"), "t@localhost"),
        ]
    });
    let mut child = Command::new("git")
        .args(args)
        .current_dir(dir)
        .envs(names.into_iter().flatten())
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("git");
    stdin(&mut child.stdin.take().expect("stdin"));
    let out = child.wait_with_output().expect("git");
    assert!(out.status.success(), "git {args:?}");
    String::from_utf8(out.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

/// Creates a repository `r.git` with a small folder `app` and the blob `blob`; returns the commit.
fn repository(dir: &Path, blob: impl FnOnce(&mut dyn Write)) -> String {
    let bare = dir.join("r.git");
    Repos::init_example(&bare, [("app/a.yaml", CM)]).expect("example");
    let blob = git(&bare, &["hash-object", "-w", "--stdin"], blob);
    let app = git(&bare, &["rev-parse", "main:app"], |_| ());
    let tree = git(&bare, &["mktree"], |w| {
        write!(w, "040000 tree {app}\tapp\n100644 blob {blob}\tlarge\n").expect("stdin")
    });
    let commit = git(&bare, &["commit-tree", &tree, "-m", "large"], |_| ());
    git(&bare, &["update-ref", "refs/heads/main", &commit], |_| ());
    commit
}

fn zeros(megabytes: usize) -> impl FnOnce(&mut dyn Write) {
    move |w| (0..megabytes).for_each(|_| w.write_all(&[0; 1 << 20]).expect("stdin"))
}

/// Bytes that do not compress.
fn noise(bytes: usize) -> impl FnOnce(&mut dyn Write) {
    move |w| {
        let mut state = 1_u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()[3]
        };
        w.write_all(&(0..bytes).map(|_| next()).collect::<Vec<u8>>())
            .expect("stdin");
    }
}

fn repos(cache: &tempfile::TempDir, limits: GitLimits) -> Repos {
    Repos::with_options(
        cache.path(),
        RepoOptions {
            limits,
            // What is large takes its time on a machine with much to do.
            timeout: Duration::from_secs(300),
            ..RepoOptions::default()
        },
    )
}

async fn manifests(repos: &Repos, url: &str, sha: &str) -> Result<Arc<Manifests>, RepoError> {
    let source = ApplicationSource {
        path: "app".to_owned(),
        ..ApplicationSource::default()
    };
    repos
        .manifests(ManifestRequest {
            access: RepoAccess::public(url),
            source,
            sha: sha.to_owned(),
            ..ManifestRequest::default()
        })
        .await
}

/// The peak memory of this process since [`forget_peak`], in bytes.
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("status");
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("VmHWM:"))
        .expect("VmHWM");
    line.trim()
        .trim_end_matches(" kB")
        .parse::<u64>()
        .expect("a number")
        << 10
}

fn forget_peak() -> u64 {
    std::fs::write("/proc/self/clear_refs", "5").expect("clear_refs");
    peak()
}

/// Allowance for memory unrelated to the refused data.
const ROOM: u64 = 120 << 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::await_holding_lock, reason = "one test at a time")]
async fn a_large_blob_is_refused_before_it_is_in_memory() {
    let _alone = alone();
    let (dir, cache) = (
        tempfile::tempdir().expect("tempdir"),
        tempfile::tempdir().expect("tempdir"),
    );
    let sha = repository(dir.path(), zeros(400));
    let server = Server::start(dir.path(), Setup::default());
    let (url, before) = (server.url("/r.git"), forget_peak());
    let repos = repos(
        &cache,
        GitLimits {
            object_bytes: 64 << 20,
            ..GitLimits::default()
        },
    );
    let error = manifests(&repos, &url, &sha).await.expect_err("too large");
    let wanted = format!(
        "repository {url} is refused: it has more than 67108864 bytes in one object (raise the limit with --git-max-object-bytes)"
    );
    assert_eq!(
        (error.to_string(), error.kind(), error.retryable()),
        (wanted.clone(), ErrorKind::User, false)
    );
    assert!(
        peak() < before + ROOM,
        "{} MiB more",
        (peak() - before) >> 20
    );
    // It is not fetched again for every caller.
    let fetches = server.count("fetch");
    assert_eq!(
        manifests(&repos, &url, &sha)
            .await
            .expect_err("too large")
            .to_string(),
        wanted
    );
    assert_eq!(server.count("fetch"), fetches);
    let left = walk(cache.path())
        .into_iter()
        .filter(|f| f.contains("pack/"))
        .collect::<Vec<_>>();
    assert!(left.is_empty(), "{left:?}");
}

fn walk(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir)
        .expect("folder")
        .flatten()
        .map(|e| e.path());
    entries
        .flat_map(|path| {
            if path.is_dir() {
                walk(&path)
            } else {
                vec![path.display().to_string()]
            }
        })
        .collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::await_holding_lock, reason = "one test at a time")]
async fn a_large_blob_elsewhere_hurts_nobody_within_the_limits() {
    let _alone = alone();
    let (dir, cache) = (
        tempfile::tempdir().expect("tempdir"),
        tempfile::tempdir().expect("tempdir"),
    );
    let sha = repository(dir.path(), zeros(100));
    let server = Server::start(dir.path(), Setup::default());
    let repos = repos(&cache, GitLimits::default());
    assert_eq!(
        manifests(&repos, &server.url("/r.git"), &sha)
            .await
            .expect("within the limits")
            .objects
            .len(),
        1
    );
    // Reading it again from the copy does not unpack it.
    let before = forget_peak();
    let repos = self::repos(
        &cache,
        GitLimits {
            object_bytes: 1 << 20,
            ..GitLimits::default()
        },
    );
    assert_eq!(
        manifests(&repos, &server.url("/r.git"), &sha)
            .await
            .expect("from the copy")
            .objects
            .len(),
        1
    );
    assert!(
        peak() < before + (50 << 20),
        "{} MiB more",
        (peak() - before) >> 20
    );
}

#[tokio::test]
#[allow(clippy::await_holding_lock, reason = "one test at a time")]
async fn each_limit_is_named_with_the_repository() {
    let _alone = alone();
    let all = GitLimits::default();
    let cases = [
        (
            GitLimits {
                pack_bytes: 100_000,
                ..all
            },
            "more than 100000 bytes in one pack (raise the limit with --git-max-pack-bytes)",
        ),
        (
            GitLimits {
                object_bytes: 100_000,
                ..all
            },
            "more than 100000 bytes in one object (raise the limit with --git-max-object-bytes)",
        ),
        (
            GitLimits { objects: 2, ..all },
            "more than 2 objects in one pack (raise the limit with --git-max-objects)",
        ),
        (
            GitLimits { refs: 1, ..all },
            "more than 1 refs (raise the limit with --git-max-refs)",
        ),
        (
            GitLimits {
                advertisement_bytes: 60,
                ..all
            },
            "more than 60 bytes in its list of refs (raise the limit with --git-max-refs-bytes)",
        ),
        (
            GitLimits {
                tree_entries: 1,
                ..all
            },
            "more than 1 entries in one folder (raise the limit with --git-max-folder-entries)",
        ),
        (
            GitLimits { depth: 0, ..all },
            "more than 0 nested folders (raise the limit with --git-max-folder-depth)",
        ),
    ];
    let dir = tempfile::tempdir().expect("tempdir");
    let sha = repository(dir.path(), noise(200_000));
    for old in [false, true] {
        let server = Server::start(
            dir.path(),
            Setup {
                old,
                user: Some(("u", "s3cr3t")),
                ..Setup::default()
            },
        );
        let url = server.url("/r.git");
        for (limits, excess) in cases {
            let cache = tempfile::tempdir().expect("tempdir");
            let with_password = url.replacen("://", "://u:s3cr3t@", 1);
            let error = manifests(&repos(&cache, limits), &with_password, &sha)
                .await
                .expect_err(excess)
                .to_string();
            let wanted = format!("repository {url} is refused: it has {excess}");
            assert!(error.ends_with(&wanted), "{error}\nshould be\n{wanted}");
            assert!(!error.contains("s3cr3t"), "{error}");
        }
        let cache = tempfile::tempdir().expect("tempdir");
        let url = url.replacen("://", "://u:s3cr3t@", 1);
        manifests(
            &repos(
                &cache,
                GitLimits {
                    pack_bytes: 300_000,
                    object_bytes: 250_000,
                    objects: 20,
                    refs: 3,
                    ..all
                },
            ),
            &url,
            &sha,
        )
        .await
        .expect("within the limits");
    }
}

/// The result of a delta may be far larger than the delta.
#[tokio::test]
#[allow(clippy::await_holding_lock, reason = "one test at a time")]
async fn what_a_delta_makes_counts_too() {
    let _alone = alone();
    let (dir, cache) = (
        tempfile::tempdir().expect("tempdir"),
        tempfile::tempdir().expect("tempdir"),
    );
    let mut base = Vec::new();
    noise(90_000)(&mut base);
    repository(dir.path(), |w| w.write_all(&base).expect("stdin"));
    let bare = dir.path().join("r.git");
    let twice = git(&bare, &["hash-object", "-w", "--stdin"], |w| {
        w.write_all(&base.repeat(4)).expect("stdin")
    });
    let one = git(&bare, &["rev-parse", "main:large"], |_| ());
    let app = git(&bare, &["rev-parse", "main:app"], |_| ());
    let tree =
        format!("040000 tree {app}\tapp\n100644 blob {one}\tlarge\n100644 blob {twice}\tlarger\n");
    let tree = git(&bare, &["mktree"], |w| {
        w.write_all(tree.as_bytes()).expect("stdin")
    });
    let sha = git(&bare, &["commit-tree", &tree, "-m", "delta"], |_| ());
    git(&bare, &["update-ref", "refs/heads/main", &sha], |_| ());
    git(&bare, &["repack", "-adfq", "--window=50"], |_| ());
    let server = Server::start(dir.path(), Setup::default());
    let error = manifests(
        &repos(
            &cache,
            GitLimits {
                object_bytes: 200_000,
                ..GitLimits::default()
            },
        ),
        &server.url("/r.git"),
        &sha,
    )
    .await;
    assert!(
        matches!(&error, Err(RepoError::OverLimit { excess, .. }) if excess.contains("bytes in one object")),
        "{error:?}"
    );
}

/// A server that answers a request for refs endlessly: in the capabilities, in protocol version 2's
/// list, or in version 1's.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Endless {
    Capabilities,
    Refs,
    OldRefs,
    Headers,
}

fn endless(what: Endless) -> (u16, std::thread::JoinHandle<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = listener.local_addr().expect("address").port();
    let thread = std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut line = String::new();
            if reader.read_line(&mut line).is_err() || line.starts_with("END") {
                return;
            }
            std::thread::spawn(move || {
                let mut line = line;
                while !line.is_empty() && answer(&mut reader, &line, what).is_ok() {
                    line.clear();
                    if reader.read_line(&mut line).is_err() {
                        return;
                    }
                }
            });
        }
    });
    (port, thread)
}

fn packet(text: &str) -> String {
    format!("{:04x}{text}", text.len() + 4)
}

fn answer(stream: &mut BufReader<TcpStream>, request: &str, what: Endless) -> std::io::Result<()> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line)?;
        if line.trim().is_empty() {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap_or(0);
        }
    }
    stream.read_exact(&mut vec![0; length])?;
    let out = stream.get_mut();
    let kind = if request.starts_with("GET") {
        "advertisement"
    } else {
        "result"
    };
    write!(
        out,
        "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-{kind}\r\n"
    )?;
    if what == Endless::Headers {
        for n in 0_u64.. {
            write!(out, "X-{n}: {}\r\n", "h".repeat(1000))?;
        }
    }
    let id = "1".repeat(40);
    let many = |start: String,
                more: fn(u64, &str) -> String,
                out: &mut TcpStream|
     -> std::io::Result<()> {
        write!(out, "Connection: close\r\n\r\n{start}")?;
        for n in 0_u64.. {
            let lines: String = (0..100).map(|m| packet(&more(n * 100 + m, &id))).collect();
            out.write_all(lines.as_bytes())?;
        }
        Ok(())
    };
    let service = format!("{}0000", packet("# service=git-upload-pack\n"));
    match (what, request.starts_with("GET")) {
        (Endless::Capabilities, true) => many(
            format!("{service}{}", packet("version 2\n")),
            |n, _| format!("capability-{n}={}\n", "c".repeat(900)),
            out,
        ),
        (Endless::OldRefs, true) => {
            let first = packet(&format!(
                "{id} HEAD\0multi_ack shallow side-band-64k ofs-delta\n"
            ));
            many(
                format!("{service}{first}"),
                |n, id| format!("{id} refs/heads/{n}-{}\n", "r".repeat(900)),
                out,
            )
        }
        (_, true) => {
            let body = format!(
                "{service}{}{}{}{}0000",
                packet("version 2\n"),
                packet("agent=t\n"),
                packet("ls-refs=unborn\n"),
                packet("fetch=shallow\n")
            );
            write!(out, "Content-Length: {}\r\n\r\n{body}", body.len())
        }
        (_, false) => many(
            String::new(),
            |n, id| format!("{id} refs/heads/{n}-{}\n", "r".repeat(900)),
            out,
        ),
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::await_holding_lock, reason = "one test at a time")]
async fn an_endless_list_of_refs_ends_at_the_limit() {
    let _alone = alone();
    for what in [
        Endless::Refs,
        Endless::OldRefs,
        Endless::Capabilities,
        Endless::Headers,
    ] {
        let (port, thread) = endless(what);
        let (cache, before) = (tempfile::tempdir().expect("tempdir"), forget_peak());
        let repos = repos(&cache, GitLimits::default());
        let url = format!("http://127.0.0.1:{port}/r.git");
        let error = repos
            .refs(&RepoAccess::public(&url), Since::now())
            .await
            .expect_err("endless");
        if what == Endless::Headers {
            // The HTTP client has its own limit for these.
            assert!(
                matches!(error, RepoError::Unreachable { .. }),
                "{what:?}: {error}"
            );
        } else {
            let wanted = format!(
                "repository {url} is refused: it has more than 33554432 bytes in its list of refs (raise the limit with --git-max-refs-bytes)"
            );
            assert_eq!(error.to_string(), wanted, "{what:?}");
        }
        assert!(
            peak() < before + ROOM,
            "{what:?}: {} MiB more",
            (peak() - before) >> 20
        );
        TcpStream::connect(("127.0.0.1", port))
            .expect("connect")
            .write_all(b"END\n")
            .expect("write");
        thread.join().expect("the server ends");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::await_holding_lock, reason = "one test at a time")]
async fn a_large_artifact_is_unpacked_on_disk() {
    let _alone = alone();
    let registry = Registry::start();
    let digest = {
        let large = "0".repeat(160 << 20);
        let files = [
            TarEntry::file("app/a.yaml", CM),
            TarEntry::file("large.bin", &large),
        ];
        registry.push("team/app", "1", TAR_GZIP_LAYER, &gzip(&tar(&files)))
    };
    let (cache, before) = (tempfile::tempdir().expect("tempdir"), forget_peak());
    let repos = repos(&cache, GitLimits::default());
    let url = format!("oci://{}/team/app", registry.host());
    let request = ManifestRequest {
        access: RepoAccess {
            plain_http: true,
            ..RepoAccess::public(&url)
        },
        source: ApplicationSource {
            repo_url: url.clone(),
            path: "app".to_owned(),
            ..ApplicationSource::default()
        },
        sha: digest,
        ..ManifestRequest::default()
    };
    let made = repos.manifests(request).await.expect("manifests");
    assert_eq!(made.objects.len(), 1);
    assert!(
        peak() < before + ROOM,
        "{} MiB more",
        (peak() - before) >> 20
    );
}
