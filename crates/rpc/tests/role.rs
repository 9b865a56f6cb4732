//! A test role with its own state, callers and messages; its table is served over gRPC, gRPC-web
//! and REST.

use bytes::Bytes;
use futures::{StreamExt as _, stream::BoxStream};
use http::{HeaderMap, HeaderValue, Request, Response, StatusCode, uri::PathAndQuery};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper_util::{client::legacy, rt::TokioExecutor};
use serde_json::{Value, json};
use std::{
    net::{IpAddr, SocketAddr},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
};
use tiphys_rpc::{
    ApiError, Call, CallCounts, Role, Table, Tls, Unhealthy,
    table::{Session, client_stream, server_stream, unary},
    text,
};
use tokio_util::sync::{CancellationToken, DropGuard};
use tonic::{body::Body, transport::Channel};
use tonic_prost::ProstCodec;

#[derive(Clone, PartialEq, prost::Message, serde::Serialize, serde::Deserialize)]
#[serde(default)]
struct Add {
    #[prost(uint32, tag = "1")]
    amount: u32,
    #[prost(string, tag = "2")]
    why: String,
}

#[derive(Clone, PartialEq, prost::Message, serde::Serialize, serde::Deserialize)]
#[serde(default)]
struct Total {
    #[prost(uint32, tag = "1")]
    total: u32,
    #[prost(string, tag = "2")]
    secret: String,
    #[prost(string, tag = "3")]
    token: String,
}

/// The state: a counter, and how often it was called.
struct Counter {
    table: Table<Self>,
    total: AtomicU32,
    counts: CallCounts,
}

/// Whether a row is public.
struct Open(bool);

impl Role for Counter {
    /// The caller's name.
    type Caller = Option<String>;
    type Access = Open;

    fn table(&self) -> &Table<Self> {
        &self.table
    }

    async fn caller(
        &self,
        _: IpAddr,
        headers: &HeaderMap,
        access: Option<&Open>,
    ) -> Result<Option<String>, ApiError> {
        let name = tiphys_rpc::token(headers, "counter");
        match (name, access) {
            (Some(name), _) => Ok(Some(name)),
            (None, Some(Open(true))) => Ok(None),
            (None, _) => Err(ApiError::unauthenticated("who is there?")),
        }
    }

    fn turns_away(&self, user_agent: &str) -> Option<ApiError> {
        let is_old = user_agent.starts_with("old/1 ");
        is_old.then(|| ApiError::precondition("too old"))
    }

    fn max_request(&self, caller: &Option<String>) -> usize {
        if caller.is_some() { 4096 } else { 64 }
    }

    fn cookie(&self, token: &str) -> Option<HeaderValue> {
        tiphys_rpc::set_cookie("counter", token, self.root_path(), false)
    }

    fn other(
        self: &Arc<Self>,
        request: Request<Body>,
    ) -> futures::future::BoxFuture<'static, Result<Response<Body>, Request<Body>>> {
        let answer = match request.uri().path() {
            "/about" => Ok(text(StatusCode::OK, "a counter\n")),
            _ => Err(request),
        };
        Box::pin(std::future::ready(answer))
    }

    fn root_path(&self) -> &str {
        "/counters"
    }

    fn counts(&self) -> Option<&CallCounts> {
        Some(&self.counts)
    }

    async fn health(&self, is_full: bool) -> Result<(), Unhealthy> {
        match (self.total.load(Ordering::SeqCst), is_full) {
            (0, _) => Err(Unhealthy::Absent),
            (1, true) => Err(Unhealthy::Broken("there is only one".to_owned())),
            _ => Ok(()),
        }
    }
}

type Stream<T> = BoxStream<'static, Result<T, ApiError>>;

async fn add(state: Arc<Counter>, _: Option<String>, q: Add) -> Result<Total, ApiError> {
    if q.amount > 100 {
        return Err(ApiError::precondition("too much"));
    }
    let total = state.total.fetch_add(q.amount, Ordering::SeqCst) + q.amount;
    Ok(Total {
        total,
        secret: q.why,
        ..Default::default()
    })
}

