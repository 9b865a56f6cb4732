//! Hydrated manifests: what is committed and pushed, and what never is. The remote repositories are
//! served over loopback through `git http-backend`.

use crate::remote::ssh_program;
use serde_json::json;
use std::{collections::BTreeMap, path::Path, process::Command, time::Duration};
use tempfile::TempDir;
use tiphys_api::{
    repository::{Repository, RevisionMetadata},
    rpc::commit::{CommitHydratedManifestsRequest, HydratedManifestDetails, PathDetails},
};
use tiphys_repo::{RepoAccess, RepoError, RepoOptions, Repos, Secret};
use tiphys_testkit::git_server::{Server, Setup};

const DRY: &str = "1111111111111111111111111111111111111111";
const DRY2: &str = "2222222222222222222222222222222222222222";
const SECRET: &str = "s3cr3t-pa55";

struct Ground {
    dir: TempDir,
    cache: TempDir,
}

impl Ground {
    fn new() -> Self {
        let ground = Self {
            dir: TempDir::new().expect("a folder"),
            cache: TempDir::new().expect("a folder"),
        };
        Repos::init_example(&ground.bare(), [("src/web/cm.yaml", "a: b\n")]).expect("example");
        ground.git(&["config", "http.receivepack", "true"]);
        ground
    }

    fn bare(&self) -> std::path::PathBuf {
        self.dir.path().join("r.git")
    }

    fn repos(&self) -> Repos {
        Repos::new(self.cache.path())
    }

    fn git(&self, arguments: &[&str]) -> String {
        git(&self.bare(), arguments)
    }

    fn url(&self) -> String {
        format!("file://{}", self.bare().display())
    }

    /// The files of a branch.
    fn files(&self, branch: &str) -> BTreeMap<String, String> {
        let names = self.git(&["ls-tree", "-r", "--name-only", branch]);
        let content = |name: &str| self.git(&["show", &format!("{branch}:{name}")]);
        names.lines().map(|n| (n.to_owned(), content(n))).collect()
    }

    fn names(&self, branch: &str) -> Vec<String> {
        self.files(branch).into_keys().collect()
    }
}

