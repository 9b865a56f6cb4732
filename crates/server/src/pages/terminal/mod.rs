//! `/terminal`: a shell in a container, over a WebSocket. Main function: [`handle`].

mod seats;
mod session;

use super::{guard, is_label, is_subdomain, refused};
use crate::{
    ApiError, Code,
    access::{Access, Action, Ask, Guard, Resource, app_of_terminal},
    audit::Change,
    parameters::Parameters,
    ports::LiveRef,
    state::State,
};
use http::{HeaderValue, Request, Response, StatusCode, header, request::Parts};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use reqwest::Url;
use seats::Seat;
use serde_json::Value;
use session::Session;
use std::sync::Arc;
use tokio_tungstenite::{
    WebSocketStream,
    tungstenite::{
        handshake::derive_accept_key,
        protocol::{Role, WebSocketConfig},
    },
};
use tonic::body::Body;

pub const PATH: &str = "/terminal";
const ACCESS: Access = Access::Asks {
    always: &[
        Ask(Resource::Applications, Action::Get),
        Ask(Resource::Exec, Action::Create),
    ],
    sometimes: &[],
};

/// The shells to try if `exec.shells` names none.
const SHELLS: &str = "bash,sh,powershell,cmd";

/// A page sends what is typed or pasted, in one message.
const LONGEST: usize = 1 << 20;

/// Whose terminal is asked for.
struct Asked {
    pod: String,
    container: String,
    app: String,
    project: String,
    namespace: String,
    app_namespace: String,
    /// Tried alone if it is one of the configured shells.
    shell: String,
}

impl Asked {
    /// Namespace and name of the Application.
    fn at(&self) -> (&str, &str) {
        (&self.app_namespace, &self.app)
    }

    /// As the audit log has it.
    fn change(&self) -> Change {
        Change {
            done: "opened".to_owned(),
            kind: "Pod".to_owned(),
            namespace: self.namespace.clone(),
            name: format!("{}/{}", self.pod, self.container),
            diff: Vec::new(),
        }
    }

    fn pod(&self) -> LiveRef {
        LiveRef {
            version: "v1".into(),
            kind: "Pod".into(),
            namespace: self.namespace.clone(),
            name: self.pod.clone(),
            ..LiveRef::default()
        }
    }
}

/// Answers a request of a caller who is known, where argocd-cm has `exec.enabled`.
pub async fn handle(state: Arc<State>, request: Request<Body>) -> Response<Body> {
    let request = request.into_parts().0;
    let off = || refused(StatusCode::NOT_FOUND, "404 page not found");
    // First: strangers need not know whether terminals are on.
    let guard = match guard(&state, &request, ACCESS).await {
        Ok(guard) => guard,
        Err(refusal) => return refusal,
    };
    let settings = state.settings.get().await;
    if !settings.is_ok_and(|settings| settings.flag("exec.enabled")) {
        return off();
    }
    let asked = match checked(&state, &guard, &request).await {
        Ok(asked) => asked,
        Err(refusal) => return refusal,
    };
    // Read anew, but not for everybody who asks.
    match state.settings.fresh().await {
        Ok(settings) if settings.flag("exec.enabled") => {
            let own = [settings.value("url"), settings.value("additionalUrls")];
            let shells = shells_of(&asked, settings.value("exec.shells"));
            let opened = opened(state.clone(), request, (&guard, asked), shells, &own).await;
            opened.unwrap_or_else(|refusal| refusal)
        }
        _ => off(),
    }
}

/// The shells to try.
fn shells_of(asked: &Asked, configured: &str) -> Vec<String> {
    let configured = if configured.is_empty() {
        SHELLS
    } else {
        configured
    };
    let all: Vec<String> = configured.split(',').map(str::to_owned).collect();
    if all.contains(&asked.shell) {
        vec![asked.shell.clone()]
    } else {
        all
    }
}

/// Agrees to speak WebSocket, and serves the connection from then on.
async fn opened(
    state: Arc<State>,
    mut request: Parts,
    (guard, asked): (&Guard, Asked),
    shells: Vec<String>,
    own: &[&str],
) -> Result<Response<Body>, Response<Body>> {
    let is = |name: &str, value: &str| {
        let values = request.headers.get_all(name).iter();
        values
            .filter_map(|v| v.to_str().ok())
            .flat_map(|v| v.split(','))
            .any(|v| v.trim().eq_ignore_ascii_case(value))
    };
    let key = request.headers.get(header::SEC_WEBSOCKET_KEY).cloned();
    let upgrade = request.extensions.remove::<OnUpgrade>();
    let (Some(key), Some(upgrade), true) = (
        key.filter(|_| is("upgrade", "websocket") && is("sec-websocket-version", "13")),
        upgrade,
        is("connection", "upgrade"),
    ) else {
        let why = "Failed to start terminal session";
        return Err(refused(StatusCode::BAD_REQUEST, why));
    };
    // Browsers send cookies along for pages of others, too.
    if !is_own_page(&request, own) {
        let why = "the request comes from another site";
        return Err(refused(StatusCode::FORBIDDEN, why));
    }
    let unavailable = |why: &str| refused(StatusCode::SERVICE_UNAVAILABLE, why);
    let caller = guard.caller();
    let seat = Seat::take(caller).map_err(unavailable)?;
    let recorded = state.audit.page(caller, PATH, Ok(asked.change())).await;
    recorded.map_err(|e| unavailable(&e.message))?;
    tracing::info!(
        application = asked.app,
        project = asked.project,
        namespace = asked.namespace,
        podName = asked.pod,
        container = asked.container,
        "terminal session starting"
    );
    let accept = derive_accept_key(key.as_bytes());
    let session = Session {
        state,
        request,
        asked,
        shells,
    };
    tokio::spawn(async move {
        let _seat = seat;
        let Ok(stream) = upgrade.await else { return };
        let limits = WebSocketConfig::default()
            .max_message_size(Some(LONGEST))
            .max_frame_size(Some(LONGEST));
        let stream = TokioIo::new(stream);
        session
            .run(WebSocketStream::from_raw_socket(stream, Role::Server, Some(limits)).await)
            .await;
    });
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let accept = HeaderValue::from_str(&accept).expect("it is base64");
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    Ok(answer)
}

