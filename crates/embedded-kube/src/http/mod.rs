//! The API over HTTP: from a request to the registry and back.
//!
//! Main function: [`router`]. Handlers only translate; the registry makes every decision about an
//! object. Requests are authorized before they get here.

mod body;
mod components;
mod connect;
mod delete_options;
mod discovery;
mod list;
mod list_body;
mod negotiate;
mod object;
mod openapi;
mod openapi_binary;
mod openapi_custom;
mod paging;
mod patch_body;
mod pod_log;
mod pod_requests;
mod query;
mod review;
mod scale;
mod selectors;
mod special;
mod table;
mod token;
mod tree;
mod warnings;
mod watch;
mod write;
mod yaml;

use crate::auth::{Auth, Caller};
use crate::base::{Guard, UserInfo};
use crate::catalog::Resource;
use crate::registry::Registry;
use crate::route::{self, Query, Route, Target};
use crate::status::Status;
use axum::Router;
use axum::body::Body;
use axum::extract::State;
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use http::{Method, Request, Response, StatusCode, request::Parts};
use openapi::OpenApi;
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::Gvk;

/// The state shared by the handlers.
pub struct Shared {
    pub registry: Registry,
    pub auth: Arc<Auth>,
    openapi: OpenApi,
    /// The source of pod logs.
    pub logs: LogSource,
}

/// Returns the simulated log of a pod's container (empty name: the only one) up to a time, or of
/// its run before the last restart; or the reason why there is none.
pub type LogSource = Arc<
    dyn Fn(
            &tiphys_apimachinery::Object,
            &str,
            bool,
            jiff::Timestamp,
        ) -> Result<crate::sim::Log, String>
        + Send
        + Sync,
>;

/// A service that handles every request, without authorization.
pub fn router(registry: Registry, auth: Arc<Auth>, logs: LogSource) -> Router {
    let shared = Shared {
        registry,
        auth,
        openapi: OpenApi::default(),
        logs,
    };
    Router::new().fallback(handle).with_state(Arc::new(shared))
}

/// A request for a resource, with everything that handlers need.
pub(crate) struct Call<'a> {
    pub shared: &'a Arc<Shared>,
    pub parts: &'a Parts,
    pub query: Query,
    pub resource: Arc<Resource>,
    pub namespace: String,
    pub target: Target,
}

impl Call<'_> {
    pub fn registry(&self) -> &Registry {
        &self.shared.registry
    }

    pub fn name(&self) -> &str {
        self.target.name.as_deref().unwrap_or("")
    }

    /// The kind of the subresource's body, in the form of a resource.
    pub fn spoken(&self) -> Result<Resource, Status> {
        let spoken = self
            .target
            .subresource
            .as_deref()
            .and_then(|s| self.resource.subresource(s))
            .ok_or_else(Status::no_such_path)?;
        // A subresource without its own group and version has those of its resource.
        let of = if spoken.version.is_empty() {
            (&self.resource.group, &self.resource.version)
        } else {
            (&spoken.group, &spoken.version)
        };
        Ok(self.resource.speaking(&Gvk::new(of.0, of.1, &spoken.kind)))
    }

    /// The user of the request; the administrator for requests from this process.
    pub fn user(&self) -> Arc<UserInfo> {
        self.parts
            .extensions
            .get::<Caller>()
            .map_or_else(|| Arc::new(UserInfo::admin()), |c| c.0.clone())
    }

    /// The form of the response.
    pub fn form(&self) -> Result<negotiate::Form, Status> {
        match negotiate::has_table(&self.resource, self.target.subresource.as_deref()) {
            true => negotiate::form(&self.parts.headers),
            false => negotiate::form_but_table(&self.parts.headers),
        }
    }

    /// The escalation check for a write by the caller.
    pub fn guard(&self) -> Guard {
        match self.parts.extensions.get::<Caller>() {
            None => Guard::default(),
            Some(caller) => {
                self.shared
                    .auth
                    .guard(&caller.0, &self.resource, &self.namespace, self.name())
            }
        }
    }
}

