//! Remote repositories over loopback: http and https through `git http-backend`, ssh through a fake
//! program.

use std::{
    io::{Read, Write},
    net::TcpListener,
    path::Path,
    sync::Arc,
    time::Duration,
};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    ErrorKind, Identity, ManifestRequest, Manifests, RepoAccess, RepoError, RepoOptions, Repos,
    Secret, Since,
};
use tiphys_testkit::{
    charts::FileServer,
    git_server::{Server, Setup},
};

const SECRET: &str = "s3cr3t-pa55";

fn cm(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  v: \"{value}\"\n")
}

/// A folder with the bare repository `r.git` of three commits on main.
fn example() -> (tempfile::TempDir, [String; 3]) {
    let dir = tempfile::tempdir().expect("tempdir");
    let repository = dir.path().join("r.git");
    let first =
        Repos::init_example(&repository, [("app/a.yaml", cm("a", "1").as_str())]).expect("example");
    let change = |v: &str| {
        Repos::commit_files(&repository, "main", &[("app/a.yaml", Some(&cm("a", v)))], v)
            .expect("commit")
    };
    let (second, third) = (change("2"), change("3"));
    (dir, [first, second, third])
}

fn repos(cache: &tempfile::TempDir) -> Repos {
    Repos::with_options(
        cache.path(),
        RepoOptions {
            timeout: Duration::from_secs(20),
            ..RepoOptions::default()
        },
    )
}

fn cache() -> tempfile::TempDir {
    tempfile::tempdir().expect("tempdir")
}

fn value(manifests: &Manifests) -> String {
    manifests.objects[0].object().str_at("/data/v").to_owned()
}

async fn manifests(
    repos: &Repos,
    access: &RepoAccess,
    sha: &str,
) -> Result<Arc<Manifests>, RepoError> {
    let source = ApplicationSource {
        path: "app".to_owned(),
        ..ApplicationSource::default()
    };
    repos
        .manifests(ManifestRequest {
            access: access.clone(),
            source,
            sha: sha.to_owned(),
            ..ManifestRequest::default()
        })
        .await
}

