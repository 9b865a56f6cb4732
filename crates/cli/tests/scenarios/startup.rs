//! Errors that keep the program from starting: a message that names the cause and the fix, and a
//! nonzero exit code.

use crate::scenarios::world::program;
use serde_json::json;
use std::{fs, net::TcpListener, path::Path};
use tempfile::TempDir;
use tiphys_testkit::{Ended, Options, PATIENCE, Repo, Tiphys, eventually, namespaced, output_of};

/// Runs `tiphys up` with arguments; it must fail with a message that contains all of `words`.
#[track_caller]
fn fails(arguments: &[&str], words: &[&str]) {
    let ended = output_of(&program(), &[&["up"], arguments].concat());
    assert!(
        ended.code.is_some_and(|c| c != 0),
        "it must fail: {ended:?}"
    );
    for word in words {
        assert!(
            ended.stderr.contains(word),
            "`{word}` is missing: {}",
            ended.stderr
        );
    }
    assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
}

/// Times for what cannot end well: a machine with much to do is given more until it says why.
const TIMES: [&str; 4] = ["5", "30", "90", "120"];

/// Runs `tiphys up` with arguments that have a time; it must fail, and say `why`.
#[track_caller]
fn fails_in_time<'a>(arguments: impl Fn(&'static str) -> Vec<&'a str>, why: &str) -> Ended {
    let mut all = String::new();
    for seconds in TIMES {
        let ended = output_of(&program(), &[&["up"], &arguments(seconds)[..]].concat());
        assert_eq!(ended.code, Some(1), "it must fail: {ended:?}");
        assert!(!ended.stderr.contains("panicked"), "{}", ended.stderr);
        if ended.stderr.contains(why) {
            return ended;
        }
        all.push_str(&ended.stderr);
    }
    panic!("it does not say why: {all}");
}

const QUIET: [&str; 3] = ["--bare", "--once", "--ephemeral"];

pub(super) fn shown(path: &Path) -> &str {
    path.to_str().expect("a temporary folder has a plain name")
}

#[test]
fn a_port_in_use_is_named() {
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("bound").port().to_string();
    fails(
        &[&QUIET[..], &["--port", &port]].concat(),
        &[&port, "--port"],
    );
    fails(
        &[&QUIET[..], &["--port", "0", "--kube-port", &port]].concat(),
        &[&port, "--kube-port"],
    );
}

#[test]
fn a_newer_or_damaged_or_busy_data_folder_is_named_and_left_alone() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path();
    let options = Options {
        program: program(),
        data: Some(path.to_owned()),
        ..Options::default()
    };
    let arguments = ["--bare", "--once", "--port", "0", "--data", shown(path)];
    let (tiphys, kube) = Tiphys::ready(&options);
    let maps = namespaced("v1", "default", "configmaps");
    kube.create(
        &maps,
        &json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}}),
    );
    fails(&arguments, &[shown(path), "in use"]);
    assert!(
        kube.find(&format!("{maps}/kept")).is_some(),
        "the first goes on"
    );
    let ended = tiphys.interrupt();
    assert_eq!(ended.code, Some(0), "{ended:?}");

    let (format, store) = (path.join("kube/format"), path.join("kube/objects.redb"));
    let (good_format, good_store) = (
        fs::read(&format).expect("a file"),
        fs::read(&store).expect("a file"),
    );
    fs::write(&format, "99\n").expect("a file");
    fails(&arguments, &[shown(path), "newer version", "format 99"]);
    fs::write(&format, &good_format).expect("a file");
    fs::write(&store, b"not a database").expect("a file");
    fails(&arguments, &[shown(path), "damaged"]);
    assert_eq!(
        fs::read(&store).expect("a file"),
        b"not a database",
        "what may still be saved is not overwritten"
    );
    fs::write(&store, &good_store[..good_store.len() / 2]).expect("a file");
    fails(&arguments, &[shown(path)]);

    fs::write(&store, &good_store).expect("a file");
    let (_tiphys, kube) = Tiphys::ready(&options);
    assert!(
        kube.find(&format!("{maps}/kept")).is_some(),
        "nothing was lost"
    );
}

