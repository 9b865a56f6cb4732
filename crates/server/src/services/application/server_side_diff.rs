//! `ServerSideDiff`: what applying the caller's manifests would change, by the API server's own
//! dry run. Main function: [`server_side_diff`].
//!
//! A dry run is made with the control plane's rights, and its result contains the whole live object.
//! So it is made only for resources that the Application manages and the caller may see, and only
//! with a manifest of the same resource.

use super::{live::permissions, named::found};
use crate::{
    ApiError, Code,
    access::{Get, Guard},
    ports::DiffPair,
    state::State,
};
use serde_json::Value;
use std::{collections::BTreeSet, sync::Arc};
use tiphys_api::{
    resource::ResourceDiff,
    rpc::application::{ApplicationServerSideDiffQuery, ApplicationServerSideDiffResponse},
};
use tiphys_apimachinery::Object;
use tiphys_engine::{diff, permit, types::Diff};
use tiphys_gocompat::yaml;

/// Most resources of one request.
const MOST: usize = 10_000;

pub async fn server_side_diff(
    state: Arc<State>,
    guard: Guard,
    q: ApplicationServerSideDiffQuery,
) -> Result<ApplicationServerSideDiffResponse, ApiError> {
    let (app, project) = found::<Get>(&state, &guard, &q).await?;
    let count = q.live_resources.len().max(q.target_manifests.len());
    if count > MOST {
        return Err(ApiError::invalid(format!(
            "{count} resources are more than {MOST}"
        )));
    }
    let managed = state.reach.live(&app).managed_resources().await;
    let missing = || ApiError::precondition("the application has not been compared yet");
    let managed = managed
        .and_then(|managed| managed.ok_or_else(missing))
        .map_err(|e| e.context("error getting managed resources"))?;
    let rules = permissions(&state, &app, &project);
    let visible: BTreeSet<Key<'_>> = managed
        .iter()
        .filter(|r| permit::resource(&rules, &r.group, &r.kind, &r.namespace, &r.name))
        .map(key)
        .collect();
    let mut pairs = Vec::with_capacity(count);
    for index in 0..count {
        let live = q.live_resources.get(index);
        let target = q.target_manifests.get(index).map_or("", String::as_str);
        let target = parsed(target).map_err(|e| {
            let doing = format!("error unmarshaling target manifest {index}");
            ApiError::plain(e.message).within(&doing)
        })?;
        let object = live.map(|live| live_object(live, &visible, &app.metadata.name));
        let object = object.transpose()?.flatten();
        pairs.push(pair(target, object)?);
    }
    let heads: Vec<ResourceDiff> = pairs
        .iter()
        .enumerate()
        .map(|(index, pair)| head(q.live_resources.get(index), pair))
        .collect();
    let found = state.reach.live(&app).server_side_diff(pairs).await?;
    let settings = state.settings.fresh().await?;
    let hidden = diff::hidden_annotations(settings.value("resource.sensitive.mask.annotations"));
    let items = heads
        .into_iter()
        .zip(&found)
        .map(|(head, difference)| item(head, difference, &hidden))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(ApplicationServerSideDiffResponse {
        modified: items.iter().any(|item| item.modified),
        items,
    })
}

/// Group, kind, namespace and name.
type Key<'a> = (&'a str, &'a str, &'a str, &'a str);

fn key(r: &ResourceDiff) -> Key<'_> {
    (&r.group, &r.kind, &r.namespace, &r.name)
}

/// The object of a JSON or YAML text; `None` if there is none.
fn parsed(text: &str) -> Result<Option<Object>, ApiError> {
    if matches!(text.trim(), "" | "null") {
        return Ok(None);
    }
    let mut documents = yaml::parse_documents(text, &yaml::Limits::default())
        .map_err(|e| ApiError::invalid(e.to_string()))?;
    match (documents.pop(), documents.is_empty()) {
        (Some(document), true) => Object::from_value(document.value)
            .map(Some)
            .map_err(|e| ApiError::invalid(e.to_string())),
        _ => Err(ApiError::invalid("it is not one object")),
    }
}