/// Commits in the copies under a cache folder.
pub fn commits_in(cache: &Path) -> usize {
    let mut total = 0;
    for url in std::fs::read_dir(cache).expect("cache").flatten() {
        for generation in std::fs::read_dir(url.path())
            .expect("generations")
            .flatten()
        {
            let out = std::process::Command::new("git")
                .args(["rev-list", "--all", "--count"])
                .current_dir(generation.path())
                .output();
            total += String::from_utf8_lossy(&out.expect("git").stdout)
                .trim()
                .parse::<usize>()
                .expect("a number");
        }
    }
    total
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_commit_is_fetched_once_and_without_history() {
    let (dir, [first, second, third]) = example();
    let server = Server::start(dir.path(), Setup::default());
    let (cache, access) = (cache(), RepoAccess::public(server.url("/r.git")));
    let repos = repos(&cache);
    let head = repos
        .resolve(&access, "HEAD", Since::Recently)
        .await
        .expect("HEAD");
    assert_eq!(
        (&head.sha, head.display),
        (&third, format!("HEAD ({third})"))
    );
    let all = (0..50).map(|_| {
        let (repos, access, third) = (repos.clone(), access.clone(), third.clone());
        tokio::spawn(async move { manifests(&repos, &access, &third).await })
    });
    for one in all.collect::<Vec<_>>() {
        assert_eq!(value(&one.await.expect("joins").expect("manifests")), "3");
    }
    assert_eq!(server.count("fetch"), 1, "{:?}", server.log());
    assert_eq!(
        commits_in(cache.path()),
        1,
        "only the commit, not its history"
    );
    assert_eq!(
        value(
            &manifests(&repos, &access, &first)
                .await
                .expect("an old commit by its SHA")
        ),
        "1"
    );
    assert_eq!(commits_in(cache.path()), 2);
    let abbreviated = repos
        .resolve(&access, &second[..8], Since::Recently)
        .await
        .expect("abbreviated");
    assert_eq!(abbreviated.sha, second[..8]);
    let found = manifests(&repos, &access, &abbreviated.sha)
        .await
        .expect("abbreviated");
    assert_eq!((value(&found).as_str(), &found.revision), ("2", &second));
    let again = self::repos(&cache);
    assert_eq!(
        value(
            &manifests(&again, &access, &first)
                .await
                .expect("from the copy on disk")
        ),
        "1"
    );
    let metadata = again.metadata(&access, &second).await.expect("metadata");
    assert_eq!(
        (metadata.message.as_str(), metadata.author.as_str()),
        ("2", "Tiphys <tiphys@localhost>")
    );
    let gone = "0123456789012345678901234567890123456789";
    assert!(matches!(
        manifests(&repos, &access, gone).await,
        Err(RepoError::CommitMissing { .. })
    ));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn lookups_are_shared() {
    let (dir, [_, _, third]) = example();
    let server = Server::start(dir.path(), Setup::default());
    let (cache, access) = (cache(), RepoAccess::public(server.url("/r.git")));
    let repos = repos(&cache);
    for fresh in [true, false] {
        let all: Vec<_> = (0..300)
            .map(|_| {
                let (repos, access) = (repos.clone(), access.clone());
                tokio::spawn(async move {
                    let since = if fresh { Since::now() } else { Since::Recently };
                    repos.resolve(&access, "main", since).await
                })
            })
            .collect();
        for one in all {
            assert_eq!(one.await.expect("joins").expect("resolves").sha, third);
        }
    }
    assert!(server.count("ls-refs") <= 3, "{:?}", server.log());
    let next = Repos::commit_files(
        &dir.path().join("r.git"),
        "main",
        &[("x", Some("1"))],
        "Next",
    )
    .expect("commit");
    assert_eq!(
        repos
            .resolve(&access, "main", Since::Recently)
            .await
            .expect("remembered")
            .sha,
        third
    );
    assert_eq!(
        repos
            .resolve(&access, "main", Since::now())
            .await
            .expect("fresh")
            .sha,
        next
    );
}

#[tokio::test]
async fn credentials_are_asked_for_and_never_shown() {
    let (dir, [_, _, third]) = example();
    let server = Server::start(
        dir.path(),
        Setup {
            user: Some(("me", SECRET)),
            tls: true,
            ..Setup::default()
        },
    );
    let (cache, url) = (cache(), server.url("/r.git"));
    let repos = repos(&cache);
    let public = RepoAccess {
        ca_data: server.ca(),
        ..RepoAccess::public(&url)
    };
    let with = |user: &str, password: &str| RepoAccess {
        username: user.into(),
        password: Secret::new(password),
        ..public.clone()
    };
    let good = with("me", SECRET);
    assert_eq!(
        value(
            &manifests(&repos, &good, &third)
                .await
                .expect("with the password")
        ),
        "3"
    );
    for (access, hint) in [
        (public.clone(), " (none are configured)"),
        (with("me", "wr0ng"), ""),
        (with("you", SECRET), ""),
    ] {
        let error = repos.test(&access).await.expect_err("refused");
        assert_eq!(
            error.to_string(),
            format!("authentication required: repository {url} refused the credentials{hint}")
        );
        assert_eq!(error.kind(), ErrorKind::Config);
        let error = manifests(&repos, &access, &third)
            .await
            .expect_err("the copy of others is not shown")
            .to_string();
        assert!(error.starts_with("authentication required"), "{error}");
    }
    let in_url = RepoAccess {
        url: url.replace("https://", &format!("https://me:{SECRET}@")),
        ..public.clone()
    };
    repos.test(&in_url).await.expect("userinfo in the URL");
    let untrusted = RepoAccess {
        username: "me".into(),
        password: SECRET.into(),
        ..RepoAccess::public(&url)
    };
    let error = repos
        .test(&untrusted)
        .await
        .expect_err("an unknown certificate");
    assert!(matches!(error, RepoError::Unreachable { .. }), "{error}");
    assert!(error.to_string().contains("certificate"), "{error}");
    repos
        .test(&RepoAccess {
            insecure: true,
            ..untrusted
        })
        .await
        .expect("not checked");
    assert!(!format!("{good:?} {repos:?}").contains(SECRET));
}

#[tokio::test]
async fn tokens_and_plain_http() {
    let (dir, _) = example();
    let repos_dir = cache();
    let repos = repos(&repos_dir);
    let server = Server::start(
        dir.path(),
        Setup {
            token: Some(SECRET),
            ..Setup::default()
        },
    );
    let access = RepoAccess {
        bearer_token: SECRET.into(),
        ..RepoAccess::public(server.url("/r.git"))
    };
    repos.test(&access).await.expect("with the token");
    let wrong = RepoAccess {
        bearer_token: "no".into(),
        ..access.clone()
    };
    assert!(matches!(
        repos.test(&wrong).await,
        Err(RepoError::AuthFailed { .. })
    ));
    let server = Server::start(
        dir.path(),
        Setup {
            user: Some(("me", SECRET)),
            ..Setup::default()
        },
    );
    let access = RepoAccess {
        username: "me".into(),
        password: SECRET.into(),
        ..RepoAccess::public(server.url("/r.git"))
    };
    repos.test(&access).await.expect("with the password");
}

/// A server that gives these tokens one after the other.
fn token_server(tokens: &'static [&'static str]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for token in tokens {
            let (mut stream, _) = listener.accept().expect("a question");
            let mut question = Vec::new();
            // The last field of the form.
            while !question.ends_with(b"client_secret=s") {
                let mut part = [0; 1024];
                let count = stream.read(&mut part).expect("a question");
                question.extend_from_slice(&part[..count]);
            }
            let body = format!(r#"{{"access_token": "{token}", "expires_in": 3600}}"#);
            write!(
                stream,
                "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
                body.len()
            )
            .expect("an answer");
        }
    });
    url
}

