//! Local repositories, created with real git: revisions, manifests and errors.

use std::{path::Path, process::Command, sync::Arc, time::Instant};
use tiphys_api::source::{ApplicationSource, ApplicationSourceDirectory};
use tiphys_repo::{
    ClusterFacts, ManifestRequest, Manifests, RepoAccess, RepoError, RepoOptions, Repos, Since,
    SourceKind,
};

pub fn cm(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  v: \"{value}\"\n")
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let out = Command::new("git")
        .current_dir(dir)
        .args([
            "-c",
            "user.name=A U Thor",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
            "-c",
            "protocol.file.allow=always",
        ])
        .args(args)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_DATE", "2024-01-02T03:04:05Z")
        .output()
        .expect("git runs");
    assert!(
        out.status.success(),
        "git {args:?}: {}",
        String::from_utf8_lossy(&out.stderr)
    );
    String::from_utf8(out.stdout)
        .expect("text")
        .trim()
        .to_owned()
}

pub fn write(dir: &Path, path: &str, text: &str) {
    let path = dir.join(path);
    std::fs::create_dir_all(path.parent().expect("a parent")).expect("mkdir");
    std::fs::write(path, text).expect("write");
}

pub fn commit(dir: &Path, message: &str) -> String {
    git(dir, &["add", "-A"]);
    git(dir, &["commit", "-q", "--allow-empty", "-m", message]);
    git(dir, &["rev-parse", "HEAD"])
}

/// A repository with a worktree, an app in `app`, and its first commit.
pub fn repository() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().expect("tempdir");
    git(dir.path(), &["init", "-q"]);
    write(dir.path(), "app/a.yaml", &cm("a", "1"));
    write(dir.path(), "other/b.yaml", &cm("b", "1"));
    let sha = commit(dir.path(), "First\n\nBody");
    (dir, sha)
}

pub fn repos() -> Repos {
    Repos::new(std::env::temp_dir().join("tiphys-test-unused"))
}

fn access(dir: &Path) -> RepoAccess {
    RepoAccess::public(dir.to_str().expect("UTF-8"))
}

pub fn source(path: &str) -> ApplicationSource {
    ApplicationSource {
        path: path.to_owned(),
        ..ApplicationSource::default()
    }
}

pub async fn manifests(
    repos: &Repos,
    dir: &Path,
    sha: &str,
    source: ApplicationSource,
) -> Result<Arc<Manifests>, RepoError> {
    let request = ManifestRequest {
        access: access(dir),
        source,
        sha: sha.to_owned(),
        ..ManifestRequest::default()
    };
    repos.manifests(request).await
}

pub fn names(manifests: &Manifests) -> Vec<&str> {
    manifests.objects.iter().map(|o| o.name()).collect()
}

#[tokio::test]
async fn revisions_resolve() {
    let (dir, first) = repository();
    git(dir.path(), &["tag", "light"]);
    git(dir.path(), &["tag", "-a", "v1", "-m", "annotated"]);
    git(dir.path(), &["checkout", "-q", "-b", "feature/x"]);
    write(dir.path(), "app/a.yaml", &cm("a", "2"));
    let second = commit(dir.path(), "Second");
    git(dir.path(), &["checkout", "-q", "main"]);
    git(dir.path(), &["pack-refs", "--all"]);
    let repos = repos();
    let cases = [
        ("HEAD", &first),
        ("", &first),
        ("main", &first),
        ("light", &first),
        ("v1", &first),
        ("refs/tags/v1", &first),
        ("feature/x", &second),
        ("refs/heads/feature/x", &second),
    ];
    for (revision, want) in cases {
        let got = repos
            .resolve(&access(dir.path()), revision, Since::Recently)
            .await
            .expect(revision);
        assert_eq!(&got.sha, want, "{revision}");
        let name = if revision.is_empty() {
            "HEAD"
        } else {
            revision
        };
        assert_eq!(got.display, format!("{name} ({want})"));
    }
    let full = repos
        .resolve(&access(dir.path()), &second, Since::Recently)
        .await
        .expect("sha");
    assert_eq!(
        (full.sha.as_str(), full.display.as_str()),
        (second.as_str(), second.as_str())
    );
    let abbreviated = repos
        .resolve(&access(dir.path()), &second[..8], Since::Recently)
        .await
        .expect("abbreviated");
    assert_eq!(abbreviated.sha, second);
    let error = repos
        .resolve(&access(dir.path()), "nope", Since::Recently)
        .await
        .expect_err("missing");
    assert_eq!(
        error.to_string(),
        "unable to resolve 'nope' to a commit SHA: revision not found"
    );
    let refs = repos
        .refs(&access(dir.path()), Since::Recently)
        .await
        .expect("refs");
    assert_eq!(
        (refs.branches.join(" "), refs.tags.join(" ")),
        ("feature/x main".to_owned(), "light v1".to_owned())
    );
    let metadata = repos
        .metadata(&access(dir.path()), &first)
        .await
        .expect("metadata");
    assert_eq!(metadata.author, "A U Thor <a@example.com>");
    assert_eq!(metadata.message, "First\n\nBody");
    assert_eq!(metadata.tags, ["light", "v1"]);
    assert_eq!(metadata.date.expect("date").seconds, 1_704_164_645);
}

