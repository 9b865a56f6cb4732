//! The API server's [`Role`]: its table, its callers, the session cookie of the web UI, and the
//! requests it answers besides calls.

use crate::{
    ApiError,
    access::Access,
    audit,
    auth::{Caller, NO_SESSION},
    clients,
    cookies::COOKIE,
    dex, logout,
    pages::{badge, extensions, own, swagger, terminal},
    services::application::log_file::log_file,
    sign_in, sso,
    state::State,
    webhook,
};
use futures::{
    future::{BoxFuture, ready},
    stream::BoxStream,
};
use http::{HeaderMap, HeaderValue, Method, Request, Response, StatusCode, header};
use jiff::Timestamp;
use sha2::{Digest as _, Sha256};
use std::{net::IpAddr, sync::Arc, time::Duration};
use tiphys_rpc::{
    Call, CallCounts, Network, Reply, Role, StreamFile, Table, Unhealthy, compressed, set_cookie,
    table::Session, token,
};
use tonic::body::Body;

/// Calls of ApplicationService that may be asked for some fields.
const SELECT_FIELDS: [&str; 6] = [
    "List",
    "Watch",
    "ResourceTree",
    "WatchResourceTree",
    "ManagedResources",
    "PodLogs",
];
/// Maximum size of a request message, in either encoding.
const MAX_REQUEST: usize = 16 * 1024 * 1024;
/// The same for callers who are not logged in.
const MAX_PUBLIC_REQUEST: usize = 64 * 1024;

/// Calls whose requests, or what they read, contain passwords, keys, values or manifests: those
/// that Argo CD never logs, and four more.
const SECRET_REQUESTS: [&str; 23] = [
    "/account.AccountService/UpdatePassword",
    "/application.ApplicationService/GetManifestsWithFiles",
    "/application.ApplicationService/PatchResource",
    "/application.ApplicationService/ServerSideDiff",
    "/catalog.CatalogService/AddRepository",
    "/catalog.CatalogService/PreviewInstall",
    "/cluster.ClusterService/Create",
    "/cluster.ClusterService/Update",
    "/gpgkey.GPGKeyService/Create",
    "/kubeappsapis.core.packages.v1alpha1.PackagesService/GetInstalledPackageDetail",
    "/repocreds.RepoCredsService/CreateRepositoryCredentials",
    "/repocreds.RepoCredsService/CreateWriteRepositoryCredentials",
    "/repocreds.RepoCredsService/UpdateRepositoryCredentials",
    "/repocreds.RepoCredsService/UpdateWriteRepositoryCredentials",
    "/repository.RepositoryService/Create",
    "/repository.RepositoryService/CreateRepository",
    "/repository.RepositoryService/CreateWriteRepository",
    "/repository.RepositoryService/Update",
    "/repository.RepositoryService/UpdateRepository",
    "/repository.RepositoryService/UpdateWriteRepository",
    "/repository.RepositoryService/ValidateAccess",
    "/repository.RepositoryService/ValidateWriteAccess",
    "/session.SessionService/Create",
];

/// Where paths of calls begin; the other paths are files.
const REST: [&str; 3] = ["/api/", "/core/", "/plugins/"];

/// Paths with URLs or names of packages as variables, those of the API below their version.
const ESCAPED: [&str; 9] = [
    "account/can-i/",
    "clusters/",
    "repositories/",
    "repocreds/",
    "write-repositories/",
    "write-repocreds/",
    "catalog/",
    "/core/",
    "/plugins/",
];

/// Those of them that clients of Argo CD escape twice, and that it unescapes a second time.
const ESCAPED_TWICE: [&str; 3] = ["clusters/", "repositories/", "repocreds/"];

impl State {
    /// A file of the web UI, or its page for those who read.
    async fn page(&self, method: &Method, path: &str, headers: &HeaderMap) -> Response<Body> {
        let is_read = matches!(*method, Method::GET | Method::HEAD);
        let mut accepted = headers.get_all(header::ACCEPT).iter();
        let accepts_html =
            accepted.any(|value| value.to_str().is_ok_and(|v| v.contains("text/html")));
        if is_read
            && !self.assets.has(path)
            && let Some(response) = own::file(self, path).await
        {
            return self.packed(headers, response);
        }
        let mut response = self.assets.respond(path, accepts_html && is_read);
        let kind = response.headers().get(header::CONTENT_TYPE);
        let is_page = kind.is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
        if is_page && let Some(policy) = own::policy(self).await {
            let headers = response.headers_mut();
            headers.insert(header::CONTENT_SECURITY_POLICY, policy);
        }
        self.packed(headers, response)
    }

    /// The answer to a browser, compressed where that is on.
    fn packed(&self, headers: &HeaderMap, response: Response<Body>) -> Response<Body> {
        if self.options.gzip {
            return compressed(headers, response);
        }
        response
    }
}

impl Role for State {
    type Caller = Caller;
    type Access = Access;

