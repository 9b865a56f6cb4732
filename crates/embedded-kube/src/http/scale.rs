//! The scale subresource: the number of replicas of an object, as `autoscaling/v1` `Scale`.

use super::{Call, body, json_response, with_warnings, write};
use crate::registry::meta::{asked_revision, check_name};
use crate::registry::{Part, Patch, WriteOptions, Written, patched_scale, unreadable};
use crate::status::{Cause, Status};
use crate::strategy;
use crate::strategy::admission::{self, Answers, Objects, Operation, Request};
use axum::body::Body;
use http::Response;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::{Gvk, Object, object::map_entry};

/// Where the numbers are, as JSON pointers.
struct Paths {
    spec: String,
    status: String,
}

fn pointer(json_path: &str) -> String {
    json_path.trim_start_matches('.').split('.').map(|part| format!("/{part}")).collect()
}

fn paths(call: &Call<'_>) -> Paths {
    match call.resource.custom.as_ref().and_then(|c| c.scale.as_ref()) {
        Some(scale) => Paths { spec: pointer(&scale.spec), status: pointer(&scale.status) },
        None => Paths { spec: "/spec/replicas".into(), status: "/status/replicas".into() },
    }
}

/// The selector in text form.
fn selector(call: &Call<'_>, object: &Object) -> String {
    if let Some(custom) = &call.resource.custom {
        let path = custom.scale.as_ref().and_then(|s| s.selector.as_deref()).map(pointer);
        return path.map(|p| object.str_at(&p).to_owned()).unwrap_or_default();
    }
    object.pointer("/spec/selector").map(super::table::cells::selector_text).filter(|s| s != "<none>").unwrap_or_default()
}