fn git(at: &Path, arguments: &[&str]) -> String {
    let mut git = Command::new("git");
    let output = git.arg("-C").arg(at).args(arguments).output();
    let output = output.expect("git runs");
    assert!(
        output.status.success(),
        "{arguments:?}: {}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8(output.stdout).expect("text")
}

fn config_map(name: &str, value: &str) -> HydratedManifestDetails {
    let object = json!({
        "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"v": value},
    });
    HydratedManifestDetails {
        manifest_json: object.to_string(),
    }
}

fn folder(path: &str, value: &str) -> PathDetails {
    PathDetails {
        path: path.to_owned(),
        manifests: vec![config_map("cm", value)],
        commands: vec!["tiphys render .".to_owned()],
    }
}

fn request(url: &str, dry_sha: &str, paths: Vec<PathDetails>) -> CommitHydratedManifestsRequest {
    CommitHydratedManifestsRequest {
        repo: Some(Repository {
            repo: url.to_owned(),
            ..Repository::default()
        }),
        sync_branch: "env/dev".to_owned(),
        target_branch: "env/dev".to_owned(),
        dry_sha: dry_sha.to_owned(),
        commit_message: format!("{}: Change\n\nCo-authored-by: Ann\n", &dry_sha[..7]),
        paths,
        dry_commit_metadata: Some(RevisionMetadata {
            author: "Ann <ann@example.com>".to_owned(),
            message: "Change".to_owned(),
            ..RevisionMetadata::default()
        }),
        readme_message: "From {{ .RepoURL }} at {{ .DrySHA }}\n".to_owned(),
        ..CommitHydratedManifestsRequest::default()
    }
}

async fn commit(
    ground: &Ground,
    request: CommitHydratedManifestsRequest,
) -> Result<String, RepoError> {
    let url = request.repo.clone().unwrap_or_default().repo;
    let access = RepoAccess::public(url);
    ground
        .repos()
        .commit_hydrated(&access, request, 1_700_000_000)
        .await
}

#[tokio::test]
async fn a_first_hydration_makes_the_branch() {
    let ground = Ground::new();
    let made = request(&ground.url(), DRY, vec![folder("apps/web", "1")]);
    let sha = commit(&ground, made).await.expect("a commit");
    assert_eq!(ground.git(&["rev-parse", "env/dev"]).trim(), sha);
    let files = ground.files("env/dev");
    assert_eq!(
        files.keys().collect::<Vec<_>>(),
        [
            ".gitattributes",
            "apps/web/README.md",
            "apps/web/hydrator.metadata",
            "apps/web/manifest.yaml",
            "hydrator.metadata"
        ]
    );
    assert_eq!(
        files["apps/web/manifest.yaml"],
        "apiVersion: v1\ndata:\n  v: \"1\"\nkind: ConfigMap\nmetadata:\n  name: cm\n"
    );
    assert_eq!(
        files["apps/web/README.md"],
        format!("From {} at {DRY}\n", ground.url())
    );
    let log = ground.git(&["log", "--format=%s|%an <%ae>", "env/dev"]);
    assert_eq!(
        log,
        "1111111: Change|Argo CD <argo-cd@example.com>\nInitial commit for env/dev|Argo CD \
         <argo-cd@example.com>\n"
    );
    let note = ground.git(&["notes", "--ref=hydrator.metadata", "show", &sha]);
    assert_eq!(note, format!("{{\"drySha\":\"{DRY}\"}}\n"));
    ground.git(&["fsck", "--strict"]);
}

#[tokio::test]
async fn what_is_there_already_makes_no_commit() {
    let ground = Ground::new();
    let url = ground.url();
    let at = |dry, paths| commit(&ground, request(&url, dry, paths));
    let first = at(DRY, vec![folder("apps/web", "1")]).await.expect("it");
    let again = at(DRY, vec![folder("apps/web/", "1")]).await.expect("it");
    assert_eq!(again, first);
    // Another dry commit with the same manifests: only the note moves.
    let other = at(DRY2, vec![folder("apps/web", "1")]).await.expect("it");
    assert_eq!(other, first);
    let note = ground.git(&["notes", "--ref=hydrator.metadata", "show", &first]);
    assert_eq!(note, format!("{{\"drySha\":\"{DRY2}\"}}\n"));
    // A folder that comes later to a hydrated dry commit.
    let late = vec![folder("apps/web", "1"), folder("apps/api", "1")];
    let late = at(DRY2, late).await.expect("a commit");
    assert_ne!(late, first);
    let files = ground.files("env/dev");
    assert!(files["apps/web/hydrator.metadata"].contains(DRY));
    assert!(files["apps/api/hydrator.metadata"].contains(DRY2));
    assert!(files["hydrator.metadata"].contains(DRY2));
    let commits = ground.git(&["rev-list", "--count", "env/dev"]);
    assert_eq!(commits.trim(), "3");
}

#[tokio::test]
async fn only_its_own_files_are_touched() {
    let ground = Ground::new();
    let before = [
        ("ci.yml", Some("on: push\n")),
        ("apps/old/manifest.yaml", Some("kind: Old\n")),
        ("apps/web/notes.txt", Some("keep\n")),
        ("apps/web/manifest.yaml", Some("kind: Service\n")),
    ];
    Repos::commit_files(&ground.bare(), "env/dev", &before, "By hand").expect("a commit");
    let made = request(&ground.url(), DRY, vec![folder("apps/web", "1")]);
    commit(&ground, made).await.expect("a commit");
    let files = ground.files("env/dev");
    for (path, content) in &before[..3] {
        assert_eq!(Some(files[*path].as_str()), *content, "{path}");
    }
    assert!(files["apps/web/manifest.yaml"].contains("ConfigMap"));
    assert_eq!(files.len(), 8, "{:?}", files.keys());
}

#[tokio::test]
async fn a_repository_with_files_logs_what_moved_its_branches() {
    let ground = Ground::new();
    // As `git init` and a clone make it, without anybody's name.
    ground.git(&["config", "core.bare", "false"]);
    ground.git(&["config", "core.logAllRefUpdates", "true"]);
    let made = request(&ground.url(), DRY, vec![folder("apps/web", "1")]);
    let sha = commit(&ground, made).await.expect("a commit");
    assert_eq!(ground.git(&["rev-parse", "env/dev"]).trim(), sha);
    let logged = ground.git(&["reflog", "show", "--format=%H", "env/dev"]);
    assert!(logged.contains(&sha), "{logged}");
    let checked_out = CommitHydratedManifestsRequest {
        target_branch: "main".to_owned(),
        ..request(&ground.url(), DRY, vec![folder("apps/web", "1")])
    };
    let before = ground.git(&["rev-parse", "main"]);
    let refused = commit(&ground, checked_out).await.expect_err("checked out");
    assert!(
        refused
            .to_string()
            .contains("refs/heads/main is checked out"),
        "{refused}"
    );
    assert_eq!(ground.git(&["rev-parse", "main"]), before);
}

#[tokio::test]
async fn a_target_branch_begins_at_the_sync_branch() {
    let ground = Ground::new();
    let sync = [("apps/web/manifest.yaml", Some("kind: Old\n"))];
    let sync = Repos::commit_files(&ground.bare(), "env/dev", &sync, "Old").expect("a commit");
    let made = CommitHydratedManifestsRequest {
        target_branch: "env/dev-next".to_owned(),
        ..request(&ground.url(), DRY, vec![folder("apps/web", "1")])
    };
    let sha = commit(&ground, made).await.expect("a commit");
    assert_eq!(ground.git(&["rev-parse", "env/dev"]).trim(), sync);
    assert_eq!(ground.git(&["rev-parse", "env/dev-next~1"]).trim(), sync);
    assert_eq!(ground.git(&["rev-parse", "env/dev-next"]).trim(), sha);
}

#[tokio::test]
async fn a_sync_branch_is_made_but_no_target_branch_without_changes() {
    let ground = Ground::new();
    let staged = |dry, paths| CommitHydratedManifestsRequest {
        target_branch: "env/next".to_owned(),
        ..request(&ground.url(), dry, paths)
    };
    let nothing = commit(&ground, staged(DRY, Vec::new())).await;
    let sync = ground.git(&["rev-parse", "env/dev"]);
    assert_eq!(nothing.expect("a commit"), sync.trim());
    assert_eq!(ground.git(&["branch", "--list", "env/next"]), "");
    let note = ground.git(&["notes", "--ref=hydrator.metadata", "show", "env/dev"]);
    assert_eq!(note, format!("{{\"drySha\":\"{DRY}\"}}\n"));
    // A target branch alone is no reason for the sync branch to be missing.
    let next = commit(&ground, staged(DRY2, vec![folder("web", "1")])).await;
    ground.git(&["branch", "-D", "env/dev"]);
    let later = commit(&ground, staged(DRY, vec![folder("web", "2")])).await;
    let later = later.expect("a commit");
    let before = ground.git(&["rev-parse", &format!("{later}~1")]);
    assert_eq!(next.expect("a commit"), before.trim());
    assert!(ground.names("env/dev").is_empty());
}

#[tokio::test]
async fn a_file_stays_executable() {
    let ground = Ground::new();
    let before = [("apps/web/manifest.yaml", Some("kind: Service\n"))];
    Repos::commit_files(&ground.bare(), "env/dev", &before, "By hand").expect("a commit");
    let tree = ground.dir.path().join("tree");
    ground.git(&["worktree", "add", "-q", "../tree", "env/dev"]);
    git(&tree, &["update-index", "--chmod=+x", before[0].0]);
    let who = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
    git(
        &tree,
        &[&who[..], &["commit", "-qm", "As Argo CD"]].concat(),
    );
    let paths = vec![folder("apps/web", "1"), folder("apps/api", "1")];
    let made = request(&ground.url(), DRY, paths);
    commit(&ground, made).await.expect("a commit");
    for (path, mode) in [("apps/web", "100755"), ("apps/api", "100644")] {
        let path = format!("{path}/manifest.yaml");
        let entry = ground.git(&["ls-tree", "env/dev", &path]);
        assert!(entry.starts_with(mode), "{entry}");
    }
}

#[tokio::test]
async fn authors_are_written_as_git_writes_them() {
    let ground = Ground::new();
    let by = |dry, name: &str, email: &str| CommitHydratedManifestsRequest {
        author_name: name.to_owned(),
        author_email: email.to_owned(),
        ..request(&ground.url(), dry, vec![folder("apps/web", name)])
    };
    for (name, email, expected) in [
        ("Dr. X.", " <x@y> ", "Dr. X <x@y>"),
        ("\"Q\"", "a@b.", "Q <a@b>"),
        ("A\u{a0}", ".", "A\u{a0} <>"),
    ] {
        commit(&ground, by(DRY, name, email)).await.expect(name);
        let who = ground.git(&["log", "-1", "--format=%an <%ae>", "env/dev"]);
        assert_eq!(who.trim_end_matches('\n'), expected);
    }
    let refused = commit(&ground, by(DRY2, " <>.", "a@b")).await;
    let text = refused.expect_err("no name").to_string();
    assert!(text.contains("only of disallowed characters"), "{text}");
}

#[tokio::test]
async fn a_dry_commit_says_which_other_one_it_is_made_from() {
    let ground = Ground::new();
    let message = "Bump\n\nArgocd-reference-commit-sha: abcdef1\n\
                   Argocd-reference-commit-author: Ann <ann@example.com>\n";
    let files = [("src/web/cm.yaml", Some("a: c\n"))];
    let sha = Repos::commit_files(&ground.bare(), "main", &files, message).expect("a commit");
    let access = RepoAccess::public(ground.url());
    let found = ground.repos().metadata(&access, &sha).await;
    let references = found.expect("metadata").references;
    let found = references.first().and_then(|found| found.commit.clone());
    let found = found.expect("a reference");
    assert_eq!(
        (found.sha.as_str(), found.author.as_str()),
        ("abcdef1", "\"Ann\" <ann@example.com>")
    );
}

#[tokio::test]
async fn nothing_leaves_its_folder() {
    let ground = Ground::new();
    let tree = ground.dir.path().join("tree");
    ground.git(&["worktree", "add", "-q", "-b", "env/dev", "../tree"]);
    std::os::unix::fs::symlink("../src", tree.join("linked")).expect("a link");
    git(&tree, &["add", "."]);
    let who = ["-c", "user.name=A", "-c", "user.email=a@b.c"];
    git(&tree, &[&who[..], &["commit", "-qm", "Link"]].concat());
    let head = ground.git(&["rev-parse", "env/dev"]);
    for path in [
        "linked",
        "linked/web",
        "src/web/cm.yaml/x",
        "../x",
        "a/.git",
        "",
        ".",
    ] {
        let made = request(
            &ground.url(),
            DRY,
            vec![folder("ok", "1"), folder(path, "1")],
        );
        let refused = commit(&ground, made).await;
        assert!(
            matches!(refused, Err(RepoError::Unsupported(_))),
            "{path}: {refused:?}"
        );
    }
    for (sync, target) in [("", "a"), ("a", ""), ("a", "b..c"), ("a b", "a")] {
        let made = CommitHydratedManifestsRequest {
            sync_branch: sync.to_owned(),
            target_branch: target.to_owned(),
            ..request(&ground.url(), DRY, vec![folder("ok", "1")])
        };
        assert!(commit(&ground, made).await.is_err(), "{sync} {target}");
    }
    assert_eq!(ground.git(&["rev-parse", "env/dev"]), head);
}

#[tokio::test]
async fn it_is_pushed_over_http() {
    for (setup, name) in [
        (Setup::default(), ""),
        (
            Setup {
                user: Some(("writer", SECRET)),
                tls: true,
                ..Setup::default()
            },
            "writer",
        ),
    ] {
        let ground = Ground::new();
        let server = Server::start(ground.dir.path(), setup.clone());
        let url = server.url("/r.git");
        let access = RepoAccess {
            username: name.to_owned(),
            password: Secret::new(if name.is_empty() { "" } else { SECRET }),
            ca_data: if setup.tls {
                server.ca()
            } else {
                String::new()
            },
            ..RepoAccess::public(&url)
        };
        let repos = ground.repos();
        let mut before = String::new();
        for (dry, value) in [(DRY, "1"), (DRY2, "2")] {
            let made = request(&url, dry, vec![folder("apps/web", value)]);
            let sha = repos.commit_hydrated(&access, made, 1_700_000_000).await;
            let sha = sha.expect("a commit");
            assert_ne!(sha, before);
            assert_eq!(ground.git(&["rev-parse", "env/dev"]).trim(), sha);
            let note = ground.git(&["notes", "--ref=hydrator.metadata", "show", &sha]);
            assert!(note.contains(dry), "{note}");
            before = sha;
        }
        assert_eq!(ground.names("env/dev").len(), 5);
        assert_eq!(ground.git(&["rev-list", "--count", "env/dev"]).trim(), "3");
        ground.git(&["fsck", "--strict"]);
        // A process that knows nothing goes on where this one was.
        let cache = TempDir::new().expect("a folder");
        let made = request(&url, DRY2, vec![folder("apps/web", "2"), folder("b", "1")]);
        let repos = Repos::new(cache.path());
        let late = repos.commit_hydrated(&access, made, 1);
        let late = late.await.expect("a commit");
        assert_eq!(ground.git(&["rev-parse", "env/dev~1"]).trim(), before);
        assert_eq!(ground.git(&["rev-parse", "env/dev"]).trim(), late);
    }
}

#[tokio::test]
async fn it_is_pushed_over_ssh() {
    let ground = Ground::new();
    let options = RepoOptions {
        ssh_program: ssh_program(ground.dir.path()),
        timeout: Duration::from_secs(20),
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(ground.cache.path(), options);
    let url = format!("ssh://git@host:2222{}", ground.bare().display());
    let access = RepoAccess {
        ssh_private_key: "KEY TEXT".into(),
        known_hosts: "host ssh-ed25519 AAAA".to_owned(),
        ..RepoAccess::public(&url)
    };
    for (dry, value) in [(DRY, "1"), (DRY2, "2")] {
        let made = request(&url, dry, vec![folder("apps/web", value)]);
        let sha = repos.commit_hydrated(&access, made, 1_700_000_000).await;
        let sha = sha.expect("a commit");
        assert_eq!(ground.git(&["rev-parse", "env/dev"]).trim(), sha);
        let note = ground.git(&["notes", "--ref=hydrator.metadata", "show", &sha]);
        assert!(note.contains(dry), "{note}");
    }
    ground.git(&["fsck", "--strict"]);
    let log = std::fs::read_to_string(ground.dir.path().join("log")).expect("log");
    for want in [
        "git-receive-pack",
        "KEY TEXT",
        "mode 600",
        "StrictHostKeyChecking yes",
    ] {
        assert!(log.contains(want), "{want} is not in {log}");
    }
    // A branch that the repository refuses.
    hook(&ground, "#!/bin/sh\nexit 1\n");
    let made = request(&url, DRY, vec![folder("apps/web", "3")]);
    let refused = repos.commit_hydrated(&access, made, 1).await;
    let text = refused.expect_err("it is refused").to_string();
    assert!(
        text.contains("refused refs/heads/env/dev: hook declined") && !text.contains("KEY"),
        "{text}"
    );
}

/// Lets a program decide whether a branch may be moved.
fn hook(ground: &Ground, script: &str) {
    let hook = ground.bare().join("hooks");
    std::fs::create_dir_all(&hook).expect("a folder");
    let hook = hook.join("update");
    std::fs::write(&hook, script).expect("a file");
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&hook, executable).expect("a mode");
}

#[tokio::test]
async fn a_refused_push_is_an_error_without_credentials() {
    let ground = Ground::new();
    let setup = Setup {
        user: Some(("writer", SECRET)),
        tls: true,
        ..Setup::default()
    };
    let server = Server::start(ground.dir.path(), setup);
    let url = server.url("/r.git");
    hook(&ground, "#!/bin/sh\nexit 1\n");
    for (password, expected) in [
        (SECRET, "refused refs/heads/env/dev: hook declined"),
        ("wrong", "refused the credentials"),
    ] {
        let access = RepoAccess {
            username: "writer".to_owned(),
            password: Secret::new(password),
            ca_data: server.ca(),
            ..RepoAccess::public(&url)
        };
        let made = request(&url, DRY, vec![folder("apps/web", "1")]);
        let refused = ground.repos().commit_hydrated(&access, made, 1).await;
        let text = refused.expect_err("it is refused").to_string();
        assert!(
            text.contains(expected) && !text.contains(password),
            "{text}"
        );
    }
}

#[tokio::test]
async fn several_branches_at_once_keep_all_their_notes() {
    let ground = Ground::new();
    let server = Server::start(ground.dir.path(), Setup::default());
    let (url, repos) = (server.url("/r.git"), ground.repos());
    let access = RepoAccess::public(&url);
    let branches = ["a", "b", "c"];
    let all = branches.map(|branch| {
        let made = CommitHydratedManifestsRequest {
            sync_branch: branch.to_owned(),
            target_branch: branch.to_owned(),
            ..request(&url, DRY, vec![folder("apps/web", branch)])
        };
        repos.commit_hydrated(&access, made, 1)
    });
    for (branch, done) in branches.iter().zip(futures::future::join_all(all).await) {
        let sha = done.expect("a commit");
        let note = ground.git(&["notes", "--ref=hydrator.metadata", "show", &sha]);
        assert!(note.contains(DRY), "{branch}");
    }
}