#[tokio::test]
async fn a_range_is_the_highest_tag_in_it() {
    let (dir, first) = repository();
    git(dir.path(), &["tag", "v1.0.0"]);
    git(dir.path(), &["tag", "app/1.0.0"]);
    git(dir.path(), &["branch", "3.x"]);
    let second = commit(dir.path(), "Second");
    git(dir.path(), &["tag", "-a", "v1.4.0", "-m", "annotated"]);
    git(dir.path(), &["tag", "app/2.0.0-rc.1"]);
    let repos = repos();
    let resolve = async |revision: &str, prefix: &str| {
        let source = ApplicationSource {
            tag_prefix: prefix.to_owned(),
            ..source("app")
        };
        let access = access(dir.path());
        let resolved = repos.resolve_source(&access, &source, revision, Since::now());
        resolved.await.map_err(|e| e.to_string())
    };
    for (revision, prefix, want) in [
        ("1.x", "", &second),
        ("v1.0.0", "", &first),
        ("^1", "app/", &first),
        (">=1-0", "app/", &second),
        ("1.0.0", "app/", &first),
        ("main", "app/", &second),
        ("3.x", "", &first),
    ] {
        let got = resolve(revision, prefix).await.expect(revision);
        assert_eq!(&got.sha, want, "{revision} {prefix}");
        assert_eq!(got.display, format!("{revision} ({want})"));
    }
    assert_eq!(
        resolve("^2", "app/").await.expect_err("only a prerelease"),
        "unable to resolve '^2' to a commit SHA: version matching constraint not found in 2 tags"
    );
    // A base of a kustomization names a ref, as for git.
    let access = access(dir.path());
    let literal = repos.resolve(&access, "1.x", Since::now());
    assert!(literal.await.is_err());
    // A tag that moves and one that is new are followed.
    git(dir.path(), &["tag", "-f", "v1.4.0", &first]);
    assert_eq!(resolve("1.x", "").await.expect("moved").sha, first);
    let third = commit(dir.path(), "Third");
    git(dir.path(), &["tag", "v1.5.0"]);
    assert_eq!(resolve("1.x", "").await.expect("new").sha, third);
    git(dir.path(), &["tag", "-d", "v1.5.0", "v1.4.0"]);
    assert_eq!(resolve("1.x", "").await.expect("gone").sha, first);
}

