//! The log of calls: one line for each, with Argo CD's fields, and no secrets.

use crate::{common, sso::Provider};

use bytes::Bytes;
use common::{PASSWORD, World};
use http::{Method, Request};
use http_body_util::Full;
use serde_json::{Value, json};
use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex},
    time::Duration,
};
use tiphys_api::{
    application::ApplicationWatchEvent,
    meta::Empty,
    rpc::{application::ApplicationQuery, version::VersionMessage},
};
use tiphys_server::Options;
use tracing::{Level, subscriber::DefaultGuard};
use tracing_subscriber::{Layer, layer::Context, prelude::*};

const HANGS: Duration = Duration::from_secs(60);

/// A line of our own crates: its level, and its fields.
type Line = (Level, BTreeMap<String, String>);

#[derive(Clone, Default)]
struct Lines(Arc<Mutex<Vec<Line>>>);

#[derive(Default)]
struct Fields(BTreeMap<String, String>);

impl tracing::field::Visit for Fields {
    fn record_str(&mut self, field: &tracing::field::Field, value: &str) {
        self.0.insert(field.name().to_owned(), value.to_owned());
    }

    fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl<S: tracing::Subscriber> Layer<S> for Lines {
    fn on_event(&self, event: &tracing::Event<'_>, _: Context<'_, S>) {
        if !event.metadata().target().starts_with("tiphys") {
            return;
        }
        let mut fields = Fields::default();
        event.record(&mut fields);
        let line = (*event.metadata().level(), fields.0);
        self.0.lock().expect("no panic").push(line);
    }
}

impl Lines {
    /// The lines of calls.
    fn calls(&self) -> Vec<Line> {
        let mut lines = self.0.lock().expect("no panic").clone();
        lines.retain(|(_, fields)| fields.get("message").is_some_and(|m| m == "finished call"));
        lines
    }

    /// Those of a method.
    fn of(&self, method: &str) -> Vec<Line> {
        let mut lines = self.calls();
        lines.retain(|(_, fields)| fields.get("grpc.method").is_some_and(|m| m == method));
        lines
    }