fn live_object(
    live: &ResourceDiff,
    visible: &BTreeSet<Key<'_>>,
    app: &str,
) -> Result<Option<Object>, ApiError> {
    let (group, kind, namespace, name) = key(live);
    let object = parsed(&live.live_state)
        .map_err(|e| e.context(&format!("error unmarshaling live state for {kind}/{name}")))?;
    let Some(object) = object else {
        return Ok(None);
    };
    let gvk = object.gvk();
    for (field, expected, got) in [
        ("name", name, object.name()),
        ("namespace", namespace, object.namespace()),
        ("group", group, gvk.group.as_str()),
        ("kind", kind, gvk.kind.as_str()),
    ] {
        if expected != got {
            return Err(ApiError::invalid(format!(
                "{field} mismatch: expected {expected}, got {got} for live resource {group}/{kind}/{name}"
            )));
        }
    }
    if !visible.contains(&key(live)) {
        return Err(ApiError::new(
            Code::PermissionDenied,
            format!("{group}/{kind} {name} not found as part of application {app}"),
        ));
    }
    Ok(Some(object))
}

fn pair(mut target: Option<Object>, live: Option<Object>) -> Result<DiffPair, ApiError> {
    let (Some(target), Some(live)) = (&mut target, &live) else {
        return Ok(DiffPair { target, live });
    };
    if target.namespace().is_empty() {
        target.set_namespace(live.namespace());
    }
    let of = |object: &Object| {
        let gvk = object.gvk();
        (
            gvk.group.clone(),
            gvk.kind.clone(),
            object.namespace().to_owned(),
            object.name().to_owned(),
        )
    };
    if of(target) != of(live) {
        return Err(ApiError::invalid(format!(
            "the target manifest {}/{} is not of the live resource {}/{} beside it",
            target.kind(),
            target.name(),
            live.kind(),
            live.name()
        )));
    }
    Ok(DiffPair {
        target: Some(target.clone()),
        live: Some(live.clone()),
    })
}

/// What the answer says of the resource itself.
fn head(live: Option<&ResourceDiff>, pair: &DiffPair) -> ResourceDiff {
    if let Some(live) = live {
        return ResourceDiff {
            group: live.group.clone(),
            kind: live.kind.clone(),
            namespace: live.namespace.clone(),
            name: live.name.clone(),
            hook: live.hook,
            resource_version: live.resource_version.clone(),
            ..ResourceDiff::default()
        };
    }
    let of = |target: &Object| ResourceDiff {
        group: target.gvk().group.clone(),
        kind: target.kind().to_owned(),
        namespace: target.namespace().to_owned(),
        name: target.name().to_owned(),
        ..ResourceDiff::default()
    };
    pair.target.as_ref().map(of).unwrap_or_default()
}

/// The answer of one resource; values of Secrets are masked.
pub(crate) fn item(
    head: ResourceDiff,
    difference: &Diff,
    hidden: &BTreeSet<String>,
) -> Result<ResourceDiff, ApiError> {
    let object = |value: &Value| match value {
        Value::Null => Ok(None),
        value => Object::from_value(value.clone())
            .map(Some)
            .map_err(|e| ApiError::internal(e.to_string())),
    };
    let mut target = object(&difference.predicted_live)?;
    let mut live = object(&difference.normalized_live)?;
    let is_secret = |o: &Object| o.kind() == "Secret" && o.gvk().group.is_empty();
    if target.iter().chain(&live).any(is_secret) {
        (target, live) = diff::mask_secret(target.as_ref(), live.as_ref(), hidden);
    }
    let text = |object: Option<Object>| {
        object.map_or_else(|| "null".to_owned(), |o| Value::Object(o.0).to_string())
    };
    Ok(ResourceDiff {
        target_state: text(target),
        live_state: text(live),
        modified: difference.modified,
        ..head
    })
}
