//! Malformed bodies and paths, compared with the answers of a real API server (`hostile.txt`, one
//! line per case).
//!
//! `REAL_KUBECONFIG` with `RECORD_HOSTILE=1` queries that server and writes the file. The memory
//! use of this process must stay small, whatever is sent.

use crate::server::remote::Remote;
use crate::server::support::start;
use axum::body::Body;
use bytes::Bytes;
use http::Request;
use http_body_util::BodyExt;
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::path::Path;
use tiphys_embedded_kube::Data;
use tower::ServiceExt;

const MAPS: &str = "/api/v1/namespaces/hostile/configmaps";
const DEPLOYMENTS: &str = "/apis/apps/v1/namespaces/hostile/deployments";

struct Case {
    name: &'static str,
    method: &'static str,
    path: String,
    media: &'static str,
    body: Vec<u8>,
}

fn map(name: &str, data: &str) -> String {
    format!(
        r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"}},"data":{{{data}}}}}"#
    )
}

fn bomb() -> String {
    let mut text = "a: &a [l, l, l, l, l, l, l, l, l]\n".to_owned();
    for (before, name) in "abcdefgh".chars().zip("bcdefghi".chars()) {
        let _ = writeln!(
            text,
            "{name}: &{name} [{}]",
            vec![format!("*{before}"); 9].join(", ")
        );
    }
    text + "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: bomb}\n"
}