/// Whether a browser's page came from this server: by the request's own host, or by the addresses in
/// the settings, where a proxy changes the host. Clients that are no browsers name no origin.
fn is_own_page(request: &Parts, own: &[&str]) -> bool {
    let Some(origin) = request.headers.get(header::ORIGIN) else {
        return true;
    };
    let origin = origin.to_str().ok().and_then(|o| Url::parse(o).ok());
    let Some(origin) = origin else { return false };
    let host = request.headers.get(header::HOST);
    let host = host.and_then(|h| h.to_str().ok()).or_else(|| {
        let authority = request.uri.authority();
        authority.map(http::uri::Authority::as_str)
    });
    let of_host = host.and_then(|h| Url::parse(&format!("{}://{h}", origin.scheme())).ok());
    let of_settings = own
        .iter()
        .flat_map(|urls| urls.split_whitespace())
        .filter_map(|url| Url::parse(url).ok());
    of_host
        .into_iter()
        .chain(of_settings)
        .any(|url| url.origin() == origin.origin())
}

/// What is asked for, if the caller may have it and it is there.
async fn checked(state: &State, guard: &Guard, request: &Parts) -> Result<Asked, Response<Body>> {
    let bad = |why: &str| refused(StatusCode::BAD_REQUEST, why);
    let asked = asked(&Parameters::of(request)).map_err(bad)?;
    if !state.reach.permits(&asked.app_namespace) {
        let why = format!("namespace '{}' is not permitted", asked.app_namespace);
        return Err(refused(StatusCode::FORBIDDEN, &why));
    }
    let app = match app_of_terminal(&state.reach, guard, asked.at(), &asked.project).await {
        Ok(app) => app,
        Err(e) => {
            if e.code == Code::PermissionDenied {
                // It is refused anyway.
                let _ = state.audit.page(guard.caller(), PATH, Err(&e)).await;
            }
            return Err(refusal(e));
        }
    };
    let app = app.ok_or_else(|| bad("The wrong project was specified for the app"))?;
    let tree = state.reach.live(&app).tree().await.map_err(refusal)?;
    let tree = tree.unwrap_or_default();
    let is_its = tree.nodes.iter().any(|node| {
        let node = &node.resource_ref;
        // Without a uid it is known from the status alone, and need not be this Application's.
        let is_pod = node.group.is_empty() && node.kind == "Pod" && !node.uid.is_empty();
        is_pod && node.name == asked.pod && node.namespace == asked.namespace
    });
    if !is_its {
        return Err(bad("Pod doesn't belong to specified app"));
    }
    let pod = state.reach.live(&app).get(&asked.pod()).await;
    let pod = pod.map_err(|_| bad("Cannot find pod"))?;
    if !is_running(&pod, &asked.container) {
        return Err(bad("container find running"));
    }
    Ok(asked)
}

fn is_running(pod: &Value, container: &str) -> bool {
    ["containerStatuses", "initContainerStatuses"]
        .iter()
        .filter_map(|list| pod["status"][list].as_array())
        .flatten()
        .find(|status| status["name"] == container)
        .is_some_and(|status| status["state"]["running"].is_object())
}

fn refusal(e: ApiError) -> Response<Body> {
    match e.code {
        Code::PermissionDenied => {
            let why = format!("rpc error: code = PermissionDenied desc = {}", e.message);
            refused(StatusCode::UNAUTHORIZED, &why)
        }
        Code::NotFound => refused(StatusCode::NOT_FOUND, "App not found"),
        _ => refused(StatusCode::INTERNAL_SERVER_ERROR, "Cannot get app"),
    }
}

fn asked(parameters: &Parameters) -> Result<Asked, &'static str> {
    let value = |name: &str| parameters.first(name).unwrap_or_default().to_owned();
    let asked = Asked {
        pod: value("pod"),
        container: value("container"),
        app: value("appName"),
        project: value("projectName"),
        namespace: value("namespace"),
        app_namespace: value("appNamespace"),
        shell: value("shell"),
    };
    let needed = [
        &asked.pod,
        &asked.container,
        &asked.app,
        &asked.project,
        &asked.namespace,
    ];
    if needed.iter().any(|value| value.is_empty()) {
        return Err("Missing required parameters");
    }
    let checks = [
        (is_subdomain(&asked.pod), "Pod name is not valid"),
        (is_label(&asked.container), "Container name is not valid"),
        (is_subdomain(&asked.app), "App name is not valid"),
        (is_subdomain(&asked.project), "Project name is not valid"),
        (is_label(&asked.namespace), "Namespace name is not valid"),
        (
            is_label(&asked.app_namespace),
            "App namespace name is not valid",
        ),
    ];
    match checks.iter().find(|(is_valid, _)| !is_valid) {
        Some((_, why)) => Err(why),
        None => Ok(asked),
    }
}
