//! The target for what comes from a plugin's side of its stream: frames with messages, written by a
//! server on a unix socket, read by the client of `repo` and rendered.
//!
//! Main function: [`run`]; what is nested is [`NESTED`]. Everything is made anew for each input, so
//! that no input depends on those before it.

use super::{
    nested::{Nested, nest},
    targets::holds,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Request, Response};
use http_body_util::{BodyExt as _, Full, combinators::BoxBody};
use hyper::{body::Incoming, server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde_json::{Value, json};
use std::{convert::Infallible, path::Path, sync::Arc, time::Duration};
use tiphys_repo::{
    ErrorKind, ManifestRequest, PluginSettings, RepoAccess, RepoError, RepoOptions, Repos,
};
use tokio::net::UnixListener;

/// For each call. The server always ends its answers, so nothing comes near it.
const PATIENCE: Duration = Duration::from_secs(20);
/// The budget of a render has as many objects.
const MOST_OBJECTS: usize = 50_000;

/// `[check, match, generate, announce, [status, text]]`, where the first four are what the server
/// answers to the calls of that name: `[[flag, length or null, message], ...]`, or a text: the
/// bytes in base64.
pub fn run(input: &[u8]) -> Result<(), String> {
    let Ok(Value::Array(parts)) = serde_json::from_slice::<Value>(input) else {
        return Ok(());
    };
    let dir = tempfile::tempdir().map_err(|e| e.to_string())?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|e| e.to_string())?;
    runtime.block_on(asked(dir.path(), Answers::of(&parts)))
}

/// What a plugin answers: to each call the bytes of its stream, and how it ends.
struct Answers {
    check: Bytes,
    matches: Bytes,
    generate: Bytes,
    announce: Bytes,
    trailers: HeaderMap,
}

impl Answers {
    fn of(parts: &[Value]) -> Self {
        let stream = |index: usize| Bytes::from(parts.get(index).map(frames).unwrap_or_default());
        let mut trailers = HeaderMap::new();
        for (index, name) in ["grpc-status", "grpc-message"].into_iter().enumerate() {
            let text = parts.get(4).and_then(|status| status.get(index)?.as_str());
            // A server cannot send what no header may hold.
            if let Some(Ok(value)) = text.map(HeaderValue::from_str) {
                trailers.insert(name, value);
            }
        }
        Self {
            check: stream(0),
            matches: stream(1),
            generate: stream(2),
            announce: stream(3),
            trailers,
        }
    }

    async fn answer(&self, request: Request<Incoming>) -> Response<BoxBody<Bytes, Infallible>> {
        let call = request.uri().path().rsplit('/').next().unwrap_or_default();
        let frames = match call {
            "CheckPluginConfiguration" => self.check.clone(),
            "MatchRepository" => self.matches.clone(),
            "GenerateManifest" => self.generate.clone(),
            _ => self.announce.clone(),
        };
        // To the end of what the client sends: an answer before that would reset the stream, at
        // another moment each time.
        let _ = request.into_body().collect().await;
        let trailers = std::future::ready(Some(Ok(self.trailers.clone())));
        let mut response = Response::new(Full::new(frames).with_trailers(trailers).boxed());
        let grpc = HeaderValue::from_static("application/grpc");
        response.headers_mut().insert("content-type", grpc);
        response
    }
}

async fn serve(listener: UnixListener, answers: Arc<Answers>) {
    while let Ok((stream, _)) = listener.accept().await {
        let answers = Arc::clone(&answers);
        let service = service_fn(move |request: Request<Incoming>| {
            let answers = Arc::clone(&answers);
            async move { Ok::<_, Infallible>(answers.answer(request).await) }
        });
        let connection = http2::Builder::new(TokioExecutor::new());
        tokio::spawn(connection.serve_connection(TokioIo::new(stream), service));
    }
}

