//! A collector on loopback, and what it receives.

use super::{wire::ExportRequest, *};
use crate::roles::traces::wire::ExportResponse;
use clap::Parser;
use http::HeaderMap;
use std::{convert::Infallible, time::Duration};
use tokio::{
    net::TcpListener,
    time::{Instant, timeout},
};
use tonic::{Request, Response, Status as Answer};
use tonic_prost::ProstCodec;
use tracing::Instrument as _;
use tracing_subscriber::prelude::*;

#[derive(Parser)]
struct Line {
    #[command(flatten)]
    traces: TraceArgs,
}

fn target(line: &[&str], params: &[(&str, &str)]) -> anyhow::Result<Option<Target>> {
    let line = Line::try_parse_from(["x"].iter().chain(line)).expect("a command line");
    line.traces.target(SERVICE, |key| {
        params
            .iter()
            .find(|(k, _)| *k == key)
            .map(|(_, v)| (*v).to_owned())
            .unwrap_or_default()
    })
}

#[test]
fn flags_come_before_settings() {
    assert_eq!(target(&[], &[]).expect("fine"), None);
    let params = [
        ("otlp.address", "a:1"),
        ("otlp.insecure", "false"),
        ("otlp.headers", "x=1, Y = 2=3"),
        ("otlp.attrs", "env:prod,broken"),
        ("otlp.sample.ratio", "0.5"),
    ];
    let found = target(&[], &params).expect("fine").expect("an address");
    assert_eq!(
        (found.address.as_str(), found.insecure, found.ratio),
        ("a:1", false, 0.5)
    );
    assert_eq!(
        found.headers,
        [
            ("x".to_owned(), "1".to_owned()),
            ("y".to_owned(), "2=3".to_owned())
        ]
    );
    let attribute = |name: &str, value: &str| KeyValue::new(name, Value::Text(value.into()));
    assert_eq!(
        found.attributes,
        [
            attribute("env", "prod"),
            attribute("service.name", "argocd-controller")
        ]
    );
    let line = [
        "--otlp-address=b:2",
        "--otlp-insecure",
        "--otlp-headers=z=9",
        "--otlp-attrs=service.name:mine",
        "--otlp-sample-ratio=1",
    ];
    let found = target(&line, &params).expect("fine").expect("an address");
    assert_eq!(
        (found.address.as_str(), found.insecure, found.ratio),
        ("b:2", true, 1.0)
    );
    assert_eq!(
        (found.headers.len(), found.attributes),
        (1, vec![attribute("service.name", "mine")])
    );
    for (line, why) in [
        (
            "--otlp-sample-ratio=2",
            "--otlp-sample-ratio: 2 is not between 0.0 and 1.0",
        ),
        (
            "--otlp-headers=secret",
            "--otlp-headers: header \"secret\" must be name=value",
        ),
    ] {
        assert_eq!(
            target(&["--otlp-address=b:2", line], &[])
                .expect_err(line)
                .to_string(),
            why
        );
    }
}

#[test]
fn a_share_of_the_traces_is_sent() {
    let kept = (0..10_000_u64)
        .filter(|n| sampled(u128::from(n.wrapping_mul(0x9e37_79b9_7f4a_7c15)), 0.25))
        .count();
    assert!((2_300..2_700).contains(&kept), "{kept}");
    assert!(sampled(u128::MAX, 1.0) && !sampled(0, 0.0));
}

type Arrived = (HeaderMap, ExportRequest);

/// A collector: its address, and what it receives.
async fn collector() -> (String, mpsc::UnboundedReceiver<Arrived>) {
    #[derive(Clone)]
    struct Export(mpsc::UnboundedSender<Arrived>);
    impl tonic::server::UnaryService<ExportRequest> for Export {
        type Response = ExportResponse;
        type Future = std::future::Ready<Result<Response<ExportResponse>, Answer>>;
        fn call(&mut self, request: Request<ExportRequest>) -> Self::Future {
            let (metadata, _, message) = request.into_parts();
            let _ = self.0.send((metadata.into_headers(), message));
            std::future::ready(Ok(Response::new(ExportResponse {})))
        }
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("bound").to_string();
    let (sender, arrived) = mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let export = Export(sender.clone());
            let service =
                hyper::service::service_fn(move |request: http::Request<hyper::body::Incoming>| {
                    assert_eq!(request.uri().path(), wire::EXPORT);
                    let export = export.clone();
                    async move {
                        let mut grpc =
                            tonic::server::Grpc::new(
                                ProstCodec::<ExportResponse, ExportRequest>::default(),
                            );
                        Ok::<_, Infallible>(grpc.unary(export, request).await)
                    }
                });
            let http =
                hyper::server::conn::http2::Builder::new(hyper_util::rt::TokioExecutor::new());
            tokio::spawn(http.serve_connection(hyper_util::rt::TokioIo::new(stream), service));
        }
    });
    (address, arrived)
}

fn work() -> impl Future<Output = ()> {
    let client = || {
        tracing::trace_span!(
            "call",
            "otel.name" = "List pods",
            "otel.kind" = "client",
            code = field::Empty,
            error = field::Empty
        )
    };
    async move {
        let call = client();
        call.record("code", 503_u64);
        call.record("error", "too busy");
        std::future::ready(()).instrument(call).await;
    }
    .instrument(tracing::error_span!(
        "look",
        application = "web",
        hard = true
    ))
}

