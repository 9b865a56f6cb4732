//! Renders in worker processes, which are this program: `tiphys render-worker`.

mod pool;
mod renders;
mod rules;

use std::{fs, path::PathBuf, process::Command, sync::Arc, time::Duration};
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

/// Options with workers. Each test has an amount of memory of its own (in MiB), by which its
/// workers are known.
fn options(program: &str, memory: u64, workers: usize) -> RepoOptions {
    RepoOptions {
        isolation: Some(Isolation {
            program: PathBuf::from(program),
            args: vec!["render-worker".to_owned(), memory.to_string()],
            workers,
            spare: false,
        }),
        ..RepoOptions::default()
    }
}

/// With a spare worker.
fn with_spare(memory: u64) -> Repos {
    let mut options = options(env!("CARGO_BIN_EXE_tiphys"), memory, 2);
    if let Some(isolation) = &mut options.isolation {
        isolation.spare = true;
    }
    with_options(options)
}

/// They have only repositories of this machine, which are not copied.
fn with_options(options: RepoOptions) -> Repos {
    Repos::with_options(std::env::temp_dir().join("tiphys-test-unused"), options)
}

fn ours(memory: u64, workers: usize) -> Repos {
    with_options(options(env!("CARGO_BIN_EXE_tiphys"), memory, workers))
}

fn in_seconds(seconds: u64, memory: u64, workers: usize) -> Repos {
    with_options(RepoOptions {
        render_timeout: Duration::from_secs(seconds),
        ..options(env!("CARGO_BIN_EXE_tiphys"), memory, workers)
    })
}

fn request_for(repo: &Repo, path: &str, project: &str) -> ManifestRequest {
    ManifestRequest {
        access: RepoAccess::public(repo.url()),
        source: ApplicationSource {
            path: path.to_owned(),
            repo_url: repo.url(),
            ..ApplicationSource::default()
        },
        sha: repo.head(),
        project: project.to_owned(),
        no_cache: true,
        ..ManifestRequest::default()
    }
}

async fn render(repos: &Repos, repo: &Repo, path: &str) -> Result<Arc<Manifests>, RepoError> {
    repos.manifests(request_for(repo, path, "shop")).await
}

/// The message about the only file of a folder, or about the render.
async fn fault(repos: &Repos, repo: &Repo, path: &str) -> String {
    let manifests = match render(repos, repo, path).await {
        Ok(manifests) => manifests,
        Err(error) => return error.to_string(),
    };
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

/// The workers with so much memory that this process has started and not ended: their ids, and
/// whether the kernel restricts them.
fn workers(memory: u64) -> Vec<(String, bool)> {
    let ours = format!("PPid:\t{}\n", std::process::id());
    let line = format!("\0render-worker\0{memory}\0");
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let file = |name: &str| fs::read_to_string(entry.path().join(name)).unwrap_or_default();
        let status = file("status");
        if status.contains(&ours) && file("cmdline").ends_with(&line) {
            let id = entry.file_name().to_string_lossy().into_owned();
            found.push((id, status.contains("Seccomp:\t2")));
        }
    }
    found
}

fn kill(id: &str) {
    let killed = Command::new("kill").args(["-9", id]).status();
    assert!(killed.expect("kill").success());
}

#[tokio::test(flavor = "multi_thread")]
async fn sources_are_rendered_by_other_processes() {
    let (repo, repos) = (repository(), ours(200, 1));
    let named = async || {
        let manifests = render(&repos, &repo, "app").await.expect("manifests");
        assert!(manifests.errors.is_empty(), "{:?}", manifests.errors);
        assert!(manifests.objects[0].json().contains("\"imported\""));
    };
    let workers = || workers(200);
    assert!(workers().is_empty(), "none before it is needed");
    named().await;
    let first = workers();
    let [(id, restricted)] = &first[..] else {
        panic!("one worker: {first:?}");
    };
    assert!(restricted, "it can open files and connections");
    let environment = fs::read(format!("/proc/{id}/environ")).expect("its environment");
    assert!(environment.is_empty(), "it has the variables of its owner");
    let first_to_end = fs::read_to_string(format!("/proc/{id}/oom_score_adj"));
    assert_eq!(first_to_end.expect("a score"), "1000\n");

    // Faults of programs end no process, and are what they are in process.
    let in_process = Repos::new(std::env::temp_dir().join("tiphys-test-unused"));
    for path in ["wrong", "absent"] {
        let want = fault(&in_process, &repo, path).await;
        assert_eq!(fault(&repos, &repo, path).await, want);
    }
    assert_eq!(workers(), first, "the worker is used again");

    let got = fault(&repos, &repo, "big").await;
    let want = "rendering was stopped: it needs more memory than it may have";
    assert_eq!(got, want);
    assert!(workers().is_empty(), "it is gone");

    // A dead one is replaced.
    render(&repos, &repo, "wrong").await.expect("an answer");
    let before = workers();
    kill(&before[0].0);
    named().await;
    let after = workers();
    assert!(after.len() == 1 && after != before, "{before:?} {after:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_takes_too_long_is_ended() {
    let (repo, repos) = (repository(), in_seconds(3, 205, 1));
    let got = fault(&repos, &repo, "endless").await;
    let want = "rendering was stopped: it takes more than 3 seconds (raise the limit with \
                --render-timeout-seconds)";
    assert_eq!(got, want);
    assert!(workers(205).is_empty(), "it is gone");
}

/// What waits for the only worker is served in turn; the time for which it waits is not its own.
#[tokio::test(flavor = "multi_thread")]
async fn renders_wait_for_a_worker() {
    let (repo, repos) = (repository(), in_seconds(10, 201, 1));
    let (a, b, c) = tokio::join!(
        fault(&repos, &repo, "absent"),
        fault(&repos, &repo, "endless"),
        fault(&repos, &repo, "wrong")
    );
    for (got, want) in [
        (a, "not-there"),
        (b, "it takes more than 10 seconds"),
        (c, "on purpose"),
    ] {
        assert!(got.contains(want), "{got} instead of {want}");
    }
    assert!(workers(201).len() <= 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_is_killed_while_it_renders_is_named_and_replaced() {
    let (repo, repos) = (repository(), ours(202, 1));
    let endless = async { render(&repos, &repo, "endless").await };
    let killer = async {
        for _ in 0..1000 {
            if let [(id, _)] = &workers(202)[..] {
                kill(id);
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no worker has begun");
    };
    let (lost, ()) = tokio::join!(endless, killer);
    let lost = lost.expect_err("it was killed");
    let want = "rendering failed: its process was killed, perhaps for want of memory";
    assert_eq!(lost.to_string(), want);
    assert!(lost.retryable(), "the source is not to blame");
    let next = render(&repos, &repo, "app").await.expect("manifests");
    assert_eq!(next.objects.len(), 1);
}

/// An installation whose program cannot be started renders nothing, in this process neither.
#[tokio::test]
async fn what_is_no_worker_gives_no_manifests() {
    let repo = repository();
    for (program, want) in [
        ("/no/such/program", "no process can be started for it"),
        ("/bin/false", "its process has ended"),
        ("/bin/cat", "its process"),
    ] {
        let repos = with_options(options(program, 203, 2));
        let error = render(&repos, &repo, "app").await.expect_err(program);
        let got = error.to_string();
        assert!(got.starts_with("rendering failed: "), "{program}: {got}");
        assert!(got.contains(want), "{program}: {got}");
        assert!(error.retryable(), "{program}");
    }
}
