//! `/extensions/NAME/…`: requests that are passed on to the services of argocd-cm's
//! `extension.config`. Main function: [`handle`].
//!
//! A service gets what the browser sent, without the session, and who the caller is. Headers that
//! say so are this server's alone: those of a browser are dropped.

use super::{guard, is_label, is_subdomain, refused};
use crate::{
    access::{Access, Action, Ask, Guard, Resource, app_of_page},
    extension_settings::Service,
    services::application::validate::destination_permitted,
    state::State,
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts,
};
use http_body_util::{BodyExt as _, Limited};
use reqwest::{Client, Url, redirect::Policy};
use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};
use tiphys_api::Application;
use tiphys_rpc::Source;
use tonic::body::Body;

pub const PREFIX: &str = "/extensions";
const ACCESS: Access = Access::Asks {
    always: &[
        Ask(Resource::Applications, Action::Get),
        Ask(Resource::Extensions, Action::Invoke),
    ],
    sometimes: &[],
};
const APPLICATION: &str = "Argocd-Application-Name";
const PROJECT: &str = "Argocd-Project-Name";
const MAX_REQUEST: usize = 16 << 20;
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a service may be silent.
const READ_TIMEOUT: Duration = Duration::from_secs(60);

/// Headers of one connection, those with the session, and those that speak for this server.
const KEPT_BACK: [&str; 18] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "upgrade",
    "keep-alive",
    "te",
    "authorization",
    "cookie",
    "token",
    "forwarded",
    "x-forwarded-for",
    "argocd-namespace",
    "argocd-target-cluster-url",
    "argocd-target-cluster-name",
    "argocd-username",
    "argocd-user-id",
    "argocd-user-groups",
];

/// Whether a path is an extension's.
pub fn is_path(path: &str) -> bool {
    let rest = path.strip_prefix(PREFIX);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Passes a request on.
pub async fn handle(state: Arc<State>, request: Request<Body>) -> Response<Body> {
    if request.uri().path() == PREFIX {
        let to = format!("{PREFIX}/");
        return tiphys_rpc::redirect(StatusCode::TEMPORARY_REDIRECT, &to);
    }
    let (parts, body) = request.into_parts();
    let answer = match guard(&state, &parts, ACCESS).await {
        Ok(guard) => passed_on(&state, &guard, parts, body).await,
        Err(refusal) => Err(refusal),
    };
    answer.unwrap_or_else(|refusal| refusal)
}

async fn passed_on(
    state: &State,
    guard: &Guard,
    parts: Parts,
    body: Body,
) -> Result<Response<Body>, Response<Body>> {
    let bad = |why: &str| refused(StatusCode::BAD_REQUEST, why);
    let rest = parts.uri.path().trim_start_matches(PREFIX);
    let rest = rest.strip_prefix('/').unwrap_or(rest);
    let (name, below) = rest.split_once('/').unwrap_or((rest, ""));
    let (name, below) = (name.to_owned(), below.to_owned());
    if name.is_empty() {
        return Err(bad("Invalid URL: extension name must be provided"));
    }
    let asked = asked(&parts.headers).map_err(|why| bad(&format!("Invalid headers: {why}")))?;
    let app = permitted(state, guard, &asked, &name).await?;
    let settings = state.settings.get().await.map_err(|e| {
        tracing::error!(error = e.message, "The settings cannot be read");
        refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the settings cannot be read",
        )
    })?;
    let extensions = settings.extensions.as_ref().map_err(|fault| {
        tracing::error!(%fault, "No extension can be used");
        refused(
            StatusCode::INTERNAL_SERVER_ERROR,
            "the extensions' setting is not valid",
        )
    })?;
    let backend = extensions.0.get(&name);
    let backend = backend.ok_or_else(|| refused(StatusCode::NOT_FOUND, "Extension not found"))?;
    let service = backend.service(&app.spec.destination);
    let service = service.ok_or_else(|| bad("invalid extension"))?;
    let unreachable = |e: &dyn std::fmt::Display| {
        tracing::warn!(extension = name, error = %e, "An extension's service does not answer");
        refused(
            StatusCode::BAD_GATEWAY,
            "the extension's service does not answer",
        )
    };
    let url = target(&service.url, &below, parts.uri.query());
    let url = url.ok_or_else(|| bad("invalid extension"))?;
    let headers = headers(state, guard, &app, &parts, service);
    let body = Limited::new(body, MAX_REQUEST).collect().await;
    let body =
        body.map_err(|_| refused(StatusCode::PAYLOAD_TOO_LARGE, "the request is too large"))?;
    let client = CLIENT.as_ref().map_err(|e| unreachable(e))?;
    let sent = client
        .request(parts.method, url)
        .headers(headers)
        .body(body.to_bytes())
        .send();
    let answer = sent.await.map_err(|e| unreachable(&e.without_url()))?;
    Ok(streamed(answer))
}

