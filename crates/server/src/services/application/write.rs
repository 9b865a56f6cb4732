//! Create, Update, UpdateSpec and Patch.

use super::{audit, named::found, validate::validate_and_normalize};
use crate::{
    ApiError, Code,
    access::{Authorized, Create, Get, Guard, Update, Writes, find},
    ports::StoreError,
    services::concealed,
    shown::Shown as _,
    state::State,
};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_api::{
    Application,
    application::ApplicationSpec,
    rpc::application::{
        ApplicationCreateRequest, ApplicationPatchRequest, ApplicationUpdateRequest,
        ApplicationUpdateSpecRequest,
    },
};
use tiphys_apimachinery::patch;
use tiphys_gocompat::json_error;

const TRIES: usize = 10;

pub async fn create(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationCreateRequest,
) -> Result<Application, ApiError> {
    let mut app = q.application;
    if app.metadata.namespace.is_empty() {
        app.metadata.namespace.clone_from(&state.options.namespace);
    }
    // Only Sync may start an operation, after its own checks.
    app.operation = None;
    // The status belongs to the controller; a user-supplied history could be rolled back to.
    app.status = Default::default();
    let app = guard.create(app)?;
    let project = state.reach.project_of(&app).await?;
    if !state.reach.permits(&app.metadata.namespace) {
        return Err(ApiError::new(
            Code::PermissionDenied,
            format!("namespace '{}' is not permitted", app.metadata.namespace),
        ));
    }
    let app = with_passwords(&state, &guard, app).await?;
    let context = |e: ApiError| e.context("error while validating and normalizing app");
    let app = validate_and_normalize(&state, app, &project, q.validate.unwrap_or(true))
        .await
        .map_err(context)?;
    match state.reach.create_app(&app).await {
        Ok(created) => {
            audit::app(
                &state,
                guard.caller(),
                &created,
                audit::RESOURCE_CREATED,
                "created application",
            )
            .await;
            Ok(created.into_inner())
        }
        Err(StoreError::AlreadyExists(_)) => {
            exists(&state, &guard, app, q.upsert.unwrap_or(false)).await
        }
        Err(e) => Err(ApiError::from(e).context("error creating application")),
    }
}

/// What was shown of an existing Application is sent back with the stored passwords. Only who may
/// change that one has them used.
async fn with_passwords(
    state: &State,
    guard: &Guard,
    app: Authorized<Application, Create>,
) -> Result<Authorized<Application, Create>, ApiError> {
    if !concealed::is_in_app(&app) {
        return Ok(app);
    }
    let existing: Option<Authorized<Application, Update>> =
        match state.reach.existing_app(&app).await {
            Ok(existing) => Some(guard.also(&existing)?),
            Err(StoreError::NotFound(_)) => None,
            Err(e) => return Err(e.into()),
        };
    let mut complete = app.into_inner();
    concealed::of_app(&mut complete, existing.as_deref())?;
    guard.create(complete)
}

/// Creating an identical Application again succeeds; a different one needs `upsert`.
async fn exists(
    state: &State,
    guard: &Guard,
    app: Authorized<Application, Create>,
    upsert: bool,
) -> Result<Application, ApiError> {
    let m = &app.metadata;
    let existing = state.reach.existing_app(&app).await.map_err(|e| {
        ApiError::internal(format!(
            "unable to check existing application details ({}): {e}",
            m.namespace
        ))
    })?;
    let have = &existing.metadata;
    let same = existing.spec == app.spec
        && have.labels == m.labels
        && have.annotations == m.annotations
        && have.finalizers == m.finalizers;
    if same {
        return Ok(existing.into_inner());
    }
    if !upsert {
        return Err(ApiError::invalid(
            "existing application spec is different, use upsert flag to force update",
        ));
    }
    let existing: Authorized<Application, Update> = guard.also(&existing)?;
    let app = state
        .reach
        .in_place_of(guard, &existing, app.into_inner())?;
    replace(state, guard, existing, &app, (true, TRIES))
        .await
        .map_err(|e| e.context("error updating application"))
}

