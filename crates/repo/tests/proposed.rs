//! A change of one file in a branch of its own, in a repository of this machine and over loopback
//! through `git http-backend`.

use std::{path::Path, process::Command};
use tempfile::TempDir;
use tiphys_repo::{Proposal, Proposed, RepoAccess, RepoError, Repos, Secret};
use tiphys_testkit::git_server::{Server, Setup};

const SECRET: &str = "s3cr3t-pa55";

/// What a file contains, and what it is to contain.
type Edit = fn(Option<Vec<u8>>) -> Result<Vec<u8>, String>;

fn git(at: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    let output = git.arg("-C").arg(at).args(arguments).output();
    let output = output.expect("git runs");
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{arguments:?}: {error}");
    String::from_utf8(output.stdout).expect("text")
}

fn ground() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    let bare = folder.path().join("r.git");
    Repos::init_example(&bare, [("apps/web.yaml", "a: b\n")]).expect("example");
    git(&bare, &["config", "http.receivepack", "true"]);
    folder
}

async fn propose(
    access: &RepoAccess,
    (base, branch, path): (&str, &str, &str),
    edit: Edit,
) -> Result<Proposed, RepoError> {
    let copies = TempDir::new().expect("a folder");
    let proposal = Proposal {
        base: base.to_owned(),
        branch: branch.to_owned(),
        path: path.to_owned(),
        message: "Change it\n\nWhy.\n".to_owned(),
        author: ("Ann".to_owned(), "ann@example.com".to_owned()),
    };
    Repos::new(copies.path())
        .propose(access, proposal, edit, 1_700_000_000)
        .await
}

fn twice(before: Option<Vec<u8>>) -> Result<Vec<u8>, String> {
    let before = before.unwrap_or_else(|| b"new\n".to_vec());
    Ok([&before[..], &before[..]].concat())
}