#[tokio::test]
async fn a_look_up_answers_who_asked_before_it() {
    let (dir, first) = repository();
    let (repos, access) = (repos(), access(dir.path()));
    for wanted in ["HEAD", "main"] {
        // Once from all refs, once as the last commit found.
        for _ in 0..2 {
            let asked = Instant::now();
            let before = repos
                .resolve(&access, wanted, Since::At(asked))
                .await
                .expect("HEAD")
                .sha;
            let next = commit(dir.path(), "Next");
            assert_eq!(
                repos
                    .resolve(&access, wanted, Since::At(asked))
                    .await
                    .expect("the same")
                    .sha,
                before
            );
            assert_eq!(
                repos
                    .resolve(&access, wanted, Since::Recently)
                    .await
                    .expect("HEAD")
                    .sha,
                next,
                "a local one is always looked at"
            );
            assert_eq!(
                repos
                    .resolve(&access, wanted, Since::now())
                    .await
                    .expect("HEAD")
                    .sha,
                next
            );
            manifests(&repos, dir.path(), &next, source("app"))
                .await
                .expect("manifests");
        }
    }
    assert_ne!(
        repos
            .resolve(&access, "HEAD", Since::now())
            .await
            .expect("HEAD")
            .sha,
        first
    );
}

#[tokio::test]
async fn manifests_are_remembered_by_content() {
    let (dir, first) = repository();
    let repos = repos();
    let one = manifests(&repos, dir.path(), &first, source("app"))
        .await
        .expect("first");
    assert_eq!(
        (names(&one), one.source_type.as_str(), one.revision.as_str()),
        (vec!["a"], "Directory", first.as_str())
    );
    write(dir.path(), "other/b.yaml", &cm("b", "2"));
    let second = commit(dir.path(), "Change another folder");
    let two = manifests(&repos, dir.path(), &second, source("app"))
        .await
        .expect("second");
    assert!(
        Arc::ptr_eq(&one.objects, &two.objects),
        "another folder's change does not render this one again"
    );
    assert_eq!(
        (two.revision.as_str(), &two.digest),
        (second.as_str(), &one.digest)
    );
    write(dir.path(), "app/a.yaml", &cm("a", "2"));
    let third = commit(dir.path(), "Change this folder");
    let three = manifests(&repos, dir.path(), &third, source("app"))
        .await
        .expect("third");
    assert_ne!(three.digest, one.digest);
    assert_eq!(three.objects[0].object().0["data"]["v"], "2");
    let recurse = ApplicationSourceDirectory {
        recurse: true,
        ..ApplicationSourceDirectory::default()
    };
    let all = ApplicationSource {
        directory: Some(recurse.into()),
        ..source(".")
    };
    assert_eq!(
        names(
            &manifests(&repos, dir.path(), &third, all)
                .await
                .expect("all")
        ),
        ["a", "b"]
    );
}

#[tokio::test]
async fn bare_file_urls_and_examples() {
    let (dir, first) = repository();
    let bare = tempfile::tempdir().expect("tempdir");
    git(
        dir.path(),
        &[
            "clone",
            "-q",
            "--bare",
            ".",
            bare.path().join("r.git").to_str().expect("UTF-8"),
        ],
    );
    let repos = repos();
    let url = RepoAccess::public(format!("file://{}/r.git", bare.path().display()));
    assert_eq!(
        repos
            .resolve(&url, "HEAD", Since::now())
            .await
            .expect("HEAD")
            .sha,
        first
    );
    repos.test(&url).await.expect("reachable");

    let example = bare.path().join("example");
    let sha = Repos::init_example(
        &example,
        [("apps/x.yaml", cm("x", "1").as_str()), ("README.md", "hi")],
    )
    .expect("example");
    assert_eq!(
        repos
            .resolve(&access(&example), "HEAD", Since::Recently)
            .await
            .expect("HEAD")
            .sha,
        sha
    );
    assert_eq!(
        names(
            &manifests(&repos, &example, &sha, source("apps"))
                .await
                .expect("manifests")
        ),
        ["x"]
    );
    let changes = [
        ("apps/x.yaml", None),
        ("apps/sub/y.yaml", Some("y")),
        ("apps/z.yaml", Some(&*cm("z", "1"))),
    ];
    let next = Repos::commit_files(&example, "main", &changes, "Replace x").expect("commit");
    assert_eq!(
        repos
            .resolve(&access(&example), "main", Since::now())
            .await
            .expect("main")
            .sha,
        next
    );
    assert_eq!(
        names(
            &manifests(&repos, &example, &next, source("apps"))
                .await
                .expect("manifests")
        ),
        ["z"]
    );
    Repos::commit_files(&example, "other", &[("a", Some("1"))], "On a new branch").expect("commit");
    assert_eq!(
        git(&example, &["log", "--format=%s", "main"]),
        "Replace x\nAdd the example"
    );
    assert_eq!(
        git(&example, &["ls-tree", "-r", "--name-only", "main"]),
        "README.md\napps/sub/y.yaml\napps/z.yaml"
    );
    git(&example, &["fsck", "--strict"]);
    assert!(
        Repos::init_example(&example, [("a", "b")]).is_err(),
        "the folder is not empty"
    );
}