/// Asks the plugin in every way that there is.
async fn asked(dir: &Path, answers: Answers) -> Result<(), String> {
    let (repository, sockets) = (dir.join("repository"), dir.join("sockets"));
    std::fs::create_dir(&sockets).map_err(|e| e.to_string())?;
    let files = [("app/a.txt", "a")];
    let sha = Repos::init_example(&repository, files).map_err(|e| e.to_string())?;
    let listener = UnixListener::bind(sockets.join("p.sock")).map_err(|e| e.to_string())?;
    let serving = tokio::spawn(serve(listener, Arc::new(answers)));
    let options = RepoOptions {
        render_timeout: PATIENCE,
        plugins: PluginSettings {
            dir: Some(sockets),
            ask_pass: dir.join("ask-pass.sock"),
            ..PluginSettings::default()
        },
        ..RepoOptions::default()
    };
    let repos = Repos::with_options(dir.join("cache"), options);
    let request = |plugin: Value| {
        let mut source = json!({"repoURL": "https://git.example.com/r", "path": "app"});
        source["plugin"] = plugin;
        let source = serde_json::from_value(source).map_err(|e| e.to_string())?;
        Ok::<_, String>(ManifestRequest {
            access: RepoAccess::public(repository.display().to_string()),
            source,
            sha: sha.clone(),
            app_name: "shop".to_owned(),
            ..ManifestRequest::default()
        })
    };
    let named = || request(json!({"name": "p"}));
    for request in [named()?, request(Value::Null)?] {
        let rendered = expected(repos.manifests(request).await)?;
        holds(
            rendered
                .is_none_or(|made| made.errors.is_empty() && made.objects.len() <= MOST_OBJECTS),
            "an answer is used as a whole, within the budget",
        )?;
    }
    expected(repos.details(named()?).await)?;
    serving.abort();
    Ok(())
}

/// A failure is a valid result, too, but a panic of ours is none.
fn expected<T>(outcome: Result<T, RepoError>) -> Result<Option<T>, String> {
    match outcome {
        Ok(made) => Ok(Some(made)),
        Err(error) if error.kind() == ErrorKind::Internal => {
            Err(format!("an internal error: {error}"))
        }
        Err(error) => {
            holds(!error.to_string().is_empty(), "an error says something").map(|()| None)
        }
    }
}

/// The bytes of an answer.
fn frames(answer: &Value) -> Vec<u8> {
    match answer {
        Value::String(text) => decoded(text),
        Value::Array(frames) => frames.iter().flat_map(frame).collect(),
        _ => Vec::new(),
    }
}

fn decoded(text: &str) -> Vec<u8> {
    STANDARD
        .decode(text)
        .unwrap_or_else(|_| text.as_bytes().to_vec())
}

/// One frame of gRPC, whose length may be wrong.
fn frame(frame: &Value) -> Vec<u8> {
    let message = frame.get(2).map(message).unwrap_or_default();
    let number = |index: usize| frame.get(index).and_then(Value::as_u64);
    let flag = number(0).and_then(|flag| u8::try_from(flag).ok());
    let length = number(1).unwrap_or(message.len() as u64);
    let mut bytes = vec![flag.unwrap_or_default()];
    bytes.extend(u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    bytes.extend(message);
    bytes
}

/// `[[number, value], ...]`, or the bytes in base64.
fn message(message: &Value) -> Vec<u8> {
    match message {
        Value::String(text) => decoded(text),
        Value::Array(fields) => fields.iter().flat_map(field).collect(),
        _ => Vec::new(),
    }
}

/// A field: a list is a message, a text is bytes, everything else a number.
fn field(field: &Value) -> Vec<u8> {
    let number = field.get(0).and_then(Value::as_u64).unwrap_or(1) << 3;
    let content = match field.get(1) {
        Some(inner) if inner.is_array() => message(inner),
        Some(Value::String(text)) => text.as_bytes().to_vec(),
        other => {
            let value = match other {
                Some(Value::Bool(value)) => u64::from(*value),
                other => other.and_then(Value::as_u64).unwrap_or_default(),
            };
            return [varint(number), varint(value)].concat();
        }
    };
    [varint(number | 2), varint(content.len() as u64), content].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while number > 0x7f {
        bytes.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// An input whose plugin generates this; it takes every source that names it.
fn generating(answer: &Value) -> String {
    json!([[[0, null, []]], [], answer, [], ["0", ""]]).to_string()
}

fn printing(manifest: String) -> String {
    generating(&json!([[0, null, [[1, manifest]]]]))
}

pub const NESTED: &[Nested] = &[
    |n| printing(nest("{\"kind\": ", "1", "}", n)),
    |n| {
        let list = nest("[", "1", "]", n);
        printing(format!(
            "apiVersion: v1\nkind: X\nmetadata: {{name: x}}\na: {list}\n"
        ))
    },
    // Groups in each other, which no message has: they are skipped.
    |n| {
        let groups = [vec![0x1b_u8; n], vec![0x1c; n]].concat();
        generating(&json!([[0, null, STANDARD.encode(groups)]]))
    },
    // Parameters that are messages in each other, of which there is one level.
    |n| {
        let mut bytes = Vec::new();
        for _ in 0..n.min(1_000) {
            bytes = [vec![0x0a], varint(bytes.len() as u64), bytes].concat();
        }
        json!([
            [[0, null, []]],
            [],
            [],
            [[0, null, STANDARD.encode(bytes)]],
            ["0", ""]
        ])
        .to_string()
    },
];
