//! Charts in local repositories: what results are cached by, files of other repositories, and paths
//! that leave the source.

use std::{collections::BTreeMap, path::Path, sync::Arc};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{ManifestRequest, Manifests, RefSource, RepoAccess, RepoError, Repos};

const CHART: &str = "apiVersion: v2\nname: web\nversion: 1.0.0\n";
const TEMPLATE: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\ndata:\n  colour: {{ .Values.colour | quote }}\n  chance: {{ randAlphaNum 20 | quote }}\n";

struct Source {
    _dir: tempfile::TempDir,
    path: std::path::PathBuf,
    sha: String,
}

fn example(files: &[(&str, &str)]) -> Source {
    let dir = tempfile::tempdir().expect("tempdir");
    let path = dir.path().join("r");
    let sha = Repos::init_example(&path, files.iter().copied()).expect("a repository");
    Source {
        _dir: dir,
        path,
        sha,
    }
}

impl Source {
    fn commit(&mut self, changes: &[(&str, Option<&str>)]) {
        self.sha = Repos::commit_files(&self.path, "main", changes, "Change").expect("commit");
    }

    fn access(&self) -> RepoAccess {
        RepoAccess::public(self.path.to_str().expect("UTF-8"))
    }
}

async fn render(
    repos: &Repos,
    of: &Source,
    helm: &str,
    refs: &[(&str, &Source)],
) -> Result<Arc<Manifests>, RepoError> {
    let source: ApplicationSource =
        serde_json::from_str(&format!("{{\"path\": \"web\", \"helm\": {helm}}}"))
            .expect("a source");
    let refs: BTreeMap<String, RefSource> = refs
        .iter()
        .map(|(name, s)| {
            (
                (*name).to_owned(),
                RefSource {
                    access: s.access(),
                    sha: s.sha.clone(),
                },
            )
        })
        .collect();
    let request = ManifestRequest {
        access: of.access(),
        source,
        sha: of.sha.clone(),
        app_name: "shop".into(),
        several: !refs.is_empty(),
        refs,
        ..ManifestRequest::default()
    };
    repos.manifests(request).await
}

fn repos() -> Repos {
    Repos::new(std::env::temp_dir().join("tiphys-test-unused"))
}

fn field(manifests: &Manifests, name: &str) -> String {
    manifests.objects[0]
        .object()
        .str_at(&format!("/data/{name}"))
        .to_owned()
}

fn chart() -> Source {
    example(&[
        ("web/Chart.yaml", CHART),
        ("web/values.yaml", "colour: red\n"),
        ("web/templates/a.yaml", TEMPLATE),
        ("other/a.txt", "1"),
    ])
}

#[tokio::test]
async fn a_chart_is_rendered_again_when_what_it_read_changed_and_only_then() {
    let (repos, mut source) = (repos(), chart());
    let helm = "{\"valueFiles\": [\"../shared/*.yaml\", \"../none.yaml\"], \"ignoreMissingValueFiles\": true}";
    let first = render(&repos, &source, helm, &[]).await.expect("rendered");
    assert_eq!(
        (field(&first, "colour"), first.source_type.as_str()),
        ("red".to_owned(), "Helm")
    );
    source.commit(&[("other/a.txt", Some("2"))]);
    let same = render(&repos, &source, helm, &[]).await.expect("rendered");
    assert!(
        Arc::ptr_eq(&first.objects, &same.objects),
        "nothing that it looks at has changed"
    );
    assert_eq!(first.digest, same.digest);
    // Each of these was looked up before and did not exist.
    source.commit(&[("shared/a.yaml", Some("colour: green\n"))]);
    let found = render(&repos, &source, helm, &[]).await.expect("rendered");
    assert_eq!(field(&found, "colour"), "green");
    source.commit(&[("none.yaml", Some("colour: blue\n"))]);
    let last = render(&repos, &source, helm, &[]).await.expect("rendered");
    assert_eq!(field(&last, "colour"), "blue");
    assert_ne!(
        field(&last, "chance"),
        field(&found, "chance"),
        "chance is asked for at each render"
    );
    source.commit(&[("none.yaml", None), ("shared/a.yaml", None)]);
    let back = render(&repos, &source, helm, &[]).await.expect("rendered");
    assert_eq!(field(&back, "colour"), "red");
    let other = render(
        &repos,
        &source,
        "{\"parameters\": [{\"name\": \"colour\", \"value\": \"$ARGOCD_APP_REVISION_SHORT\"}]}",
        &[],
    )
    .await;
    assert_eq!(field(&other.expect("rendered"), "colour"), source.sha[..7]);
}