#[tokio::test(flavor = "multi_thread")]
async fn the_base_stays_and_the_branch_has_the_change() {
    let setup = Setup {
        user: Some(("writer", SECRET)),
        ..Setup::default()
    };
    for is_remote in [false, true] {
        let ground = ground();
        let bare = ground.path().join("r.git");
        let default = git(&bare, &["symbolic-ref", "--short", "HEAD"]);
        let default = default.trim();
        let before = git(&bare, &["rev-parse", default]);
        let server = is_remote.then(|| Server::start(ground.path(), setup.clone()));
        let url = match &server {
            Some(server) => server.url("/r.git"),
            None => format!("file://{}", bare.display()),
        };
        let access = RepoAccess {
            username: "writer".to_owned(),
            password: Secret::new(SECRET),
            ..RepoAccess::public(url)
        };
        for (base, branch, path, content) in [
            ("", "change/one", "apps/web.yaml", "a: b\na: b\n"),
            (default, "change/two", "/deep/./er/new.yaml", "new\nnew\n"),
            (
                "change/one",
                "change/three",
                "apps/web.yaml",
                "a: b\na: b\na: b\na: b\n",
            ),
        ] {
            let made = propose(&access, (base, branch, path), twice).await;
            let made = made.expect("a commit");
            let expected = if base.is_empty() { default } else { base };
            assert_eq!(made.base, expected, "{branch}");
            assert_eq!(git(&bare, &["rev-parse", branch]).trim(), made.commit);
            let path = path.trim_start_matches('/').replace("/./", "/");
            assert_eq!(git(&bare, &["show", &format!("{branch}:{path}")]), content);
            let range = format!("{expected}..{branch}");
            let log = git(&bare, &["log", "--format=%an <%ae> %s|%b", &range]);
            assert_eq!(log.trim(), "Ann <ann@example.com> Change it|Why.");
        }
        assert_eq!(git(&bare, &["rev-parse", default]), before);
        git(&bare, &["fsck", "--strict"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_pushes_nothing() {
    let ground = ground();
    let bare = ground.path().join("r.git");
    let access = RepoAccess::public(format!("file://{}", bare.display()));
    let default = git(&bare, &["symbolic-ref", "--short", "HEAD"]);
    let refs = git(&bare, &["show-ref"]);
    let same = |before: Option<Vec<u8>>| Ok(before.unwrap_or_default());
    let never = |_: Option<Vec<u8>>| Err("not so".to_owned());
    for (base, branch, path, edit, why) in [
        ("", default.trim(), "a", twice as Edit, "has a branch"),
        ("none", "b", "a", twice, "has no branch \"none\""),
        ("", "b", "apps", twice, "apps is taken"),
        ("", "b", "apps/web.yaml/x", twice, "is taken"),
        ("", "b", "../x", twice, "leaves the repository"),
        ("", "b", ".git/config", twice, "is one of git's own"),
        ("", "b..c", "a", twice, "is not the name of a ref"),
        (
            "",
            "b",
            "apps/web.yaml",
            same,
            "apps/web.yaml is already so",
        ),
        ("", "b", "a", never, "a: not so"),
    ] {
        let refused = propose(&access, (base, branch, path), edit).await;
        let refused = refused.expect_err("refused").to_string();
        assert!(refused.contains(why), "{branch} {path}: {refused}");
        assert_eq!(git(&bare, &["show-ref"]), refs, "{why}");
    }
}

/// What an empty repository gets, by path or over http: `base` is what was asked for.
async fn first_commit(bare: &Path, access: &RepoAccess, base: &str) {
    let edit = |before: Option<Vec<u8>>| match before {
        None => Ok(b"a: b\n".to_vec()),
        Some(_) => Err("nothing was there".to_owned()),
    };
    let made = propose(access, (base, "catalog/web-1.0.0", "apps/web.yaml"), edit).await;
    let made = made.expect("the first commit");
    let expected = if base.is_empty() { "main" } else { base };
    assert_eq!(
        (made.base.as_str(), made.branch.as_str()),
        (expected, expected)
    );
    let refs = git(bare, &["for-each-ref", "--format=%(refname) %(objectname)"]);
    assert_eq!(
        refs.trim(),
        format!("refs/heads/{expected} {}", made.commit)
    );
    let of = |what: &str| format!("{expected}{what}");
    assert_eq!(git(bare, &["show", &of(":apps/web.yaml")]), "a: b\n");
    assert_eq!(git(bare, &["rev-list", "--count", expected]).trim(), "1");
    assert_eq!(
        git(bare, &["ls-tree", "-r", "--name-only", expected]).trim(),
        "apps/web.yaml"
    );
    git(bare, &["fsck", "--strict"]);
    // From now on there is a branch to compare with.
    let base = if base.is_empty() { expected } else { base };
    let more = propose(access, (base, "catalog/web-2.0.0", "apps/web.yaml"), twice).await;
    assert_eq!(more.expect("a commit").branch, "catalog/web-2.0.0");
    assert_eq!(git(bare, &["rev-parse", expected]).trim(), made.commit);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_empty_repository_gets_its_first_commit() {
    for (base, is_remote) in [("", false), ("", true), ("live", false), ("live", true)] {
        let ground = TempDir::new().expect("a folder");
        let bare = ground.path().join("r.git");
        git(
            ground.path(),
            &["init", "--quiet", "--bare", "-b", "main", "r.git"],
        );
        git(&bare, &["config", "http.receivepack", "true"]);
        let server = is_remote.then(|| Server::start(ground.path(), Setup::default()));
        let url = match &server {
            Some(server) => server.url("/r.git"),
            None => format!("file://{}", bare.display()),
        };
        first_commit(&bare, &RepoAccess::public(url), base).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_default_branch_one_is_to_be_named() {
    let ground = ground();
    let bare = ground.path().join("r.git");
    let access = RepoAccess::public(format!("file://{}", bare.display()));
    git(&bare, &["branch", "live"]);
    git(&bare, &["symbolic-ref", "HEAD", "refs/heads/gone"]);
    git(&bare, &["branch", "-D", "main"]);
    let refused = propose(&access, ("", "b", "a"), twice).await;
    let refused = refused.expect_err("there is no default branch").to_string();
    assert!(refused.contains("no default branch"), "{refused}");
    assert!(refused.contains("such as \"live\""), "{refused}");
    assert!(propose(&access, ("live", "b", "a"), twice).await.is_ok());
}
