//! `/extensions/NAME/…`: requests that are passed on to the services of argocd-cm's
//! `extension.config`. Main function: [`handle`]; main type: [`Extensions`], the setting.
//!
//! A service gets what the browser sent, without the session, and who the caller is. Headers that
//! say so are this server's alone: those of a browser are dropped.

use super::{guard, is_label, is_subdomain, refused};
use crate::{
    access::{Access, Action, Ask, Guard, Resource, app_of_page},
    referred::Referred,
    server::State,
    services::application::{project_of, validate::destination_permitted},
};
use http::{
    HeaderMap, HeaderName, HeaderValue, Request, Response, StatusCode, header, request::Parts,
};
use http_body_util::{BodyExt as _, Limited};
use reqwest::{Client, Url, redirect::Policy};
use serde::Deserialize;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
    time::Duration,
};
use tiphys_api::{Application, application::ApplicationDestination};
use tiphys_gocompat::yaml;
use tiphys_rpc::Source;
use tonic::body::Body;

pub const PREFIX: &str = "/extensions";
const SETTING: &str = "extension.config";
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

/// The extensions of argocd-cm, by name.
#[derive(Default)]
pub struct Extensions(BTreeMap<String, Backend>);

#[derive(Deserialize, Default)]
#[serde(default)]
struct Backend {
    services: Vec<Service>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Service {
    url: String,
    headers: Vec<Header>,
    cluster: Option<ApplicationDestination>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Header {
    name: String,
    value: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Named {
    name: String,
    backend: Backend,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct All {
    extensions: Vec<Named>,
}

/// What is wrong with the setting.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("argocd-cm: {key}: {why}")]
pub struct ExtensionsFault {
    key: String,
    why: String,
}

/// The keys of argocd-cm with extensions; the name is empty for the one with all.
fn settings(config: &BTreeMap<String, String>) -> impl Iterator<Item = (&str, &str, &str)> {
    config.iter().filter_map(|(key, text)| {
        let name = key.strip_prefix(SETTING)?;
        let name = if name.is_empty() {
            name
        } else {
            name.strip_prefix('.')?
        };
        Some((key.as_str(), name, text.as_str()))
    })
}

fn parsed(text: &str) -> Result<Value, String> {
    let limits = yaml::Limits::default();
    yaml::parse_document(text, &limits, yaml::Duplicates::LastWins).map_err(|e| e.to_string())
}

fn each_text(value: &mut Value, change: &mut impl FnMut(&mut String)) {
    match value {
        Value::String(text) => change(text),
        Value::Array(items) => items.iter_mut().for_each(|item| each_text(item, change)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| each_text(field, change)),
        _ => {}
    }
}

/// The values `$key` and `$secret:key` that the settings refer to.
pub fn references(config: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (_, _, text) in settings(config) {
        if let Ok(mut value) = parsed(text) {
            each_text(&mut value, &mut |text| {
                found.extend(text.strip_prefix('$').map(str::to_owned));
            });
        }
    }
    found
}

impl Extensions {
    /// Reads the setting; `secrets` has what it refers to.
    pub fn read(
        config: &BTreeMap<String, String>,
        secrets: &Referred,
    ) -> Result<Self, ExtensionsFault> {
        let mut all = BTreeMap::new();
        for (key, name, text) in settings(config) {
            let fault = |why: String| ExtensionsFault {
                key: key.to_owned(),
                why,
            };
            let mut value = parsed(text).map_err(fault)?;
            each_text(&mut value, &mut |text| {
                let found = text.strip_prefix('$').and_then(|reference| {
                    let found = secrets.get(reference)?.as_ref();
                    // As in the reference, the text stays then, which may not be meant as one.
                    let found = found.inspect_err(|why| {
                        tracing::warn!(key, "{}", why.of(reference));
                    });
                    found.ok().cloned()
                });
                if let Some(found) = found {
                    *text = found;
                }
            });
            let wrong = |e: serde_json::Error| fault(e.to_string());
            let named = if name.is_empty() {
                let all: All = serde_json::from_value(value).map_err(wrong)?;
                all.extensions
            } else {
                vec![Named {
                    name: name.to_owned(),
                    backend: serde_json::from_value(value).map_err(wrong)?,
                }]
            };
            for extension in named {
                check(&extension).map_err(fault)?;
                let name = extension.name.clone();
                if all.insert(extension.name, extension.backend).is_some() {
                    return Err(fault(format!("there are two extensions {name:?}")));
                }
            }
        }
        Ok(Self(all))
    }
}

fn check(extension: &Named) -> Result<(), String> {
    let name = &extension.name;
    let is_safe = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    if name.is_empty() || !name.chars().all(is_safe) {
        return Err(format!(
            "{name:?} is no name of an extension: letters, digits, - and _"
        ));
    }
    let services = &extension.backend.services;
    if services.is_empty() {
        return Err(format!("extension {name:?} has no backend.services"));
    }
    for service in services {
        let url = Url::parse(&service.url).map_err(|e| format!("{name:?}: url: {e}"))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(format!("{name:?}: url: a service is http:// or https://"));
        }
        let names_one = |c: &ApplicationDestination| !(c.name.is_empty() && c.server.is_empty());
        match &service.cluster {
            None if services.len() > 1 => {
                return Err(format!("{name:?}: each of several services has a cluster"));
            }
            Some(cluster) if !names_one(cluster) => {
                return Err(format!("{name:?}: a cluster has a name or a server"));
            }
            _ => {}
        }
        for header in &service.headers {
            let is_valid = HeaderName::try_from(&*header.name).is_ok()
                && HeaderValue::try_from(&*header.value).is_ok()
                && !header.value.is_empty();
            if !is_valid {
                return Err(format!("{name:?}: header {:?} is not valid", header.name));
            }
        }
    }
    Ok(())
}

impl Backend {
    /// The service for an Application's destination.
    fn service(&self, destination: &ApplicationDestination) -> Option<&Service> {
        if let [only] = &*self.services {
            return Some(only);
        }
        let is_it = |cluster: &ApplicationDestination| {
            let same = |ours: &str, asked: &str| asked.is_empty() || ours == asked;
            same(&cluster.name, &destination.name) && same(&cluster.server, &destination.server)
        };
        let mut services = self.services.iter();
        services.find(|service| service.cluster.as_ref().is_some_and(is_it))
    }
}

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
    let app = app_of_page(state, guard, at, &asked.project, invoke).await;
    let Ok(Some(app)) = app else {
        return Err(refused());
    };
    let project = project_of(state, &app).await.map_err(|_| refused())?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn read(key: &str, text: &str) -> Result<Extensions, ExtensionsFault> {
        let config = BTreeMap::from([(key.to_owned(), text.to_owned())]);
        let secrets = Referred::from([("k".to_owned(), Ok("secret".to_owned()))]);
        Extensions::read(&config, &secrets)
    }

    #[test]
    fn the_setting_is_checked() {
        let one = "backend: {services: [{url: 'http://s', headers: [{name: A, value: $k}]}]}";
        let all = format!("extensions: [{{name: echo, {one}}}]");
        let extensions = read("extension.config", &all).expect("it is valid");
        assert_eq!(extensions.0["echo"].services[0].headers[0].value, "secret");
        let named = read("extension.config.e", "services: [{url: 'http://s'}]");
        assert!(named.expect("it is valid").0.contains_key("e"));
        for wrong in [
            "extensions: [{name: 'a/b', backend: {services: [{url: 'http://s'}]}}]",
            "extensions: [{name: a}]",
            "extensions: [{name: a, backend: {services: [{url: 'file:///s'}]}}]",
            "extensions: [{name: a, backend: {services: [{url: 'http://s'}, {url: 'http://t'}]}}]",
            "extensions: {",
        ] {
            assert!(read("extension.config", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn the_cluster_chooses_among_services() {
        let text = "services: [{url: 'http://a', cluster: {name: in, server: 's'}}, \
                    {url: 'http://b', cluster: {name: out}}]";
        let extensions = read("extension.config.e", text).expect("it is valid");
        for (name, server, url) in [
            ("", "s", Some("http://a")),
            ("in", "", Some("http://a")),
            ("out", "", Some("http://b")),
            ("none", "", None),
        ] {
            let destination = ApplicationDestination {
                name: name.to_owned(),
                server: server.to_owned(),
                ..ApplicationDestination::default()
            };
            let found = extensions.0["e"].service(&destination);
            assert_eq!(found.map(|s| &*s.url), url, "{name} {server}");
        }
    }
}
