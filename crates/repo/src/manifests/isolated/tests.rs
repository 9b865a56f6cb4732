//! How often a worker has to ask, and what is recorded of what it is sent without asking.

use super::{Deadline, Lost, Outcome, Scope, fuzzed::Source};
use crate::{
    git::{Found, GitFiles, GitLimits, Seen, Store},
    isolation::serve_once,
};
use serde_json::{Value, json};
use std::{
    io::Write as _,
    os::unix::net::UnixStream,
    thread,
    time::{Duration, Instant},
};
use tiphys_render::RenderError;
use tiphys_testkit::Repo;

const CHART: &str = "apiVersion: v2\nname: web\nversion: 0.1.0\n";
const TEMPLATE: &str =
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {{ .Values.data | toJson }}\n";

fn config_map(name: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n")
}

fn source(repo: &Repo, source: Value) -> Source {
    let source = serde_json::from_value(source).expect("a source");
    Source::open(&repo.bare(), &repo.head(), source).expect("a repository")
}

type Answered = (Result<Result<Outcome, RenderError>, Lost>, usize);

/// What a worker makes of a source, and how many frames it has sent.
fn answered(source: &Source) -> Answered {
    let (ours, its) = UnixStream::pair().expect("a pair");
    let worker = thread::Builder::new().stack_size(16 << 20);
    let worker = worker.spawn(|| serve_once(its)).expect("a thread");
    let answered = source.rendered(ours);
    worker.join().expect("no panic").expect("it has answered");
    answered
}

/// The objects, and how many frames the worker has sent: the last one has them.
fn rendered(source: &Source) -> (Vec<String>, usize) {
    let (outcome, reports) = answered(source);
    let outcome = outcome.expect("a worker").expect("a render");
    let Outcome::Rendered(made) = outcome else {
        panic!("no objects");
    };
    assert!(made.errors.is_empty(), "{:?}", made.errors);
    let objects = made.objects.iter();
    let objects = objects.map(|object| serde_json::to_string(object).expect("JSON"));
    (objects.collect(), reports)
}

#[test]
fn values_files_elsewhere_are_asked_for_at_once() {
    let repo = Repo::with(&[
        ("app/Chart.yaml", CHART),
        ("app/templates/a.yaml", TEMPLATE),
    ]);
    let mut names = Vec::new();
    for n in 0..8 {
        let text = format!("data: {{v{n}: set}}\n");
        repo.commit(&[(format!("env/{n}.yaml").as_str(), text.as_str())], &[]);
        names.push(format!("$values/env/{n}.yaml"));
        names.push(format!("../env/{n}.yaml"));
    }
    let with = |names: &[String]| {
        let helm = json!({"releaseName": "r", "valueFiles": names});
        rendered(&source(&repo, json!({"path": "app", "helm": helm})))
    };
    let (_, of_two) = with(&names[..2]);
    let (objects, of_all) = with(&names);
    assert_eq!(of_all, of_two, "more files are more questions");
    for n in 0..8 {
        assert!(objects[0].contains(&format!("\"v{n}\":\"set\"")), "{n}");
    }
}

/// One question for a kustomization and what it names: the folder, its files, the base beside it
/// with its kustomization, and then the files of that.
#[test]
fn a_base_elsewhere_takes_one_question() {
    let repo = Repo::with(&[
        (
            "app/kustomization.yaml",
            "resources: [../base, own.yaml, more.yaml]\npatches: [{path: patch.yaml}]\n\
             configMapGenerator: [{name: made, files: [key=text], envs: [env]}]\n",
        ),
        ("app/own.yaml", config_map("own").as_str()),
        ("app/more.yaml", config_map("more").as_str()),
        (
            "app/patch.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own}\ndata: {a: patched}\n",
        ),
        ("app/text", "a text"),
        ("app/env", "A=1\n"),
        (
            "base/kustomization.yaml",
            "resources: [0.yaml, 1.yaml, 2.yaml, 3.yaml, 4.yaml, 5.yaml]\n",
        ),
    ]);
    for n in 0..6 {
        let text = config_map(&format!("base{n}"));
        repo.commit(&[(format!("base/{n}.yaml").as_str(), text.as_str())], &[]);
    }
    let app = || rendered(&source(&repo, json!({"path": "app"})));
    let (objects, reports) = app();
    assert_eq!(objects.len(), 9);
    assert!(reports <= 4, "{reports}");

    // What is large is asked for.
    let large = "x".repeat(100_000);
    let text = format!("{}data: {{a: {large}}}\n", config_map("base0"));
    repo.commit(&[("base/0.yaml", text.as_str())], &[]);
    let (objects, _) = app();
    assert!(objects.iter().any(|object| object.contains(&large)));
}

