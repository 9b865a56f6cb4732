//! Resource actions on live objects of an Application's tree, and on the Application itself.
//!
//! The engine defines the actions and computes their changes; this module finds the object, checks
//! the changes against the project, and writes them.

use super::{
    audit,
    live::{live_ref, node, permissions},
};
use crate::{
    ApiError, Code,
    access::{Authorized, Get, Guard, RunAction, Verb, find_to},
    ports::LiveRef,
    state::State,
};
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use tiphys_api::{
    AppProject, Application,
    constants::{API_VERSION, GROUP},
    rpc::application::{
        ApplicationResourceRequest, ApplicationResponse, ResourceActionRunRequest,
        ResourceActionRunRequestV2, ResourceActionsListResponse,
    },
};
use tiphys_apimachinery::{Object, patch::json_merge};
use tiphys_engine::{
    actions::{self, ActionError, Impact, Operation},
    customize::{self, Customizations},
    permit,
};
use tiphys_rpc::heavy;

const MERGE_PATCH: &str = "application/merge-patch+json";

/// The object that an action applies to.
struct Subject<A> {
    app: Authorized<Application, A>,
    project: AppProject,
    object: Object,
    /// `None` means the Application itself.
    at: Option<LiveRef>,
}

pub async fn list(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationResourceRequest,
) -> Result<ResourceActionsListResponse, ApiError> {
    let subject = subject::<Get>(&state, &guard, "", &q).await?;
    let customizations = customizations(&state).await?;
    let found = scripted(move || actions::discover(&subject.object, &customizations)).await;
    let actions = found.map_err(|e| {
        e.context("error executing Lua discovery script")
            .context("error getting available actions")
    })?;
    Ok(ResourceActionsListResponse { actions })
}

/// Like [`run_v2`], without parameters.
pub async fn run(
    state: Arc<State>,
    guard: Guard,
    q: ResourceActionRunRequest,
) -> Result<ApplicationResponse, ApiError> {
    let request = ResourceActionRunRequestV2 {
        name: q.name,
        namespace: q.namespace,
        resource_name: q.resource_name,
        version: q.version,
        group: q.group,
        kind: q.kind,
        action: q.action,
        app_namespace: q.app_namespace,
        project: q.project,
        resource_action_parameters: Vec::new(),
    };
    run_v2(state, guard, request).await
}

pub async fn run_v2(
    state: Arc<State>,
    guard: Guard,
    q: ResourceActionRunRequestV2,
) -> Result<ApplicationResponse, ApiError> {
    let request = ApplicationResourceRequest {
        name: q.name,
        namespace: q.namespace,
        resource_name: q.resource_name,
        version: q.version,
        group: q.group,
        kind: q.kind,
        app_namespace: q.app_namespace,
        project: q.project,
    };
    let group = request.group.as_deref().unwrap_or_default();
    let path = format!("{group}/{}/{}", request.kind, q.action);
    let subject = subject::<RunAction>(&state, &guard, &path, &request).await?;
    let customizations = customizations(&state).await?;
    let parameters: Vec<_> = q
        .resource_action_parameters
        .into_iter()
        .map(|p| (p.name, p.value))
        .collect();
    let (object, action) = (subject.object.clone(), q.action.clone());
    let impacts = scripted(move || {
        actions::run(
            &object,
            &action,
            &parameters,
            &customizations,
            Timestamp::now(),
        )
    })
    .await;
    let impacts = impacts.map_err(|e| e.context("error executing Lua resource action"))?;
    // Check all of them before carrying out the first.
    for impact in &impacts {
        check(&state, &subject, impact).await?;
    }
    for impact in &impacts {
        match impact.operation {
            Operation::Patch => patch(&state, &subject, &impact.object)
                .await
                .map_err(|e| e.within("error patching resource"))?,
            Operation::Create => {
                let object = Value::Object(impact.object.0.clone());
                let created = state.reach.live(&subject.app).create(&object, false).await;
                created.map_err(|e| e.within("error creating resource"))?;
            }
        }
    }
    let words = match &subject.at {
        None => format!("ran action {}", q.action),
        Some(at) => format!(
            "ran action {} on resource {}/{}/{}",
            q.action, at.group, at.kind, at.name
        ),
    };
    audit::app(
        &state,
        guard.caller(),
        &subject.app,
        audit::RESOURCE_ACTION_RAN,
        &words,
    )
    .await;
    Ok(ApplicationResponse {})
}

