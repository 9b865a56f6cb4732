//! Git LFS: what pointers in a repository stand for is downloaded from its server, with its
//! credentials, and only if that is switched on.

use sha2::{Digest, Sha256};
use std::{fmt::Write as _, sync::Arc, time::Duration};
use tempfile::TempDir;
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{ManifestRequest, Manifests, RepoAccess, RepoError, RepoOptions, Repos};
use tiphys_testkit::{
    charts::FileServer,
    git_server::{Lfs, Server, Setup},
};

const USER: (&str, &str) = ("git", "s3cr3t-pa55");

fn cm(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

fn digest(content: &[u8]) -> String {
    Sha256::digest(content)
        .iter()
        .fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
}

fn pointer(oid: &str, size: usize) -> String {
    format!("version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {size}\n")
}

fn pointer_to(content: &str) -> String {
    pointer(&digest(content.as_bytes()), content.len())
}

fn lfs(contents: &[&str]) -> Lfs {
    let object = |content: &&str| (digest(content.as_bytes()), content.as_bytes().to_vec());
    Lfs {
        objects: contents.iter().map(object).collect(),
        elsewhere: None,
    }
}

/// A server of the repository `r.git`, and the commit.
fn serving(files: &[(&str, &str)], lfs: Lfs) -> (TempDir, Server, String) {
    let dir = tempfile::tempdir().expect("a folder");
    let files = files.iter().copied();
    let sha = Repos::init_example(&dir.path().join("r.git"), files).expect("a repository");
    let setup = Setup {
        user: Some(USER),
        lfs: Some(lfs),
        ..Setup::default()
    };
    let server = Server::start(dir.path(), setup);
    (dir, server, sha)
}

fn access(server: &Server, lfs: bool) -> RepoAccess {
    RepoAccess {
        username: USER.0.into(),
        password: USER.1.into(),
        lfs,
        ..RepoAccess::public(server.url("/r.git"))
    }
}

fn repos(cache: &TempDir) -> Repos {
    let options = RepoOptions {
        timeout: Duration::from_secs(20),
        ..RepoOptions::default()
    };
    Repos::with_options(cache.path(), options)
}

async fn render(
    repos: &Repos,
    access: &RepoAccess,
    sha: &str,
) -> Result<Arc<Manifests>, RepoError> {
    let source = ApplicationSource {
        path: "app".to_owned(),
        ..ApplicationSource::default()
    };
    let request = ManifestRequest {
        access: access.clone(),
        source,
        sha: sha.to_owned(),
        app_name: "web".to_owned(),
        ..ManifestRequest::default()
    };
    repos.manifests(request).await
}

fn names(manifests: &Manifests) -> Vec<String> {
    let name = |o: &Arc<tiphys_apimachinery::Kept>| o.object().str_at("/metadata/name").to_owned();
    manifests.objects.iter().map(name).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pointers_are_replaced_where_that_is_switched_on() {
    let (a, b) = (cm("a"), cm("b"));
    let files = [
        ("app/a.yaml", pointer_to(&a)),
        ("app/b.yaml", pointer_to(&b)),
        ("app/plain.yaml", cm("plain")),
        ("other/c.yaml", pointer_to("never read")),
    ];
    let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
    let (_dir, server, sha) = serving(&files, lfs(&[&a, &b]));
    let (cache, other_cache) = (
        tempfile::tempdir().expect("a folder"),
        tempfile::tempdir().expect("a folder"),
    );
    let repos = repos(&cache);
    for _ in 0..2 {
        let before = server.count("/info/lfs");
        let refused = render(&repos, &access(&server, false), &sha).await;
        let told = refused.expect_err("a pointer").to_string();
        assert!(
            told.contains("\"app/a.yaml\" is a Git LFS pointer"),
            "{told}"
        );
        assert_eq!(server.count("/info/lfs"), before);

        let rendered = render(&repos, &access(&server, true), &sha).await;
        let rendered = rendered.expect("rendered");
        assert!(rendered.errors.is_empty(), "{:?}", rendered.errors);
        assert_eq!(names(&rendered), ["a", "b", "plain"]);
        // One question for both, and each once.
        assert_eq!(server.count("objects/batch"), 1);
        assert_eq!(server.count("/info/lfs/object/"), 2);
    }
    let without = server
        .log()
        .iter()
        .filter(|line| line.contains("/info/lfs") && !line.ends_with("authorization"))
        .count();
    assert_eq!(without, 0, "{:?}", server.log());
    // Another process has to ask again.
    let again = self::repos(&other_cache);
    let rendered = render(&again, &access(&server, true), &sha).await;
    assert_eq!(rendered.expect("rendered").objects.len(), 3);
    assert_eq!(server.count("objects/batch"), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_rendered_of_them_is_only_for_those_who_can_read_them() {
    let secret = cm("from-lfs");
    let pointer = pointer_to(&secret);
    let files = [("app/a.yaml", pointer.as_str())];
    let (mut _dir, mut server, mut sha) = serving(&files, lfs(&[&secret]));
    // The same commit elsewhere, without what its pointers stand for. A commit has its second in it.
    let (_other_dir, other) = loop {
        let (other_dir, other, other_sha) = serving(&files, lfs(&[]));
        if sha == other_sha {
            break (other_dir, other);
        }
        (_dir, server, sha) = serving(&files, lfs(&[&secret]));
    };
    let cache = tempfile::tempdir().expect("a folder");
    let repos = repos(&cache);
    let rendered = render(&repos, &access(&server, true), &sha).await;
    assert_eq!(names(&rendered.expect("rendered")), ["from-lfs"]);
    let refused = render(&repos, &access(&other, true), &sha).await;
    assert!(refused.is_err(), "{refused:?}");
    assert!(other.count("objects/batch") > 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn charts_and_kustomizations_read_them() {
    let (values, map) = ("color: blue\n", cm("map"));
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Values.color }}\n";
    let chart = [
        (
            "app/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n".to_owned(),
        ),
        ("app/values.yaml", pointer_to(values)),
        ("app/templates/a.yaml", pointer_to(template)),
    ];
    let kustomization = [
        (
            "app/kustomization.yaml",
            "namePrefix: k-\nresources: [map.yaml]\n".to_owned(),
        ),
        ("app/map.yaml", pointer_to(&map)),
        ("app/unused.yaml", String::new()),
    ];
    for (files, expected) in [(chart, "blue"), (kustomization, "k-map")] {
        let files = files.each_ref().map(|(path, text)| (*path, text.as_str()));
        let (_dir, server, sha) = serving(&files, lfs(&[values, template, &map]));
        let cache = tempfile::tempdir().expect("a folder");
        let rendered = render(&repos(&cache), &access(&server, true), &sha).await;
        assert_eq!(names(&rendered.expect("rendered")), [expected]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_host_gets_no_credentials() {
    let map = cm("map");
    let elsewhere = FileServer::start();
    elsewhere.serve(&format!("/{}", digest(map.as_bytes())), map.as_str());
    let lfs = Lfs {
        elsewhere: Some((elsewhere.url(), "RemoteAuth of-the-server".to_owned())),
        ..lfs(&[&map])
    };
    let pointer = pointer_to(&map);
    let (_dir, server, sha) = serving(&[("app/map.yaml", &pointer)], lfs);
    let cache = tempfile::tempdir().expect("a folder");
    let rendered = render(&repos(&cache), &access(&server, true), &sha).await;
    assert_eq!(names(&rendered.expect("rendered")), ["map"]);
    let received = elsewhere.received();
    let headers: Vec<&str> = received.iter().map(|r| r.authorization.as_str()).collect();
    assert_eq!(headers, ["RemoteAuth of-the-server"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_what_its_pointer_says_is_refused() {
    let map = cm("map");
    let oid = digest(map.as_bytes());
    let wrong = |content: &[u8]| Lfs {
        objects: [(oid.clone(), content.to_vec())].into(),
        elsewhere: None,
    };
    let mut other = map.clone().into_bytes();
    other[0] ^= 1;
    let good = pointer(&oid, map.len());
    let huge = pointer(&oid, 65 << 20);
    for (pointer, lfs, why) in [
        (&good, wrong(&other), "its digest is"),
        (&good, wrong(b"short"), "it has 5 bytes, not"),
        (&good, wrong(&[b'x'; 5000]), "more than"),
        (&good, Lfs::default(), "Object does not exist (404)"),
        (
            &huge,
            wrong(map.as_bytes()),
            "a Git LFS file of 68157440 bytes",
        ),
        (
            &"version https://git-lfs.github.com/spec/v1\noid x\n".to_owned(),
            Lfs::default(),
            "cannot be read",
        ),
    ] {
        let (_dir, server, sha) = serving(&[("app/map.yaml", pointer)], lfs);
        let cache = tempfile::tempdir().expect("a folder");
        let text = match render(&repos(&cache), &access(&server, true), &sha).await {
            Err(e) => e.to_string(),
            Ok(rendered) => format!("{:?}", rendered.errors),
        };
        assert!(text.contains(why), "{why}: {text}");
        assert!(!text.contains(USER.1), "{text}");
    }
}