    fn all(&self) -> String {
        format!("{:?}", self.0.lock().expect("no panic"))
    }
}

/// A server that logs calls, and its log.
async fn logging() -> (World, Lines, DefaultGuard) {
    let options = Options {
        log_calls: true,
        ..Options::default()
    };
    let world = World::start().await.again(options).await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    (world, lines, tracing::subscriber::set_default(subscriber))
}

/// The only line, with the fields that are always the same taken out.
fn only(mut lines: Vec<Line>) -> Line {
    assert_eq!(lines.len(), 1, "{lines:?}");
    let (level, mut fields) = lines.remove(0);
    for (name, value) in [
        ("message", "finished call"),
        ("protocol", "grpc"),
        ("system", "grpc"),
        ("span.kind", "server"),
        ("grpc.component", "server"),
        ("peer.address", "127.0.0.1"),
    ] {
        assert_eq!(fields.remove(name).as_deref(), Some(value), "{name}");
    }
    let start = fields.remove("grpc.start_time").expect("it is there");
    let start: jiff::Timestamp = start.parse().expect("a time");
    assert!(start.duration_until(jiff::Timestamp::now()) < jiff::SignedDuration::from_secs(600));
    let took = fields.remove("grpc.time_ms").expect("it is there");
    assert!(took.parse::<f32>().is_ok_and(|ms| ms >= 0.0), "{took}");
    (level, fields)
}

/// The claims in a line, taken out.
fn claims(fields: &mut BTreeMap<String, String>) -> Option<Value> {
    let text = fields.remove("grpc.request.claims")?;
    Some(serde_json::from_str(&text).expect("JSON"))
}

fn fields(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    let owned = |(name, value): &(&str, &str)| ((*name).to_owned(), (*value).to_owned());
    pairs.iter().map(owned).collect()
}

#[tokio::test]
async fn a_call_has_one_line_with_its_claims() {
    let (world, lines, _guard) = logging().await;
    let (status, _) = world.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(status, 200);
    let (level, mut found) = only(lines.of("List"));
    let claims = claims(&mut found).expect("the caller is known");
    assert_eq!(
        (&claims["iss"], &claims["sub"]),
        (&json!("argocd"), &json!("admin"))
    );
    for name in ["exp", "iat", "jti", "nbf"] {
        assert!(!claims[name].is_null(), "{name}: {claims}");
    }
    let expected = fields(&[
        ("grpc.service", "application.ApplicationService"),
        ("grpc.method", "List"),
        ("grpc.method_type", "unary"),
        ("grpc.code", "OK"),
    ]);
    assert_eq!((level, found), (Level::INFO, expected));

    let version = "/version.VersionService/Version";
    let asked = world.grpc::<Empty, VersionMessage>(version, Empty {}).await;
    asked.expect("public");
    let (level, found) = only(lines.of("Version"));
    assert_eq!((level, found["grpc.code"].as_str()), (Level::INFO, "OK"));
    assert!(!lines.all().contains(&world.token), "{}", lines.all());

    // Probes ask every few seconds.
    let before = lines.calls().len();
    world.rest(Method::GET, "/healthz", None).await;
    let health = "/grpc.health.v1.Health/Check";
    let asked = world.grpc::<Empty, Empty>(health, Empty {}).await;
    asked.expect("it serves");
    assert_eq!(lines.calls().len(), before);
}

#[tokio::test]
async fn what_is_refused_is_logged_with_its_code() {
    let (world, lines, _guard) = logging().await;
    let path = "/api/v1/applications/none";
    assert_eq!(world.rest(Method::GET, path, None).await.0, 403);
    let (level, mut found) = only(lines.of("Get"));
    assert!(claims(&mut found).is_some());
    let expected = fields(&[
        ("grpc.service", "application.ApplicationService"),
        ("grpc.method", "Get"),
        ("grpc.method_type", "unary"),
        ("grpc.code", "PermissionDenied"),
        (
            "grpc.error",
            "rpc error: code = PermissionDenied desc = permission denied",
        ),
    ]);
    assert_eq!((level, found), (Level::WARN, expected));

    let path = "/api/v1/projects";
    let stranger = world.rest_as("", Method::GET, path, None).await;
    assert_eq!(stranger.0, 401);
    let (level, mut found) = only(lines.of("List"));
    assert_eq!(claims(&mut found), None);
    assert_eq!(found["grpc.code"], "Unauthenticated");
    assert_eq!(level, Level::INFO);
}

#[tokio::test]
async fn a_stream_is_logged_when_it_ends() {
    let (world, lines, _guard) = logging().await;
    let watch = "/application.ApplicationService/Watch";
    let stream = world
        .grpc_stream::<_, ApplicationWatchEvent>(watch, ApplicationQuery::default())
        .await;
    // What is asked later has ended before.
    world.rest(Method::GET, "/api/v1/applications", None).await;
    assert_eq!(lines.of("List").len(), 1);
    assert_eq!(lines.of("Watch").len(), 0);
    drop(stream);
    let ended = async {
        while lines.of("Watch").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    tokio::time::timeout(HANGS, ended)
        .await
        .expect("it has ended");
    let (level, mut found) = only(lines.of("Watch"));
    assert!(claims(&mut found).is_some());
    let expected = fields(&[
        ("grpc.service", "application.ApplicationService"),
        ("grpc.method", "Watch"),
        ("grpc.method_type", "server_stream"),
        ("grpc.code", "OK"),
    ]);
    assert_eq!((level, found), (Level::INFO, expected));
    let handled = r#"grpc_server_handled_total{grpc_code="OK",grpc_method="Watch",grpc_service="application.ApplicationService",grpc_type="server_stream"} 1"#;
    let text = world.server.metrics();
    assert!(text.lines().any(|line| line == handled), "{text}");
}

#[tokio::test]
async fn no_line_has_a_secret() {
    let (world, lines, _guard) = logging().await;
    let session = |body| world.rest_as("", Method::POST, "/api/v1/session", Some(body));
    let right = json!({"username": "admin", "password": PASSWORD});
    let (status, answer) = session(right).await;
    let token = answer["token"].as_str().expect("a token").to_owned();
    assert_eq!(status, 200);
    let wrong = json!({"username": "admin", "password": "hunter2"});
    assert_eq!(session(wrong).await.0, 401);
    let broken = json!({"username": "admin", "password": {"hunter2": "hunter2"}});
    assert_eq!(session(broken).await.0, 400);
    let change = json!({"currentPassword": PASSWORD, "newPassword": "hunter2"});
    let path = "/api/v1/account/password";
    let short = world.rest_as(&token, Method::PUT, path, Some(change)).await;
    assert!(short.0 >= 400, "{short:?}");
    // Nobody listens there.
    let address = "http://robot:hunter2@127.0.0.1:1/r.git";
    let repository = json!({"repo": address, "password": "hunter2", "type": "git"});
    let path = "/api/v1/repositories";
    world.rest(Method::POST, path, Some(repository)).await;
    let forged = format!("{token}x");
    world.rest_as(&forged, Method::GET, path, None).await;

    let said = lines.all();
    let mut sessions = lines.of("Create");
    sessions.retain(|(_, fields)| fields["grpc.service"] == "session.SessionService");
    let codes = sessions.iter().map(|(_, fields)| &fields["grpc.code"]);
    let codes: Vec<&String> = codes.collect();
    assert_eq!(
        codes,
        ["OK", "Unauthenticated", "InvalidArgument"],
        "{said}"
    );
    assert_eq!(lines.of("UpdatePassword").len(), 1, "{said}");
    let signature = token.rsplit_once('.').expect("a token").1;
    for secret in [
        "hunter2",
        PASSWORD,
        world.token.as_str(),
        token.as_str(),
        signature,
    ] {
        assert!(!said.contains(secret), "{secret}: {said}");
    }
}

async fn log_out(world: &World, token: &str) {
    let cookie = format!("argocd.token={token}");
    let request = Request::get("/auth/logout").header("cookie", cookie);
    let request = request.body(Full::<Bytes>::default());
    let answer = world.send(request.expect("a request")).await;
    assert_eq!(answer.status(), 303);
}

/// Whoever signs out while the token cannot be verified has a session that may go on.
#[tokio::test]
async fn a_session_that_could_not_be_ended_is_told() {
    let provider = Provider::start().await;
    let world = provider.world("enableUserInfoGroups: true\n", &[]).await;
    let lines = Lines::default();
    let subscriber = tracing_subscriber::registry().with(lines.clone());
    let _guard = tracing::subscriber::set_default(subscriber);
    let has_told = || lines.all().contains("A session may go on");
    log_out(&world, &provider.sign(json!({"exp": 1}))).await;
    assert!(!has_told(), "of one that is over");
    // This server has not seen the sign-in, and cannot ask for its groups, which is no reason. Its
    // id cannot be a key of a Secret.
    let token = provider.sign(json!({"jti": "urn:id/1"}));
    log_out(&world, &token).await;
    assert!(!has_told(), "of one without groups");
    let oidc = |change: (&str, &str)| {
        let config = world.store.config.lock().expect("not poisoned")["oidc.config"].clone();
        assert!(config.contains(change.0), "{config}");
        let changed = config.replace(change.0, change.1);
        world.store.configure("oidc.config", &changed);
    };
    oidc(("enableUserInfoGroups: true\n", ""));
    let again = world.again(Options::default()).await;
    let path = "/api/v1/projects";
    let (status, refused) = again.rest_as(&token, Method::GET, path, None).await;
    let said = "invalid session: token is revoked, please re-login";
    assert_eq!((status, refused["error"].as_str()), (401, Some(said)));

    // Nobody listens there.
    let nowhere = "http://127.0.0.1:1";
    oidc(("issuer: http://127.0.0.1:", "issuer: http://127.0.0.1:1 #"));
    let again = world.again(Options::default()).await;
    log_out(&again, &provider.sign(json!({"iss": nowhere}))).await;
    assert!(has_told());
}
