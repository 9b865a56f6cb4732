//! Measures the server in its own process: `load [--data FOLDER] [--objects N] [--tasks N]`.

use axum::Router;
use axum::body::Body;
use http::{Request, header::CONTENT_TYPE};
use http_body_util::BodyExt;
use std::path::PathBuf;
use std::time::Instant;
use tiphys_embedded_kube::{Data, EmbeddedKube, Options};
use tower::ServiceExt;

fn argument(name: &str) -> Option<String> {
    std::env::args().skip_while(|a| a != name).nth(1)
}

fn resident_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status
        .lines()
        .find(|l| l.starts_with("VmRSS:"))
        .unwrap_or("");
    line.split_whitespace()
        .nth(1)
        .and_then(|n| n.parse().ok())
        .unwrap_or(0)
}

async fn send(
    router: &Router,
    method: &str,
    path: &str,
    media: &str,
    body: String,
) -> (u16, usize) {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(CONTENT_TYPE, media)
        .body(Body::from(body))
        .expect("a request");
    let response = router.clone().oneshot(request).await.expect("it answers");
    let code = response.status().as_u16();
    (
        code,
        response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes()
            .len(),
    )
}

/// Runs `n` requests in `tasks` tasks and prints how many a second.
async fn measure(
    name: &str,
    router: &Router,
    n: usize,
    tasks: usize,
    make: fn(usize) -> (&'static str, String, &'static str, String),
) {
    let start = Instant::now();
    let mut running = Vec::new();
    for task in 0..tasks {
        let router = router.clone();
        running.push(tokio::spawn(async move {
            for i in (task..n).step_by(tasks) {
                let (method, path, media, body) = make(i);
                let (code, _) = send(&router, method, &path, media, body).await;
                assert!(code < 300, "{method} {path} gave {code}");
            }
        }));
    }
    for task in running {
        task.await.expect("it ends");
    }
    let seconds = start.elapsed().as_secs_f64();
    println!(
        "{name:<8} {n} in {seconds:.2} s: {:.0}/s",
        n as f64 / seconds
    );
}

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let data = argument("--data").map_or(Data::Memory, |folder| Data::Dir(PathBuf::from(folder)));
    let objects: usize = argument("--objects").map_or(Ok(10_000), |n| n.parse())?;
    let tasks: usize = argument("--tasks").map_or(Ok(32), |n| n.parse())?;
    let kube = EmbeddedKube::start(Options {
        data,
        ..Options::default()
    })
    .await?;
    let router = kube.router();
    let before = resident_kib();
    measure("create", &router, objects, tasks, |i| {
        let body = format!(
            r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"m{i}","labels":{{"app":"a{}"}}}},"data":{{"k":"{}"}}}}"#,
            i % 100,
            "x".repeat(2048)
        );
        ("POST", MAPS.to_owned(), "application/json", body)
    })
    .await;
    println!(
        "memory   {} KiB an object of 2 KiB of data",
        (resident_kib() - before) as f64 / objects as f64
    );
    measure("get", &router, objects, tasks, |i| {
        (
            "GET",
            format!("{MAPS}/m{i}"),
            "application/json",
            String::new(),
        )
    })
    .await;
    measure("patch", &router, objects, tasks, |i| {
        (
            "PATCH",
            format!("{MAPS}/m{i}"),
            "application/merge-patch+json",
            format!(r#"{{"data":{{"i":"{i}"}}}}"#),
        )
    })
    .await;
    let start = Instant::now();
    let (_, bytes) = send(&router, "GET", MAPS, "application/json", String::new()).await;
    println!(
        "list     {objects} objects, {} KiB in {:.1} ms",
        bytes / 1024,
        start.elapsed().as_secs_f64() * 1e3
    );
    measure("delete", &router, objects, tasks, |i| {
        (
            "DELETE",
            format!("{MAPS}/m{i}"),
            "application/json",
            String::new(),
        )
    })
    .await;
    kube.shutdown().await;
    Ok(())
}
