//! The steps between the socket and the router: authentication, a limit on concurrent requests, a
//! time limit, and compression of large responses.
//!
//! Main function: [`guarded`]. It reads only the URL and headers; a request that cannot be admitted
//! is rejected before its body is read.

use crate::auth::{Auth, Caller};
use crate::rbac::Attributes;
use crate::status::Status;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::middleware::{self, Next};
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_LENGTH, HeaderName, HeaderValue,
    RETRY_AFTER, VARY,
};
use http::{HeaderMap, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The limits of requests; the defaults are those of kube-apiserver.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Concurrent requests. Watches and the administrator's requests do not count.
    pub requests: usize,
    /// How long a request waits for a free slot before it is rejected with 429.
    pub queue: Duration,
    /// The time limit of a request other than a watch, including its body.
    pub request: Duration,
    /// The number of connections, and how long a client may keep an idle one.
    pub connections: tiphys_listen::Limits,
}

impl Default for Limits {
    fn default() -> Self {
        let seconds = Duration::from_secs;
        let connections = tiphys_listen::Limits {
            headers: seconds(32),
            body: seconds(60),
            ..tiphys_listen::Limits::default()
        };
        Self {
            requests: 600,
            queue: seconds(15),
            request: seconds(60),
            connections,
        }
    }
}

/// The minimum size of responses that are compressed for clients that accept it.
const COMPRESSED: u64 = 128 * 1024;

struct Edge {
    auth: Arc<Auth>,
    limits: Limits,
    places: Semaphore,
}

/// The router for clients.
pub fn guarded(router: Router, auth: Arc<Auth>, limits: Limits) -> Router {
    let edge = Edge {
        auth,
        limits,
        places: Semaphore::new(limits.requests),
    };
    router.layer(middleware::from_fn_with_state(Arc::new(edge), handle))
}

async fn handle(State(edge): State<Arc<Edge>>, request: Request, next: Next) -> Response<Body> {
    let zips = accepts_gzip(request.headers());
    let mut response = answer(&edge, request, next).await;
    if zips {
        response = compressed(response).await;
    }
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    if let Ok(id) = HeaderValue::from_str(&uuid::Uuid::new_v4().to_string()) {
        headers.insert(HeaderName::from_static("audit-id"), id);
    }
    response
}

async fn answer(edge: &Edge, request: Request, next: Next) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let caller = match edge.auth.admit(&parts) {
        Ok(caller) => caller,
        Err(status) => return crate::http::failure(&status),
    };
    let asked = Attributes::of(&parts);
    let place = match place(edge, &caller, &asked).await {
        Ok(place) => place,
        Err(response) => return *response,
    };
    parts.extensions.insert(caller);
    let request = Request::from_parts(parts, body);
    if is_long(&asked) {
        return next.run(request).await;
    }
    let answered = timeout(edge.limits.request, next.run(request)).await;
    drop(place);
    answered.unwrap_or_else(|_| {
        let text = "Timeout: request did not complete within the allotted timeout";
        crate::http::failure(&Status::new(504, "Timeout", text).with_causes(Vec::new()))
    })
}

/// Requests without a predictable end.
fn is_long(asked: &Attributes) -> bool {
    asked.verb == "watch"
        || matches!(
            asked.subresource.as_str(),
            "log" | "exec" | "attach" | "portforward" | "proxy"
        )
}

/// Waits for a slot among the concurrent requests.
async fn place<'a>(
    edge: &'a Edge,
    caller: &Caller,
    asked: &Attributes,
) -> Result<Option<tokio::sync::SemaphorePermit<'a>>, Box<Response<Body>>> {
    if is_long(asked) || caller.0.is_master() {
        return Ok(None);
    }
    match timeout(edge.limits.queue, edge.places.acquire()).await {
        Ok(place) => Ok(place.ok()),
        Err(_) => {
            let mut response =
                Response::new(Body::from("Too many requests, please try again later.\n"));
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            response
                .headers_mut()
                .insert(RETRY_AFTER, HeaderValue::from_static("1"));
            Err(Box::new(response))
        }
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let words = headers
        .get_all(ACCEPT_ENCODING)
        .iter()
        .filter_map(|v| v.to_str().ok())
        .flat_map(|v| v.split(','));
    words
        .map(|w| w.split(';').next().unwrap_or("").trim())
        .any(|w| w == "gzip")
}

/// Compresses a response with gzip if it is complete and large. Streams are not compressed.
async fn compressed(response: Response<Body>) -> Response<Body> {
    let large = response
        .body()
        .size_hint()
        .exact()
        .is_some_and(|size| size >= COMPRESSED);
    if !large || response.headers().contains_key(CONTENT_ENCODING) {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let Ok(collected) = body.collect().await else {
        return crate::http::failure(&Status::internal("the answer could not be read"));
    };
    let plain = collected.to_bytes();
    let input = plain.clone();
    let zipped = tokio::task::spawn_blocking(move || zip(&input)).await;
    let Ok(Ok(zipped)) = zipped else {
        return Response::from_parts(parts, Body::from(plain));
    };
    parts.headers.remove(CONTENT_LENGTH);
    parts
        .headers
        .insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    parts
        .headers
        .append(VARY, HeaderValue::from_static("Accept-Encoding"));
    Response::from_parts(parts, Body::from(zipped))
}

/// The fastest level, like the real server's: the network is not a bottleneck here.
fn zip(plain: &[u8]) -> std::io::Result<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(plain.len() / 4), Compression::fast());
    encoder.write_all(plain)?;
    Ok(encoder.finish()?.into())
}
