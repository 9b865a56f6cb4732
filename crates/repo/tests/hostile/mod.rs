//! Sources that mean harm, by their numbers in the corpus of hostile sources: the cases whose test is
//! not with what they attack. A case is refused, or has exactly the result that it would have
//! without the attack; nothing is run, nothing is written elsewhere, and no other file is read.

mod archives;
mod git;

use crate::local;
use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};
use tiphys_api::source::{ApplicationSource, ApplicationSourceHelm};
use tiphys_repo::{ManifestRequest, Manifests, RepoAccess, RepoError, Repos};
use tiphys_testkit::charts::{Answer, FileServer, index, plain_chart};

const CHART: &str = "apiVersion: v2\nname: a\nversion: 1.0.0\n";

/// A place for repositories and copies of them.
struct Here {
    dir: tempfile::TempDir,
    repos: Repos,
}

impl Here {
    fn new() -> Self {
        let dir = tempfile::tempdir().expect("a folder");
        // Deep enough that what leads out of a copy is still found below.
        let repos = Repos::new(dir.path().join("a/b/c/d/cache"));
        Self { dir, repos }
    }

    /// A repository with these files.
    fn repository(&self, files: &[(&str, &str)]) -> (PathBuf, String) {
        let path = self.dir.path().join("r.git");
        let sha = Repos::init_example(&path, files.iter().copied()).expect("a repository");
        (path, sha)
    }

    /// The files below with a word in their names.
    fn named(&self, word: &str) -> Vec<PathBuf> {
        let mut found = walk(self.dir.path());
        found.retain(|path| path.to_string_lossy().contains(word));
        found
    }

    async fn render(&self, access: &RepoAccess, sha: &str) -> Result<Arc<Manifests>, RepoError> {
        let source = local::source("app");
        self.repos.manifests(request(access, sha, source)).await
    }
}

fn request(access: &RepoAccess, sha: &str, source: ApplicationSource) -> ManifestRequest {
    ManifestRequest {
        access: access.clone(),
        source,
        sha: sha.to_owned(),
        app_name: "shop".to_owned(),
        ..ManifestRequest::default()
    }
}

fn on_disk(path: &Path) -> RepoAccess {
    RepoAccess::public(path.to_str().expect("UTF-8"))
}

fn value(manifests: &Manifests) -> String {
    manifests.objects[0].object().str_at("/data/v").to_owned()
}

fn walk(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).expect("a folder").flatten();
    let below = |path: PathBuf| {
        if path.is_dir() {
            walk(&path)
        } else {
            vec![path]
        }
    };
    entries.map(|entry| entry.path()).flat_map(below).collect()
}

/// At an address where a cloud tells machines their credentials.
#[tokio::test]
async fn case_14_values_of_a_cloud() {
    let (here, server) = (Here::new(), FileServer::start());
    let (path, sha) = here.repository(&[("app/Chart.yaml", CHART)]);
    let redirect = Answer {
        status: 302,
        headers: vec!["Location: http://169.254.169.254/latest/user-data".to_owned()],
        ..Answer::default()
    };
    server.serve("/values.yaml", redirect);
    let redirected = format!("{}/values.yaml", server.url());
    for url in [
        "http://169.254.169.254/latest/user-data",
        "http://[::ffff:169.254.169.254]/latest/user-data",
        "http://[fe80::1]/values.yaml",
        "http://[fd00:ec2::254]/latest/user-data",
        "http://[fd00:ec2::23]/v1/credentials",
        "http://[64:ff9b::a9fe:a9fe]/latest/user-data",
        "http://100.100.100.200/latest/user-data",
        // As numbers, these are the same address.
        "http://2852039166/latest/user-data",
        "http://0xa9.0xfe.0xa9.0xfe/latest/user-data",
        redirected.as_str(),
    ] {
        let helm = ApplicationSourceHelm {
            value_files: vec![url.to_owned()],
            ..ApplicationSourceHelm::default()
        };
        let source = ApplicationSource {
            helm: Some(Box::new(helm)),
            ..local::source("app")
        };
        let mut request = request(&on_disk(&path), &sha, source);
        request.cluster_facts.value_file_schemes = vec!["http".to_owned()];
        let refused = here.repos.manifests(request).await.expect_err(url);
        let refused = refused.to_string();
        assert!(refused.contains("link-local"), "{url}: {refused}");
    }
}

/// A template finds the files of its chart, and as in Helm nothing elsewhere.
#[tokio::test]
async fn case_18_files_beside_a_chart() {
    let here = Here::new();
    let paths = [
        "../secret.txt",
        "/secret.txt",
        "./../secret.txt",
        "templates/../../secret.txt",
        "..\\secret.txt",
        "../app/inside.txt",
        "/etc/hostname",
    ];
    let mut template =
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: made}\ndata:\n".to_owned();
    template.push_str("  inside: {{ .Files.Get \"inside.txt\" | quote }}\n");
    for (number, path) in paths.iter().enumerate() {
        let read = format!("  read{number}: {{{{ .Files.Get {path:?} | quote }}}}\n");
        template.push_str(&read);
    }
    template.push_str(
        "  found: \"{{ range $path, $_ := .Files.Glob \"../**\" }}{{ $path }}{{ end }}\"\n",
    );
    let (path, sha) = here.repository(&[
        ("secret.txt", "the secret"),
        ("app/Chart.yaml", CHART),
        ("app/inside.txt", "in"),
        ("app/templates/a.yaml", &template),
    ]);
    let made = here.render(&on_disk(&path), &sha).await.expect("rendered");
    let made = made.objects[0].object();
    assert_eq!(made.str_at("/data/inside"), "in");
    for (number, path) in paths.iter().enumerate() {
        let read = made.str_at(&format!("/data/read{number}"));
        assert_eq!(read, "", "{path}");
    }
    assert_eq!(made.str_at("/data/found"), "");
}

/// As in Argo CD, nothing asks for a chart whose provenance is checked. So what says something about
/// it is no proof: it is not asked for, and changes nothing.
#[tokio::test]
async fn case_40_forged_provenance() {
    let (here, server) = (Here::new(), FileServer::start());
    let forged = "-----BEGIN PGP SIGNED MESSAGE-----\n\nnot signed\n";
    let chart = plain_chart("demo", "1.0.0", &[("charts/sub-1.0.0.tgz.prov", forged)]);
    let charts = index(&[("demo", "1.0.0", "demo-1.0.0.tgz", "")]);
    server.serve("/index.yaml", charts.as_str());
    server.serve("/demo-1.0.0.tgz", chart);
    server.serve("/demo-1.0.0.tgz.prov", forged);
    let access = RepoAccess::public(server.url());
    let source = ApplicationSource {
        chart: "demo".to_owned(),
        ..ApplicationSource::default()
    };
    let request = request(&access, "1.0.0", source);
    let made = here.repos.manifests(request).await.expect("rendered");
    assert_eq!(made.objects.len(), 1);
    assert_eq!(server.paths(), ["/index.yaml", "/demo-1.0.0.tgz"]);
}