#[tokio::test]
async fn mistakes_are_told_apart() {
    let (dir, first) = repository();
    let repos = repos();
    let missing = dir.path().join("nope");
    assert!(matches!(
        repos.test(&access(&missing)).await,
        Err(RepoError::NotFound { .. })
    ));
    assert!(matches!(
        repos.test(&access(&dir.path().join("app"))).await,
        Err(RepoError::Corrupt { .. })
    ));
    assert!(matches!(
        repos.test(&RepoAccess::public("ext::sh -c true")).await,
        Err(RepoError::BadUrl { .. })
    ));
    let gone = "0123456789012345678901234567890123456789";
    assert!(matches!(
        manifests(&repos, dir.path(), gone, source("app")).await,
        Err(RepoError::CommitMissing { .. })
    ));
    let tree = git(dir.path(), &["rev-parse", "HEAD^{tree}"]);
    assert!(matches!(
        manifests(&repos, dir.path(), &tree, source("app")).await,
        Err(RepoError::RevisionNotFound { .. })
    ));
    let cases = [
        ("nope", "nope: app path does not exist"),
        ("../x", "../x: app path outside root"),
        ("/app", "/app: app path is absolute"),
        ("app/a.yaml", "app/a.yaml: app path is not a directory"),
    ];
    for (path, want) in cases {
        let error = manifests(&repos, dir.path(), &first, source(path))
            .await
            .expect_err(path);
        assert_eq!(error.to_string(), want);
    }
    let chart = ApplicationSource {
        chart: "nginx".to_owned(),
        ..ApplicationSource::default()
    };
    assert!(matches!(
        manifests(&repos, dir.path(), &first, chart).await,
        Err(RepoError::BadUrl { .. })
    ));
}

#[tokio::test]
async fn submodules_of_this_machine_are_refused_and_without_submodules_ignored() {
    let (dir, _) = repository();
    let (sub, _) = repository();
    git(
        dir.path(),
        &[
            "submodule",
            "--quiet",
            "add",
            sub.path().to_str().expect("UTF-8"),
            "app/sub.yaml",
        ],
    );
    let sha = commit(dir.path(), "Submodule");
    let recurse = ApplicationSourceDirectory {
        recurse: true,
        ..ApplicationSourceDirectory::default()
    };
    let all = ApplicationSource {
        directory: Some(recurse.into()),
        ..source("app")
    };
    let error = manifests(&repos(), dir.path(), &sha, all.clone()).await;
    let error = error.expect_err("a local submodule").to_string();
    assert!(
        error.starts_with("failed to update submodules: app/sub.yaml: repository URL "),
        "{error}"
    );
    let repos = Repos::with_options(
        std::env::temp_dir().join("tiphys-test-unused"),
        RepoOptions {
            submodules: false,
            ..RepoOptions::default()
        },
    );
    assert_eq!(
        names(
            &manifests(&repos, dir.path(), &sha, all)
                .await
                .expect("manifests")
        ),
        ["a"]
    );
    let error = manifests(&repos, dir.path(), &sha, source("app/sub.yaml/app"))
        .await
        .expect_err("inside a submodule");
    assert_eq!(
        error.to_string(),
        "app/sub.yaml/app: app path does not exist"
    );
}

