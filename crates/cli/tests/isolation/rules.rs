//! Workers that content has taken over: nothing that they answer is believed.

use super::{repository, request_for};
use std::{
    fs,
    path::{Path, PathBuf},
    time::Duration,
};
use tiphys_repo::{Isolation, ManifestRequest, RepoError, RepoOptions, Repos};
use tiphys_testkit::{Repo, charts::FileServer};

fn frame(header: &str, body: &[u8]) -> Vec<u8> {
    let length = |part: &[u8]| u32::try_from(part.len()).expect("short").to_le_bytes();
    let lengths = [length(header.as_bytes()), length(body)].concat();
    [&lengths[..], header.as_bytes(), body].concat()
}

/// Repositories whose workers send what is in the file `frames`, and then do what `then` says.
fn taken_over(folder: &Path, then: &str) -> Repos {
    let script = format!("/bin/cat \"$0\" >&0; {then}");
    let options = RepoOptions {
        render_timeout: Duration::from_secs(20),
        isolation: Some(Isolation {
            program: PathBuf::from("/bin/sh"),
            args: vec![
                "-c".to_owned(),
                script,
                folder.join("frames").to_str().expect("UTF-8").to_owned(),
            ],
            workers: 1,
            spare: false,
        }),
        ..RepoOptions::default()
    };
    Repos::with_options(folder.join("cache"), options)
}

/// Has the next worker send these.
fn will_send(folder: &Path, frames: &[Vec<u8>]) {
    let ready = frame("{\"Ready\":{\"why_open\":null}}", b"");
    let all = [ready, frames.concat()].concat();
    fs::write(folder.join("frames"), all).expect("a file");
}

/// What a render says whose worker sends this and then waits.
async fn said(folder: &Path, answer: &[u8]) -> RepoError {
    will_send(folder, &[answer.to_vec()]);
    let repos = taken_over(folder, "exec /bin/sleep 60");
    let repo = repository();
    // Without a project each render has a worker of its own.
    let outcome = repos.manifests(request_for(&repo, "app", "")).await;
    outcome.expect_err("no manifests")
}

fn manifests(objects: u32, warnings: usize) -> String {
    let warnings = vec!["\"\""; warnings].join(",");
    format!("{{\"Manifests\":{{\"objects\":{objects},\"errors\":[],\"warnings\":[{warnings}]}}}}")
}

#[tokio::test]
async fn what_a_worker_answers_is_not_believed() {
    let folder = tempfile::tempdir().expect("a folder");
    let rules = "rendering failed: its process does not keep to the rules";
    let plugin = "{\"Failed\":{\"Need\":[{\"Plugin\":{\"plugin\":\"\",\"folder\":\"\",\"env\":[],\"task\":\"Generate\"}}]}}";
    let details = "{\"Details\":{\"helm\":null,\"images\":[]}}";
    let expect = "{\"Expect\":{\"files\":7,\"paths\":[\"x\"],\"inside\":[]}}";
    let ask = "{\"Ask\":{\"files\":7,\"question\":\"Read\",\"path\":\"x\"}}";
    for (answer, want) in [
        (frame("{\"Failed\":{\"Need\":[]}}", b""), rules),
        (frame(plugin, b""), rules),
        (frame("{\"Failed\":{\"Lost\":\"again\"}}", b""), rules),
        (frame("{\"Failed\":{\"Stopped\":\"more\"}}", b""), rules),
        (frame("\"Loaded\"", b""), rules),
        (frame(details, b""), rules),
        (frame(ask, b""), rules),
        (frame(expect, b""), rules),
        (
            frame("{\"Chart\":{\"files\":9,\"folder\":\"\"}}", b""),
            rules,
        ),
        (frame("{\"CompleteChart\":{\"folder\":\"x\"}}", b""), rules),
        (
            frame(&manifests(99_999_999, 0), b""),
            "rendering failed: the result has more than 50000 objects",
        ),
        (
            frame(&manifests(1, 0), b"[1]\n"),
            "rendering failed: the result cannot be read: ",
        ),
        (
            frame(&manifests(2, 0), b"{}\n"),
            "rendering failed: the result is not whole",
        ),
        (
            frame("{", b""),
            "rendering failed: its process cannot be talked to: ",
        ),
        (
            vec![0xff; 8],
            "rendering failed: its process cannot be talked to: the size of the messages about \
             the result exceeds the limit of 16777216",
        ),
        (
            frame(&manifests(0, 600_000), b""),
            "rendering failed: its process cannot be talked to: the number of values in the \
             messages about the result exceeds the limit of 500000",
        ),
    ] {
        let got = said(folder.path(), &answer).await.to_string();
        assert!(got.starts_with(want), "{got} instead of {want}");
    }
}