#[tokio::test]
async fn an_identity_gets_a_token_and_another_one_when_it_is_refused() {
    let (dir, [_, _, third]) = example();
    let repos_dir = cache();
    let repos = repos(&repos_dir);
    let server = Server::start(
        dir.path(),
        Setup {
            token: Some(SECRET),
            ..Setup::default()
        },
    );
    let access = RepoAccess {
        identity: Some(Identity::AzurePrincipal {
            tenant: "t".into(),
            client: "c".into(),
            secret: "s".into(),
            authority: token_server(&["revoked", SECRET]),
        }),
        ..RepoAccess::public(server.url("/r.git"))
    };
    let refused = repos.test(&access).await;
    assert!(matches!(refused, Err(RepoError::AuthFailed { .. })));
    // No third token: this one is kept for all that follows.
    repos.test(&access).await.expect("with the second token");
    manifests(&repos, &access, &third).await.expect("rendered");
    let public = RepoAccess::public(server.url("/r.git"));
    assert!(matches!(
        repos.test(&public).await,
        Err(RepoError::AuthFailed { .. })
    ));
}

#[tokio::test]
async fn the_proxy_is_left_out_for_some_hosts() {
    let (dir, _) = example();
    let server = Server::start(dir.path(), Setup::default());
    // It refuses everything, so what succeeds went past it.
    let proxy = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = format!("http://{}", proxy.local_addr().expect("bound"));
    std::thread::spawn(move || {
        for mut stream in proxy.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 502 X\r\ncontent-length: 0\r\n\r\n");
        }
    });
    for (no_proxy, past) in [
        ("", false),
        ("127.0.0.1, example.com", false),
        ("ocalhost", false),
        ("localhost", true),
        ("example.com, LOCALHOST", true),
        ("*", true),
    ] {
        let repos_dir = cache();
        let access = RepoAccess {
            proxy: address.clone(),
            no_proxy: no_proxy.into(),
            ..RepoAccess::public(server.url("/r.git"))
        };
        let found = repos(&repos_dir).test(&access).await;
        assert_eq!(found.is_ok(), past, "{no_proxy:?}: {found:?}");
    }
}

#[tokio::test]
async fn redirects_never_carry_credentials() {
    let (dir, [_, _, third]) = example();
    let other = Server::start(
        dir.path(),
        Setup {
            tls: true,
            ..Setup::default()
        },
    );
    let thief = Server::start(
        dir.path(),
        Setup {
            user: Some(("me", SECRET)),
            tls: true,
            ..Setup::default()
        },
    );
    let cache = cache();
    let repos = repos(&cache);
    for (target, works) in [(&other, true), (&thief, false)] {
        let server = Server::start(
            dir.path(),
            Setup {
                redirect: Some(target.url("")),
                tls: true,
                ..Setup::default()
            },
        );
        for token in [false, true] {
            let mut access = RepoAccess {
                insecure: true,
                ..RepoAccess::public(server.url("/r.git"))
            };
            if token {
                access.bearer_token = SECRET.into();
            } else {
                (access.username, access.password) = ("me".into(), SECRET.into());
            }
            let outcome = manifests(&repos, &access, &third).await;
            assert_eq!(outcome.is_ok(), works && !token, "{outcome:?}");
            assert!(!format!("{outcome:?}").contains(SECRET));
        }
    }
    for target in [&other, &thief] {
        assert!(
            target
                .log()
                .iter()
                .all(|line| !line.contains("authorization")),
            "{:?}",
            target.log()
        );
    }
    let down = Server::start(dir.path(), Setup::default());
    let server = Server::start(
        dir.path(),
        Setup {
            redirect: Some(down.url("")),
            tls: true,
            ..Setup::default()
        },
    );
    let access = RepoAccess {
        insecure: true,
        ..RepoAccess::public(server.url("/r.git"))
    };
    assert!(
        repos.test(&access).await.is_err(),
        "https does not become http"
    );
    assert!(down.log().is_empty());
}