#[tokio::test]
async fn spans_arrive_at_a_collector_with_what_belongs_to_them() {
    let (address, mut arrived) = collector().await;
    let (traces, layer) = Traces::new();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    // No one wants them yet.
    work().await;
    let line = [
        format!("--otlp-address={address}"),
        "--otlp-headers=authorization=Bearer x".into(),
        "--otlp-attrs=env:test".into(),
    ];
    let target = target(&line.iter().map(String::as_str).collect::<Vec<_>>(), &[])
        .expect("fine")
        .expect("an address");
    traces.send_to(&target).expect("it begins");
    work().await;
    let (headers, message) = timeout(Duration::from_secs(10), arrived.recv())
        .await
        .expect("in time")
        .expect("a message");
    assert_eq!(headers["authorization"], "Bearer x");
    let [of_us] = message.resource_spans.as_slice() else {
        panic!("{message:?}")
    };
    let text = |key: &str, value: &str| KeyValue::new(key, Value::Text(value.into()));
    assert_eq!(
        of_us.resource.clone().expect("there is one").attributes,
        [
            text("env", "test"),
            text("service.name", "argocd-controller")
        ]
    );
    let [call, look] = of_us.scope_spans[0].spans.as_slice() else {
        panic!("{message:?}")
    };
    assert_eq!(
        (look.name.as_str(), look.kind(), look.parent_span_id.len()),
        ("look", Kind::Internal, 0)
    );
    assert_eq!(
        look.attributes,
        [
            text("application", "web"),
            KeyValue::new("hard", Value::Bool(true))
        ]
    );
    assert_eq!(
        (call.name.as_str(), call.kind(), &call.parent_span_id),
        ("List pods", Kind::Client, &look.span_id)
    );
    assert_eq!(call.attributes, [KeyValue::new("code", Value::Int(503))]);
    assert_eq!(
        call.status,
        Some(Status {
            code: 2,
            message: "too busy".into()
        })
    );
    assert_eq!(
        (call.trace_id.len(), call.span_id.len(), &call.trace_id),
        (16, 8, &look.trace_id)
    );
    assert!(
        look.start > 1_700_000_000_000_000_000
            && look.start <= call.start
            && call.start <= call.end
            && call.end <= look.end
    );
}

#[tokio::test]
async fn a_collector_that_is_away_holds_nothing_up() {
    // It accepts connections, but never responds.
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = format!("--otlp-address={}", listener.local_addr().expect("bound"));
    let (traces, layer) = Traces::new();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    traces
        .send_to(&target(&[&address], &[]).expect("fine").expect("an address"))
        .expect("it begins");
    let began = Instant::now();
    for _ in 0..2 * WAITING {
        work().await;
    }
    assert!(
        began.elapsed() < Duration::from_secs(5),
        "{:?}",
        began.elapsed()
    );
    let waiting = traces.sink.get().expect("it sends").spans.capacity();
    assert!(waiting < WAITING, "{waiting}");
}

#[tokio::test]
async fn a_trace_goes_on_from_one_program_to_the_next() {
    const TRACE: u128 = 0x0af7_6519_16cd_43dd_8448_eb21_1c80_319c;
    let (address, mut arrived) = collector().await;
    let (traces, layer) = Traces::new();
    let _guard = tracing::subscriber::set_default(tracing_subscriber::registry().with(layer));
    assert_eq!(TraceContext::here(), None);
    traces
        .send_to(
            &target(&[&format!("--otlp-address={address}")], &[])
                .expect("fine")
                .expect("an address"),
        )
        .expect("it begins");
    let asked = |header: Option<String>| {
        let span = tracing::trace_span!("request", traceparent = header.as_deref());
        span.in_scope(|| tracing::trace_span!("call").in_scope(TraceContext::here))
            .expect("it is traced")
    };
    let from = |sampled| {
        Some(
            TraceContext {
                trace: TRACE,
                span: 7,
                sampled,
            }
            .to_string(),
        )
    };
    let unsent = asked(from(false));
    assert_eq!(
        (unsent.trace, unsent.sampled),
        (TRACE, false),
        "who asks has decided"
    );
    let alone = asked(Some("broken".into()));
    assert!(alone.sampled && alone.trace != TRACE);
    let told = asked(from(true));
    assert_eq!((told.trace, told.sampled), (TRACE, true));
    let mut spans = Vec::new();
    while spans.len() < 4 {
        let (_, message) = timeout(Duration::from_secs(10), arrived.recv())
            .await
            .expect("in time")
            .expect("a message");
        spans.extend(
            message
                .resource_spans
                .into_iter()
                .flat_map(|r| r.scope_spans)
                .flat_map(|s| s.spans),
        );
    }
    let [_, _, call, request] = spans.as_slice() else {
        panic!("{spans:?}")
    };
    assert_eq!(
        (&request.trace_id, &request.parent_span_id),
        (&TRACE.to_be_bytes().to_vec(), &7_u64.to_be_bytes().to_vec())
    );
    assert_eq!(
        (&call.parent_span_id, &call.span_id),
        (&request.span_id, &told.span.to_be_bytes().to_vec())
    );
    assert!(request.attributes.is_empty(), "{request:?}");
}