#[tokio::test]
async fn a_ref_that_is_read_alone_is_what_git_says() {
    let (dir, _) = repository();
    let (dir, repos) = (dir.path(), repos());
    let changes: [&[&str]; 9] = [
        &["commit", "-q", "--allow-empty", "-m", "next"],
        &["pack-refs", "--all"],
        &["commit", "-q", "--allow-empty", "-m", "packed and loose"],
        &["branch", "v1"],
        &["commit", "-q", "--allow-empty", "-m", "v1 stays"],
        &["tag", "-a", "v1", "-m", "an annotated tag of the same name"],
        &["checkout", "-q", "-b", "main2"],
        &[
            "commit",
            "-q",
            "--allow-empty",
            "-m",
            "HEAD leads elsewhere",
        ],
        &["reset", "-q", "--hard", "HEAD~1"],
    ];
    for change in changes {
        git(dir, change);
        for (revision, in_git) in [
            ("HEAD", "HEAD"),
            ("main", "refs/heads/main"),
            ("refs/heads/main", "refs/heads/main"),
            ("v1", "v1^{commit}"),
        ] {
            if revision == "v1" && git(dir, &["for-each-ref", "refs/*/v1"]).is_empty() {
                continue;
            }
            let in_git = if git(dir, &["tag"]).is_empty() {
                in_git.replace("v1^", "refs/heads/v1^")
            } else {
                in_git.replace("v1^", "refs/tags/v1^")
            };
            let want = git(dir, &["rev-parse", &in_git]);
            let got = repos
                .resolve(&access(dir), revision, Since::now())
                .await
                .expect(revision);
            assert_eq!(got.sha, want, "{revision} after {change:?}");
            // From now on it is the last commit found.
            manifests(&repos, dir, &want, source("app"))
                .await
                .expect("manifests");
            assert_eq!(
                repos
                    .resolve(&access(dir), revision, Since::now())
                    .await
                    .expect(revision)
                    .sha,
                want,
                "{revision} again"
            );
        }
    }
    git(dir, &["checkout", "-q", "--detach"]);
    git(dir, &["branch", "-D", "main2", "-q"]);
    assert!(
        repos
            .resolve(&access(dir), "main2", Since::now())
            .await
            .is_err(),
        "a branch that is gone"
    );
    let head = git(dir, &["rev-parse", "HEAD"]);
    assert_eq!(
        repos
            .resolve(&access(dir), "", Since::now())
            .await
            .expect("detached")
            .sha,
        head
    );
}

#[tokio::test]
async fn a_branch_that_is_called_head_is_not_head() {
    let (dir, first) = repository();
    let (dir, repos) = (dir.path(), repos());
    git(dir, &["checkout", "-q", "-b", "other"]);
    let second = commit(dir, "Elsewhere");
    git(dir, &["update-ref", "refs/heads/HEAD", &second]);
    git(dir, &["update-ref", "refs/tags/HEAD", &second]);
    git(dir, &["update-ref", "refs/heads/refs/heads/main", &second]);
    git(dir, &["checkout", "-q", "main"]);
    for round in 0..2 {
        for (revision, want) in [
            ("", &first),
            ("HEAD", &first),
            ("main", &first),
            ("refs/heads/main", &first),
            ("refs/heads/HEAD", &second),
        ] {
            let found = repos
                .resolve(&access(dir), revision, Since::now())
                .await
                .expect(revision);
            assert_eq!(&found.sha, want, "{revision:?} in round {round}");
            // Now it is the last commit found, and looked up in another way.
            manifests(&repos, dir, want, source("app"))
                .await
                .expect("manifests");
        }
    }
}