#[tokio::test]
async fn failures_are_told_apart() {
    let (dir, _) = example();
    let server = Server::start(dir.path(), Setup::default());
    let cache = cache();
    let repos = Repos::with_options(
        cache.path(),
        RepoOptions {
            timeout: Duration::from_secs(1),
            ..RepoOptions::default()
        },
    );
    let error = repos
        .test(&RepoAccess::public(server.url("/nope.git")))
        .await
        .expect_err("missing");
    assert_eq!(
        error.to_string(),
        format!("repository not found: {}", server.url("/nope.git"))
    );
    let silent = std::net::TcpListener::bind("127.0.0.1:0").expect("bind");
    let port = silent.local_addr().expect("address").port();
    let error = repos
        .test(&RepoAccess::public(format!("http://127.0.0.1:{port}/r")))
        .await
        .expect_err("silent");
    assert!(matches!(error, RepoError::Timeout { .. }), "{error}");
    assert!(error.retryable());
    drop(silent);
    let error = repos
        .test(&RepoAccess::public(format!("http://127.0.0.1:{port}/r")))
        .await
        .expect_err("closed");
    assert!(matches!(error, RepoError::Unreachable { .. }), "{error}");
    let of_network = format!("http://127.0.0.1:{port}/r cannot be reached: error sending request");
    assert!(error.to_string().contains(&of_network), "{error}");
    let empty = tempfile::tempdir().expect("tempdir");
    let out = std::process::Command::new("git")
        .args(["init", "-q", "--bare", "e.git"])
        .current_dir(empty.path())
        .output();
    assert!(out.expect("git").status.success());
    let server = Server::start(empty.path(), Setup::default());
    let access = RepoAccess::public(server.url("/e.git"));
    repos
        .test(&access)
        .await
        .expect("an empty repository answers");
    let error = repos
        .resolve(&access, "HEAD", Since::Recently)
        .await
        .expect_err("no commit");
    assert_eq!(
        error.to_string(),
        "unable to resolve 'HEAD' to a commit SHA: revision not found"
    );
}

#[tokio::test]
async fn old_servers_are_asked_another_way() {
    let (dir, [first, second, third]) = example();
    let server = Server::start(
        dir.path(),
        Setup {
            old: true,
            ..Setup::default()
        },
    );
    let (cache, access) = (cache(), RepoAccess::public(server.url("/r.git")));
    let repos = repos(&cache);
    assert_eq!(
        repos
            .resolve(&access, "main", Since::Recently)
            .await
            .expect("main")
            .sha,
        third
    );
    assert_eq!(
        value(
            &manifests(&repos, &access, &third)
                .await
                .expect("what a branch points to")
        ),
        "3"
    );
    assert_eq!(
        value(
            &manifests(&repos, &access, &first)
                .await
                .expect("an old commit")
        ),
        "1"
    );
    assert_eq!(
        value(
            &manifests(&repos, &access, &second[..10])
                .await
                .expect("an abbreviated SHA")
        ),
        "2"
    );
}

#[tokio::test]
async fn copies_are_renewed_after_many_fetches() {
    let (dir, _) = example();
    let repository = dir.path().join("r.git");
    let server = Server::start(dir.path(), Setup::default());
    let (cache, access) = (cache(), RepoAccess::public(server.url("/r.git")));
    let repos = repos(&cache);
    for n in 0..60 {
        let text = cm("a", &format!("n{n}"));
        let sha = Repos::commit_files(
            &repository,
            "main",
            &[("app/a.yaml", Some(text.as_str()))],
            "n",
        )
        .expect("commit");
        assert_eq!(
            value(&manifests(&repos, &access, &sha).await.expect("manifests")),
            format!("n{n}")
        );
    }
    let copy = std::fs::read_dir(cache.path())
        .expect("cache")
        .flatten()
        .next()
        .expect("a copy")
        .path();
    let mut generations: Vec<_> = std::fs::read_dir(copy)
        .expect("generations")
        .flatten()
        .map(|e| e.file_name())
        .collect();
    generations.sort();
    assert_eq!(generations, ["1", "2"]);
}