/// Components of the Application, also those that are not there.
#[test]
fn components_elsewhere_are_asked_for_at_once() {
    let own = "resources: [own.yaml]\n";
    let repo = Repo::with(&[
        ("app/kustomization.yaml", own),
        ("app/own.yaml", config_map("own").as_str()),
    ]);
    let mut names = Vec::new();
    for n in 0..8 {
        let component = format!(
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\n\
             commonAnnotations: {{v{n}: set}}\n"
        );
        let path = format!("parts/{n}/kustomization.yaml");
        repo.commit(&[(path.as_str(), component.as_str())], &[]);
        names.push(format!("../parts/{n}"));
        names.push(format!("../missing/{n}"));
    }
    let with = |names: &[String]| {
        let kustomize = json!({"components": names, "ignoreMissingComponents": true});
        rendered(&source(
            &repo,
            json!({"path": "app", "kustomize": kustomize}),
        ))
    };
    let (_, of_two) = with(&names[..2]);
    let (objects, of_all) = with(&names);
    assert_eq!(of_all, of_two, "more components are more questions");
    for n in 0..8 {
        assert!(objects[0].contains(&format!("\"v{n}\":\"set\"")), "{n}");
    }
}

/// What is reached through a link is asked for, and must not lead out of the folder; neither may
/// what is missing be taken for something else.
#[test]
fn what_cannot_be_sent_ahead_fails_as_it_should() {
    let repo = Repo::with(&[
        ("app/kustomization.yaml", "resources: [../base]\n"),
        ("base/kustomization.yaml", "resources: [a.yaml]\n"),
        ("other/kustomization.yaml", "resources: [none.yaml]\n"),
        ("text.yaml", config_map("linked").as_str()),
    ]);
    repo.link(&[("base/a.yaml", "../text.yaml")]);
    repo.commit(&[], &[]);
    for (path, want) in [
        ("app", "is not in or below '/base'"),
        ("other", "/other/none.yaml"),
    ] {
        let (outcome, _) = answered(&source(&repo, json!({"path": path})));
        let error = outcome.expect("a worker").err().expect("an error");
        assert!(error.to_string().contains(want), "{error}");
    }
}

/// Whatever is sent has been recorded, as if it had been asked for.
#[test]
fn what_is_seen_is_recorded() {
    let repo = Repo::new();
    repo.link(&[("app/link.yaml", "../shared/a.yaml")]);
    repo.commit(
        &[
            ("app/a.yaml", "a: 1"),
            ("shared/a.yaml", "a: 2"),
            ("shared/large", "x".repeat(100_000).as_str()),
        ],
        &[],
    );
    let store = Store::open(&repo.bare(), "here", GitLimits::default()).expect("a repository");
    let id = store.commit(&repo.head()).expect("readable").expect("it");
    let files = GitFiles::new(&store, id.tree, Some("app"));
    let text = |text: &str| Some(Seen::File(text.into()));
    for (path, want) in [
        ("app", Some(Seen::Folder)),
        ("app/a.yaml", text("a: 1")),
        ("app/none.yaml", Some(Seen::Nothing)),
        ("app/link.yaml", None),
        ("app/../shared/a.yaml", None),
        ("shared/large", None),
        ("../a", None),
    ] {
        assert_eq!(files.seen(path), want, "{path}");
    }
    assert!(files.noted().is_empty(), "{:?}", files.noted().keys());
    assert_eq!(files.seen("shared"), Some(Seen::Folder));
    assert_eq!(files.seen("shared/a.yaml"), text("a: 2"));
    assert_eq!(files.seen("shared/b.yaml"), Some(Seen::Nothing));
    let asked = GitFiles::new(&store, id.tree, Some("app"));
    for path in ["shared", "shared/a.yaml", "shared/b.yaml"] {
        asked.look(path);
    }
    assert_eq!(files.noted(), asked.noted());
    assert_eq!(files.noted().get("shared/b.yaml"), Some(&Found::Missing));
}