/// What could also be said by a worker that keeps to the rules is an error of the source.
#[tokio::test]
async fn what_a_worker_answers_is_limited() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = "x".repeat(9 << 20);
    for (answer, want) in [
        (
            manifests(0, 30_000),
            "the number of errors and warnings exceeds the limit of 20000",
        ),
        (
            format!("{{\"Manifests\":{{\"objects\":0,\"errors\":[],\"warnings\":[\"{long}\"]}}}}"),
            "the size of errors and warnings exceeds the limit of 8388608",
        ),
        (
            format!("{{\"Failed\":{{\"Source\":\"{long}\"}}}}"),
            "the size of the error exceeds the limit of 1048576",
        ),
    ] {
        let error = said(folder.path(), &frame(&answer, b"")).await;
        assert_eq!(error.to_string(), want);
        assert!(!error.retryable(), "{want}");
    }
}

/// A worker that always needs something is not asked for ever. The only place for a render is free
/// while it is fetched.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_needs_the_same_again_is_not_asked_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let web = FileServer::start();
    web.serve("/a.yaml", "a: 1\n");
    let url = format!("{}/a.yaml", web.url());
    let needed = format!("{{\"Failed\":{{\"Need\":[{{\"File\":{{\"url\":\"{url}\"}}}}]}}}}");
    let error = said(folder.path(), &frame(&needed, b"")).await;
    let error = error.to_string();
    assert!(error.ends_with("was needed twice"), "{error}");
}

fn object(name: &str) -> String {
    format!("{{\"apiVersion\":\"v1\",\"kind\":\"A\",\"metadata\":{{\"name\":\"{name}\"}}}}\n")
}

/// The object that a render has, which may be remembered.
async fn name_of(repos: &Repos, repo: &Repo, project: &str) -> String {
    let request = ManifestRequest {
        no_cache: false,
        ..request_for(repo, "app", project)
    };
    let made = repos.manifests(request).await.expect("manifests");
    made.objects[0].object().str_at("/metadata/name").to_owned()
}

/// What is read outside of the Application's folder is recorded, whatever path leads there.
#[tokio::test]
async fn a_path_with_dots_is_recorded() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = repository();
    let repos = taken_over(folder.path(), "exec /bin/sleep 60");
    let rendered = async |next: &str| {
        let ask = "{\"Ask\":{\"files\":0,\"question\":\"Read\",\"path\":\"app/../lib/text\"}}";
        let made = frame(&manifests(1, 0), object(next).as_bytes());
        will_send(folder.path(), &[frame(ask, b""), made]);
        name_of(&repos, &repo, "").await
    };
    assert_eq!(rendered("first").await, "first");
    assert_eq!(rendered("unused").await, "first");
    repo.commit(&[("lib/text", "0.2")], &[]);
    assert_eq!(rendered("second").await, "second");
}

/// What a worker says of its project's sources is kept, and is not what another project gets.
#[tokio::test(flavor = "multi_thread")]
async fn results_and_charts_are_those_of_one_project() {
    let folder = tempfile::tempdir().expect("a folder");
    let repo = repository();
    // It keeps what it is told.
    let repos = taken_over(folder.path(), "exec /bin/cat <&0 >\"$0.$$\"");
    let rendered = async |project: &str, next: &str| {
        // It says that it has loaded a chart of which it has read nothing.
        let frames = [
            frame("{\"Chart\":{\"files\":0,\"folder\":\"app\"}}", b""),
            frame("\"Loaded\"", b""),
            frame(&manifests(1, 0), object(next).as_bytes()),
        ];
        will_send(folder.path(), &frames);
        name_of(&repos, &repo, project).await
    };
    assert_eq!(rendered("a", "forged").await, "forged");
    assert_eq!(rendered("b", "real").await, "real");
    assert_eq!(rendered("a", "unused").await, "forged");
    assert_eq!(rendered("b", "unused").await, "real");
    // None was told to use a chart that another project's worker has loaded.
    let told = || {
        let names = fs::read_dir(folder.path()).expect("a folder").flatten();
        let names = names.map(|entry| entry.path());
        let names = names.filter(|path| path.extension().is_some());
        let told = names.map(|path| {
            let told = fs::read(path).expect("what it was told");
            String::from_utf8_lossy(&told).into_owned()
        });
        told.filter(|told| told.contains("\"Keep\""))
            .collect::<Vec<_>>()
    };
    for _ in 0..1000 {
        if told().len() == 2 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(told().len(), 2, "each project had a worker");
    for told in told() {
        assert!(told.contains("{\"Load\":null}"), "{told}");
    }
}