#[tokio::test]
async fn lfs_pointers_are_refused_by_name() {
    let (dir, _) = repository();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n";
    write(dir.path(), "app/big.yaml", pointer);
    write(
        dir.path(),
        "chart/Chart.yaml",
        "{apiVersion: v2, name: c, version: 1.0.0}",
    );
    write(dir.path(), "chart/values.yaml", pointer);
    write(
        dir.path(),
        "pictures/Chart.yaml",
        "{apiVersion: v2, name: c, version: 1.0.0}",
    );
    write(dir.path(), "pictures/templates/cm.yaml", &cm("c", "1"));
    write(dir.path(), "pictures/icon.png", pointer);
    let sha = commit(dir.path(), "Pointers");
    let repos = repos();
    let told = async |path: &str| {
        let request = ManifestRequest {
            access: access(dir.path()),
            source: source(path),
            sha: sha.clone(),
            app_name: "web".into(),
            ..ManifestRequest::default()
        };
        match repos.manifests(request).await {
            Err(e) => e.to_string(),
            Ok(found) => found
                .errors
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("; "),
        }
    };
    for (path, file) in [("app", "app/big.yaml"), ("chart", "chart/values.yaml")] {
        let told = told(path).await;
        assert!(
            told.contains(file)
                && told.contains("is a Git LFS pointer, and Git LFS is not supported"),
            "{path}: {told}"
        );
    }
    assert_eq!(
        told("pictures").await,
        "",
        "a picture is only carried along"
    );
}

/// Adds a chart, values beside it, and a link to the app.
fn add_chart_and_link(dir: &Path) -> String {
    write(
        dir,
        "chart/Chart.yaml",
        "{apiVersion: v2, name: c, version: 1.0.0}",
    );
    write(
        dir,
        "chart/templates/cm.yaml",
        &cm("{{ .Values.name }}", "1"),
    );
    write(dir, "values/own.yaml", "name: one");
    std::os::unix::fs::symlink("app", dir.join("link")).expect("a link");
    commit(dir, "A chart")
}

fn web(dir: &Path, source: &ApplicationSource, sha: &str) -> ManifestRequest {
    ManifestRequest {
        access: access(dir),
        source: source.clone(),
        sha: sha.to_owned(),
        app_name: "web".into(),
        ..ManifestRequest::default()
    }
}

/// The cached result after another request has read the commit.
async fn known(
    repos: &Repos,
    request: &ManifestRequest,
    before: &Manifests,
) -> Option<Arc<Manifests>> {
    let of = |path: &str| ManifestRequest {
        source: source(path),
        ..request.clone()
    };
    repos.manifests(of("other")).await.expect("another folder");
    repos.manifests(of("values")).await.err();
    repos.unchanged(request, before)
}

/// Options of a request besides the source and the commit.
fn what_else_is_asked_counts(repos: &Repos, plain: &ManifestRequest, app: &Manifests) {
    let hard = ManifestRequest {
        no_cache: true,
        ..plain.clone()
    };
    assert!(
        repos.unchanged(&hard, app).is_none(),
        "it is to be rendered anew"
    );
    let elsewhere = ManifestRequest {
        namespace: "n".into(),
        ..plain.clone()
    };
    assert!(
        repos.unchanged(&elsewhere, app).is_none(),
        "another namespace"
    );
    assert!(
        repos.unchanged(&on(plain, "example.org/v1"), app).is_some(),
        "a plain folder does not ask what the cluster serves"
    );
    let off = ClusterFacts {
        switched_off: vec![SourceKind::Directory],
        ..ClusterFacts::default()
    };
    let jsonnet = ManifestRequest {
        cluster_facts: off,
        ..plain.clone()
    };
    assert!(
        repos.unchanged(&jsonnet, app).is_none(),
        "other files count"
    );
}

/// The same on a cluster that serves this kind.
fn on(request: &ManifestRequest, served: &str) -> ManifestRequest {
    let cluster_facts = ClusterFacts {
        api_versions: [served.to_owned()].into(),
        ..ClusterFacts::default()
    };
    ManifestRequest {
        cluster_facts,
        ..request.clone()
    }
}