#[test]
fn a_data_folder_that_cannot_be_made_is_named() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    fails(
        &[
            "--bare",
            "--once",
            "--port",
            "0",
            "--data",
            shown(&file.path().join("data")),
        ],
        &[shown(file.path()), "--data"],
    );
}

#[test]
fn a_kubeconfig_that_does_not_work_is_named() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("kubeconfig");
    let with = |text: &str, words: &[&str], more: &[&str]| {
        fs::write(&path, text).expect("a file");
        let arguments = [
            &[
                "--bare",
                "--once",
                "--ephemeral",
                "--port",
                "0",
                "--kubeconfig",
                shown(&path),
            ][..],
            more,
        ]
        .concat();
        fails(&arguments, &[&[shown(&path)], words].concat());
    };
    fails(
        &[
            "--bare",
            "--once",
            "--ephemeral",
            "--port",
            "0",
            "--kubeconfig",
            "/nowhere/config",
        ],
        &["/nowhere/config"],
    );
    with("this is: [not YAML", &[], &[]);
    let good = "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters: [{name: k, cluster: {server: \"https://127.0.0.1:1\"}}]\nusers: [{name: u, user: {token: t}}]\ncontexts: [{name: c, context: {cluster: k, user: u}}]\n";
    with(good, &["https://127.0.0.1:1"], &[]);
    with(good, &["other"], &["--context", "other"]);
}

#[test]
fn once_says_what_is_not_well() {
    let repo = Repo::with(&[(
        "app/cm.yaml",
        crate::scenarios::world::config_map("a", "1").as_str(),
    )]);
    let url = repo.url();
    let arguments = |timeout, path| {
        [
            "--ephemeral",
            "--once",
            "--port",
            "0",
            "--repo",
            &url,
            "--timeout",
            timeout,
            "--path",
            path,
        ]
    };
    let why = "absent: app path does not exist";
    fails_in_time(|seconds| arguments(seconds, "absent").to_vec(), why);
    let ended = output_of(
        &program(),
        &[&["up"], &arguments("120", "app")[..]].concat(),
    );
    assert_eq!(ended.code, Some(0), "{ended:?}");
}

pub(super) fn once(arguments: &[&str]) -> Ended {
    output_of(
        &program(),
        &[
            &[
                "up",
                "--ephemeral",
                "--once",
                "--port",
                "0",
                "--timeout",
                "120",
            ],
            arguments,
        ]
        .concat(),
    )
}