async fn handle(State(shared): State<Arc<Shared>>, request: Request<Body>) -> Response<Body> {
    let (mut parts, body) = request.into_parts();
    let acts = ["impersonate-user", "impersonate-group", "impersonate-uid"]
        .iter()
        .any(|h| parts.headers.contains_key(*h));
    if acts && parts.extensions.get::<Caller>().is_none() {
        // This process has full access; if it impersonates a user, that user's permissions apply.
        match shared.auth.admit_as(Arc::new(UserInfo::admin()), &parts) {
            Ok(caller) => parts.extensions.insert(caller),
            Err(status) => return failure(&status),
        };
    }
    let response = match dispatch(&shared, &parts, body).await {
        Ok(response) => response,
        Err(status) => failure(&status),
    };
    // The OpenAPI handler negotiates for itself, and the version handler only writes JSON.
    let path = parts.uri.path();
    let as_it_is = path.starts_with("/openapi/")
        || (path.starts_with("/version") && response.status().is_success());
    match negotiate::is_yaml(&parts.headers) && !as_it_is {
        true => yaml::encode(response).await,
        false => response,
    }
}

async fn dispatch(
    shared: &Arc<Shared>,
    parts: &Parts,
    body: Body,
) -> Result<Response<Body>, Status> {
    let query = Query::parse(parts.uri.query().unwrap_or(""));
    let route = match route::parse(parts.uri.path()) {
        Route::Resource(target) => {
            if !lasts(&target, &parts.method, &query) {
                query.check_timeout()?;
            }
            return resource(shared, parts, query, target, body).await;
        }
        Route::Incomplete => return Ok(special::incomplete(&parts.uri)),
        route => route,
    };
    query.check_timeout()?;
    if parts.method != Method::GET && looks_at_methods(shared, &route) {
        return Err(match route {
            Route::Resources(group, version)
                if !shared.registry.catalog().has_version(&group, &version) =>
            {
                Status::not_served()
            }
            _ => Status::not_allowed(),
        });
    }
    match route {
        Route::Index => Ok(discovery::index(shared)),
        Route::Health(path) => special::health(parts.uri.path(), &path, query.flag("verbose")),
        Route::Version => {
            negotiate::check_json(&parts.headers).map(|()| json_response(&special::version()))
        }
        Route::CoreVersions => discovery::core_versions(shared, &parts.headers),
        Route::Groups => discovery::groups(shared, &parts.headers),
        Route::Group(group) => {
            let found = discovery::group(shared, &group)?;
            negotiate::check_document(&parts.headers).map(|()| found)
        }
        Route::Resources(group, version) => {
            let found = discovery::resources(shared, &group, &version)?;
            negotiate::check_document(&parts.headers).map(|()| found)
        }
        Route::OpenApiV2 | Route::OpenApiV3 | Route::OpenApiV3Group(_) => {
            // Documents are regenerated after each change of a definition, which takes a while, so
            // this runs without blocking other requests.
            let (shared, headers) = (shared.clone(), parts.headers.clone());
            let make = move || match route {
                Route::OpenApiV3 => Ok(openapi::v3_index(&shared)),
                Route::OpenApiV3Group(path) => openapi::v3_group(&shared, &path, &headers)
                    .or_else(|status| special::nothing(&status)),
                _ => openapi::v2(&shared, &headers),
            };
            tokio::task::spawn_blocking(make)
                .await
                .map_err(Status::internal)?
        }
        Route::OpenId => Ok(json_response(&special::open_id())),
        Route::KeySet => Ok(special::key_set(&shared.auth.signer.key_set())),
        Route::Resource(_) | Route::Incomplete | Route::Unknown => Err(Status::no_such_path()),
    }
}

/// Whether a request may take as long as it needs.
fn lasts(target: &Target, method: &Method, query: &Query) -> bool {
    let watches = target.name.is_none()
        && matches!(*method, Method::GET | Method::HEAD)
        && query.flag("watch");
    let connects = matches!(
        target.subresource.as_deref(),
        Some("attach" | "exec" | "proxy" | "log" | "portforward")
    );
    target.watched || watches || connects
}

/// Whether a non-resource path accepts only one method; most of them ignore the method.
fn looks_at_methods(shared: &Shared, route: &Route) -> bool {
    match route {
        Route::CoreVersions | Route::Version | Route::OpenId | Route::KeySet => true,
        Route::Resources(group, _) => discovery::is_always_there(&shared.registry.catalog(), group),
        _ => false,
    }
}