/// What a request names: namespace and name of the Application, and its project.
struct Asked {
    namespace: String,
    name: String,
    project: String,
}

fn asked(headers: &HeaderMap) -> Result<Asked, String> {
    let value = |name: &str| {
        let value = headers.get(name).and_then(|v| v.to_str().ok());
        let value = value.filter(|v| !v.is_empty());
        value.ok_or_else(|| format!("header {name:?} must be provided"))
    };
    let application = value(APPLICATION)?;
    let parts: Vec<&str> = application.split(':').collect();
    let [namespace, name] = parts[..] else {
        return Err(format!(
            "error getting app details: invalid value for {APPLICATION:?} header: \
             expected format: <namespace>:<app-name>"
        ));
    };
    if !is_label(namespace) {
        return Err("invalid value for namespace".to_owned());
    }
    if !is_subdomain(name) {
        return Err("invalid value for application name".to_owned());
    }
    let project = value(PROJECT)?;
    if !is_subdomain(project) {
        return Err("invalid value for project name".to_owned());
    }
    Ok(Asked {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        project: project.to_owned(),
    })
}

/// The Application, if the caller may see it and call the extension, and its project permits where
/// it is deployed to. One answer for every reason: it tells nothing of what is there.
async fn permitted(
    state: &State,
    guard: &Guard,
    asked: &Asked,
    extension: &str,
) -> Result<Application, Response<Body>> {
    let refused = || refused(StatusCode::UNAUTHORIZED, "Unauthorized extension request");
    let at = (asked.namespace.as_str(), asked.name.as_str());
    let invoke = (Ask(Resource::Extensions, Action::Invoke), Some(extension));
    let app = app_of_page(&state.reach, guard, at, &asked.project, invoke).await;
    let Ok(Some(app)) = app else {
        return Err(refused());
    };
    let project = state.reach.project_of(&app).await.map_err(|_| refused())?;
    match destination_permitted(state, &app, &project).await {
        Ok(true) => Ok(app.into_inner()),
        _ => Err(refused()),
    }
}

/// Where a request goes: the extension's URL, whose own path is not used, as in Argo CD.
fn target(service: &str, below: &str, query: Option<&str>) -> Option<Url> {
    let mut url = Url::parse(service).ok()?;
    url.set_path(&format!("/{below}"));
    url.set_query(query);
    Some(url)
}

fn headers(
    state: &State,
    guard: &Guard,
    app: &Application,
    parts: &Parts,
    service: &Service,
) -> HeaderMap {
    let mut headers = parts.headers.clone();
    for name in KEPT_BACK {
        headers.remove(name);
    }
    let mut set = |name: &'static str, value: &str| {
        if let Ok(value) = HeaderValue::from_str(value)
            && !value.is_empty()
        {
            headers.insert(name, value);
        }
    };
    let destination = &app.spec.destination;
    set("argocd-namespace", &state.options.namespace);
    set("argocd-target-cluster-name", &destination.name);
    set("argocd-target-cluster-url", &destination.server);
    if let Some(claims) = &guard.caller().claims {
        set("argocd-user-id", claims.account());
        set("argocd-username", claims.display_name());
        if !claims.is_local() {
            set(
                "argocd-user-groups",
                &state.enforcer.groups(claims).join(","),
            );
        }
    }
    let source = parts.extensions.get::<Source>().copied();
    set("x-forwarded-for", &source.unwrap_or_default().0.to_string());
    let host = parts
        .headers
        .get(header::HOST)
        .and_then(|h| h.to_str().ok());
    set("x-forwarded-host", host.unwrap_or_default());
    set(
        "x-forwarded-proto",
        if state.options.secure_cookie {
            "https"
        } else {
            "http"
        },
    );
    for header in &service.headers {
        if let (Ok(name), Ok(value)) = (
            HeaderName::try_from(&*header.name),
            HeaderValue::try_from(&*header.value),
        ) {
            headers.insert(name, value);
        }
    }
    headers
}

static CLIENT: LazyLock<Result<Client, reqwest::Error>> = LazyLock::new(|| {
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(Policy::none())
        .connect_timeout(CONNECT_TIMEOUT)
        .read_timeout(READ_TIMEOUT)
        .build()
});

/// The service's answer, as it comes.
fn streamed(mut answer: reqwest::Response) -> Response<Body> {
    let status = answer.status();
    let mut headers = std::mem::take(answer.headers_mut());
    for name in KEPT_BACK {
        headers.remove(name);
    }
    let frames = futures::stream::unfold(answer, |mut answer| async move {
        let chunk = answer.chunk().await.transpose()?;
        let frame = chunk.map(http_body::Frame::data);
        Some((
            frame.map_err(|e| tonic::Status::internal(e.to_string())),
            answer,
        ))
    });
    let body = Body::new(http_body_util::StreamBody::new(frames));
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = headers;
    response
}