/// Stores the spec and the user's part of the metadata. With `merge`, labels and annotations
/// missing from `new` are kept. With one try, a change of others since `current` is never
/// overwritten.
async fn replace<A: Writes>(
    state: &State,
    guard: &Guard,
    mut current: Authorized<Application, A>,
    new: &Authorized<Application, A>,
    (merge, tries): (bool, usize),
) -> Result<Application, ApiError> {
    for _ in 0..tries {
        let (from, to) = changes(&current, new, merge);
        match state.reach.change_app(&current, &from, &to).await {
            Ok(updated) => {
                audit::app(
                    state,
                    guard.caller(),
                    &updated,
                    audit::RESOURCE_UPDATED,
                    "updated application spec",
                )
                .await;
                return Ok(updated.into_inner());
            }
            Err(StoreError::Conflict(_)) if tries == 1 => {
                return Err(changed_meanwhile(&new.metadata.name));
            }
            Err(StoreError::Conflict(_)) => {
                current = state
                    .reach
                    .again(guard, &current)
                    .await
                    .map_err(|e| e.context("error getting application"))?;
            }
            Err(e) => return Err(e.into()),
        }
    }
    Err(ApiError::internal(
        "Failed to update application. Too many conflicts",
    ))
}

/// The current and the new values of the parts that users may change.
fn changes(current: &Application, new: &Application, merge: bool) -> (Value, Value) {
    let part = |app: &Application| json!({"spec": app.spec, "metadata": {"labels": app.metadata.labels, "annotations": app.metadata.annotations, "finalizers": app.metadata.finalizers}});
    let mut wanted = new.clone();
    if merge {
        let with = |old: &std::collections::BTreeMap<String, String>, new| {
            old.clone().into_iter().chain(new).collect()
        };
        let (old, wanted) = (&current.metadata, &mut *wanted.metadata);
        wanted.labels = with(&old.labels, std::mem::take(&mut wanted.labels));
        wanted.annotations = with(&old.annotations, std::mem::take(&mut wanted.annotations));
    }
    (part(current), part(&wanted))
}

/// Which Application a request means.
#[derive(Clone, Copy, Default)]
struct Of<'a> {
    project: Option<&'a str>,
    /// `None`: whatever it has become.
    version: Option<&'a str>,
}

fn changed_meanwhile(name: &str) -> ApiError {
    ApiError::new(
        Code::Aborted,
        format!("application '{name}' was changed meanwhile"),
    )
}

/// The common part of Update, UpdateSpec and Patch.
async fn validate_and_update(
    state: &State,
    guard: &Guard,
    mut new: Application,
    deep: bool,
    of: Of<'_>,
) -> Result<Application, ApiError> {
    let (current, old_project) = find::<Update>(
        &state.reach,
        guard,
        Some(&new.metadata.namespace),
        &new.metadata.name,
        of.project,
    )
    .await?;
    let known = &current.metadata.resource_version;
    if of.version.is_some_and(|version| version != known) {
        return Err(changed_meanwhile(&new.metadata.name));
    }
    concealed::of_app(&mut new, Some(&current))?;
    let new = state.reach.in_place_of(guard, &current, new)?;
    let project = if current.spec.project == new.spec.project {
        old_project
    } else {
        state.reach.project_of(&new).await?
    };
    let new = validate_and_normalize(state, new, &project, deep)
        .await
        .map_err(|e| e.context("error validating and normalizing app"))?;
    let tries = if of.version.is_some() { 1 } else { TRIES };
    replace(state, guard, current, &new, (false, tries))
        .await
        .map_err(|e| e.context("error updating application"))
}

pub async fn update(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationUpdateRequest,
) -> Result<Application, ApiError> {
    guard.update_named(&q.application)?;
    let of = Of {
        project: q.project.as_deref(),
        version: q.resource_version.as_deref(),
    };
    let deep = q.validate.unwrap_or(true);
    validate_and_update(&state, &guard, q.application, deep, of).await
}

pub async fn update_spec(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationUpdateSpecRequest,
) -> Result<ApplicationSpec, ApiError> {
    let (app, _) = found::<Update>(&state, &guard, &q).await?;
    let mut app = app.into_inner();
    app.spec = q.spec.into();
    let of = Of {
        project: q.project.as_deref(),
        version: None,
    };
    let deep = q.validate.unwrap_or(true);
    let updated = validate_and_update(&state, &guard, app, deep, of).await;
    Ok(updated
        .map_err(|e| e.context("error validating and updating app"))?
        .spec
        .into_inner())
}

