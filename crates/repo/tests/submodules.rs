//! Submodules, from servers on loopback.

use std::{
    path::{Path, PathBuf},
    process::Command,
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_api::source::{ApplicationSource, ApplicationSourceDirectory};
use tiphys_repo::{
    ManifestRequest, Manifests, OtherRepository, Others, Reach, RepoAccess, RepoError, RepoOptions,
    Repos, Secret, Since,
};
use tiphys_testkit::git_server::{Server, Setup};

const PASSWORD: &str = "s3cr3t-pa55";

/// Repositories with worktrees below one folder, which a server exports.
struct World {
    dir: tempfile::TempDir,
    repos: Repos,
    _cache: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        Self::with(true)
    }

    fn with(submodules: bool) -> Self {
        let cache = tempfile::tempdir().expect("a folder");
        let options = RepoOptions {
            timeout: Duration::from_secs(20),
            submodules,
            ..RepoOptions::default()
        };
        Self {
            dir: tempfile::tempdir().expect("a folder"),
            repos: Repos::with_options(cache.path(), options),
            _cache: cache,
        }
    }

    fn root(&self) -> &Path {
        self.dir.path()
    }

    fn at(&self, name: &str) -> PathBuf {
        self.root().join(name)
    }

    fn git(&self, name: &str, arguments: &[&str]) -> String {
        std::fs::create_dir_all(self.at(name)).expect("a folder");
        let user = ["-c", "user.name=T", "-c", "user.email=t@example.org"];
        let out = Command::new("git")
            .current_dir(self.at(name))
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .args(user)
            .args(arguments)
            .output()
            .expect("git runs");
        let error = String::from_utf8_lossy(&out.stderr);
        assert!(out.status.success(), "git {arguments:?}: {error}");
        String::from_utf8_lossy(&out.stdout).trim().to_owned()
    }

    /// Commits files and submodules to a repository, which is made if it is not there.
    fn commit(&self, name: &str, files: &[(&str, &str)], links: &[(&str, &str)]) -> String {
        if !self.at(name).exists() {
            self.git(name, &["init", "-q", "-b", "main"]);
        }
        for (path, text) in files {
            let path = self.at(name).join(path);
            std::fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        for (path, _) in files {
            self.git(name, &["add", path]);
        }
        for (path, sha) in links {
            let info = format!("160000,{sha},{path}");
            self.git(name, &["update-index", "--add", "--cacheinfo", &info]);
        }
        self.git(name, &["commit", "-q", "--allow-empty", "-m", "A change"]);
        self.git(name, &["rev-parse", "HEAD"])
    }

    async fn render(
        &self,
        access: &RepoAccess,
        sha: &str,
        path: &str,
    ) -> Result<Arc<Manifests>, RepoError> {
        self.repos.manifests(request(access, sha, path)).await
    }
}

fn request(access: &RepoAccess, sha: &str, path: &str) -> ManifestRequest {
    let directory = ApplicationSourceDirectory {
        recurse: true,
        ..ApplicationSourceDirectory::default()
    };
    ManifestRequest {
        access: access.clone(),
        source: ApplicationSource {
            path: path.to_owned(),
            directory: Some(directory.into()),
            ..ApplicationSource::default()
        },
        sha: sha.to_owned(),
        project: "team".to_owned(),
        ..ManifestRequest::default()
    }
}

fn cm(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

fn module(path: &str, url: &str) -> String {
    format!("[submodule \"{path}\"]\n\tpath = {path}\n\turl = {url}\n")
}

fn names(manifests: &Manifests) -> Vec<String> {
    let objects = manifests.objects.iter();
    let mut names: Vec<String> = objects
        .map(|o| o.object().str_at("/metadata/name").to_owned())
        .collect();
    names.sort();
    names
}

fn with_password(url: String) -> RepoAccess {
    RepoAccess {
        username: "u".to_owned(),
        password: Secret::new(PASSWORD),
        ..RepoAccess::public(url)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn submodules_are_part_of_the_content() {
    let world = World::new();
    let setup = Setup {
        user: Some(("u", PASSWORD)),
        ..Setup::default()
    };
    let server = Server::start(world.root(), setup);
    let leaf = world.commit("group/leaf", &[("d.yaml", &cm("leaf"))], &[]);
    let middle = [
        ("c.yaml", cm("middle")),
        (".gitmodules", module("in/leaf", "../leaf")),
    ];
    let middle = middle.each_ref().map(|(path, text)| (*path, text.as_str()));
    let middle = world.commit("group/middle", &middle, &[("in/leaf", &leaf)]);
    let modules = module("app/sub", &server.url("/group/middle"));
    let parent = [
        ("app/a.yaml", cm("own")),
        ("other/b.yaml", cm("other")),
        (".gitmodules", modules),
    ];
    let parent = parent.each_ref().map(|(path, text)| (*path, text.as_str()));
    let first = world.commit("parent", &parent, &[("app/sub", &middle)]);
    // The password of the repository serves for its server.
    let access = with_password(server.url("/parent"));
    let found = world.render(&access, &first, "app").await.expect("first");
    assert_eq!(names(&found), ["leaf", "middle", "own"]);
    assert_eq!(found.revision, first);
    let inside = world.render(&access, &first, "app/sub/in/leaf").await;
    assert_eq!(names(&inside.expect("inside")), ["leaf"]);
    let other = world.render(&access, &first, "other").await.expect("other");

    let changed = world.commit("group/middle", &[("c.yaml", &cm("changed"))], &[]);
    let second = world.commit("parent", &[], &[("app/sub", &changed)]);
    let after = world.render(&access, &second, "app").await.expect("second");
    assert_eq!(names(&after), ["changed", "leaf", "own"]);
    assert_ne!(found.digest, after.digest);
    let still = world
        .render(&access, &second, "other")
        .await
        .expect("other");
    assert_eq!(other.digest, still.digest);

    // From memory, and only if nothing of it differs.
    let of = |sha: &str, path: &str| request(&access, sha, path);
    let same = world.repos.unchanged(&of(&second, "other"), &other);
    assert_eq!(same.expect("it did not change").revision, second);
    assert!(world.repos.unchanged(&of(&second, "app"), &found).is_none());
    let again = world.repos.unchanged(&of(&second, "app"), &after);
    assert_eq!(names(&again.expect("in memory")), names(&after));

    world.git("parent", &["rm", "-q", "--cached", "app/sub"]);
    let removed = world.commit("parent", &[(".gitmodules", "")], &[]);
    let removed = world.render(&access, &removed, "app").await;
    assert_eq!(names(&removed.expect("removed")), ["own"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_submodule_on_another_server_gets_only_its_own_credentials() {
    let world = World::new();
    let other = World::new();
    let leaf = other.commit("leaf", &[("d.yaml", &cm("leaf"))], &[]);
    let open = Server::start(other.root(), Setup::default());
    let setup = || Setup {
        user: Some(("u", PASSWORD)),
        ..Setup::default()
    };
    let (closed, own) = (
        Server::start(other.root(), setup()),
        Server::start(world.root(), setup()),
    );
    let parent = |name: &str, server: &Server| {
        let modules = module("app/sub", &server.url("/leaf"));
        let files = [("app/a.yaml", cm("own")), (".gitmodules", modules)];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let sha = world.commit(name, &files, &[("app/sub", &leaf)]);
        (with_password(own.url(&format!("/{name}"))), sha)
    };
    let (access, sha) = parent("to-open", &open);
    let found = world.render(&access, &sha, "app").await.expect("rendered");
    assert_eq!(names(&found), ["leaf", "own"]);
    assert!(open.count("git-upload-pack") > 0);
    assert_eq!(open.count("authorization"), 0, "{:?}", open.log());

    let (access, sha) = parent("to-closed", &closed);
    let refused = world.render(&access, &sha, "app").await;
    let refused = refused.expect_err("it has no credentials").to_string();
    let expected = format!(
        "failed to update submodules: app/sub: authentication required: repository {} refused the credentials (none are configured)",
        closed.url("/leaf")
    );
    assert_eq!(refused, expected);
    assert_eq!(closed.count("authorization"), 0, "{:?}", closed.log());

    // With the credentials that the settings have for it, if the project permits it.
    for permitted in [true, false] {
        let others = Others::new(move |wanted| {
            let OtherRepository::Url(url) = wanted else {
                return Err(RepoError::Internal("submodules have no names".to_owned()));
            };
            let access = if permitted {
                with_password(url.to_owned())
            } else {
                RepoAccess::public(url)
            };
            Ok(Reach { access, permitted })
        });
        let request = ManifestRequest {
            others,
            ..request(&access, &sha, "app")
        };
        let found = world.repos.manifests(request).await;
        if permitted {
            assert_eq!(names(&found.expect("permitted")), ["leaf", "own"]);
        } else {
            // What was fetched with other credentials is not shown either.
            let refused = found.expect_err("not permitted").to_string();
            let expected = format!(
                "failed to update submodules: app/sub: repository {} is not permitted in project 'team' and asked without credentials: ",
                closed.url("/leaf")
            );
            assert!(refused.starts_with(&expected), "{refused}");
            assert!(!refused.contains(PASSWORD));
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_refusal_counts_for_a_submodule_that_is_here_already() {
    let (world, other) = (World::new(), World::new());
    let leaf = other.commit("leaf", &[("d.yaml", &cm("leaf"))], &[]);
    let instead = Arc::new(Mutex::new(None));
    let setup = Setup {
        instead: Arc::clone(&instead),
        ..Setup::default()
    };
    let (theirs, own) = (
        Server::start(other.root(), setup),
        Server::start(world.root(), Setup::default()),
    );
    let answers = |status| *instead.lock().expect("nobody failed") = status;
    let modules = module("app/sub", &theirs.url("/leaf"));
    let files = [
        ("app/a.yaml", cm("own")),
        (".gitmodules", modules),
        ("app/b.yaml", cm("more")),
    ];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let sha = world.commit("top", &files, &[("app/sub", &leaf)]);
    let access = RepoAccess::public(own.url("/top"));
    let of_theirs = RepoAccess::public(theirs.url("/leaf"));
    let ask = async || {
        let asked = world.repos.refs(&of_theirs, Since::now()).await;
        asked.map(|_| ())
    };
    let asked = request(&access, &sha, "app");
    let first = world.render(&access, &sha, "app").await.expect("rendered");
    answers(Some("503 Service Unavailable"));
    ask().await.expect_err("away");
    let again = world.render(&access, &sha, "app").await;
    again.expect("an outage says nothing");
    assert!(world.repos.unchanged(&asked, &first).is_some());

    answers(Some("403 Forbidden"));
    ask().await.expect_err("refused");
    assert!(world.repos.unchanged(&asked, &first).is_none());
    let refused = world.render(&access, &sha, "app").await.map(|_| ());
    refused.expect_err("it is refused");

    answers(None);
    ask().await.expect("accepted");
    let again = world.render(&access, &sha, "app").await;
    assert_eq!(names(&again.expect("accepted")), ["leaf", "more", "own"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_a_submodule_must_not_be_is_refused_by_name() {
    let world = World::new();
    let server = Server::start(world.root(), Setup::default());
    let leaf = world.commit("leaf", &[("d.yaml", &cm("leaf"))], &[]);
    let only = "only https, http and ssh repositories can be fetched for a render";
    let local = world.at("leaf").display().to_string();
    let gone = "0123456789012345678901234567890123456789";
    let link_local =
        "its address is link-local or a cloud's own, where cloud providers serve credentials";
    let url = |path: &str| server.url(path);
    let missing = format!("revision {gone} is not in repository {}", url("/leaf"));
    let lost = format!("repository not found: {}", url("/lost"));
    let refused = |url: &str, reason: &str| format!("repository URL {url:?} is refused: {reason}");
    let table: Vec<(String, &str, String)> = vec![
        (
            module("sub", "file:///srv/x"),
            &leaf,
            refused("file:///srv/x", only),
        ),
        (module("sub", &local), &leaf, refused(&local, only)),
        (
            module("sub", "ftp://h/x"),
            &leaf,
            refused("ftp://h/x", only),
        ),
        (
            module("sub", "http://169.254.169.254/x"),
            &leaf,
            refused("http://169.254.169.254/x", link_local),
        ),
        (
            module("sub", "http://[fe80::1]/x"),
            &leaf,
            refused("http://[fe80::1]/x", link_local),
        ),
        (
            module("sub", "../../x"),
            &leaf,
            refused("../../x", "it leads out of the server of its repository"),
        ),
        (module("sub", &url("/leaf")), gone, missing),
        (module("sub", &url("/lost")), &leaf, lost),
    ];
    for (modules, sha, expected) in table {
        let parent = world.commit("parent", &[(".gitmodules", &modules)], &[("sub", sha)]);
        let access = RepoAccess::public(url("/parent"));
        let error = world.render(&access, &parent, ".").await;
        let error = error.expect_err(&modules).to_string();
        assert_eq!(
            error,
            format!("failed to update submodules: sub: {expected}")
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn what_gitmodules_must_not_say_is_refused_by_name() {
    let world = World::new();
    let server = Server::start(world.root(), Setup::default());
    let leaf = world.commit("leaf", &[("d.yaml", &cm("leaf"))], &[]);
    // Commands, line breaks, options: with a text that names the submodule.
    for url in [
        "ext::sh -c x",
        "--upload-pack=x",
        "\"https://h/a\\nb\"",
        "-oProxyCommand=x:y",
        "h/x",
    ] {
        let parent = world.commit(
            "parent",
            &[(".gitmodules", &module("sub", url))],
            &[("sub", &leaf)],
        );
        let error = world
            .render(&RepoAccess::public(server.url("/parent")), &parent, ".")
            .await;
        let error = error.expect_err(url).to_string();
        assert!(
            error.starts_with("failed to update submodules: sub: repository URL "),
            "{error}"
        );
    }
    let whole = format!(
        "failed to update submodules: repository {}: ",
        server.url("/parent")
    );
    for (modules, expected) in [
        (
            "[submodule \"s\"]\n\tpath = ../x\n\turl = ../leaf\n",
            "submodule \"../x\": its path is not inside the repository",
        ),
        (
            "[submodule \"s\"]\n\tpath = .git/hooks\n\turl = ../leaf\n",
            "submodule \".git/hooks\": its path is not inside the repository",
        ),
        (
            "[submodule \"s\"]\n\tpath = sub\n",
            "submodule \"sub\": it has no url",
        ),
        (
            "[submodule \"s\"]\n\tpath = sub\n\turl = ../leaf\n\tupdate = !touch x\n",
            "submodule \"sub\": its update is a command",
        ),
    ] {
        let parent = world.commit("parent", &[(".gitmodules", modules)], &[("sub", &leaf)]);
        let error = world
            .render(&RepoAccess::public(server.url("/parent")), &parent, ".")
            .await;
        assert_eq!(
            error.expect_err(modules).to_string(),
            format!("{whole}{expected}")
        );
    }
    std::fs::remove_file(world.at("parent/.gitmodules")).expect("it is there");
    std::os::unix::fs::symlink("elsewhere", world.at("parent/.gitmodules")).expect("a link");
    world.git("parent", &["add", ".gitmodules"]);
    let parent = world.commit("parent", &[], &[("sub", &leaf)]);
    let error = world
        .render(&RepoAccess::public(server.url("/parent")), &parent, ".")
        .await;
    assert_eq!(
        error.expect_err("a link").to_string(),
        format!("{whole}.gitmodules is a symbolic link")
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn submodules_are_limited_in_number_and_depth() {
    let world = World::new();
    let server = Server::start(world.root(), Setup::default());
    let mut below = world.commit("r0", &[("d.yaml", &cm("leaf"))], &[]);
    for depth in 1..=11 {
        let modules = module("sub", &format!("../r{}", depth - 1));
        let name = format!("r{depth}");
        below = world.commit(&name, &[(".gitmodules", &modules)], &[("sub", &below)]);
        if depth < 10 {
            continue;
        }
        let found = world
            .render(
                &RepoAccess::public(server.url(&format!("/{name}"))),
                &below,
                ".",
            )
            .await;
        if depth == 10 {
            assert_eq!(names(&found.expect("ten are permitted")), ["leaf"]);
        } else {
            let expected = format!(
                "repository {} is refused: it has more than 10 submodules in each other",
                server.url("/r11")
            );
            assert_eq!(found.expect_err("eleven").to_string(), expected);
        }
    }

    let leaf = world.git("r0", &["rev-parse", "HEAD"]);
    let paths: Vec<String> = (0..101).map(|i| format!("s{i}")).collect();
    let modules: String = paths.iter().map(|path| module(path, "../r0")).collect();
    let links: Vec<(&str, &str)> = paths
        .iter()
        .map(|path| (path.as_str(), leaf.as_str()))
        .collect();
    let many = world.commit("many", &[(".gitmodules", &modules)], &links);
    let error = world
        .render(&RepoAccess::public(server.url("/many")), &many, ".")
        .await;
    assert_eq!(
        error.expect_err("too many").to_string(),
        format!(
            "repository {} is refused: it has more than 100 submodules",
            server.url("/many")
        )
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_base_of_another_repository_has_its_submodules() {
    let world = World::new();
    let server = Server::start(world.root(), Setup::default());
    let leaf = world.commit("leaf", &[("d.yaml", &cm("leaf"))], &[]);
    let base = [
        ("kustomization.yaml", "resources: [sub/d.yaml]".to_owned()),
        (".gitmodules", module("sub", "../leaf")),
    ];
    let base = base.each_ref().map(|(path, text)| (*path, text.as_str()));
    world.commit("base.git", &base, &[("sub", &leaf)]);
    for (query, off, expected) in [
        ("", false, true),
        ("?submodules=false", false, false),
        ("", true, false),
    ] {
        let text = format!("resources: [\"{}{query}\"]\n", server.url("/base.git"));
        let sha = world.commit("own", &[("kustomization.yaml", &text)], &[]);
        let access = RepoAccess::public(server.url("/own"));
        let mut request = request(&access, &sha, ".");
        request.source.directory = None;
        request.no_submodules = off;
        let found = world.repos.manifests(request).await;
        match found {
            Ok(found) => assert!(expected && names(&found) == ["leaf"], "{query} {off}"),
            Err(e) => assert!(!expected && e.to_string().contains("sub/d.yaml"), "{e}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn submodules_can_be_switched_off_and_skipped() {
    for (submodules, update, expected) in [
        (false, "checkout", &["own"][..]),
        (true, "none", &["own"][..]),
        (true, "checkout", &["leaf", "own"][..]),
    ] {
        let world = World::with(submodules);
        let server = Server::start(world.root(), Setup::default());
        let leaf = world.commit("leaf", &[("d.yaml", &cm("leaf"))], &[]);
        let modules = format!("{}\tupdate = {update}\n", module("sub", "../leaf"));
        let files = [("a.yaml", cm("own")), (".gitmodules", modules)];
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let sha = world.commit("parent", &files, &[("sub", &leaf)]);
        let found = world
            .render(&RepoAccess::public(server.url("/parent")), &sha, ".")
            .await;
        assert_eq!(
            names(&found.expect("rendered")),
            expected,
            "{submodules} {update}"
        );
    }
}