async fn subject<A: Verb>(
    state: &State,
    guard: &Guard,
    path: &str,
    q: &ApplicationResourceRequest,
) -> Result<Subject<A>, ApiError> {
    if q.kind == "Application" && q.group.as_deref() == Some(GROUP) && q.name == q.resource_name {
        let at = (q.app_namespace.as_deref(), q.name.as_str());
        let (app, project) = find_to(&state.reach, guard, path, at, q.project.as_deref()).await?;
        let mut value =
            serde_json::to_value(&*app).map_err(|e| ApiError::internal(e.to_string()))?;
        value["apiVersion"] = API_VERSION.into();
        value["kind"] = "Application".into();
        return Ok(Subject {
            app,
            project,
            object: readable(value)?,
            at: None,
        });
    }
    let (app, project, node) = node(state, guard, path, q).await?;
    let at = live_ref(&node, &q.version);
    let object = state
        .reach
        .live(&app)
        .get(&at)
        .await
        .map_err(|e| e.context("error getting resource"))?;
    Ok(Subject {
        app,
        project,
        object: readable(object)?,
        at: Some(at),
    })
}

fn readable(value: Value) -> Result<Object, ApiError> {
    Object::from_value(value).map_err(|e| ApiError::internal(e.to_string()))
}

async fn customizations(state: &State) -> Result<Customizations, ApiError> {
    let config = state
        .settings
        .config()
        .await
        .map_err(|e| e.context("error getting resource overrides"))?;
    let (customizations, problems) = customize::read(&config, Timestamp::now);
    problems
        .iter()
        .for_each(|problem| tracing::warn!("{problem}"));
    Ok(customizations)
}

/// Runs a user's script away from the threads that answer requests, so that it does not delay them.
async fn scripted<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
) -> Result<T, ApiError> {
    heavy::run(work).await.map_err(|e| match e {
        ActionError::Unknown => {
            ApiError::new(Code::Unknown, e.to_string()).within("error getting Lua resource action")
        }
        other => ApiError::plain(other.to_string()),
    })
}

/// Checks that the project permits the change, that a patch applies to the requested object, and
/// that the API server would accept a new object.
async fn check(
    state: &State,
    subject: &Subject<RunAction>,
    impact: &Impact,
) -> Result<(), ApiError> {
    let Impact { operation, object } = impact;
    if *operation == Operation::Patch && object.key() != subject.object.key() {
        return Err(ApiError::invalid(
            "an action can patch only the resource that it is run on",
        ));
    }
    let rules = permissions(state, &subject.app, &subject.project);
    let (group, kind, name, namespace) = (
        object.group(),
        object.kind(),
        object.name(),
        object.namespace(),
    );
    if subject.at.is_some() && !permit::resource(&rules, group, kind, namespace, name) {
        return Err(ApiError::plain(format!(
            "application is not permitted to manage {group}/{kind}/{name} in {namespace}"
        )));
    }
    match operation {
        Operation::Patch => Ok(()),
        Operation::Create => {
            let object = Value::Object(object.0.clone());
            state.reach.live(&subject.app).create(&object, true).await
        }
    }
}

/// Writes the changes. The status is written separately where it is a subresource.
async fn patch(state: &State, subject: &Subject<RunAction>, new: &Object) -> Result<(), ApiError> {
    let value = |object: &Object| Value::Object(object.0.clone());
    let diff = json_merge::create_two_way(&value(&subject.object), &value(new))
        .map_err(|e| ApiError::plain(e.to_string()))?;
    let Value::Object(mut diff) = diff else {
        return Ok(());
    };
    let Some(at) = &subject.at else {
        if !diff.is_empty() {
            let diff = Value::Object(diff);
            state.reach.patch_app(&subject.app, &diff).await?;
        }
        return Ok(());
    };
    if let Some(status) = diff.get("status") {
        let only: Map<String, Value> = [("status".to_owned(), status.clone())]
            .into_iter()
            .collect();
        if state
            .reach
            .live(&subject.app)
            .apply_status(at, &json!(only))
            .await?
        {
            diff.remove("status");
        }
    }
    if !diff.is_empty() {
        let diff = Value::Object(diff).to_string();
        state
            .reach
            .live(&subject.app)
            .apply(at, &diff, MERGE_PATCH)
            .await?;
    }
    Ok(())
}