pub async fn patch(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationPatchRequest,
) -> Result<Application, ApiError> {
    let (app, _) = found::<Get>(&state, &guard, &q).await?;
    let app: Authorized<Application, Update> = guard.also(&app)?;
    // As it is shown: a patch can copy and test any field, and what it leaves as it is gets its
    // passwords back when it is written.
    let mut shown = Application::clone(&app);
    shown.conceal();
    let before = serde_json::to_value(&shown)
        .map_err(|e| ApiError::internal(format!("error marshaling application: {e}")))?;
    let bad = |doing: &str, e: patch::PatchError| ApiError::plain(format!("{doing}: {e}"));
    let after = match q.patch_type.as_str() {
        "json" | "" => patch::json::apply(&before, &operations(&q.patch)?)
            .map_err(|e| bad("error applying patch", e))?,
        "merge" => {
            let doing = "error calculating merge patch";
            let patch: Value = serde_json::from_str(&q.patch)
                .map_err(|_| ApiError::plain(format!("{doing}: Invalid JSON Patch")))?;
            patch::json_merge::apply(&before, &patch).map_err(|e| bad(doing, e))?
        }
        other => {
            return Err(ApiError::invalid(format!(
                "Patch type '{other}' is not supported"
            )));
        }
    };
    let mut patched: Application = tiphys_rpc::table::from_json(after)
        .map_err(|e| ApiError::plain(format!("error unmarshaling patched app: {e}")))?;
    let (old, new) = (&app.metadata, &mut patched.metadata);
    // A patch cannot change which Application it applies to: one of another name would be looked
    // for, which is not what this caller was permitted to change.
    if new.name != old.name {
        return Err(ApiError::denied());
    }
    new.namespace.clone_from(&old.namespace);
    let of = Of {
        project: q.project.as_deref(),
        version: None,
    };
    validate_and_update(&state, &guard, patched, true, of).await
}

/// The operations of a JSON patch.
fn operations(patch: &str) -> Result<Value, ApiError> {
    let doing = "error decoding json patch";
    let read: Value = serde_json::from_str(patch).map_err(|e| {
        let why = json_error::of_unmarshal(patch.as_bytes(), &e);
        ApiError::plain(format!("{doing}: {why}"))
    })?;
    let found = match &read {
        Value::Array(_) => return Ok(read),
        Value::Null => return Ok(Value::Array(Vec::new())),
        Value::Object(_) => "object",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
    };
    Err(ApiError::plain(format!(
        "{doing}: json: cannot unmarshal {found} into Go value of type jsonpatch.Patch"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_apimachinery::patch::difference::{self, Difference};

    fn app(v: Value) -> Application {
        serde_json::from_value(v).expect("an Application")
    }

    #[test]
    fn a_change_is_a_patch_of_what_differs() {
        let current = app(
            json!({"metadata": {"name": "a", "resourceVersion": "7", "labels": {"x": "1", "y": "2"}},
            "spec": {"project": "p", "destination": {"server": "s"}, "source": {"repoURL": "r", "path": "a", "targetRevision": "v1"}}}),
        );
        let new = app(json!({"metadata": {"name": "a", "labels": {"x": "3"}},
            "spec": {"project": "p", "destination": {"server": "s"}, "source": {"repoURL": "r", "path": "b"}}}));
        let between = |new: &Application, merge| {
            let (from, to) = changes(&current, new, merge);
            difference::between(&from, &to, || {
                Ok(serde_json::to_value(&current).expect("JSON"))
            })
            .expect("two maps")
        };
        let changed = json!({"path": "b", "targetRevision": null});
        let replaced =
            json!({"metadata": {"labels": {"x": "3", "y": null}}, "spec": {"source": changed}});
        assert_eq!(between(&new, false), Difference::Merge(replaced));
        let merged = json!({"metadata": {"labels": {"x": "3"}}, "spec": {"source": changed}});
        assert_eq!(between(&new, true), Difference::Merge(merged));
        // A merge patch would lose this null.
        let mut with_null = current.clone();
        with_null.spec.source.get_or_insert_default().helm =
            Some(serde_json::from_value(json!({"valuesObject": {"x": null}})).expect("helm"));
        let helm = json!({"op": "add", "path": "/spec/source/helm", "value": {"valuesObject": {"x": null}}});
        assert_eq!(
            between(&with_null, false),
            Difference::Operations(vec![helm])
        );
    }
}