#[tokio::test]
async fn values_come_from_other_repositories() {
    let (repos, source) = (repos(), chart());
    let mut values = example(&[("prod/web.yaml", "colour: black\n"), ("x", "1")]);
    let helm = "{\"valueFiles\": [\"$vals/prod/web.yaml\"]}";
    let one = render(&repos, &source, helm, &[("vals", &values)])
        .await
        .expect("rendered");
    assert_eq!(field(&one, "colour"), "black");
    values.commit(&[("x", Some("2"))]);
    let two = render(&repos, &source, helm, &[("vals", &values)])
        .await
        .expect("rendered");
    assert!(
        Arc::ptr_eq(&one.objects, &two.objects),
        "only another file changed there"
    );
    values.commit(&[("prod/web.yaml", Some("colour: white\n"))]);
    let three = render(&repos, &source, helm, &[("vals", &values)])
        .await
        .expect("rendered");
    assert_eq!(field(&three, "colour"), "white");
    let error = render(
        &repos,
        &source,
        "{\"valueFiles\": [\"$nobody/x.yaml\"]}",
        &[("vals", &values)],
    )
    .await
    .expect_err("no such name");
    assert_eq!(
        error.to_string(),
        "source referenced \"$nobody\", which is not one of the available sources ($vals)"
    );
}

/// Links are created by git: the example repositories have none.
#[tokio::test]
async fn links_do_not_lead_out() {
    let dir = tempfile::tempdir().expect("tempdir");
    let git = |args: &[&str]| {
        let identity = [
            "-c",
            "user.name=a",
            "-c",
            "user.email=a@example.com",
            "-c",
            "init.defaultBranch=main",
        ];
        let done = std::process::Command::new("git")
            .current_dir(dir.path())
            .args(identity)
            .args(args)
            .output()
            .expect("git runs");
        assert!(done.status.success(), "git {args:?}");
        String::from_utf8(done.stdout)
            .expect("text")
            .trim()
            .to_owned()
    };
    let write = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(Path::new(""))).expect("mkdir");
        std::fs::write(path, text).expect("write");
    };
    git(&["init", "-q"]);
    write("web/Chart.yaml", CHART);
    write("web/templates/a.yaml", TEMPLATE);
    write("inside.yaml", "colour: pink\n");
    let link = |name: &str, target: &str| {
        std::os::unix::fs::symlink(target, dir.path().join(name)).expect("link")
    };
    link("web/out.yaml", "../../secret.yaml");
    link("web/absolute.yaml", "/etc/hostname");
    link("web/in.yaml", "../inside.yaml");
    git(&["add", "-A"]);
    git(&["commit", "-qm", "First"]);
    let sha = git(&["rev-parse", "HEAD"]);
    let source = Source {
        path: dir.path().to_owned(),
        _dir: tempfile::tempdir().expect("tempdir"),
        sha,
    };
    let repos = repos();
    for name in ["out.yaml", "absolute.yaml"] {
        let error = render(
            &repos,
            &source,
            &format!("{{\"valueFiles\": [\"{name}\"]}}"),
            &[],
        )
        .await
        .expect_err(name);
        let want = format!(
            "error resolving helm value files: error resolving value file path: file '{name}' resolved to outside repository root"
        );
        assert_eq!(error.to_string(), want);
        let pattern = format!("{}*.yaml", &name[..3]);
        let error = render(
            &repos,
            &source,
            &format!("{{\"valueFiles\": [\"{pattern}\"]}}"),
            &[],
        )
        .await
        .expect_err(name);
        assert!(
            error
                .to_string()
                .contains("resolved to outside repository root"),
            "{error}"
        );
    }
    // The chart itself contains the links, too: Helm would read them, we refuse.
    let error = render(&repos, &source, "{\"valueFiles\": [\"in.yaml\"]}", &[])
        .await
        .expect_err("links of the chart lead out");
    assert!(
        error.to_string().contains("illegal filepath in symlink"),
        "{error}"
    );
    git(&["rm", "-q", "web/out.yaml", "web/absolute.yaml"]);
    git(&["commit", "-qm", "Second"]);
    let source = Source {
        sha: git(&["rev-parse", "HEAD"]),
        ..source
    };
    let made = render(&repos, &source, "{\"valueFiles\": [\"in.yaml\"]}", &[])
        .await
        .expect("rendered");
    assert_eq!(field(&made, "colour"), "pink");
}

