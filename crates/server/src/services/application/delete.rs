//! Delete. The finalizers determine whether the Application's resources are deleted too, and how.

use super::{audit, named::found};
use crate::{
    ApiError,
    access::{Authorized, Delete, Get, Guard},
    state::State,
};
use serde_json::json;
use std::sync::Arc;
use tiphys_api::{
    constants::{
        RESOURCES_FINALIZER, RESOURCES_FINALIZER_BACKGROUND, RESOURCES_FINALIZER_FOREGROUND,
    },
    rpc::application::{ApplicationDeleteRequest, ApplicationResponse},
};

pub async fn delete(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationDeleteRequest,
) -> Result<ApplicationResponse, ApiError> {
    let (app, _) = found::<Get>(&state, &guard, &q).await?;
    let app: Authorized<_, Delete> = guard.also(&app)?;
    let policy = q.propagation_policy.as_deref().unwrap_or_default();
    let cascade = q.cascade.unwrap_or(true);
    if !cascade && !policy.is_empty() {
        return Err(ApiError::invalid(
            "cannot set propagation policy when cascading is disabled",
        ));
    }
    let wanted = match policy.to_lowercase().as_str() {
        "" => RESOURCES_FINALIZER,
        "foreground" => RESOURCES_FINALIZER_FOREGROUND,
        "background" => RESOURCES_FINALIZER_BACKGROUND,
        _ => {
            return Err(ApiError::invalid(format!(
                "invalid propagation policy: {policy}"
            )));
        }
    };
    let m = &app.metadata;
    let after = finalizers(
        &m.finalizers,
        cascade.then_some(wanted),
        m.deletion_timestamp.is_some(),
    );
    if after != m.finalizers {
        let patch = json!({"metadata": {"finalizers": after}});
        let patched = state.reach.patch_app(&app, &patch).await;
        patched
            .map_err(|e| ApiError::from(e).context("error patching application with finalizers"))?;
    }
    state
        .reach
        .delete_app(&app)
        .await
        .map_err(|e| ApiError::from(e).context("error deleting application"))?;
    audit::app(
        &state,
        guard.caller(),
        &app,
        audit::RESOURCE_DELETED,
        "deleted application",
    )
    .await;
    Ok(ApplicationResponse {})
}

/// Returns the finalizers with this cascade mode, or without one. No finalizer can be added once
/// deletion has started.
fn finalizers(have: &[String], cascade: Option<&str>, deleting: bool) -> Vec<String> {
    let ours = |f: &String| {
        f == RESOURCES_FINALIZER
            || f == RESOURCES_FINALIZER_FOREGROUND
            || f == RESOURCES_FINALIZER_BACKGROUND
    };
    match cascade {
        Some(wanted) if deleting || have.iter().any(|f| f == wanted) => have.to_vec(),
        Some(wanted) => have
            .iter()
            .filter(|f| !ours(f))
            .cloned()
            .chain([wanted.to_owned()])
            .collect(),
        None => have.iter().filter(|f| !ours(f)).cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cascading_is_a_finalizer() {
        let list = |items: &[&str]| items.iter().map(|s| (*s).to_owned()).collect::<Vec<_>>();
        for (have, cascade, deleting, want) in [
            (
                &["x"][..],
                Some(RESOURCES_FINALIZER),
                false,
                &["x", RESOURCES_FINALIZER][..],
            ),
            (
                &[RESOURCES_FINALIZER],
                Some(RESOURCES_FINALIZER_BACKGROUND),
                false,
                &[RESOURCES_FINALIZER_BACKGROUND],
            ),
            (
                &[RESOURCES_FINALIZER],
                Some(RESOURCES_FINALIZER),
                false,
                &[RESOURCES_FINALIZER],
            ),
            (&["x", RESOURCES_FINALIZER], None, false, &["x"]),
            (&[], Some(RESOURCES_FINALIZER), true, &[]),
        ] {
            assert_eq!(
                finalizers(&list(have), cascade, deleting),
                list(want),
                "{have:?} {cascade:?}"
            );
        }
    }
}