fn scale_of(call: &Call<'_>, object: &Object) -> Value {
    let paths = paths(call);
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object.metadata(field) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut spec = Map::new();
    if let Some(replicas) = object.i64_at(&paths.spec).filter(|n| *n != 0) {
        spec.insert("replicas".into(), replicas.into());
    }
    let mut status = json!({"replicas": object.i64_at(&paths.status).unwrap_or(0)});
    let selector = selector(call, object);
    if !selector.is_empty() {
        status["selector"] = selector.into();
    }
    json!({"kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status})
}

pub fn get(call: &Call<'_>) -> Result<Response<Body>, Status> {
    let live = call.registry().get(&call.resource.gvr(), &call.namespace, call.name())?;
    if let Some(path) = call.resource.custom.as_ref().and_then(|c| c.scale.as_ref()).map(|scale| &scale.spec)
        && live.pointer(&pointer(path)).is_none()
    {
        return Err(Status::internal(format!("the spec replicas field {path:?} does not exist")));
    }
    Ok(json_response(&scale_of(call, &live)))
}

pub async fn update(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (mut scale, findings) = body::read_object("Scale", &call.parts.headers, &bytes)?;
    options.findings = findings;
    let warnings = strategy::read_scale(&mut scale, &options).map_err(|why| not_a_scale(call, &why.reading))?;
    if call.resource.namespaced && !scale.namespace().is_empty() && scale.namespace() != call.namespace {
        let why = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(why).warned(&warnings));
    }
    check_name(call.name(), &scale).map_err(|status| status.warned(&warnings))?;
    store(call, &options, |_| Ok((scale.clone(), warnings.clone()))).await
}

/// The handler of custom kinds does not know what to call a Scale.
fn not_a_scale(call: &Call<'_>, why: &str) -> Status {
    Status::bad_request(match call.resource.custom {
        Some(_) => "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\"".to_owned(),
        None => format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"),
    })
}

pub async fn patch(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let media = write::patch_type(call)?;
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (patch, findings) = write::read_patch(&media, &bytes)?;
    options.findings = findings;
    if let Patch::Apply(scale) = &patch {
        return apply(call, scale).await;
    }
    let changed = |scale: &Object| {
        let mut new = patched_scale(scale, &patch)?;
        let result = new.clone();
        let read = strategy::read_scale(&mut new, &options);
        let warnings = read.map_err(|why| unreadable(&Gvk::new("autoscaling", "v1", "Scale"), true, &patch, scale, &result, &why))?;
        check_name(call.name(), &new).map_err(|status| status.warned(&warnings))?;
        Ok((new, warnings))
    };
    store(call, &options, changed).await
}

/// The manager owns the number of replicas in the object itself.
async fn apply(call: &Call<'_>, scale: &Object) -> Result<Response<Body>, Status> {
    let mut options = write::options(call)?;
    options.force = call.query.flag("force");
    let mut config = Object::skeleton(&call.resource.gvk(), &call.namespace, call.name());
    if let Some(replicas) = scale.pointer("/spec/replicas") {
        set_at(&mut config, &paths(call).spec, replicas.clone());
    }
    let at = (call.namespace.as_str(), call.name());
    call.registry().get(&call.resource.gvr(), at.0, at.1)?;
    let written = call.registry().patch(&call.resource.gvr(), at, Part::Scale, &Patch::Apply(config), &options)?;
    call.registry().durable(written.revision).await?;
    Ok(with_warnings(json_response(&scale_of(call, &written.object)), &written.warnings))
}

/// Who owns the number of replicas, as owners of the Scale.
fn managers(call: &Call<'_>, live: &Object) -> Vec<Value> {
    let path = paths(call).spec.replace('/', "/f:");
    let owners = live.metadata("managedFields").and_then(Value::as_array).into_iter().flatten();
    owners.filter(|entry| entry["fieldsV1"].pointer(&path).is_some()).cloned().map(of_scale).collect()
}

fn of_scale(mut entry: Value) -> Value {
    entry["apiVersion"] = "autoscaling/v1".into();
    entry["fieldsV1"] = json!({"f:spec": {"f:replicas": {}}});
    entry
}

fn set_at(object: &mut Object, pointer: &str, value: Value) {
    let words: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    if let [parents @ .., last] = words.as_slice() {
        let map = parents.iter().fold(&mut object.0, |map, word| map_entry(map, word));
        map.insert((*last).to_owned(), value);
    }
}

/// Sets the replicas that the changed Scale asks for; tried again when somebody else writes in between.
async fn store(
    call: &Call<'_>,
    options: &WriteOptions,
    change: impl Fn(&Object) -> Result<(Object, Vec<String>), Status>,
) -> Result<Response<Body>, Status> {
    for _ in 0..50 {
        let live = call.registry().get(&call.resource.gvr(), &call.namespace, call.name())?;
        let Value::Object(before) = scale_of(call, &live) else { break };
        let mut before = Object(before);
        let managers = managers(call, &live);
        if !managers.is_empty() {
            before.metadata_mut().insert("managedFields".into(), managers.into());
        }
        let (scale, warnings) = change(&before)?;
        let written = set(call, &live, &scale, options).map_err(|status| status.warned(&warnings))?;
        let Some(written) = written else { continue };
        call.registry().durable(written.revision).await?;
        let answer = with_warnings(json_response(&scale_of(call, &written.object)), &warnings);
        return Ok(with_warnings(answer, &written.warnings));
    }
    Err(Status::modified(&call.resource.group, &call.resource.resource, call.name()))
}

/// Policies see the Scale, not the object that it is of.
fn admitted(call: &Call<'_>, live: &Object, new: &Object, options: &WriteOptions) -> Result<Vec<String>, Status> {
    let old = Object::from_value(scale_of(call, live)).map_err(|e| Status::bad_request(e.to_string()))?;
    let by = (options.dry_run, &options.sender);
    let at = (call.namespace.as_str(), call.name());
    let request = Request::new(call.registry(), &call.resource, Operation::Update, at, by).of("scale");
    admission::check(&request, Objects { new: Some(new), old: Some(&old) }, Answers::default())
}

fn set(call: &Call<'_>, live: &Object, scale: &Object, options: &WriteOptions) -> Result<Option<Written>, Status> {
    let replicas = scale.i64_at("/spec/replicas").unwrap_or(0);
    // A custom resource says itself what its numbers may be.
    if replicas < 0 && call.resource.custom.is_none() {
        let cause = Cause::invalid("spec.replicas", &replicas.into(), "must be greater than or equal to 0");
        return Err(Status::invalid("autoscaling", "Scale", call.name(), vec![cause]));
    }
    let asked = asked_revision(scale)?;
    if asked.is_some_and(|revision| revision.to_string() != live.resource_version()) {
        return Err(Status::modified(&call.resource.group, &call.resource.resource, call.name()));
    }
    let mut object = live.clone();
    object.0.insert("apiVersion".into(), call.resource.api_version().into());
    let warnings = admitted(call, live, scale, options)?;
    set_at(&mut object, &paths(call).spec, replicas.into());
    // Without a revision in the Scale, only a change in between is a conflict.
    match call.registry().update_part(&call.resource.gvr(), &call.namespace, object, Part::Scale, options) {
        Ok(mut written) => {
            written.warnings.extend(warnings);
            Ok(Some(written))
        }
        Err(status) if status.is_conflict() => Ok(None),
        Err(status) => Err(status),
    }
}