fn map_with(name: &str, metadata: &str) -> String {
    format!(r#"{{"apiVersion":"v1","kind":"ConfigMap","metadata":{{"name":"{name}"{metadata}}}}}"#)
}

/// Bodies of unusual size or form, and of another kind than the path.
fn odd_bodies() -> Vec<(&'static str, String)> {
    let nested = |n: usize| format!("{}{}", "[".repeat(n), "]".repeat(n));
    vec![
        (
            "4 MiB",
            map("big", &format!("\"k\":\"{}\"", "x".repeat(4 << 20))),
        ),
        (
            "2 MiB",
            map("over", &format!("\"k\":\"{}\"", "x".repeat(2 << 20))),
        ),
        (
            "depth 10,000",
            map("deep", &format!("\"k\":{}", nested(10_000))),
        ),
        (
            "objects 10,000 deep",
            format!("{}1{}", "{\"a\":".repeat(10_001), "}".repeat(10_001)),
        ),
        ("unclosed lists", "[".repeat(100_000)),
        ("duplicate key", map("dup", r#""a":"1","a":"2""#)),
        ("NaN", map("nan", r#""a":NaN"#)),
        ("Infinity", map("inf", r#""a":-Infinity"#)),
        ("number in a string field", map("num", r#""a":1"#)),
        (
            "1 MiB annotation",
            map_with(
                "ann",
                &format!(r#","annotations":{{"a":"{}"}}"#, "y".repeat(1 << 20)),
            ),
        ),
        (
            "wrong kind",
            r#"{"apiVersion":"v1","kind":"Secret","metadata":{"name":"h"}}"#.into(),
        ),
        (
            "wrong group",
            r#"{"apiVersion":"apps/v1","kind":"ConfigMap","metadata":{"name":"h"}}"#.into(),
        ),
        (
            "wrong group and kind",
            r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"h"}}"#.into(),
        ),
        (
            "unknown kind",
            r#"{"apiVersion":"x/v1","kind":"Foo","metadata":{"name":"h"}}"#.into(),
        ),
        ("empty", String::new()),
        ("list", "[]".into()),
        ("null", "null".into()),
        ("string", "\"x\"".into()),
        ("number", "5".into()),
        ("true", "true".into()),
        ("spaces", "   ".into()),
        ("truncated", r#"{"apiVersion":"v1","kind":"Conf"#.into()),
        ("two objects", format!("{}{{}}", map("two", ""))),
        ("trailing comma", r#"{"apiVersion":"v1",}"#.into()),
        ("single quotes", "{'apiVersion':'v1'}".into()),
        ("comment", "// no\n{}".into()),
    ]
}

/// Bodies with one field that is wrong.
fn bodies_with_a_wrong_field() -> Vec<(&'static str, String)> {
    vec![
        ("kind is a number", r#"{"apiVersion":"v1","kind":7}"#.into()),
        (
            "name is a number",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":5}}"#.into(),
        ),
        (
            "metadata is a string",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":"x"}"#.into(),
        ),
        ("labels are a list", map_with("h", r#","labels":["a"]"#)),
        (
            "label value is a map",
            map_with("h", r#","labels":{"a":{}}"#),
        ),
        (
            "data is a list",
            r#"{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"h"},"data":[]}"#.into(),
        ),
        ("name with a slash", map_with("a/b", "")),
        ("name with a space", map_with("a b", "")),
        ("name is ..", map_with("..", "")),
        ("name of 254 letters", map_with(&"n".repeat(254), "")),
        ("bad label key", map_with("h", r#","labels":{"a b":"c"}"#)),
        ("bad label value", map_with("h", r#","labels":{"a":"b c"}"#)),
        (
            "bad annotation key",
            map_with("h", r#","annotations":{"a/b/c":"d"}"#),
        ),
        ("bad finalizer", map_with("h", r#","finalizers":["a b"]"#)),
        (
            "bad owner",
            map_with("h", r#","ownerReferences":[{"name":"x"}]"#),
        ),
        (
            "another namespace",
            map_with("h", r#","namespace":"default""#),
        ),
        (
            "resourceVersion on create",
            map_with("h", r#","resourceVersion":"5""#),
        ),
        ("bad data key", map("h", r#""a b":"c""#)),
        ("lone surrogate", map("sur", r#""a":"\ud800""#)),
        ("escaped NUL", map("nul", r#""a":"\u0000""#)),
    ]
}

/// Bodies of a create, by name.
fn json_bodies() -> Vec<(&'static str, Vec<u8>)> {
    let mut all: Vec<(&str, Vec<u8>)> = odd_bodies()
        .into_iter()
        .chain(bodies_with_a_wrong_field())
        .map(|(name, text)| (name, text.into_bytes()))
        .collect();
    let invalid = map("utf", "\"a\":\"@@\"")
        .into_bytes()
        .into_iter()
        .map(|b| if b == b'@' { 0xff } else { b })
        .collect();
    all.push(("invalid UTF-8", invalid));
    all.push((
        "byte order mark",
        [b"\xef\xbb\xbf".as_slice(), map("bom", "").as_bytes()].concat(),
    ));
    all.push(("zero bytes", vec![0; 64]));
    all
}

fn yaml_bodies() -> Vec<(&'static str, String)> {
    let head =
        |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n");
    vec![
        ("YAML bomb", bomb()),
        (
            "YAML depth 10,000",
            format!(
                "{}data: {{a: {}{}}}\n",
                head("yd"),
                "[".repeat(10_000),
                "]".repeat(10_000)
            ),
        ),
        (
            "YAML duplicate key",
            format!("{}data: {{a: \"1\", a: \"2\"}}\n", head("ydup")),
        ),
        ("YAML NaN", format!("{}data: {{a: .nan}}\n", head("ynan"))),
        (
            "YAML two documents",
            format!("{}---\n{}", head("y1"), head("y2")),
        ),
        ("YAML map in a scalar", "a: b: c\n".into()),
        ("YAML empty", String::new()),
        ("YAML list", "- a\n- b\n".into()),
        (
            "YAML 4 MiB",
            format!("{}data: {{a: {}}}\n", head("ybig"), "x".repeat(4 << 20)),
        ),
    ]
}

/// Paths and parameters.
fn lines() -> Vec<(&'static str, &'static str, String)> {
    let base = MAPS;
    vec![
        ("limit is a word", "GET", format!("{base}?limit=x")),
        ("limit is negative", "GET", format!("{base}?limit=-1")),
        (
            "bad resourceVersion",
            "GET",
            format!("{base}?resourceVersion=x"),
        ),
        (
            "match without version",
            "GET",
            format!("{base}?resourceVersionMatch=Exact"),
        ),
        (
            "unknown match",
            "GET",
            format!("{base}?resourceVersion=1&resourceVersionMatch=x"),
        ),
        ("bad continue", "GET", format!("{base}?continue=x")),
        (
            "bad label selector",
            "GET",
            format!("{base}?labelSelector=%21%21"),
        ),
        (
            "bad field selector",
            "GET",
            format!("{base}?fieldSelector=a"),
        ),
        (
            "unknown field selector",
            "GET",
            format!("{base}?fieldSelector=spec.x%3D1"),
        ),
        (
            "watch from a bad version",
            "GET",
            format!("{base}?watch=1&resourceVersion=x"),
        ),
        ("bad dryRun", "POST", format!("{base}?dryRun=x")),
        (
            "bad fieldValidation",
            "POST",
            format!("{base}?fieldValidation=x"),
        ),
        (
            "fieldManager of 129 letters",
            "POST",
            format!("{base}?fieldManager={}", "m".repeat(129)),
        ),
        ("unknown path", "GET", "/api/v1/nothing".into()),
        ("unknown group", "GET", "/apis/no.such/v1/things".into()),
        ("unknown version", "GET", "/apis/apps/v9/deployments".into()),
        ("unknown subresource", "GET", format!("{base}/x/nothing")),
        (
            "cluster scope of a namespaced kind",
            "POST",
            "/api/v1/configmaps".into(),
        ),
        (
            "namespace that is not there",
            "POST",
            "/api/v1/namespaces/nowhere/configmaps".into(),
        ),
        ("PUT on a collection", "PUT", base.to_owned()),
        ("POST on an object", "POST", format!("{base}/x")),
        ("PATCH without type", "PATCH", format!("{base}/x")),
        ("object that is not there", "GET", format!("{base}/nothing")),
        (
            "delete what is not there",
            "DELETE",
            format!("{base}/nothing"),
        ),
        ("name with an escaped slash", "GET", format!("{base}/a%2Fb")),
        ("long name", "GET", format!("{base}/{}", "n".repeat(5_000))),
        ("method TRACE", "TRACE", base.to_owned()),
    ]
}

/// Name, media type and body of patches.
const PATCHES: [(&str, &str, &str); 8] = [
    (
        "JSON patch that is a map",
        "application/json-patch+json",
        "{}",
    ),
    (
        "JSON patch with an unknown operation",
        "application/json-patch+json",
        r#"[{"op":"x","path":"/a"}]"#,
    ),
    (
        "JSON patch without path",
        "application/json-patch+json",
        r#"[{"op":"remove"}]"#,
    ),
    (
        "merge patch that is a list",
        "application/merge-patch+json",
        "[]",
    ),
    (
        "merge patch that is broken",
        "application/merge-patch+json",
        "{",
    ),
    (
        "merge patch of the name",
        "application/merge-patch+json",
        r#"{"metadata":{"name":"other"}}"#,
    ),
    (
        "strategic patch that is a list",
        "application/strategic-merge-patch+json",
        "[]",
    ),
    (
        "apply without manager",
        "application/apply-patch+yaml",
        "apiVersion: v1\nkind: ConfigMap\n",
    ),
];

fn cases() -> Vec<Case> {
    let mut all = Vec::new();
    for (name, body) in json_bodies() {
        all.push(Case {
            name,
            method: "POST",
            path: MAPS.into(),
            media: "application/json",
            body,
        });
    }
    for (name, body) in yaml_bodies() {
        all.push(Case {
            name,
            method: "POST",
            path: MAPS.into(),
            media: "application/yaml",
            body: body.into_bytes(),
        });
    }
    for (name, method, path) in lines() {
        let body = if method == "POST" {
            map("line", "").into_bytes()
        } else {
            Vec::new()
        };
        all.push(Case {
            name,
            method,
            path,
            media: "application/json",
            body,
        });
    }
    let media = [
        ("XML", "application/xml"),
        ("text", "text/plain"),
        ("CBOR", "application/cbor"),
        ("a form", "application/x-www-form-urlencoded"),
    ];
    for (name, media) in media {
        all.push(Case {
            name,
            method: "POST",
            path: MAPS.into(),
            media,
            body: map("media", "").into_bytes(),
        });
    }
    for (name, media, body) in PATCHES {
        all.push(Case {
            name,
            method: "PATCH",
            path: format!("{MAPS}/there"),
            media,
            body: body.into(),
        });
    }
    let wrong = r#"{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":"three"}}"#;
    all.push(Case {
        name: "replicas in words",
        method: "POST",
        path: DEPLOYMENTS.into(),
        media: "application/json",
        body: wrong.into(),
    });
    all
}

/// What is compared: a refusal whole, a success by its code.
fn shown(code: u16, answer: &Value) -> String {
    if code < 400 {
        code.to_string()
    } else {
        format!("{code} {answer}")
    }
}

/// The peak memory of this process, in MiB (0 if the system does not report it).
fn peak() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches("kB").trim().parse::<u64>().ok())
        .unwrap_or(0)
        / 1024
}

fn file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/hostile.txt")
}

fn prepare() -> [(&'static str, Value); 2] {
    let there = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "there"}});
    [
        (
            "/api/v1/namespaces",
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "hostile"}}),
        ),
        (MAPS, there),
    ]
}

async fn record(kubeconfig: &str) {
    let mut real = Remote::connect(kubeconfig).await;
    for (path, object) in prepare() {
        real.json("POST", path, &object).await;
    }
    let mut out = String::new();
    for case in cases() {
        // Some answers end the connection.
        let mut one = Remote::connect(kubeconfig).await;
        let (code, answer) = one
            .send(case.method, &case.path, case.media, Bytes::from(case.body))
            .await;
        let _ = writeln!(out, "{}: {}", case.name, shown(code, &answer));
    }
    real.json("DELETE", "/api/v1/namespaces/hostile", &Value::Null)
        .await;
    std::fs::write(file(), out).expect("the answers are written");
}

#[tokio::test]
async fn bad_input_gets_the_answers_of_a_real_server() {
    if let (Ok(kubeconfig), Ok(_)) = (
        std::env::var("REAL_KUBECONFIG"),
        std::env::var("RECORD_HOSTILE"),
    ) {
        return record(&kubeconfig).await;
    }
    let kube = start(Data::Memory).await;
    let router = kube.router();
    for (path, object) in prepare() {
        assert_eq!(
            crate::server::support::post(&router, path, &object).await.0,
            201
        );
    }
    let text = std::fs::read_to_string(file()).expect("the recorded answers");
    let (mut equal, mut total, mut wrong) = (0, 0, String::new());
    for case in cases() {
        let request = Request::builder()
            .method(case.method)
            .uri(&case.path)
            .header("content-type", case.media);
        let request = request
            .header("user-agent", "test")
            .body(Body::from(case.body))
            .expect("a request");
        let response = router.clone().oneshot(request).await.expect("it answers");
        let code = response.status().as_u16();
        let bytes = response
            .into_body()
            .collect()
            .await
            .expect("a body")
            .to_bytes();
        let answer = serde_json::from_slice(&bytes)
            .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
        let (here, real) = (
            shown(code, &answer),
            text.lines()
                .find_map(|l| l.strip_prefix(&format!("{}: ", case.name)))
                .unwrap_or("unknown"),
        );
        total += 1;
        if here == real {
            equal += 1;
        } else {
            let _ = writeln!(wrong, "{}\n  real {real}\n  here {here}", case.name);
        }
    }
    println!(
        "{equal} of {total} answers are equal; at most {} MiB",
        peak()
    );
    assert!(peak() < 512, "{} MiB", peak());
    assert!(wrong.is_empty(), "{equal} of {total} are equal\n{wrong}");
    kube.shutdown().await;
}
