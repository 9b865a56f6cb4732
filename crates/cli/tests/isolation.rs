//! Jsonnet in worker processes, which are this program: `tiphys jsonnet-worker`.

use std::{
    fs,
    path::PathBuf,
    process::Command,
    sync::Arc,
    time::{Duration, Instant},
};
use tiphys_api::source::ApplicationSource;
use tiphys_repo::{
    Isolation, ManifestRequest, Manifests, RepoAccess, RepoError, RepoOptions, Repos,
};
use tiphys_testkit::Repo;

/// Two values with 2^40 numbers each, whose parts are shared, so that they take no memory: comparing
/// them is one step of the program, and does not end while a test runs.
fn never_ends() -> String {
    let twice = (0..40).fold("local a0 = [0], b0 = [0];".to_owned(), |program, i| {
        let next = i + 1;
        format!("{program} local a{next} = [a{i}, a{i}], b{next} = [b{i}, b{i}];")
    });
    format!("{twice} a40 == b40")
}

fn isolated(program: &str, workers: usize) -> Repos {
    let options = RepoOptions {
        render_timeout: Duration::from_secs(3),
        isolation: Some(Isolation {
            program: PathBuf::from(program),
            args: vec!["jsonnet-worker".to_owned(), "200".to_owned()],
            workers,
        }),
        ..RepoOptions::default()
    };
    Repos::with_options(std::env::temp_dir().join("tiphys-test-unused"), options)
}

fn ours(workers: usize) -> Repos {
    isolated(env!("CARGO_BIN_EXE_tiphys"), workers)
}

async fn render(repos: &Repos, repo: &Repo, path: &str) -> Result<Arc<Manifests>, RepoError> {
    let request = ManifestRequest {
        access: RepoAccess::public(repo.url()),
        source: ApplicationSource {
            path: path.to_owned(),
            repo_url: repo.url(),
            ..ApplicationSource::default()
        },
        sha: repo.head(),
        no_cache: true,
        ..ManifestRequest::default()
    };
    repos.manifests(request).await
}

/// The message about the only file of a folder.
async fn fault(repos: &Repos, repo: &Repo, path: &str) -> String {
    let manifests = render(repos, repo, path).await.expect("an answer");
    assert!(manifests.objects.is_empty(), "{path}");
    match &manifests.errors[..] {
        [error] => error.message.clone(),
        errors => panic!("{path}: {errors:?}"),
    }
}

fn object(name: &str) -> String {
    format!("{{apiVersion: 'v1', kind: 'ConfigMap', metadata: {{name: {name}}}}}")
}

fn repository() -> Repo {
    let named = format!(
        "local lib = import '../lib/names.libsonnet'; {}",
        object("lib.name")
    );
    let big = object(
        "std.toString(std.length(std.join('', std.makeArray(1000, function(i) std.repeat('x', 1000000)))))",
    );
    Repo::with(&[
        ("app/main.jsonnet", named.as_str()),
        (
            "lib/names.libsonnet",
            "{name: 'imported', data: importstr 'text'}",
        ),
        ("lib/text", "0.1"),
        ("big/main.jsonnet", big.as_str()),
        ("endless/main.jsonnet", never_ends().as_str()),
        ("wrong/main.jsonnet", "error 'on purpose'"),
        ("absent/main.jsonnet", "import 'not-there.libsonnet'"),
    ])
}

/// The workers that this process has started and not ended: their ids, and whether the kernel
/// restricts them.
fn workers() -> Vec<(String, bool)> {
    let ours = format!("PPid:\t{}\n", std::process::id());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let file = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let status = file("status");
        if status.contains(&ours) && file("cmdline").contains("jsonnet-worker") {
            let id = entry.file_name().to_string_lossy().into_owned();
            found.push((id, status.contains("Seccomp:\t2")));
        }
    }
    found
}

/// One test, because it looks at all workers of this process.
#[tokio::test(flavor = "multi_thread")]
async fn jsonnet_is_evaluated_by_other_processes() {
    let (repo, repos) = (repository(), ours(1));
    let named = async || {
        let manifests = render(&repos, &repo, "app").await.expect("manifests");
        assert!(manifests.errors.is_empty(), "{:?}", manifests.errors);
        assert!(manifests.objects[0].json().contains("\"imported\""));
    };
    assert!(workers().is_empty(), "none before it is needed");
    named().await;
    let first = workers();
    let [(id, restricted)] = &first[..] else {
        panic!("one worker: {first:?}");
    };
    assert!(restricted, "it can open files and connections");
    let environment = fs::read(format!("/proc/{id}/environ")).expect("its environment");
    assert!(environment.is_empty(), "it has the variables of its owner");

    // Faults of programs end no process, and are what they are in process.
    let in_process = Repos::new(std::env::temp_dir().join("tiphys-test-unused"));
    for path in ["wrong", "absent"] {
        let want = fault(&in_process, &repo, path).await;
        assert_eq!(fault(&repos, &repo, path).await, want);
    }
    assert_eq!(workers(), first, "the worker is used again");

    let got = fault(&repos, &repo, "big").await;
    assert!(got.contains("needs more memory than it may have"), "{got}");
    assert!(workers().is_empty(), "it is gone");
    let begun = Instant::now();
    let got = fault(&repos, &repo, "endless").await;
    assert!(got.contains("has not ended after 3 s"), "{got}");
    assert!(begun.elapsed() < Duration::from_secs(30), "it was awaited");
    assert!(workers().is_empty(), "it is gone");

    // What waits for the only worker is served in turn, and a dead one is replaced.
    render(&repos, &repo, "wrong").await.expect("an answer");
    let before = workers();
    let killed = Command::new("kill").args(["-9", &before[0].0]).status();
    assert!(killed.expect("kill").success());
    let (a, b, c) = tokio::join!(
        fault(&repos, &repo, "absent"),
        fault(&repos, &repo, "endless"),
        fault(&repos, &repo, "wrong")
    );
    for (got, want) in [(a, "not-there"), (b, "has not ended"), (c, "on purpose")] {
        assert!(
            got.contains(want) || got.contains("has not ended"),
            "{got} instead of {want}"
        );
    }
    let after = workers();
    assert!(after.len() <= 1 && after != before, "{before:?} {after:?}");
    drop(repos);
}

/// An installation whose program cannot be started renders no Jsonnet, and nothing else is affected.
#[tokio::test]
async fn what_is_no_worker_gives_no_manifests() {
    let repo = repository();
    for (program, want) in [
        ("/no/such/program", "no process can be started for it"),
        ("/bin/false", "its process has ended"),
        ("/bin/cat", "its process"),
    ] {
        let got = fault(&isolated(program, 2), &repo, "app").await;
        assert!(got.contains(want), "{program}: {got}");
    }
}