#[test]
fn nothing_is_called_nothing() {
    let repo = Repo::with(&[("empty/README.md", "nothing to deploy")]);
    let ended = once(&["--repo", &repo.url(), "--path", "empty"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    assert!(
        ended.stdout.contains("nothing was rendered for empty"),
        "{ended:?}"
    );
    let ended = once(&["--bare"]);
    assert!(
        ended.code == Some(0)
            && !ended.stdout.contains("Synced")
            && ended.stdout.contains("there is no Application"),
        "{ended:?}"
    );
}

#[test]
fn an_error_that_waiting_cannot_help_ends_once() {
    let repo = Repo::with(&[
        (
            "app/cm.yaml",
            crate::scenarios::world::config_map("a", "1").as_str(),
        ),
        (
            "bad/cm.yaml",
            "apiVersion: v1\nkind: ConfigMap\nmetadata: [\n",
        ),
    ]);
    let url = repo.url();
    for (arguments, reason) in [
        (
            &["--repo", &url, "--path", "absent"][..],
            "absent: app path does not exist",
        ),
        (
            &["--repo", &url, "--path", "app", "--revision", "gone"],
            "unable to resolve 'gone' to a commit SHA: revision not found",
        ),
        (
            &["--repo", "file:///nowhere/r.git", "--path", "app"],
            "repository not found",
        ),
        (&["--repo", &url, "--path", "bad"], "ComparisonError"),
    ] {
        let ended = once(arguments);
        assert_eq!(ended.code, Some(1), "{ended:?}");
        assert!(
            ended
                .stderr
                .contains("does not become Synced and Healthy by waiting")
                && ended.stderr.contains(reason),
            "{ended:?}"
        );
    }
}

const OPERATORS: [(&str, &str); 2] = [
    (
        "ops/cert.yaml",
        "apiVersion: cert-manager.io/v1\nkind: ClusterIssuer\nmetadata: {name: ca}\nspec: {selfSigned: {}}\n---\napiVersion: \
         cert-manager.io/v1\nkind: Certificate\nmetadata: {name: web}\nspec: {secretName: web-tls, issuerRef: {name: ca}}\n",
    ),
    (
        "ops/claim.yaml",
        "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data}\nspec:\n  storageClassName: fast-ssd\n  accessModes: \
         [ReadWriteOnce]\n  resources: {requests: {storage: 1Gi}}\n",
    ),
];

#[test]
fn kinds_and_storage_classes_that_nobody_defined_get_placeholders() {
    let repo = Repo::with(&OPERATORS);
    let ended = once(&["--repo", &repo.url(), "--path", "ops"]);
    assert_eq!(ended.code, Some(0), "{ended:?}");
    for line in [
        "placeholder definition for Certificate (cert-manager.io/v1, namespaced)",
        "ClusterIssuer (cert-manager.io/v1, cluster-wide)",
    ] {
        assert!(ended.stdout.contains(line), "{ended:?}");
    }
    let url = repo.url();
    let arguments = |seconds| {
        let source = ["--repo", url.as_str(), "--path", "ops", "--strict-kinds"];
        let once = ["--ephemeral", "--once", "--port", "0", "--timeout", seconds];
        [&once[..], &source[..]].concat()
    };
    let strict = fails_in_time(arguments, "could not find the requested resource");
    assert!(!strict.stdout.contains("placeholder"), "{strict:?}");
}

#[test]
fn examples_are_not_deployed_into_a_real_cluster_unasked() {
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("kubeconfig");
    fs::write(&path, "{}").expect("a file");
    fails(
        &[
            "--once",
            "--ephemeral",
            "--port",
            "0",
            "--kubeconfig",
            shown(&path),
        ],
        &["examples", "--yes", shown(&path)],
    );
}

#[test]
fn what_keeps_a_resource_from_being_healthy_is_said() {
    let template = json!({
        "metadata": {"labels": {"app": "web"}, "annotations": {"sim.tiphys.dev/behaviour": "image-pull-error"}},
        "spec": {"containers": [{"name": "web", "image": "registry.example.test/web:nope"}]}
    });
    let spec =
        json!({"replicas": 1, "selector": {"matchLabels": {"app": "web"}}, "template": template});
    let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec});
    let repo = Repo::with(&[("app/web.json", deployment.to_string().as_str())]);
    let arguments = ["--repo", &repo.url(), "--path", "app"]
        .map(Into::into)
        .to_vec();
    let (tiphys, _kube) = Tiphys::ready(&Options {
        program: program(),
        examples: true,
        arguments,
        ..Options::default()
    });
    let is_reason = |line: &str| {
        line.contains("Deployment web 0/1: pod web-") && line.ends_with(" ImagePullBackOff")
    };
    eventually(PATIENCE, "up says why", || {
        let out = tiphys.stdout();
        if out
            .lines()
            .any(|l| l.starts_with("app: Synced Progressing") && is_reason(l))
        {
            Ok(())
        } else {
            Err(out)
        }
    });
    let password = tiphys
        .stdout()
        .lines()
        .find_map(|l| l.split_once("admin / ").map(|(_, p)| p.trim().to_owned()))
        .expect("a login");
    let folder = TempDir::new().expect("a folder");
    let config = folder.path().join("config");
    let run = |arguments: &[&str]| {
        output_of(
            &program(),
            &[arguments, &["--config", shown(&config)]].concat(),
        )
    };
    let address = tiphys.url.trim_start_matches("http://");
    assert_eq!(
        run(&[
            "login",
            address,
            "--plaintext",
            "--username",
            "admin",
            "--password",
            &password
        ])
        .code,
        Some(0)
    );
    for command in [
        &["app", "get", "app"][..],
        &["app", "wait", "app", "--health", "--timeout", "5"],
    ] {
        let out = run(command).stdout;
        let (_, reasons) = out
            .split_once("\nNot healthy:\n")
            .unwrap_or_else(|| panic!("{command:?}: {out}"));
        assert!(reasons.lines().any(is_reason), "{command:?}: {out}");
    }
}
