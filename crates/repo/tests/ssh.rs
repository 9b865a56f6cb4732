//! Repositories of a real sshd on loopback, read and written by the real ssh.

use crate::local::{cm, git};
use std::{fs, path::Path, sync::Arc, time::Duration};
use tempfile::TempDir;
use tiphys_api::source::{ApplicationSource, ApplicationSourceDirectory};
use tiphys_repo::{
    DiskCache, ErrorKind, ManifestRequest, Manifests, RepoAccess, RepoError, RepoOptions, Repos,
    Since,
};
use tiphys_testkit::sshd::Sshd;

/// A server and the repository `web` beside it.
struct World {
    sshd: Sshd,
    folder: TempDir,
    repos: Repos,
}

impl World {
    fn new_or_skip() -> Option<Self> {
        let sshd = Sshd::start_or_skip()?;
        let folder = tempfile::tempdir().expect("a folder");
        let world = Self {
            repos: repos(folder.path(), "ssh"),
            sshd,
            folder,
        };
        world.commit("web", &[("app/a.yaml", &cm("a", "1"))]);
        Some(world)
    }

    /// Commits files to a repository, which is made if it is not there.
    fn commit(&self, name: &str, files: &[(&str, &str)]) -> String {
        let place = self.folder.path().join(name);
        if !place.exists() {
            fs::create_dir(&place).expect("a folder");
            git(&place, &["init", "-q"]);
        }
        for (path, text) in files {
            let path = place.join(path);
            fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        git(&place, &["add", "."]);
        git(&place, &["commit", "-q", "-m", "A change"]);
        git(&place, &["rev-parse", "HEAD"]).trim().to_owned()
    }

    /// With the host's key, and none of the user's.
    fn access(&self, name: &str) -> RepoAccess {
        RepoAccess {
            known_hosts: self.sshd.known_host(),
            ..RepoAccess::public(self.sshd.url(&self.folder.path().join(name)))
        }
    }

    fn with_key(&self, name: &str, key: &str) -> RepoAccess {
        RepoAccess {
            ssh_private_key: key.into(),
            ..self.access(name)
        }
    }

    async fn main(&self, access: &RepoAccess) -> Result<String, RepoError> {
        let found = self.repos.resolve(access, "main", Since::Recently).await;
        found.map(|found| found.sha)
    }

    async fn manifests(
        &self,
        access: &RepoAccess,
        sha: &str,
        path: &str,
    ) -> Result<Arc<Manifests>, RepoError> {
        let directory = ApplicationSourceDirectory {
            recurse: true,
            ..ApplicationSourceDirectory::default()
        };
        let request = ManifestRequest {
            access: access.clone(),
            source: ApplicationSource {
                path: path.to_owned(),
                directory: Some(directory.into()),
                ..ApplicationSource::default()
            },
            sha: sha.to_owned(),
            ..ManifestRequest::default()
        };
        self.repos.manifests(request).await
    }
}

fn repos(folder: &Path, ssh: &str) -> Repos {
    let options = RepoOptions {
        ssh_program: ssh.to_owned(),
        timeout: Duration::from_secs(60),
        ..RepoOptions::default()
    };
    Repos::with_options(folder.join("cache"), options)
}

fn values(manifests: &Manifests) -> Vec<String> {
    let objects = manifests.objects.iter();
    objects
        .map(|o| o.object().str_at("/data/v").to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repository_is_read_with_a_key() {
    let Some(world) = World::new_or_skip() else {
        return;
    };
    let access = world.with_key("web", &world.sshd.key("user", "", true));
    let first = world.main(&access).await.expect("the branch");
    let manifests = world.manifests(&access, &first, "app").await;
    assert_eq!(values(&manifests.expect("manifests")), ["1"]);
    let second = world.commit("web", &[("app/a.yaml", &cm("a", "2"))]);
    let manifests = world.manifests(&access, &second, "app").await;
    assert_eq!(values(&manifests.expect("manifests")), ["2"]);

    // `user@host:path` has no place for a port.
    let ssh = world.folder.path().join("ssh-at-port");
    let script = format!("#!/bin/sh\nexec ssh -p {} \"$@\"\n", world.sshd.port());
    fs::write(&ssh, script).expect("a file");
    let other = tempfile::tempdir().expect("a folder");
    let repos = repos(other.path(), &format!("sh {}", ssh.display()));
    let scp = RepoAccess {
        url: format!(
            "{}@127.0.0.1:{}",
            world.sshd.user(),
            world.folder.path().join("web").display()
        ),
        ..access
    };
    let found = repos.resolve(&scp, "main", Since::Recently).await;
    assert_eq!(found.expect("the branch").sha, second);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_of_the_host_must_be_known() {
    let Some(world) = World::new_or_skip() else {
        return;
    };
    let access = world.with_key("web", &world.sshd.key("user", "", true));
    let unknown = "host key verification failed: add the host's key to the known hosts";
    let changed = "host key verification failed: the host's key is not the one in the known hosts";
    for (known_hosts, reason) in [
        ("example.com ssh-ed25519 AAAA\n".to_owned(), unknown),
        (world.sshd.changed_host(), changed),
    ] {
        let refused = RepoAccess {
            known_hosts,
            ..access.clone()
        };
        let error = world.main(&refused).await.expect_err("it is not known");
        let RepoError::Unreachable { reason: told, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!(told, reason);
        let ignored = RepoAccess {
            insecure_ignore_host_key: true,
            ..refused
        };
        world.main(&ignored).await.expect("it is not looked at");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_do_not_serve_are_told_apart() {
    let Some(world) = World::new_or_skip() else {
        return;
    };
    let wrong = world.sshd.key("wrong", "", false);
    let locked = world.sshd.key("locked", "secret", true);
    for (key, end) in [
        (wrong, "refused the credentials"),
        (
            locked,
            "refused the credentials: the ssh key has a passphrase, which nobody can enter here",
        ),
    ] {
        let access = world.with_key("web", &key);
        let error = world.main(&access).await.expect_err("it is refused");
        assert!(matches!(error, RepoError::AuthFailed { .. }), "{error}");
        assert_eq!(error.kind(), ErrorKind::Config);
        let told = error.to_string();
        assert!(told.ends_with(end), "{told}");
        assert!(!told.contains("PRIVATE KEY"), "{told}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn who_does_not_listen_is_named_with_what_ssh_says() {
    let Some(world) = World::new_or_skip() else {
        return;
    };
    // Nobody listens there.
    let access = RepoAccess {
        known_hosts: world.sshd.known_host(),
        ..RepoAccess::public(format!(
            "ssh://git@127.0.0.1:{}/web",
            tiphys_testkit::free_port()
        ))
    };
    let error = world.main(&access).await.expect_err("nobody listens");
    assert!(matches!(error, RepoError::Unreachable { .. }), "{error}");
    let told = error.to_string();
    assert!(told.contains("Connection refused"), "{told}");
}

/// What a server answers over ssh is no outage, in which what was fetched before would be shown.
#[tokio::test(flavor = "multi_thread")]
async fn an_answer_over_ssh_is_no_outage() {
    let Some(world) = World::new_or_skip() else {
        return;
    };
    let access = world.with_key("web", &world.sshd.key("user", "", true));
    let (web, moved) = (
        world.folder.path().join("web"),
        world.folder.path().join("moved"),
    );
    // A process that has just begun.
    let main = async |ssh: &str| {
        let cache = DiskCache::open(&world.folder.path().join("rendered"), 1 << 20);
        let options = RepoOptions {
            disk_cache: Some(cache.expect("opened")),
            ssh_program: ssh.to_owned(),
            timeout: Duration::from_secs(60),
            refs_ttl: Duration::from_secs(3_600),
            ..RepoOptions::default()
        };
        let repos = Repos::with_options(world.folder.path().join("kept"), options);
        let found = repos.resolve(&access, "main", Since::Recently).await;
        found.map(|found| found.sha)
    };
    let sha = main("ssh").await.expect("the branch");

    // Programs in place of ssh. The first says why it failed, as ssh does.
    let program = |name: &str, script: &str| {
        let path = world.folder.path().join(name);
        fs::write(&path, script).expect("a file");
        format!("sh {}", path.display())
    };
    let away = program(
        "away",
        "echo 'connect to host: Connection refused' >\"$4\"\nexit 255\n",
    );
    assert_eq!(main(&away).await.expect("as it was"), sha);
    let refusing = program(
        "refusing",
        "echo 'ERROR: your account is suspended.' >&2\nexit 128\n",
    );
    let error = main(&refusing).await.expect_err("it is an answer");
    let told = error.to_string();
    assert!(told.contains("your account is suspended"), "{told}");

    fs::rename(&web, &moved).expect("moved");
    let error = main("ssh").await.expect_err("it is not there");
    assert!(matches!(error, RepoError::NotFound { .. }), "{error}");
    let error = main(&away).await.expect_err("nothing is known any longer");
    assert!(matches!(error, RepoError::Unreachable { .. }), "{error}");
}

/// The credentials of the repository serve for the submodules of the same server.
#[tokio::test(flavor = "multi_thread")]
async fn submodules_are_read_with_the_same_key() {
    let Some(world) = World::new_or_skip() else {
        return;
    };
    let inner = world.commit("inner", &[("b.yaml", &cm("b", "2"))]);
    let modules = "[submodule \"app/inner\"]\n\tpath = app/inner\n\turl = ../inner\n";
    world.commit("web", &[(".gitmodules", modules)]);
    let web = world.folder.path().join("web");
    let link = format!("160000,{inner},app/inner");
    git(&web, &["update-index", "--add", "--cacheinfo", &link]);
    git(&web, &["commit", "-q", "-m", "A submodule"]);
    let access = world.with_key("web", &world.sshd.key("user", "", true));
    let sha = world.main(&access).await.expect("the branch");
    let manifests = world.manifests(&access, &sha, "app").await;
    let mut found = values(&manifests.expect("manifests"));
    found.sort();
    assert_eq!(found, ["1", "2"]);
}