    fn table(&self) -> &Table<Self> {
        &self.table
    }

    async fn caller(
        &self,
        source: IpAddr,
        headers: &HeaderMap,
        access: Option<&Access>,
    ) -> Result<Caller, ApiError> {
        if self.options.auth_disabled {
            if let Some(only) = &self.options.only_with
                && !token(headers, COOKIE).is_some_and(|token| {
                    Sha256::digest(token.as_bytes()) == Sha256::digest(only.as_bytes())
                })
            {
                return Err(ApiError::unauthenticated(NO_SESSION));
            }
            return Ok(Caller {
                claims: None,
                source,
            });
        }
        let token = token(headers, COOKIE);
        let verified = match &token {
            None => Err(ApiError::unauthenticated(NO_SESSION)),
            Some(token) => self.auth.verify(token, Timestamp::now()).await,
        };
        let claims = match (verified, access) {
            (Ok(claims), _) => Some(claims),
            (Err(_), Some(Access::Public)) => None,
            (Err(e), Some(_)) if self.auth.admits_anonymous(&e, token.is_some()).await => None,
            (Err(e), _) => return Err(e),
        };
        Ok(Caller { claims, source })
    }

    fn turns_away(&self, user_agent: &str) -> Option<ApiError> {
        clients::turned_away(user_agent)
    }

    fn redirects_to_tls(&self) -> bool {
        true
    }

    fn max_request(&self, caller: &Caller) -> usize {
        if caller.logged_in() || self.options.auth_disabled {
            MAX_REQUEST
        } else {
            MAX_PUBLIC_REQUEST
        }
    }