async fn resource(
    shared: &Arc<Shared>,
    parts: &Parts,
    query: Query,
    mut target: Target,
    body: Body,
) -> Result<Response<Body>, Status> {
    let catalog = shared.registry.catalog();
    let unknown = || discovery::unknown(&catalog, &target.group);
    let resource = catalog
        .resource(&target.group, &target.version, &target.resource)
        .cloned()
        .ok_or_else(unknown)?;
    if resource.custom.is_some() && target.subresource.as_deref() == Some("") {
        target.subresource = None;
    }
    let nowhere = target.namespace.as_deref() == Some("") && resource.namespaced;
    if nowhere
        && (resource.custom.is_some() || (target.name.is_none() && parts.method == Method::GET))
    {
        target.namespace = None;
    }
    let namespace = target.namespace.clone().unwrap_or_default();
    // Scope and path must agree: `/api/v1/pods/x` and `/api/v1/namespaces/a/nodes` do not exist.
    let outside = resource.namespaced && target.namespace.is_none();
    let slash = target.name.as_ref().is_some_and(|n| n.contains('/'));
    let everywhere = target.watched && resource.custom.is_some();
    if (target.namespace.is_some() && !resource.namespaced)
        || (outside && target.name.is_some() && !everywhere)
        || slash
    {
        return Err(unknown());
    }
    if outside && parts.method == Method::POST && !target.watched {
        let listed = resource.custom.is_none() && resource.verbs != ["create"];
        return Err(if listed {
            Status::not_allowed()
        } else {
            unknown()
        });
    }
    let call = Call {
        shared,
        parts,
        query,
        resource,
        namespace,
        target,
    };
    let answer = answer(&call, body).await;
    let routed = !outside || matches!(verb(&call), "list" | "watch");
    let below = call.target.subresource.as_deref();
    let served = below.is_some_and(|name| call.resource.subresource(name).is_some())
        || (below.is_none() && routed && (call.resource.allows(verb(&call)) || lists(&call)))
        || (routed && call.resource.custom.is_some());
    // A request that is rejected before its handler is known gets no deprecation warning.
    let handled = !answer.as_ref().is_err_and(|status| {
        status.message.starts_with("406: ") || status.message.starts_with("415: ")
    });
    Ok(
        match deprecation(&call.resource).filter(|_| served && handled) {
            Some(text) => warned_first(answer.unwrap_or_else(|status| failure(&status)), text),
            None => answer?,
        },
    )
}

async fn answer(call: &Call<'_>, body: Body) -> Result<Response<Body>, Status> {
    if call.target.watched {
        return watch::in_path(call);
    }
    // A resource that can only be created has no paths but the collection.
    if call.resource.verbs == ["create"] && verb(call) != "create" {
        let whole = call.resource.namespaced && call.target.namespace.is_none();
        return Err(if whole || call.target.name.is_some() {
            Status::not_served()
        } else {
            Status::not_allowed()
        });
    }
    if call.target.subresource.is_some() {
        return special::subresource(call, body).await;
    }
    let verb = verb(call);
    if !call.resource.allows(verb) {
        return Err(no_such_verb(call));
    }
    check_media(call, matches!(verb, "list" | "watch"))?;
    // Custom kinds reject an empty name; built-in kinds do not check.
    if call.resource.custom.is_none()
        && call.target.namespace.as_deref() == Some("")
        && call.target.name.is_some()
    {
        return Err(Status::bad_request("Namespace parameter required."));
    }
    match verb {
        "get" if call.resource.is("", "componentstatuses") => components::get(call),
        "list" if call.resource.is("", "componentstatuses") => components::all(call),
        "get" => object::get(call),
        "list" => list::list(call),
        "watch" => watch::watch(call),
        "create" if call.resource.is("", "bindings") => pod_requests::bind(call, body).await,
        "create" if review::is_review(&call.resource) => review::answer(call, body).await,
        "create" => write::create(call, body).await,
        "update" => write::update(call, body, crate::base::Part::Main).await,
        "patch" => write::patch(call, body, crate::base::Part::Main).await,
        "delete" => write::delete(call, body).await,
        _ => write::delete_collection(call, body).await,
    }
}

/// Rejects an unsupported patch type, and then an unsupported response type.
fn check_media(call: &Call<'_>, collection: bool) -> Result<(), Status> {
    if call.parts.method == Method::PATCH {
        write::patch_type(call)?;
    }
    negotiate::check(&call.parts.headers, &call.resource, collection)?;
    call.form().map(drop)
}

