//! `tiphys kustomize build` with what lies elsewhere: bases in Git repositories, files of the web and
//! charts, all from servers on loopback.

use std::{fs, path::Path};
use tempfile::TempDir;
use tiphys_testkit::{
    Ended, Repo,
    charts::{FileServer, index, plain_chart},
    git_server::{Server, Setup},
    output_of,
};

fn cm(name: &str, value: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\ndata:\n  v: \"{value}\"\n")
}

/// The same, as kustomize prints it.
fn printed(name: &str, value: &str) -> String {
    format!("apiVersion: v1\ndata:\n  v: \"{value}\"\nkind: ConfigMap\nmetadata:\n  name: {name}\n")
}

fn build(words: &[&str]) -> Ended {
    let all: Vec<&str> = ["kustomize", "build"]
        .iter()
        .chain(words)
        .copied()
        .collect();
    output_of(env!("CARGO_BIN_EXE_tiphys").as_ref(), &all)
}

/// A repository with the tag `v1`, and a submodule since then.
struct World {
    server: Server,
    _repo: Repo,
    _inner: (Repo, Server),
    folder: TempDir,
}

impl World {
    fn new() -> Self {
        let serve = |repo: &Repo| {
            let bare = repo.bare();
            Server::start(bare.parent().expect("a folder"), Setup::default())
        };
        let inner = Repo::with(&[
            ("kustomization.yaml", "resources: [b.yaml]\n"),
            ("b.yaml", &cm("b", "inner")),
        ]);
        let inner_server = serve(&inner);
        let repo = Repo::with(&[
            ("base/kustomization.yaml", "resources: [a.yaml]\n"),
            ("base/a.yaml", &cm("a", "1")),
        ]);
        repo.set_reference("refs/tags/v1", &repo.head());
        let modules = format!(
            "[submodule \"inner\"]\n\tpath = inner\n\turl = {}\n",
            inner_server.url("/repo.git")
        );
        repo.commit(
            &[
                ("base/kustomization.yaml", "resources: [a.yaml, ../inner]\n"),
                ("base/a.yaml", &cm("a", "2")),
                (".gitmodules", &modules),
            ],
            &[],
        );
        let link = format!("160000,{},inner", inner.head());
        repo.git(&["update-index", "--add", "--cacheinfo", &link]);
        repo.git(&["commit", "--quiet", "--message", "A submodule"]);
        Self {
            server: serve(&repo),
            _repo: repo,
            _inner: (inner, inner_server),
            folder: tempfile::tempdir().expect("a folder"),
        }
    }

    fn base(&self, query: &str) -> String {
        self.server.url(&format!("/repo.git//base{query}"))
    }

    /// Writes a kustomization, and builds its folder.
    fn built(&self, kustomization: &str, flags: &[&str]) -> Ended {
        let folder = self.over(kustomization);
        let mut words = vec![folder.as_str()];
        words.extend(flags);
        build(&words)
    }

    fn over(&self, kustomization: &str) -> String {
        let over = self.folder.path().join("over");
        fs::create_dir_all(&over).expect("a folder");
        fs::write(over.join("kustomization.yaml"), kustomization).expect("a file");
        let real = over.canonicalize().expect("it is there");
        real.to_string_lossy().into_owned()
    }
}

#[test]
fn bases_and_files_of_elsewhere_are_fetched() {
    let world = World::new();
    let web = FileServer::start();
    web.serve("/more.yaml", cm("of-the-web", "3").as_str());
    let kustomization = format!(
        "namePrefix: my-\nresources:\n- {}\n- {}/more.yaml\n",
        world.base("?ref=v1"),
        web.url()
    );
    let built = world.built(&kustomization, &[]);
    assert_eq!((built.code, built.stderr.as_str()), (Some(0), ""));
    let expected = [printed("my-a", "1"), printed("my-of-the-web", "3")];
    assert_eq!(built.stdout, expected.join("---\n"));
    if let Ok(kustomize) = std::env::var("KUSTOMIZE") {
        let folder = world.over(&kustomization);
        let genuine = output_of(Path::new(&kustomize), &["build", &folder]);
        assert_eq!(built.stdout, genuine.stdout, "{}", genuine.stderr);
    }
}

