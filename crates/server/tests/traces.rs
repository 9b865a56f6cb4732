//! A call's span belongs to the trace in the request's header.

use crate::common;

use bytes::Bytes;
use common::World;
use http::{Method, Request};
use http_body_util::Full;
use std::{
    fmt::Debug,
    sync::{Arc, Mutex},
};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

const TRACE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

/// The trace field of each request span, with the span's name.
#[derive(Clone, Default)]
struct Said(Arc<Mutex<Vec<(String, String)>>>);

/// Fields by name.
#[derive(Default)]
struct Fields(String, String);

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        match field.name() {
            "otel.name" => value.clone_into(&mut self.0),
            "traceparent" => value.clone_into(&mut self.1),
            _ => {}
        }
    }

    fn record_debug(&mut self, _: &tracing::field::Field, _: &dyn Debug) {}
}

impl<S: tracing::Subscriber> Layer<S> for Said {
    fn on_new_span(
        &self,
        attributes: &tracing::span::Attributes<'_>,
        _: &tracing::span::Id,
        _: Context<'_, S>,
    ) {
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        if attributes.metadata().name() == "request" {
            self.0.lock().expect("no panic").push((fields.0, fields.1));
        }
    }
}

#[tokio::test]
async fn a_call_belongs_to_the_trace_of_whoever_asks() {
    let (world, said) = (World::start().await, Said::default());
    let _guard =
        tracing::subscriber::set_default(tracing_subscriber::registry().with(said.clone()));
    let grpc = [("content-type", "application/grpc-web+proto")];
    for (path, method, headers, body) in [
        ("/api/version", Method::GET, &[][..], &b""[..]),
        (
            "/version.VersionService/Version",
            Method::POST,
            &grpc[..],
            &[0, 0, 0, 0, 0][..],
        ),
    ] {
        for trace in [None, Some(TRACE)] {
            let mut request = Request::builder().method(method.clone()).uri(path);
            for (name, value) in headers
                .iter()
                .copied()
                .chain(trace.map(|trace| ("traceparent", trace)))
            {
                request = request.header(name, value);
            }
            world
                .send(
                    request
                        .body(Full::new(Bytes::copy_from_slice(body)))
                        .expect("a request"),
                )
                .await;
        }
    }
    let name = || "version.VersionService/Version".to_owned();
    let expected = ["", TRACE, "", TRACE].map(|trace| (name(), trace.to_owned()));
    assert_eq!(*said.0.lock().expect("no panic"), expected);
}