    fn guard(
        &self,
        caller: &Caller,
        messages: BoxStream<'static, Result<Vec<u8>, ApiError>>,
    ) -> BoxStream<'static, Result<Vec<u8>, ApiError>> {
        self.auth.while_valid(caller.claims.clone(), messages)
    }

    async fn renewed(&self, caller: &Caller, headers: &HeaderMap) -> Vec<HeaderValue> {
        let Some(claims) = &caller.claims else {
            return Vec::new();
        };
        let now = Timestamp::now();
        if let Some(theirs) = &claims.provider {
            let left = claims.exp.saturating_sub(now.as_second());
            return sign_in::renewed(self, headers, theirs, left).await;
        }
        let token = self.auth.renewed(claims, now).await;
        let cookie = token.and_then(|token| self.cookie(&token));
        cookie.into_iter().collect()
    }

    fn cookie(&self, token: &str) -> Option<HeaderValue> {
        let options = &self.options;
        set_cookie(COOKIE, token, &options.root_path, options.secure_cookie)
    }

    /// The webhook, the sign-in with an identity provider, the end of a session and the web UI, which need no login: the webhook checks the sender's secret and
    /// can only request refreshes, and the web UI's files are the same for everybody.
    fn other(
        self: &Arc<Self>,
        request: Request<Body>,
    ) -> BoxFuture<'static, Result<Response<Body>, Request<Body>>> {
        let path = request.uri().path();
        if path == webhook::PATH {
            let state = self.clone();
            return Box::pin(async move {
                Ok(webhook::handle(state, request, webhook::Scope::All).await)
            });
        }
        let is_logout = path == logout::PATH;
        if is_logout && matches!(*request.method(), Method::GET | Method::POST) {
            let (state, headers) = (self.clone(), request.into_parts().0.headers);
            return Box::pin(async move { Ok(logout::handle(state, headers).await) });
        }
        if path == sign_in::LOGIN || path == sign_in::CALLBACK {
            let state = self.clone();
            let is_login = path == sign_in::LOGIN;
            let path = if is_login {
                sign_in::LOGIN
            } else {
                sign_in::CALLBACK
            };
            let (method, headers) = (request.method().clone(), request.headers().clone());
            return Box::pin(async move {
                let answer = if is_login {
                    sign_in::login(state.clone(), request).await
                } else {
                    sign_in::callback(state.clone(), request).await
                };
                Ok(match answer.status() {
                    // Without an identity provider, the path is one of the page's.
                    StatusCode::NOT_FOUND => state.page(&method, path, &headers).await,
                    _ => answer,
                })
            });
        }
        let of_dex = path.strip_prefix(sso::DEX_PATH);
        if of_dex.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) {
            let (state, headers) = (self.clone(), request.headers().clone());
            return Box::pin(async move {
                let answer = dex::handle(state, request).await;
                Ok(match answer.status() {
                    StatusCode::NOT_FOUND => compressed(&headers, answer),
                    _ => answer,
                })
            });
        }
        let state = self.clone();
        if path == badge::PATH {
            return Box::pin(async move { Ok(badge::handle(state, request).await) });
        }
        if self.options.proxy_extensions && extensions::is_path(path) {
            return Box::pin(async move { Ok(extensions::handle(state, request).await) });
        }
        if path == terminal::PATH {
            return Box::pin(async move { Ok(terminal::handle(state, request).await) });
        }
        let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
        if is_read && self.options.swagger && swagger::is_path(path) {
            let (path, headers) = (path.to_owned(), request.headers().clone());
            return Box::pin(async move {
                let answer = swagger::handle(&state, &path).await;
                Ok(state.packed(&headers, answer))
            });
        }
        if path == own::EXTENSIONS {
            let folder = self.options.page_extensions.clone();
            let headers = request.headers().clone();
            return Box::pin(async move {
                let answer = own::extensions(folder).await;
                Ok(compressed(&headers, answer))
            });
        }
        if REST.iter().any(|prefix| path.starts_with(prefix)) {
            return Box::pin(ready(Err(request)));
        }
        let (method, path) = (request.method().clone(), path.to_owned());
        let headers = request.headers().clone();
        Box::pin(async move { Ok(state.page(&method, &path, &headers).await) })
    }

    fn root_path(&self) -> &str {
        &self.options.root_path
    }

    fn keeps_escapes(&self, path: &str) -> bool {
        let path = path.strip_prefix("/api/v1/").unwrap_or(path);
        ESCAPED.iter().any(|beginning| path.starts_with(beginning))
    }

    fn unescapes_twice(&self, path: &str) -> bool {
        let path = path.strip_prefix("/api/v1/");
        let is_below = |path: &str| ESCAPED_TWICE.iter().any(|start| path.starts_with(start));
        path.is_some_and(is_below)
    }

    fn compresses(&self) -> bool {
        self.options.gzip
    }

    fn takes(&self, content_type: &str) -> bool {
        let taken = &self.options.content_types;
        let is_it = |own: &String| own.eq_ignore_ascii_case(content_type.trim());
        taken.is_empty() || taken.iter().any(is_it)
    }

    fn frame_options(&self) -> &str {
        &self.options.frame_options
    }

    fn content_security_policy(&self) -> &str {
        &self.options.content_security_policy
    }

    fn trusted_proxies(&self) -> &[Network] {
        &self.options.trusted_proxies
    }

    /// Argo CD selects the fields of projects in another way than those of Applications.
    fn keeps_list_metadata(&self, call: &Call<Self>) -> bool {
        call.rpc != "/project.ProjectService/List"
    }

    /// Clients of Argo CD get the rest whole.
    fn selects_fields(&self, call: &Call<Self>) -> bool {
        let name = call.rpc.strip_prefix("/application.ApplicationService/");
        let selects = name.is_some_and(|name| SELECT_FIELDS.contains(&name));
        selects || call.rpc == "/project.ProjectService/List"
    }

    fn file(&self, call: &Call<Self>, query: &str) -> Option<StreamFile> {
        let is_log = call.rpc == "/application.ApplicationService/PodLogs";
        is_log.then(|| log_file(query)).flatten()
    }

    fn around(
        self: &Arc<Self>,
        call: &Call<Self>,
        caller: &Caller,
        answer: BoxFuture<'static, Result<Reply, ApiError>>,
    ) -> BoxFuture<'static, Result<Reply, ApiError>> {
        // Anybody can begin logins. Those whose clients went away would queue for their checks
        // without limit.
        let is_change = audit::changes(&call.rpc, &call.access);
        let is_unstopped = is_change && !matches!(call.session, Session::Begins);
        let run = self.audit.around(&call.rpc, is_change, caller, answer);
        if !is_unstopped {
            return run;
        }
        let (state, rpc) = (self.clone(), call.rpc.clone());
        Box::pin(async move { state.audit.work.unstopped(&rpc, run).await })
    }

    async fn refused(&self, call: &Call<Self>, source: IpAddr, error: &ApiError) {
        self.audit.refused(&call.rpc, source, error).await;
    }

    fn counts(&self) -> Option<&CallCounts> {
        Some(self.metrics.calls())
    }

    fn logs_calls(&self) -> bool {
        self.options.log_calls
    }

    fn claims(&self, caller: &Caller) -> Option<String> {
        // Groups are many, and Argo CD logs them only then.
        let with_groups = tracing::enabled!(tracing::Level::DEBUG);
        let claims = caller.claims.as_ref()?;
        Some(claims.for_log(with_groups))
    }

    fn has_secrets(&self, call: &Call<Self>) -> bool {
        SECRET_REQUESTS.contains(&call.rpc.as_str())
    }

    async fn health(&self, is_full: bool) -> Result<(), Unhealthy> {
        crate::server::health::check(self, is_full).await
    }

    fn notice(&self) -> Duration {
        self.options.notice
    }
}

#[cfg(test)]
mod tests {
    use super::SECRET_REQUESTS;
    use crate::table::table;

    #[test]
    fn calls_with_secrets_are_there() {
        let table = table();
        for rpc in SECRET_REQUESTS {
            assert!(table.by_rpc(rpc).is_some(), "{rpc}");
        }
    }
}