#[tokio::test]
async fn a_render_ends_in_time_and_says_where() {
    let looping = "{{ range until 100000 }}{{ $_ := genCA \"ca\" 1 }}{{ end }}";
    let source = example(&[("web/Chart.yaml", CHART), ("web/templates/a.yaml", looping)]);
    let options = tiphys_repo::RepoOptions {
        render_timeout: std::time::Duration::ZERO,
        ..Default::default()
    };
    let repos = Repos::with_options(std::env::temp_dir().join("tiphys-test-unused"), options);
    let error = render(&repos, &source, "{}", &[])
        .await
        .expect_err("it takes too long")
        .to_string();
    for part in [
        "web/templates/a.yaml: ",
        "rendering takes more than 0 seconds",
        "--render-timeout-seconds",
    ] {
        assert!(error.contains(part), "{part} is not in {error}");
    }
}

#[tokio::test]
async fn a_kustomization_ends_in_time() {
    let map = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\ndata:\n  a: b\n";
    let template = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ .Release.Name }}\n";
    let source = example(&[
        ("plain/kustomization.yaml", "resources: [a.yaml]\n"),
        ("plain/a.yaml", map),
        (
            "patched/kustomization.yaml",
            "resources: [../plain]\npatches:\n- target: {kind: Config.*}\n  patch: '[{\"op\": \"remove\", \"path\": \"/data\"}]'\n",
        ),
        (
            "charts/kustomization.yaml",
            "helmCharts: [{name: web, releaseName: shop}]\n",
        ),
        ("charts/charts/web/Chart.yaml", CHART),
        ("charts/charts/web/values.yaml", "colour: red\n"),
        ("charts/charts/web/templates/a.yaml", template),
    ]);
    let options = tiphys_repo::RepoOptions {
        render_timeout: std::time::Duration::ZERO,
        ..Default::default()
    };
    let late = Repos::with_options(std::env::temp_dir().join("tiphys-test-unused"), options);
    let built = async |repos: &Repos, path: &str| {
        let mut request = ManifestRequest {
            access: source.access(),
            source: ApplicationSource {
                path: path.to_owned(),
                ..ApplicationSource::default()
            },
            sha: source.sha.clone(),
            app_name: "shop".into(),
            ..ManifestRequest::default()
        };
        request.cluster_facts.kustomize_build_options = "--enable-helm".into();
        repos.manifests(request).await
    };
    let usual = repos();
    for path in ["plain", "patched", "charts"] {
        let made = built(&usual, path).await.expect(path);
        assert_eq!(made.objects.len(), 1, "{path}");
        let error = built(&late, path).await.expect_err(path).to_string();
        for part in [
            &*format!("`kustomize build {path}` failed"),
            "rendering takes more than 0 seconds (raise the limit with --render-timeout-seconds)",
        ] {
            assert!(error.contains(part), "{part} is not in {error}");
        }
    }
}

#[tokio::test]
async fn what_is_not_read_any_more_does_not_matter_any_more() {
    let map = |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n");
    let (own, shared) = (map("own"), map("shared"));
    let mut source = example(&[
        ("app/kustomization.yaml", "resources: [../base]\n"),
        (
            "base/kustomization.yaml",
            "resources: [own.yaml, ../shared]\n",
        ),
        ("base/own.yaml", &own),
        ("shared/kustomization.yaml", "resources: [a.yaml]\n"),
        ("shared/a.yaml", &shared),
    ]);
    let repos = repos();
    let rendered = async |source: &Source| {
        let request = ManifestRequest {
            access: source.access(),
            source: ApplicationSource {
                path: "app".to_owned(),
                ..ApplicationSource::default()
            },
            sha: source.sha.clone(),
            app_name: "shop".to_owned(),
            ..ManifestRequest::default()
        };
        repos.manifests(request).await.expect("rendered")
    };
    assert_eq!(rendered(&source).await.objects.len(), 2);
    source.commit(&[("base/kustomization.yaml", Some("resources: [own.yaml]\n"))]);
    let without = rendered(&source).await;
    assert_eq!(without.objects.len(), 1);
    source.commit(&[("shared/a.yaml", Some(&map("other")))]);
    let same = rendered(&source).await;
    assert!(
        Arc::ptr_eq(&same.objects, &without.objects),
        "nothing that it reads has changed"
    );
}