async fn count(_: Arc<Counter>, _: Option<String>, q: Add) -> Result<Stream<Total>, ApiError> {
    let total = |total| {
        Ok(Total {
            total,
            secret: "s".into(),
            ..Default::default()
        })
    };
    let end = Err(ApiError::internal("no more"));
    let messages = (1..=q.amount).map(total).chain([end]);
    Ok(futures::stream::iter(messages).boxed())
}

async fn sum(_: Arc<Counter>, _: Option<String>, mut q: Stream<Add>) -> Result<Total, ApiError> {
    let mut total = 0;
    while let Some(add) = q.next().await {
        total += add?.amount;
    }
    Ok(Total {
        total,
        ..Default::default()
    })
}

async fn greet(_: Arc<Counter>, _: Option<String>, q: Add) -> Result<Total, ApiError> {
    Ok(Total {
        token: q.why,
        ..Default::default()
    })
}

async fn watch(_: Arc<Counter>, _: Option<String>, _: Add) -> Result<Stream<Total>, ApiError> {
    let first = futures::stream::iter([Ok(Total::default())]);
    Ok(first.chain(futures::stream::pending()).boxed())
}

async fn wait(_: Arc<Counter>, _: Option<String>, _: Add) -> Result<Total, ApiError> {
    std::future::pending().await
}

/// Removes the field that no client may see.
fn conceal(total: &mut Total) {
    total.secret.clear();
}

struct Served {
    counter: Arc<Counter>,
    address: SocketAddr,
    _stop: DropGuard,
}

async fn serve() -> Served {
    let rows = vec![
        unary(
            "test.Counter/Add",
            &["POST /api/counter/{why} *"],
            Open(false),
            conceal,
            add,
        ),
        server_stream(
            "test.Counter/Count",
            &["GET /api/stream/{amount}"],
            Open(true),
            conceal,
            count,
        ),
        client_stream("test.Counter/Sum", Open(true), conceal, sum),
        server_stream(
            "test.Counter/Watch",
            &["GET /api/watch"],
            Open(true),
            conceal,
            watch,
        ),
        unary(
            "test.Counter/Wait",
            &["GET /api/wait"],
            Open(true),
            conceal,
            wait,
        ),
        unary(
            "test.Counter/Greet",
            &["POST /api/session *"],
            Open(true),
            conceal,
            greet,
        )
        .with_session(Session::Begins),
        Call::missing("test.Counter/Reset", &["DELETE /api/counter"], Open(false)),
    ];
    let counter = Arc::new(Counter {
        table: Table::new(rows),
        total: AtomicU32::new(0),
        counts: CallCounts::new(true),
    });
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0")
        .await
        .expect("a free port");
    let address = listener.local_addr().expect("an address");
    let stop = CancellationToken::new();
    let connections = tiphys_listen::Connections::new(tiphys_listen::Limits::default());
    let serving = tiphys_rpc::serve(
        counter.clone(),
        listener,
        Tls::Off,
        connections,
        stop.clone(),
    );
    tokio::spawn(serving);
    Served {
        counter,
        address,
        _stop: stop.drop_guard(),
    }
}

impl Served {
    async fn client(&self) -> tonic::client::Grpc<Channel> {
        let endpoint = Channel::from_shared(format!("http://{}", self.address)).expect("a URI");
        let mut client = tonic::client::Grpc::new(endpoint.connect().await.expect("a connection"));
        client.ready().await.expect("a connection");
        client
    }

