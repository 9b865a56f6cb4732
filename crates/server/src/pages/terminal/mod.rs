//! `/terminal`: a shell in a container. Main function: [`handle`].
//!
//! Whoever asks learns whether they may, and that the cluster is not asked for one: connections to
//! kubelets are not passed on.

use super::{Parameters, guard, is_label, is_subdomain, refused};
use crate::{
    ApiError, Code,
    access::{Access, Action, Ask, Guard, Resource, app_of_page},
    server::State,
};
use http::{Request, Response, StatusCode, request::Parts};
use std::sync::Arc;
use tonic::body::Body;

pub const PATH: &str = "/terminal";
const ACCESS: Access = Access::Asks {
    always: &[
        Ask(Resource::Applications, Action::Get),
        Ask(Resource::Exec, Action::Create),
    ],
    sometimes: &[],
};

/// Whose terminal is asked for.
struct Asked {
    pod: String,
    container: String,
    app: String,
    project: String,
    namespace: String,
    app_namespace: String,
}

/// Answers a request, where argocd-cm has `exec.enabled`.
pub async fn handle(state: Arc<State>, request: Request<Body>) -> Response<Body> {
    let request = request.into_parts().0;
    let settings = state.settings.get().await;
    if !settings.is_ok_and(|settings| settings.flag("exec.enabled")) {
        return refused(StatusCode::NOT_FOUND, "404 page not found");
    }
    let answer = match guard(&state, &request, ACCESS).await {
        Ok(guard) => opened(&state, &guard, &request).await,
        Err(refusal) => Err(refusal),
    };
    answer.unwrap_or_else(|refusal| refusal)
}

async fn opened(
    state: &State,
    guard: &Guard,
    request: &Parts,
) -> Result<Response<Body>, Response<Body>> {
    let bad = |why: &str| refused(StatusCode::BAD_REQUEST, why);
    let asked = asked(&Parameters::of(request)).map_err(bad)?;
    if !state.reach.permits(&asked.app_namespace) {
        let why = format!("namespace '{}' is not permitted", asked.app_namespace);
        return Err(refused(StatusCode::FORBIDDEN, &why));
    }
    let at = (asked.app_namespace.as_str(), asked.app.as_str());
    let exec = (Ask(Resource::Exec, Action::Create), None);
    let app = app_of_page(state, guard, at, &asked.project, exec)
        .await
        .map_err(refusal)?
        .ok_or_else(|| bad("The wrong project was specified for the app"))?;
    let tree = state.reach.live(&app).tree().await.map_err(refusal)?;
    let tree = tree.unwrap_or_default();
    let is_its = tree.nodes.iter().any(|node| {
        let node = &node.resource_ref;
        node.kind == "Pod" && node.name == asked.pod && node.namespace == asked.namespace
    });
    if !is_its {
        return Err(bad("Pod doesn't belong to specified app"));
    }
    let why = format!(
        "no terminal for container {}: not supported here",
        asked.container
    );
    Err(refused(StatusCode::NOT_IMPLEMENTED, &why))
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
