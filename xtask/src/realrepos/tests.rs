//! What is counted as what.

use super::*;
use tiphys_testkit::Repo;

fn app(name: &str, url: &str, path: &str) -> String {
    format!(
        "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {{name: {name}}}\n\
         spec:\n  source: {{repoURL: {url:?}, path: {path:?}}}\n  destination: {{namespace: web}}\n"
    )
}

#[test]
fn each_application_and_chart_is_counted_once() {
    let url = "https://git.example/team/main.git";
    let (plain, ssh) = (
        app("plain", url, "plain"),
        app("ssh", "git@git.example:team/main", "plain"),
    );
    let (broken, stale) = (app("broken", url, "broken"), app("stale", url, "gone"));
    let elsewhere = app("elsewhere", "https://git.example/team/other", "plain");
    let template = app("{{ name }}", url, "plain");
    let nested = app("nested", url, "plain");
    let repo = Repo::with(&[
        ("apps/plain.yaml", &plain),
        (
            "apps/all.yaml",
            &format!("{ssh}---\n{broken}---\n{stale}---\n{elsewhere}---\n{template}"),
        ),
        (
            "plain/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
        ),
        (
            "broken/a.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n",
        ),
        (
            "chart/Chart.yaml",
            "apiVersion: v2\nname: c\nversion: 1.0.0\n",
        ),
        (
            "chart/templates/app.yaml",
            &nested.replace("nested", "{{ .Release.Name }}-app"),
        ),
        ("wrong/Chart.yaml", "apiVersion: v2\nname: c\n"),
    ]);
    let folder = tempfile::tempdir().expect("a folder");
    let cloned = std::process::Command::new("git")
        .args(["clone", "-q", &repo.url()])
        .arg(folder.path().join("main"))
        .status();
    assert!(cloned.expect("git").success());
    let set = std::process::Command::new("git")
        .arg("-C")
        .arg(folder.path().join("main"))
        .args(["remote", "set-url", "origin", url])
        .status();
    assert!(set.expect("git").success());
    let args = Args {
        dirs: vec![folder.path().to_owned()],
        all: true,
        kustomize_build_options: String::new(),
        kube_version: "1.34.0".to_owned(),
    };
    let report = survey(&args).expect("a report");
    let Tally {
        renders,
        elsewhere,
        programs,
        stale,
        fails,
    } = report.apps;
    assert_eq!(
        (renders, elsewhere, programs, stale, fails),
        (3, 1, 0, 1, 1),
        "{:#?}",
        report.lines
    );
    assert_eq!(
        (report.charts.renders, report.charts.fails),
        (1, 1),
        "{:#?}",
        report.lines
    );
    assert_eq!(report.lines.len(), 4, "{:#?}", report.lines);
}