    /// The metrics without `grpc_server_`, their labels and zeros, as far as they are of a method.
    fn counted(&self, method: &str) -> Vec<String> {
        let mut text = String::new();
        self.counter.counts.write(&mut text);
        let of = format!("grpc_method=\"{method}\"");
        let short = |line: &str| {
            let (name, rest) = line.strip_prefix("grpc_server_")?.split_once('{')?;
            let (labels, value) = rest.split_once("} ")?;
            let code = labels.strip_prefix("grpc_code=\"");
            let code = code.and_then(|rest| Some(rest.split_once('"')?.0));
            let is_shown = value != "0" && labels.contains(&of) && name.ends_with("_total");
            is_shown.then(|| match code {
                Some(code) => format!("{name} {code} {value}"),
                None => format!("{name} {value}"),
            })
        };
        text.lines().filter_map(short).collect()
    }

    /// One call over gRPC as `name`.
    async fn grpc(&self, rpc: &'static str, name: &str, q: Add) -> Result<Total, tonic::Status> {
        let mut request = tonic::Request::new(q);
        if !name.is_empty() {
            let name = name.parse().expect("a header");
            request.metadata_mut().insert("token", name);
        }
        let path = PathAndQuery::from_static(rpc);
        let codec = ProstCodec::<Add, Total>::default();
        let reply = self.client().await.unary(request, path, codec).await?;
        Ok(reply.into_inner())
    }

    async fn send(&self, request: http::request::Builder, body: Vec<u8>) -> Response<Incoming> {
        let mut request = request
            .body(Full::new(Bytes::from(body)))
            .expect("a request");
        let uri = format!("http://{}{}", self.address, request.uri());
        *request.uri_mut() = uri.parse().expect("a URI");
        let client: legacy::Client<_, Full<Bytes>> =
            legacy::Client::builder(TokioExecutor::new()).build_http();
        client.request(request).await.expect("an answer")
    }

    /// One REST request as `name`: the status, the cookie, and the body as text.
    async fn rest(&self, method: &str, path: &str, name: &str, body: Value) -> (u16, String) {
        let mut request = Request::builder()
            .method(method)
            .uri(below_root(path))
            .header("content-type", "application/json");
        if !name.is_empty() {
            request = request.header("token", name);
        }
        let response = self.send(request, body.to_string().into_bytes()).await;
        (response.status().as_u16(), read(response).await)
    }
}

/// A path as a proxy keeps it.
fn below_root(path: &str) -> String {
    match path.starts_with("/counters") {
        true => path.to_owned(),
        false => format!("/counters{path}"),
    }
}

/// A request that is not below the root path.
async fn read_outside(served: &Served) -> (u16, String) {
    let response = served.send(Request::get("/about"), Vec::new()).await;
    (response.status().as_u16(), read(response).await)
}

async fn read(response: Response<Incoming>) -> String {
    let bytes = response.into_body().collect().await.expect("a body");
    String::from_utf8_lossy(&bytes.to_bytes()).into_owned()
}

fn amount(amount: u32) -> Add {
    Add {
        amount,
        why: "because".into(),
    }
}

#[tokio::test]
async fn a_call_is_answered_over_grpc_grpc_web_and_rest() {
    let served = serve().await;
    let reply = served
        .grpc("/test.Counter/Add", "me", amount(3))
        .await
        .expect("a reply");
    assert_eq!((reply.total, reply.secret.as_str()), (3, ""));

    let mut frame = vec![0];
    let message = prost::Message::encode_to_vec(&amount(4));
    frame.extend(u32::try_from(message.len()).expect("short").to_be_bytes());
    frame.extend(message);
    let request = Request::post("/counters/test.Counter/Add")
        .header("content-type", "application/grpc-web+proto")
        .header("token", "me");
    let response = served.send(request, frame).await;
    assert_eq!(response.status(), 200);
    let body = read(response).await;
    assert!(body.starts_with("\0\0\0\0\u{2}\u{8}\u{7}"), "{body:?}");
    assert!(body.contains("grpc-status:0"), "{body:?}");

    let (status, body) = served
        .rest(
            "POST",
            "/counters/api/counter/x",
            "me",
            json!({"amount": 5}),
        )
        .await;
    let body: Value = serde_json::from_str(&body).expect("JSON");
    assert_eq!((status, &body["total"]), (200, &json!(12)));
    assert_eq!(body["secret"], "", "what is taken out is so in JSON too");
    assert_eq!(
        served.counted("Add"),
        [
            "started_total 3",
            "msg_received_total 3",
            "msg_sent_total 3",
            "handled_total OK 3"
        ]
    );
    let mut text = String::new();
    served.counter.counts.write(&mut text);
    let labels = r#"grpc_method="Add",grpc_service="test.Counter",grpc_type="unary""#;
    for line in [
        format!("grpc_server_handling_seconds_bucket{{{labels},le=\"+Inf\"}} 3"),
        format!("grpc_server_handling_seconds_count{{{labels}}} 3"),
    ] {
        assert!(text.lines().any(|l| l == line), "{line}\n{text}");
    }
}