/// A fake ssh: records its arguments and runs the command locally.
pub fn ssh_program(dir: &Path) -> String {
    let path = dir.join("ssh-stand-in");
    let log = dir.join("log");
    let script = format!(
        "#!/bin/sh\nlog='{}'\nprintf '%s\\n' \"$*\" >>\"$log\"\ncat \"$2\" >>\"$log\"\nkey=$(sed -n 's/^IdentityFile \"\\(.*\\)\"/\\1/p' \"$2\")\n\
         [ -n \"$key\" ] && stat -c 'mode %a' \"$key\" >>\"$log\" && cat \"$key\" >>\"$log\"\n\
         case \"$*\" in *denied*) echo 'git@host: Permission denied (publickey).' >&2; exit 255;; esac\n\
         for word; do service=$path; path=$word; done\nexec sh -c \"$service $path\"\n",
        log.display()
    );
    std::fs::write(&path, script).expect("write");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&path, mode).expect("chmod");
    path.display().to_string()
}

#[tokio::test]
async fn ssh_gets_a_configuration_of_its_own() {
    let (dir, [_, _, third]) = example();
    let cache = cache();
    let options = RepoOptions {
        ssh_program: ssh_program(dir.path()),
        timeout: Duration::from_secs(20),
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(cache.path(), options);
    let access = RepoAccess {
        ssh_private_key: "KEY TEXT".into(),
        known_hosts: "host ssh-ed25519 AAAA".to_owned(),
        ..RepoAccess::public(format!("ssh://git@host:2222{}/r.git", dir.path().display()))
    };
    assert_eq!(
        value(&manifests(&repos, &access, &third).await.expect("over ssh")),
        "3"
    );
    let log = std::fs::read_to_string(dir.path().join("log")).expect("log");
    for want in [
        "StrictHostKeyChecking yes",
        "IdentitiesOnly yes",
        "mode 600",
        "KEY TEXT",
        "git@host",
        "-p2222",
        "UserKnownHostsFile \"",
    ] {
        assert!(log.contains(want), "{want} is not in {log}");
    }
    let first = log.lines().next().expect("a line");
    let config = first.split(' ').nth(1).expect("-F FILE").to_owned();
    assert!(!Path::new(&config).exists(), "{config} is removed");
    let scp = RepoAccess {
        insecure_ignore_host_key: true,
        ..RepoAccess::public(format!("git@host:{}/r.git", dir.path().display()))
    };
    assert_eq!(
        repos
            .resolve(&scp, "main", Since::Recently)
            .await
            .expect("user@host:path")
            .sha,
        third
    );
    let log = std::fs::read_to_string(dir.path().join("log")).expect("log");
    assert!(log.contains("StrictHostKeyChecking no"), "{log}");
    let error = repos
        .test(&RepoAccess::public("git@denied:r.git"))
        .await
        .expect_err("refused");
    assert!(matches!(error, RepoError::AuthFailed { .. }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn bases_of_other_repositories_are_fetched_until_nothing_is_needed() {
    let dir = tempfile::tempdir().expect("tempdir");
    let server = Server::start(dir.path(), Setup::default());
    let kustomization = |base: &str| format!("resources:\n- {}\n", server.url(base));
    let repository = |name: &str| dir.path().join(name);
    // A base that has a base: only fetching the first says that there is a second.
    Repos::init_example(
        &repository("deep.git"),
        [
            ("base/kustomization.yaml", "resources: [a.yaml]\n"),
            ("base/a.yaml", &cm("a", "1")),
        ],
    )
    .expect("the deepest base");
    let middle = kustomization("/deep.git//base?ref=main") + "namePrefix: p-\n";
    Repos::init_example(
        &repository("middle.git"),
        [("all/kustomization.yaml", middle.as_str())],
    )
    .expect("the base");
    let own = kustomization("/middle.git//all?ref=main");
    let sha = Repos::init_example(
        &repository("r.git"),
        [("app/kustomization.yaml", own.as_str())],
    )
    .expect("the source");
    let cache = cache();
    let options = RepoOptions {
        refs_ttl: Duration::ZERO,
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(cache.path(), options);
    let access = RepoAccess::public(server.url("/r.git"));

    let first = manifests(&repos, &access, &sha).await.expect("manifests");
    let name = first.objects[0]
        .object()
        .str_at("/metadata/name")
        .to_owned();
    assert_eq!((name.as_str(), value(&first).as_str()), ("p-a", "1"));
    assert_eq!(first.source_type, "Kustomize");

    // The same commit of the source is something else when a branch that it names has moved.
    let again = manifests(&repos, &access, &sha).await.expect("manifests");
    assert_eq!(again.digest, first.digest);
    let changed = cm("a", "2");
    Repos::commit_files(
        &repository("deep.git"),
        "main",
        &[("base/a.yaml", Some(&changed))],
        "2",
    )
    .expect("a commit");
    let moved = manifests(&repos, &access, &sha).await.expect("manifests");
    assert_eq!(value(&moved), "2");
    assert_ne!(moved.digest, first.digest);

    // What nobody needs any more is not missed; what is needed is.
    std::fs::remove_dir_all(repository("deep.git")).expect("removed");
    let gone = manifests(&repos, &access, &sha)
        .await
        .expect_err("a base is gone");
    assert_eq!(
        gone.to_string(),
        format!("repository not found: {}", server.url("/deep.git"))
    );
    Repos::commit_files(
        &repository("middle.git"),
        "main",
        &[
            ("all/kustomization.yaml", Some("resources: [a.yaml]\n")),
            ("all/a.yaml", Some(&cm("own", "3"))),
        ],
        "alone",
    )
    .expect("a commit");
    let alone = manifests(&repos, &access, &sha).await.expect("manifests");
    assert_eq!(value(&alone), "3");
}

/// There may be 200 references. Those of an earlier render do not count.
#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_is_no_longer_needed_does_not_count() {
    const FILES: usize = 120;
    let (dir, web) = (tempfile::tempdir().expect("tempdir"), FileServer::start());
    let server = Server::start(dir.path(), Setup::default());
    let list = |prefix: &str| {
        let lines = (0..FILES).map(|i| {
            let path = format!("/{prefix}{i}.yaml");
            web.serve(&path, cm(&format!("{prefix}{i}"), "1").as_str());
            format!("- {}{path}\n", web.url())
        });
        format!("resources:\n{}", lines.collect::<String>())
    };
    let base = dir.path().join("base.git");
    let first = list("a");
    Repos::init_example(&base, [("all/kustomization.yaml", first.as_str())]).expect("the base");
    let own = format!("resources:\n- {}\n", server.url("/base.git//all?ref=main"));
    let sha = Repos::init_example(
        &dir.path().join("r.git"),
        [("app/kustomization.yaml", own.as_str())],
    )
    .expect("the source");
    let cache = cache();
    let options = RepoOptions {
        refs_ttl: Duration::ZERO,
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(cache.path(), options);
    let access = RepoAccess::public(server.url("/r.git"));
    let rendered = manifests(&repos, &access, &sha).await.expect("manifests");
    assert_eq!(rendered.objects.len(), FILES);

    let second = list("b");
    let change = [("all/kustomization.yaml", Some(second.as_str()))];
    Repos::commit_files(&base, "main", &change, "others").expect("a commit");
    let rendered = manifests(&repos, &access, &sha).await.expect("manifests");
    assert_eq!(rendered.objects.len(), FILES);
    let name = rendered.objects[0]
        .object()
        .str_at("/metadata/name")
        .to_owned();
    assert!(name.starts_with('b'), "{name}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn repositories_of_this_machine_are_no_bases() {
    let (dir, _) = example();
    let base = format!(
        "resources: ['file://{}//app?ref=main']\n",
        dir.path().join("r.git").display()
    );
    let repository = dir.path().join("own.git");
    let sha = Repos::init_example(&repository, [("app/kustomization.yaml", base.as_str())])
        .expect("the source");
    let cache = cache();
    let refused = manifests(
        &repos(&cache),
        &RepoAccess::public(repository.display().to_string()),
        &sha,
    )
    .await
    .expect_err("a base on this machine");
    assert!(
        refused
            .to_string()
            .contains("only https, http and ssh repositories can be fetched"),
        "{refused}"
    );
}