#[test]
fn submodules_are_fetched_unless_the_url_says_no() {
    let world = World::new();
    let with = world.built(&format!("resources: ['{}']\n", world.base("")), &[]);
    assert_eq!(with.code, Some(0), "{}", with.stderr);
    for text in ["v: \"2\"", "v: inner"] {
        assert!(with.stdout.contains(text), "{}", with.stdout);
    }
    let without = format!("resources: ['{}']\n", world.base("?submodules=false"));
    let without = world.built(&without, &[]);
    assert_eq!((without.code, without.stdout.as_str()), (Some(1), ""));
}

#[test]
fn the_folder_may_be_in_a_repository() {
    let world = World::new();
    let built = build(&[&world.base("?ref=v1")]);
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    assert!(built.stdout.contains("name: a"), "{}", built.stdout);
    let missing = world.base("?ref=v2");
    let failed = build(&[&missing]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    let named = format!("Error: {} at v2: ", world.server.url("/repo.git"));
    assert!(failed.stderr.starts_with(&named), "{}", failed.stderr);
}

#[test]
fn charts_are_fetched_where_they_are_enabled() {
    let world = World::new();
    let web = FileServer::start();
    web.serve("/charts/part-1.2.0.tgz", plain_chart("part", "1.2.0", &[]));
    let charts = index(&[("part", "1.2.0", "part-1.2.0.tgz", "")]);
    web.serve("/charts/index.yaml", charts.as_str());
    let chart = format!(
        "helmCharts:\n- name: part\n  repo: {}/charts\n  version: 1.2.0\n  releaseName: rel\n",
        web.url()
    );
    let built = world.built(&chart, &["--enable-helm"]);
    assert_eq!(built.code, Some(0), "{}", built.stderr);
    for text in ["name: rel-part", "colour: red"] {
        assert!(built.stdout.contains(text), "{}", built.stdout);
    }
    assert!(!web.received().is_empty());
    let refused = world.built(&chart, &[]);
    assert_eq!(refused.code, Some(1));
    assert!(
        refused.stderr.contains("must specify --enable-helm"),
        "{}",
        refused.stderr
    );
    assert!(web.received().is_empty(), "nothing is asked for");
}

#[test]
fn an_error_names_the_file_and_the_base() {
    let world = World::new();
    let web = FileServer::start();
    let missing = format!("{}/none.yaml", web.url());
    let kustomization = format!("resources: ['{missing}']\n");
    let folder = world.over(&kustomization);
    let failed = world.built(&kustomization, &[]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    assert_eq!(
        failed.stderr,
        format!(
            "Error: {folder}/kustomization.yaml: {missing}: failed to fetch {missing}: 404 Not Found\n"
        )
    );

    // A base of a base.
    let far = Repo::with(&[("base/kustomization.yaml", &kustomization)]);
    let bare = far.bare();
    let server = Server::start(bare.parent().expect("a folder"), Setup::default());
    let base = server.url("/repo.git//base");
    let failed = world.built(&format!("resources: ['{base}']\n"), &[]);
    let named = format!("Error: /base/kustomization.yaml of {base}: {missing}: failed to fetch");
    assert!(failed.stderr.starts_with(&named), "{}", failed.stderr);

    // Passwords of URLs are not printed.
    let secret = missing.replace("://", "://me:CANARY@");
    let far = Repo::with(&[(
        "base/kustomization.yaml",
        &format!("resources: ['{secret}']\n"),
    )]);
    let bare_too = far.bare();
    let other = Server::start(bare_too.parent().expect("a folder"), Setup::default());
    let base = other.url("/repo.git//base").replace("://", "://me:CANARY@");
    for resource in [&secret, &base] {
        let failed = world.built(&format!("resources: ['{resource}']\n"), &[]);
        assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
        let told = &failed.stderr;
        assert!(told.contains("/none.yaml: "), "{told}");
        assert!(!told.contains("CANARY"), "{told}");
    }

    // Who writes a base must not read the files of this machine.
    let local = format!("resources: ['file://{}']\n", bare.display());
    let failed = world.built(&local, &[]);
    assert_eq!((failed.code, failed.stdout.as_str()), (Some(1), ""));
    let why = "only https, http and ssh repositories can be fetched for a render";
    assert!(failed.stderr.contains(why), "{}", failed.stderr);
}