#[tokio::test]
async fn what_did_not_change_is_known_without_reading() {
    let (dir, first) = repository();
    let (dir, repos) = (dir.path(), repos());
    let second = add_chart_and_link(dir);
    let helm = |text: &str| serde_json::from_str::<ApplicationSource>(text).expect("a source");
    let named = helm(r#"{"path": "chart", "helm": {"valueFiles": ["../values/own.yaml"]}}"#);
    let by_commit = helm(
        r#"{"path": "chart", "helm": {"parameters": [{"name": "name", "value": "r-$ARGOCD_APP_REVISION_SHORT"}]}}"#,
    );
    let request = |source: &ApplicationSource, sha: &str| web(dir, source, sha);
    let rendered =
        async |source: &ApplicationSource, sha: &str| repos.manifests(request(source, sha)).await;
    let known = async |source: &ApplicationSource, before: &Manifests, sha: &str| {
        known(&repos, &request(source, sha), before).await
    };
    let plain = source("app");
    let app = rendered(&plain, &second).await.expect("app");
    let chart = rendered(&named, &second).await.expect("chart");
    let revision = rendered(&by_commit, &second).await.expect("by commit");
    let linked = rendered(&source("link"), &second).await.expect("linked");
    assert!(
        repos.unchanged(&request(&plain, &first), &app).is_none(),
        "it is not the commit that was found last"
    );

    write(dir, "other/b.yaml", &cm("b", "2"));
    let third = commit(dir, "Another folder");
    assert!(
        repos.unchanged(&request(&plain, &third), &app).is_none(),
        "nobody has read this commit"
    );
    let same = known(&plain, &app, &third).await.expect("nothing changed");
    assert!(
        Arc::ptr_eq(&same.objects, &app.objects)
            && same.revision == third
            && same.digest == app.digest
    );
    assert_eq!(
        *rendered(&plain, &third).await.expect("app").revision,
        same.revision
    );
    assert!(
        known(&named, &chart, &third).await.is_some(),
        "nor what the chart reads"
    );
    assert!(
        known(&by_commit, &revision, &third).await.is_none(),
        "it has the commit in it"
    );
    assert!(
        known(&source("link"), &linked, &third)
            .await
            .is_none_or(|m| m.digest == linked.digest)
    );
    assert!(
        known(&source("other"), &app, &third).await.is_none(),
        "another source"
    );
    what_else_is_asked_counts(&repos, &request(&plain, &third), &app);
    assert!(
        repos
            .unchanged(&on(&request(&named, &third), "example.org/v1"), &chart)
            .is_none(),
        "a chart may ask what the cluster serves"
    );

    write(dir, "values/own.yaml", "name: two");
    let fourth = commit(dir, "Values beside the chart");
    assert!(
        known(&named, &chart, &fourth).await.is_none(),
        "a file outside of its folder"
    );
    assert!(known(&plain, &same, &fourth).await.is_some());
    write(dir, "app/a.yaml", &cm("a", "2"));
    let fifth = commit(dir, "The folder itself");
    assert!(known(&plain, &app, &fifth).await.is_none());
    assert!(
        known(&source("link"), &linked, &fifth).await.is_none(),
        "what the link leads to"
    );
}

#[tokio::test]
async fn files_that_differ_between_commits_are_found() {
    let (dir, first) = repository();
    let repos = repos();
    write(dir.path(), "other/b.yaml", &cm("b", "2"));
    git(dir.path(), &["mv", "app/a.yaml", "moved"]);
    write(dir.path(), "app/a.yaml/now/a.folder", "");
    let second = commit(dir.path(), "Second");
    let third = commit(dir.path(), "Nothing changes");
    for (from, to, path, differs) in [
        (&first, &second, "other/b.yaml", true),
        (&first, &second, "moved", true),
        (&first, &second, "app/a.yaml", true),
        (&first, &second, "app/a.yaml/now/a.folder", true),
        (&second, &first, "app/a.yaml/now/a.folder", true),
        (&first, &second, "app", false),
        (&second, &third, "", false),
    ] {
        let found = repos
            .any_changed(&access(dir.path()), from, to, move |file| {
                path.is_empty() || file == path
            })
            .await;
        assert_eq!(found.expect("an answer"), differs, "{path}");
    }
    let missing = repos
        .any_changed(&access(dir.path()), &"1".repeat(40), &third, |_| true)
        .await;
    assert!(
        matches!(missing, Err(RepoError::CommitMissing { .. })),
        "{missing:?}"
    );
}