/// How a render ends whose worker announces this without end.
fn flooded(source: &Source, paths: &[&str], inside: &[&str]) -> Lost {
    let (ours, mut its) = UnixStream::pair().expect("a pair");
    let report = json!({"Expect": {"files": 0, "paths": paths, "inside": inside}}).to_string();
    let length = u32::try_from(report.len()).expect("short").to_le_bytes();
    let frame = [&length[..], &[0; 4], report.as_bytes()].concat();
    let mut told = its.try_clone().expect("a copy");
    let reader = thread::spawn(move || std::io::copy(&mut told, &mut std::io::sink()));
    let writer = thread::spawn(move || while its.write_all(&frame).is_ok() {});
    let (outcome, _) = source.rendered(ours);
    writer.join().expect("it ends");
    // Its connection ends with an error where something was left to read.
    let _ = reader.join().expect("it ends");
    outcome.err().expect("it is lost")
}

/// A worker that announces without end is ended, and so is one that announces more at once than
/// ours do.
#[test]
fn what_is_expected_is_limited() {
    let repo = Repo::with(&[("app/a.yaml", config_map("a").as_str())]);
    let source = source(&repo, json!({"path": "app"}));
    let long = "p".repeat(5000);
    for (path, paths, names, is_many) in [
        (long.as_str(), 1000, 8, true),
        ("path", 1001, 1, false),
        ("path", 1, 9, false),
    ] {
        let lost = flooded(&source, &vec![path; paths], &vec!["name"; names]);
        let is_as_wanted = match &lost {
            Lost::Exceeded(what) => is_many && *what == "it asks for too many files",
            Lost::Broken(_) => !is_many,
            _ => false,
        };
        assert!(is_as_wanted, "{paths}, {names}: {lost:?}");
    }
}

/// What one report announces brings neither long paths nor many bytes, and is looked up only while
/// the render has time.
#[test]
fn what_one_report_brings_is_limited() {
    let repo = Repo::new();
    let content = "x".repeat(64 << 10);
    let names: Vec<String> = (0..70).map(|n| format!("app/{n}")).collect();
    let committed: Vec<(&str, &str)> = names
        .iter()
        .map(|name| (name.as_str(), content.as_str()))
        .collect();
    repo.commit(&committed, &[]);
    let store = Store::open(&repo.bare(), "here", GitLimits::default()).expect("a repository");
    let id = store.commit(&repo.head()).expect("readable").expect("it");
    let files = GitFiles::new(&store, id.tree, Some("app"));
    let mut scope = Scope::new([Some(&files)].into_iter());
    let place = scope.place(0).expect("files");
    let with = |seconds: u64| Deadline {
        begun: Instant::now(),
        limit: Duration::from_secs(seconds),
    };

    let late = place.expected(&names, &[], usize::MAX, with(0));
    assert!(matches!(late, Err(Lost::Late)));
    let found = place.expected(&names, &[], usize::MAX, with(60));
    assert_eq!(found.ok().map(|found| found.len()), Some(64), "4 MiB");

    let paths = ["x".repeat(4097), "app".to_owned()];
    let inside = ["y".repeat(4093), "none".to_owned()];
    let found = place.expected(&paths, &inside, usize::MAX, with(60));
    let wanted = [
        ("app".to_owned(), Seen::Folder),
        ("app/none".to_owned(), Seen::Nothing),
    ];
    assert_eq!(found.ok().as_deref(), Some(wanted.as_slice()));
}