#[tokio::test]
async fn a_stream_is_answered_over_grpc_and_rest() {
    let served = serve().await;
    let path = PathAndQuery::from_static("/test.Counter/Count");
    let codec = ProstCodec::<Add, Total>::default();
    let stream = served
        .client()
        .await
        .server_streaming(tonic::Request::new(amount(2)), path, codec)
        .await
        .expect("a stream")
        .into_inner();
    let messages: Vec<_> = stream
        .map(|m| m.map(|m| m.total).map_err(|e| e.message().to_owned()))
        .collect()
        .await;
    assert_eq!(messages, [Ok(1), Ok(2), Err("no more".to_owned())]);

    let (status, body) = served
        .rest("GET", "/api/stream/1?fields=total", "", Value::Null)
        .await;
    let lines: Vec<&str> = body.lines().collect();
    assert_eq!((status, lines.len()), (200, 2), "{body}");
    assert_eq!(lines[0], r#"{"result":{"total":1}}"#);
    assert!(lines[1].contains("no more"), "{body}");
    assert_eq!(
        served.counted("Count"),
        [
            "started_total 2",
            "msg_received_total 2",
            "msg_sent_total 3",
            "handled_total Internal 2"
        ]
    );
}

#[tokio::test]
async fn a_client_may_send_a_stream() {
    let served = serve().await;
    let path = PathAndQuery::from_static("/test.Counter/Sum");
    let codec = ProstCodec::<Add, Total>::default();
    let adds = futures::stream::iter([1, 2, 3].map(amount));
    let reply = served
        .client()
        .await
        .client_streaming(tonic::Request::new(adds), path, codec)
        .await
        .expect("a reply");
    assert_eq!(reply.into_inner().total, 6);
    assert_eq!(
        served.counted("Sum"),
        [
            "started_total 1",
            "msg_received_total 3",
            "msg_sent_total 1",
            "handled_total OK 1"
        ]
    );
}

/// A question of server reflection.
#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, optional, tag = "4")]
    symbol: Option<String>,
    #[prost(string, optional, tag = "7")]
    services: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Told {
    #[prost(message, optional, tag = "2")]
    asked: Option<Ask>,
    #[prost(message, optional, tag = "6")]
    services: Option<Names>,
    /// Its first field is a gRPC code.
    #[prost(message, optional, tag = "7")]
    error: Option<Add>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Names {
    #[prost(message, repeated, tag = "1")]
    all: Vec<Name>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Name {
    #[prost(string, tag = "1")]
    name: String,
}

#[tokio::test]
async fn reflection_lists_the_services() {
    let served = serve().await;
    let ask = |symbol: Option<&str>, services: Option<&str>| Ask {
        symbol: symbol.map(str::to_owned),
        services: services.map(str::to_owned),
    };
    for rpc in [
        "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo",
    ] {
        let call = async |name: &str| {
            let asks = [
                ask(None, Some("")),
                ask(Some("test.Counter"), None),
                ask(None, None),
            ];
            let mut request = tonic::Request::new(futures::stream::iter(asks));
            if !name.is_empty() {
                let name = name.parse().expect("a header");
                request.metadata_mut().insert("token", name);
            }
            let codec = ProstCodec::<Ask, Told>::default();
            let path = PathAndQuery::from_static(rpc);
            let mut client = served.client().await;
            let answers = client.streaming(request, path, codec).await?.into_inner();
            Ok::<_, tonic::Status>(answers.collect::<Vec<_>>().await)
        };
        let refused = call("").await.expect_err("nobody may");
        assert_eq!(refused.code(), tonic::Code::Unauthenticated, "{rpc}");
        let answers = call("me").await.expect("answers");
        let [Ok(list), Ok(described), Err(end)] = answers.as_slice() else {
            panic!("{rpc}: {answers:?}");
        };
        let names = list.services.clone().unwrap_or_default().all;
        let names: Vec<&str> = names.iter().map(|n| n.name.as_str()).collect();
        assert_eq!(
            names,
            [
                "grpc.health.v1.Health",
                "grpc.reflection.v1.ServerReflection",
                "grpc.reflection.v1alpha.ServerReflection",
                "test.Counter"
            ]
        );
        let error = described.error.clone().unwrap_or_default();
        assert_eq!((error.amount, described.services.as_ref()), (5, None));
        assert!(error.why.contains("test.Counter"), "{}", error.why);
        assert_eq!(described.asked, Some(ask(Some("test.Counter"), None)));
        assert_eq!(end.code(), tonic::Code::InvalidArgument);
    }
}

#[tokio::test]
async fn the_role_says_who_may_call_and_how_much() {
    let served = serve().await;
    for (rpc, code) in [
        ("/test.Counter/Add", tonic::Code::Unauthenticated),
        ("/test.Counter/None", tonic::Code::Unimplemented),
    ] {
        let refused = served.grpc(rpc, "", amount(1)).await.expect_err("refused");
        assert_eq!(refused.code(), code, "{rpc}");
    }
    let (status, body) = read_outside(&served).await;
    assert_eq!((status, body.as_str()), (404, "404 page not found\n"));
    let (status, body) = served
        .rest("POST", "/api/counter/x", "", json!({"amount": 1}))
        .await;
    assert_eq!(status, 401, "{body}");
    let long = Add {
        amount: 1,
        why: "x".repeat(100),
    };
    let refused = served.grpc("/test.Counter/Greet", "", long.clone()).await;
    assert_eq!(
        refused.expect_err("too long").code(),
        tonic::Code::OutOfRange
    );
    served
        .grpc("/test.Counter/Greet", "me", long)
        .await
        .expect("it is short enough for who is known");
    assert_eq!(served.counter.total.load(Ordering::SeqCst), 0);
    // Who has no access has called all the same, and so has who sends too much.
    assert_eq!(
        served.counted("Add").last().map(String::as_str),
        Some("handled_total Unauthenticated 2")
    );
    assert_eq!(
        served.counted("Greet")[3..],
        ["handled_total OK 1", "handled_total OutOfRange 1"]
    );
}

#[tokio::test]
async fn the_role_says_how_it_is() {
    let served = serve().await;
    // Probes know nothing of the root path.
    let health = async |path: &str| {
        let answer = served.send(Request::get(path), Vec::new()).await;
        (answer.status().as_u16(), read(answer).await)
    };
    for (total, of_simple, of_full) in [
        (0, (503, ""), (503, "")),
        (1, (200, "ok\n"), (503, "there is only one\n")),
        (2, (200, "ok\n"), (200, "ok\n")),
    ] {
        served.counter.total.store(total, Ordering::SeqCst);
        for (path, (status, body)) in [
            ("/healthz", of_simple),
            ("/healthz?full=false", of_simple),
            ("/healthz?x=1&full=true", of_full),
        ] {
            let body = body.to_owned();
            assert_eq!(health(path).await, (status, body), "{total} {path}");
        }
    }
}

#[tokio::test]
async fn a_call_is_given_as_long_as_its_client_waits() {
    let served = serve().await;
    for (path, timeout, want) in [
        ("/api/wait", "20m", 504),
        ("/api/wait", "5x", 400),
        ("/api/stream/0", "1H", 500),
        // Beyond what a clock can have.
        ("/api/stream/0", "18446744073709551615S", 500),
    ] {
        let request = Request::get(below_root(path)).header("grpc-timeout", timeout);
        let response = served.send(request, Vec::new()).await;
        let status = response.status().as_u16();
        assert_eq!(status, want, "{timeout}: {}", read(response).await);
    }
}

#[tokio::test]
async fn a_stream_that_its_deadline_cuts_off_is_counted_so() {
    let served = serve().await;
    // Long enough for its beginning, and each that came too late is counted the same.
    let request = Request::get(below_root("/api/watch")).header("grpc-timeout", "200m");
    let body = read(served.send(request, Vec::new()).await).await;
    assert!(body.contains("context deadline exceeded"), "{body}");
    let counted = served.counted("Watch");
    let code = counted.last().map(String::as_str);
    assert_eq!(code, Some("handled_total DeadlineExceeded 1"));
}

#[tokio::test]
async fn what_is_grpc_needs_http_2_and_a_client_that_is_served() {
    let served = serve().await;
    // Over HTTP/1 it is a request for a path that is not there.
    let request = Request::post(below_root("/test.Counter/Add"))
        .header("content-type", "application/grpc")
        .header("token", "me");
    let response = served.send(request, vec![0; 5]).await;
    assert_ne!(response.status(), 200);
    assert!(!response.headers().contains_key("grpc-status"));

    let client: legacy::Client<_, Full<Bytes>> = legacy::Client::builder(TokioExecutor::new())
        .http2_only(true)
        .build_http();
    let request = Request::post(format!("http://{}/test.Counter/Add", served.address))
        .header("content-type", "application/grpc")
        .header("te", "trailers")
        .header("token", "me")
        .body(Full::new(Bytes::from_static(&[0; 5])))
        .expect("a request");
    let response = client.request(request).await.expect("an answer");
    let answer = response.into_body().collect().await.expect("a body");
    let trailers = answer.trailers().expect("trailers");
    assert_eq!(trailers["grpc-status"], "0");

    for (agent, want) in [("old/1", "9"), ("new/1", "0")] {
        let request = Request::post(below_root("/test.Counter/Add"))
            .header("content-type", "application/grpc-web+proto")
            .header("user-agent", format!("{agent} of-tests"))
            .header("token", "me");
        let response = served.send(request, vec![0; 5]).await;
        let status = response.headers().get("grpc-status").cloned();
        let status = status.map(|status| status.to_str().expect("text").to_owned());
        let body = read(response).await;
        let is_it =
            status.as_deref() == Some(want) || body.contains(&format!("grpc-status:{want}"));
        assert!(is_it, "{agent}: {status:?} {body:?}");
    }
}

#[tokio::test]
async fn errors_cookies_and_other_paths() {
    let served = serve().await;
    let failed = served.grpc("/test.Counter/Add", "me", amount(101)).await;
    let failed = failed.expect_err("too much");
    assert_eq!(
        (failed.code(), failed.message()),
        (tonic::Code::FailedPrecondition, "too much")
    );
    let (status, body) = served.rest("DELETE", "/api/counter", "me", json!({})).await;
    assert_eq!(status, 501, "{body}");
    let (status, body) = served.rest("GET", "/api/none", "me", Value::Null).await;
    assert_eq!((status, body.contains("Not Found")), (404, true), "{body}");
    let (status, body) = served.rest("GET", "/about", "", Value::Null).await;
    assert_eq!((status, body.as_str()), (200, "a counter\n"));

    let request =
        Request::post(below_root("/api/session")).header("content-type", "application/json");
    let response = served.send(request, br#"{"why": "t"}"#.to_vec()).await;
    let cookie = response.headers()["set-cookie"].to_str().expect("text");
    assert!(cookie.starts_with("counter=t; path=/counters;"), "{cookie}");
}
