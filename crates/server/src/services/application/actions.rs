//! Resource actions on live objects of an Application's tree, and on the Application itself.
//!
//! The engine says which there are and what they change; here it is looked up, checked against the
//! project, and written.

use super::{
    audit, find,
    live::{live_ref, node, permissions},
};
use crate::{ApiError, auth::Caller, ports::LiveRef, server::State};
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

/// What an action is about.
struct Subject {
    app: Application,
    project: AppProject,
    object: Object,
    /// `None`: the Application itself.
    at: Option<LiveRef>,
}

pub async fn list(
    state: Arc<State>,
    _: Caller,
    q: ApplicationResourceRequest,
) -> Result<ResourceActionsListResponse, ApiError> {
    let subject = subject(&state, &q).await?;
    let customizations = customizations(&state).await?;
    let found = scripted(move || actions::discover(&subject.object, &customizations)).await;
    let actions = found.map_err(|e| {
        e.context("error executing Lua discovery script")
            .context("error getting available actions")
    })?;
    Ok(ResourceActionsListResponse { actions })
}

/// As [`run_v2`], without parameters.
pub async fn run(
    state: Arc<State>,
    caller: Caller,
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
    run_v2(state, caller, request).await
}

pub async fn run_v2(
    state: Arc<State>,
    caller: Caller,
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
    let subject = subject(&state, &request).await?;
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
    // All of them are looked at before the first is carried out.
    for impact in &impacts {
        check(&state, &subject, impact).await?;
    }
    for impact in &impacts {
        match impact.operation {
            Operation::Patch => patch(&state, &subject, &impact.object)
                .await
                .map_err(|e| e.context("error patching resource"))?,
            Operation::Create => {
                let created = state
                    .live
                    .create(&subject.app, &Value::Object(impact.object.0.clone()), false)
                    .await;
                created.map_err(|e| e.context("error creating resource"))?;
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
        &caller,
        &subject.app,
        audit::RESOURCE_ACTION_RAN,
        &words,
    )
    .await;
    Ok(ApplicationResponse {})
}

async fn subject(state: &State, q: &ApplicationResourceRequest) -> Result<Subject, ApiError> {
    if q.kind == "Application" && q.group.as_deref() == Some(GROUP) && q.name == q.resource_name {
        let (app, project) = find(
            state,
            q.app_namespace.as_deref(),
            &q.name,
            q.project.as_deref(),
        )
        .await?;
        let mut value =
            serde_json::to_value(&app).map_err(|e| ApiError::internal(e.to_string()))?;
        value["apiVersion"] = API_VERSION.into();
        value["kind"] = "Application".into();
        return Ok(Subject {
            app,
            project,
            object: readable(value)?,
            at: None,
        });
    }
    let (app, node) = node(state, q).await?;
    let (_, project) = find(
        state,
        q.app_namespace.as_deref(),
        &q.name,
        q.project.as_deref(),
    )
    .await?;
    let at = live_ref(&node, &q.version);
    let object = state
        .live
        .get(&app, &at)
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
        .store
        .config_map("argocd-cm")
        .await
        .map_err(|e| ApiError::from(e).context("error getting resource overrides"))?;
    let (customizations, problems) = customize::read(&config, Timestamp::now);
    problems
        .iter()
        .for_each(|problem| tracing::warn!("{problem}"));
    Ok(customizations)
}

/// A user's script may take its second: it must not take it from other requests.
async fn scripted<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, ActionError> + Send + 'static,
) -> Result<T, ApiError> {
    heavy::run(work).await.map_err(|e| match e {
        ActionError::Unknown => ApiError::not_found(e.to_string()),
        other => ApiError::plain(other.to_string()),
    })
}

/// Whether the project permits it, the object is the one that was asked about, and the API server
/// would take a new one.
async fn check(state: &State, subject: &Subject, impact: &Impact) -> Result<(), ApiError> {
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
            state
                .live
                .create(&subject.app, &Value::Object(object.0.clone()), true)
                .await
        }
    }
}

/// Writes what has changed. Where the status is a resource of its own it is written as one.
async fn patch(state: &State, subject: &Subject, new: &Object) -> Result<(), ApiError> {
    let value = |object: &Object| Value::Object(object.0.clone());
    let diff = json_merge::create_two_way(&value(&subject.object), &value(new))
        .map_err(|e| ApiError::plain(e.to_string()))?;
    let Value::Object(mut diff) = diff else {
        return Ok(());
    };
    let Some(at) = &subject.at else {
        let m = &subject.app.metadata;
        if !diff.is_empty() {
            state
                .store
                .patch_app(&m.namespace, &m.name, &Value::Object(diff))
                .await?;
        }
        return Ok(());
    };
    if let Some(status) = diff.get("status") {
        let only: Map<String, Value> = [("status".to_owned(), status.clone())]
            .into_iter()
            .collect();
        if state
            .live
            .patch_status(&subject.app, at, &json!(only))
            .await?
        {
            diff.remove("status");
        }
    }
    if !diff.is_empty() {
        state
            .live
            .patch(
                &subject.app,
                at,
                &Value::Object(diff).to_string(),
                MERGE_PATCH,
            )
            .await?;
    }
    Ok(())
}
