//! What the server says of its own API: OpenAPI for REST, and the services of gRPC.

use crate::common;

use bytes::Bytes;
use common::World;
use http::{Method, Request};
use http_body_util::Full;
use serde_json::json;
use tiphys_server::Options;

const DOCUMENT: &str = "/swagger.json";
const PAGE: &str = "/swagger-ui";
const CALL: &str = "<code>GET /api/v1/applications</code>";

#[tokio::test]
async fn everybody_may_read_what_the_api_can_do() {
    let world = World::start().await;
    let (status, document) = world.rest_as("", Method::GET, DOCUMENT, None).await;
    assert_eq!((status, &document["swagger"]), (200, &json!("2.0")));
    assert!(document["paths"]["/api/v1/applications"]["get"].is_object());
    let (status, page) = world.rest_as("", Method::GET, PAGE, None).await;
    let page = page.as_str().unwrap_or_default();
    assert_eq!((status, page.contains(CALL)), (200, true), "{page}");
    for (path, kind) in [(DOCUMENT, "application/json"), (PAGE, "text/html")] {
        let request = Request::get(path).body(Full::new(Bytes::new()));
        let answer = world.send(request.expect("a request")).await;
        let header = |name: &str| answer.headers()[name].to_str().expect("text").to_owned();
        assert!(header("content-type").starts_with(kind), "{path}");
        assert_eq!(header("x-frame-options"), "DENY", "{path}");
        assert!(header("content-security-policy").contains("frame-ancestors 'none'"));
    }
}

#[tokio::test]
async fn a_server_may_be_told_to_describe_nothing() {
    let options = Options {
        swagger: false,
        ..Options::default()
    };
    let world = World::start().await.again(options).await;
    let (_, answer) = world.rest_as("", Method::GET, DOCUMENT, None).await;
    assert!(answer["swagger"].is_null(), "{answer}");
    let (_, answer) = world.rest_as("", Method::GET, PAGE, None).await;
    assert!(
        !answer.to_string().contains("/api/v1/applications"),
        "{answer}"
    );
}

/// A question of server reflection, and what is answered, as far as it is a list of services.
#[derive(Clone, PartialEq, prost::Message)]
struct Ask {
    #[prost(string, optional, tag = "7")]
    services: Option<String>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Told {
    #[prost(message, optional, tag = "6")]
    services: Option<Services>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Services {
    #[prost(message, repeated, tag = "1")]
    all: Vec<Service>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Service {
    #[prost(string, tag = "1")]
    name: String,
}

#[tokio::test]
async fn who_is_signed_in_may_list_the_services() {
    let world = World::start().await;
    let mut client = tonic::client::Grpc::new(world.channel().await);
    for token in ["", world.token.as_str()] {
        client.ready().await.expect("a connection");
        let ask = Ask {
            services: Some(String::new()),
        };
        let mut request = tonic::Request::new(tokio_stream::once(ask));
        if !token.is_empty() {
            let token = token.parse().expect("a header");
            request.metadata_mut().insert("token", token);
        }
        let path = http::uri::PathAndQuery::from_static(
            "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
        );
        let codec = tonic_prost::ProstCodec::<Ask, Told>::default();
        let answer = client.streaming(request, path, codec).await;
        if token.is_empty() {
            let refused = answer.expect_err("nobody may");
            assert_eq!(refused.code(), tonic::Code::Unauthenticated);
            continue;
        }
        let told = answer.expect("an answer").into_inner().message().await;
        let services = told.expect("a message").and_then(|told| told.services);
        let services = services.unwrap_or_default().all;
        for name in [
            "application.ApplicationService",
            "cluster.SettingsService",
            "grpc.reflection.v1alpha.ServerReflection",
        ] {
            assert!(
                services.iter().any(|s| s.name == name),
                "{name}: {services:?}"
            );
        }
    }
}