/// The deprecation warning of a kind.
fn deprecation(resource: &Resource) -> Option<&str> {
    if let Some(custom) = &resource.custom {
        return custom.deprecation.as_deref();
    }
    match resource.table.as_str() {
        "/endpoints" => {
            Some("v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice")
        }
        "/componentstatuses" => Some("v1 ComponentStatus is deprecated in v1.19+"),
        _ => None,
    }
}

/// The error for an unsupported verb. The handler of custom kinds answers most of these itself.
fn no_such_verb(call: &Call<'_>) -> Status {
    let whole = call.resource.namespaced && call.target.namespace.is_none();
    match call.parts.method {
        // A kind that can be listed has a route, whose handler then rejects the watch.
        _ if lists(call) => {
            Status::method_not_allowed(&call.resource.group, &call.resource.resource, "watch")
        }
        _ if call.resource.custom.is_none() => Status::not_allowed(),
        _ if whole => Status::no_such_path(),
        Method::PUT | Method::PATCH => Status::bad_request("name must be provided"),
        _ => Status::method_not_allowed(&call.resource.group, &call.resource.resource, ""),
    }
}

/// Whether a request uses the list route, as a list or as a watch.
fn lists(call: &Call<'_>) -> bool {
    !call.target.watched && verb(call) == "watch" && call.resource.allows("list")
}

/// The Kubernetes verb of a request.
fn verb(call: &Call<'_>) -> &'static str {
    let named = call.target.name.is_some();
    match call.parts.method {
        _ if call.target.watched => "watch",
        // Only the handler of custom kinds supports HEAD.
        Method::HEAD if call.resource.custom.is_none() => "unknown",
        Method::GET | Method::HEAD if named => "get",
        Method::GET | Method::HEAD if call.query.flag("watch") => "watch",
        Method::GET | Method::HEAD => "list",
        // The handler of custom kinds takes the name from the body alone.
        Method::POST if !named || call.resource.custom.is_some() => "create",
        Method::PUT if named => "update",
        Method::PATCH if named => "patch",
        Method::DELETE if named => "delete",
        Method::DELETE => "deletecollection",
        _ => "unknown",
    }
}

pub(crate) fn failure(status: &Status) -> Response<Body> {
    if status.is_no_such_path() {
        // Not a Status: clients create their own message, which names the requested resource.
        let mut response = Response::new(Body::from("404 page not found\n"));
        *response.status_mut() = StatusCode::NOT_FOUND;
        response.headers_mut().insert(
            CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        return response;
    }
    let mut response = json_response(&status.to_json());
    *response.status_mut() =
        StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if let Some(seconds) = status
        .details
        .as_ref()
        .map(|d| d.retry_after_seconds)
        .filter(|s| *s > 0)
    {
        response
            .headers_mut()
            .insert(http::header::RETRY_AFTER, seconds.into());
    }
    with_warnings(response, &status.warnings)
}

pub(crate) fn json_response(value: &Value) -> Response<Body> {
    bytes_response(
        serde_json::to_vec(value)
            .expect("a JSON tree serialises")
            .into(),
    )
}

pub(crate) fn bytes_response(bytes: Bytes) -> Response<Body> {
    let mut response = Response::new(Body::from(bytes));
    response
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

/// Adds `Warning` headers in the format of RFC 7234, without duplicates.
pub(crate) fn with_warnings(mut response: Response<Body>, warnings: &[String]) -> Response<Body> {
    let name = HeaderName::from_static("warning");
    for text in warnings::shown(warnings) {
        let quoted: String = text.chars().flat_map(escape).collect();
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes())
            && !response
                .headers()
                .get_all(&name)
                .iter()
                .any(|said| said == value)
        {
            response.headers_mut().append(&name, value);
        }
    }
    response
}

/// The same response with a warning before its other ones.
fn warned_first(mut response: Response<Body>, text: &str) -> Response<Body> {
    let name = HeaderName::from_static("warning");
    let others: Vec<HeaderValue> = response.headers().get_all(&name).iter().cloned().collect();
    response.headers_mut().remove(&name);
    let mut response = with_warnings(response, &[text.to_owned()]);
    for other in others {
        response.headers_mut().append(&name, other);
    }
    response
}

fn escape(c: char) -> impl Iterator<Item = char> {
    matches!(c, '"' | '\\')
        .then_some('\\')
        .into_iter()
        .chain(std::iter::once(c))
}
