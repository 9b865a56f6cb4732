//! The scale subresource: the number of replicas of an object, as `autoscaling/v1` `Scale`.

use super::negotiate::{self, Form};
use super::{Call, body, json_response, object, patch_body, table, with_warnings, write};
use crate::admission::{Answers, Objects, Operation, Request};
use crate::base::{Part, Patch, WriteOptions, Written};
use crate::catalog::{CRD_TABLE, Resource};
use crate::registry::meta::{asked_revision, check_name, check_type, check_uid, replaces};
use crate::registry::{apply_scale, patched_scale, settle_said_type, track_scale, unreadable};
use crate::status::Status;
use crate::{admission, strategy};
use axum::body::Body;
use http::Response;
use serde_json::{Map, Value, json};
use tiphys_apimachinery::patch::apply::scale::{self as owners, ReplicaPaths, fields_path};
use tiphys_apimachinery::{Gvk, Object, object::map_entry};
use tiphys_kube_schema::gotypes;

/// The JSON pointers of the replica counts.
struct Paths {
    spec: String,
    status: String,
}

fn pointer(json_path: &str) -> String {
    json_path
        .trim_start_matches('.')
        .split('.')
        .map(|part| format!("/{part}"))
        .collect()
}

fn paths(call: &Call<'_>) -> Paths {
    match call.resource.custom.as_ref().and_then(|c| c.scale.as_ref()) {
        Some(scale) => Paths {
            spec: pointer(&scale.spec),
            status: pointer(&scale.status),
        },
        None => Paths {
            spec: "/spec/replicas".into(),
            status: "/status/replicas".into(),
        },
    }
}

/// The selector in text form.
fn selector(call: &Call<'_>, object: &Object) -> String {
    if let Some(custom) = &call.resource.custom {
        let path = custom
            .scale
            .as_ref()
            .and_then(|s| s.selector.as_deref())
            .map(pointer);
        return path
            .map(|p| object.str_at(&p).to_owned())
            .unwrap_or_default();
    }
    object
        .pointer("/spec/selector")
        .map(super::table::cells::selector_text)
        .filter(|s| s != "<none>")
        .unwrap_or_default()
}

fn scale_of(call: &Call<'_>, object: &Object) -> Value {
    let paths = paths(call);
    let mut metadata = Map::new();
    for field in [
        "name",
        "namespace",
        "uid",
        "resourceVersion",
        "creationTimestamp",
    ] {
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
    let live = call
        .registry()
        .get(&call.resource.gvr(), &call.namespace, call.name())?;
    if let Some(path) = call
        .resource
        .custom
        .as_ref()
        .and_then(|c| c.scale.as_ref())
        .map(|scale| &scale.spec)
        && live.pointer(&pointer(path)).is_none()
    {
        return Err(Status::internal(format!(
            "the spec replicas field {path:?} does not exist"
        )));
    }
    answer(call, &live)
}

/// The Scale of an object in the requested form.
fn answer(call: &Call<'_>, object: &Object) -> Result<Response<Body>, Status> {
    let scale = scale_of(call, object);
    if call.resource.custom.is_some() {
        return Ok(json_response(&scale));
    }
    let mut resource = Resource::clone(&call.resource);
    [
        resource.group,
        resource.version,
        resource.kind,
        resource.table,
    ] = ["autoscaling", "v1", "Scale", table::SCALES].map(str::to_owned);
    let beta = negotiate::is_beta(&call.parts.headers);
    let whole = || Object::from_value(scale.clone()).map_err(|e| Status::internal(e.to_string()));
    let answer = match negotiate::form(&call.parts.headers)? {
        Form::Object | Form::GroupDiscovery => scale,
        Form::MetadataList => {
            let text = "you requested PartialObjectMetadataList, but the requested object is not a list (*autoscaling.Scale)";
            return Err(Status::new(406, "NotAcceptable", text));
        }
        Form::Metadata => negotiate::in_version(beta, object::metadata_only(&resource, &whole()?)),
        Form::Table => {
            let include = table::Include::from_query(call.query.get("includeObject"))?;
            let meta = json!({"resourceVersion": object.resource_version()});
            negotiate::in_version(
                beta,
                table::of_object(&resource, &whole()?, meta, include, call.registry().now()),
            )
        }
    };
    Ok(json_response(&answer))
}

pub async fn update(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let bytes = body::read(incoming).await?;
    let mut options = write::options(call)?;
    let (mut scale, findings) = body::read_object(
        "Scale",
        gotypes::find("autoscaling/v1.Scale"),
        &call.parts.headers,
        &bytes,
    )?;
    options.findings = findings;
    if call.resource.custom.is_none() {
        check_type(&call.spoken()?, &mut scale)?;
    }
    let warnings = strategy::read_scale(&mut scale, &options)
        .map_err(|why| not_a_scale(call, &why.reading))?;
    check_namespace(call, &scale)
        .and_then(|()| check_name(call.name(), &scale))
        .map_err(|status| status.warned(&warnings))?;
    if call.resource.namespaced {
        scale.set_namespace(&call.namespace);
    }
    let changed = |before: &Object| {
        check_uid(&call.resource, &scale, before.uid(), options.dry_run)
            .map_err(|status| status.warned(&warnings))?;
        let mut scale = scale.clone();
        track_scale(call.registry(), before, &mut scale, &options);
        Ok((scale, warnings.clone()))
    };
    store(call, &options, changed).await
}

fn check_namespace(call: &Call<'_>, scale: &Object) -> Result<(), Status> {
    if !call.resource.namespaced
        || scale.namespace().is_empty()
        || scale.namespace() == call.namespace
    {
        return Ok(());
    }
    Err(Status::bad_request(
        "the namespace of the provided object does not match the namespace sent on the request",
    ))
}

/// The error for a body that is not a Scale. The handler of custom kinds does not include the name
/// of the kind.
fn not_a_scale(call: &Call<'_>, why: &str) -> Status {
    Status::bad_request(match call.resource.custom {
        Some(_) => {
            "no kind is registered for the type v1.Scale in scheme \"pkg/runtime/scheme.go:111\""
                .to_owned()
        }
        None => format!("Scale in version \"v1\" cannot be handled as a Scale: {why}"),
    })
}

pub async fn patch(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let media = write::patch_type(call)?;
    let bytes = body::read(incoming).await?;
    let mut options = write::options(call)?;
    let (patch, findings) = patch_body::read(&media, call.query.validation(), &bytes)?;
    options.findings = findings;
    options.force = call.query.flag("force");
    options.from_tree = matches!(patch, Patch::Strategic(_));
    let changed = |scale: &Object| {
        let mut new = match &patch {
            Patch::Apply(config) => {
                apply_scale(call.registry(), &call.resource, scale, config, &options)?
            }
            other => patched_scale(scale, other)?,
        };
        if call.resource.custom.is_none() {
            settle_said_type(&call.spoken()?, (&patch, &options), scale, &mut new)?;
        }
        let result = new.clone();
        let from_tree = matches!(patch, Patch::Apply(_) | Patch::Strategic(_));
        let read = strategy::read_scale(
            &mut new,
            &WriteOptions {
                from_tree,
                ..options.clone()
            },
        );
        let warnings = read.map_err(|why| {
            unreadable(
                &Gvk::new("autoscaling", "v1", "Scale"),
                true,
                &patch,
                scale,
                &result,
                &why,
            )
        })?;
        check_namespace(call, &new)
            .and_then(|()| check_name(call.name(), &new))
            .map_err(|status| status.warned(&warnings))?;
        if !matches!(patch, Patch::Apply(_)) {
            track_scale(call.registry(), scale, &mut new, &options);
        }
        Ok((new, warnings))
    };
    store(call, &options, changed).await
}

/// The path of the replica count in each version.
fn replica_paths(call: &Call<'_>) -> ReplicaPaths {
    let resource = &call.resource;
    let replicas = Some(fields_path("spec.replicas"));
    if resource.custom.is_none() {
        let versions: &[&str] = match resource.resource.as_str() {
            "replicationcontrollers" => &["v1"],
            "replicasets" => &["apps/v1beta2", "apps/v1"],
            _ => &["apps/v1beta1", "apps/v1beta2", "apps/v1"],
        };
        return versions
            .iter()
            .map(|version| ((*version).to_owned(), replicas.clone()))
            .collect();
    }
    let definition = call
        .registry()
        .read()
        .get(
            CRD_TABLE,
            "",
            &format!("{}.{}", resource.resource, resource.group),
        )
        .map(|d| d.object());
    let versions = definition
        .as_ref()
        .and_then(|d| d.pointer("/spec/versions"))
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let path = |version: &Value| {
        version
            .pointer("/subresources/scale/specReplicasPath")
            .and_then(Value::as_str)
            .map(fields_path)
    };
    versions
        .map(|version| {
            (
                format!(
                    "{}/{}",
                    resource.group,
                    version["name"].as_str().unwrap_or_default()
                ),
                path(version),
            )
        })
        .collect()
}

fn set_at(object: &mut Object, pointer: &str, value: Value) {
    let words: Vec<&str> = pointer.trim_start_matches('/').split('/').collect();
    if let [parents @ .., last] = words.as_slice() {
        let map = parents
            .iter()
            .fold(&mut object.0, |map, word| map_entry(map, word));
        map.insert((*last).to_owned(), value);
    }
}

/// Sets the replicas of the changed Scale; retried after a concurrent write.
async fn store(
    call: &Call<'_>,
    options: &WriteOptions,
    change: impl Fn(&Object) -> Result<(Object, Vec<String>), Status>,
) -> Result<Response<Body>, Status> {
    let paths = replica_paths(call);
    for _ in 0..50 {
        let mut live =
            (*call
                .registry()
                .get(&call.resource.gvr(), &call.namespace, call.name())?)
            .clone();
        // Fields that the current schema lacks are not written back.
        call.registry().from_storage(&call.resource, &mut live)?;
        let Value::Object(before) = scale_of(call, &live) else {
            break;
        };
        let mut before = Object(before);
        let managers =
            owners::to_scale(live.metadata("managedFields"), &paths).map_err(Status::internal)?;
        if let Some(managers) = managers {
            before
                .metadata_mut()
                .insert("managedFields".into(), managers);
        }
        let (scale, warnings) = change(&before)?;
        let managers = owners::to_object(
            live.metadata("managedFields"),
            scale.metadata("managedFields"),
            &call.resource.api_version(),
            &paths,
        );
        let written = set(
            call,
            &live,
            scale,
            managers.map_err(Status::internal)?,
            options,
        )
        .map_err(|status| status.warned(&warnings))?;
        let Some(written) = written else { continue };
        call.registry().durable(written.revision).await?;
        let answer = with_warnings(answer(call, &written.object)?, &warnings);
        return Ok(with_warnings(answer, &written.warnings));
    }
    Err(Status::modified(
        &call.resource.group,
        &call.resource.resource,
        call.name(),
    ))
}

/// Policies see the Scale, not the scaled object.
fn request<'a>(call: &'a Call<'_>, options: &'a WriteOptions) -> Request<'a> {
    let (by, at) = (
        (options.dry_run, &options.sender),
        (call.namespace.as_str(), call.name()),
    );
    Request::new(call.registry(), &call.resource, Operation::Update, at, by).of("scale")
}

/// A resourceVersion in a custom object's Scale must be a valid one. Any other Scale must have the
/// uid of its object, if it has a uid.
fn check_whose(call: &Call<'_>, live: &Object, scale: &Object) -> Result<(), Status> {
    if call.resource.custom.is_some() {
        let none = !scale.resource_version().is_empty() && asked_revision(scale)?.is_none();
        return if none {
            replaces(&call.resource, scale, 0).map(drop)
        } else {
            Ok(())
        };
    }
    if scale.uid().is_empty() || scale.uid() == live.uid() {
        return Ok(());
    }
    let why = format!(
        "Precondition failed: UID in precondition: {}, UID in object meta: {}",
        scale.uid(),
        live.uid()
    );
    Err(Status::conflict(
        &call.resource.group,
        &format!("{}/scale", call.resource.resource),
        call.name(),
        &why,
    ))
}

fn set(
    call: &Call<'_>,
    live: &Object,
    mut scale: Object,
    managers: Option<Value>,
    options: &WriteOptions,
) -> Result<Option<Written>, Status> {
    let old =
        Object::from_value(scale_of(call, live)).map_err(|e| Status::bad_request(e.to_string()))?;
    let mut answers = Answers::default();
    admission::admit(
        &request(call, options),
        &mut scale,
        Some(&old),
        &mut answers,
    )?;
    let replicas = scale.i64_at("/spec/replicas").unwrap_or(0);
    // A custom resource defines the valid range itself.
    let causes = if call.resource.custom.is_none() {
        strategy::check_scale(&scale)
    } else {
        Vec::new()
    };
    if !causes.is_empty() {
        return Err(Status::invalid("autoscaling", "Scale", call.name(), causes));
    }
    check_whose(call, live, &scale)?;
    let asked = asked_revision(&scale)?;
    if asked.is_some_and(|revision| revision.to_string() != live.resource_version()) {
        return Err(Status::modified(
            &call.resource.group,
            &call.resource.resource,
            call.name(),
        ));
    }
    let mut object = live.clone();
    let warnings = admission::check(
        &request(call, options),
        Objects {
            new: Some(&scale),
            old: Some(&old),
        },
        answers,
    )?;
    set_at(&mut object, &paths(call).spec, replicas.into());
    match managers {
        Some(managers) => object
            .metadata_mut()
            .insert("managedFields".into(), managers),
        None => object.metadata_mut().remove("managedFields"),
    };
    // Without a resourceVersion in the Scale, only a concurrent change is a conflict.
    match call.registry().update_part(
        &call.resource.gvr(),
        &call.namespace,
        object,
        Part::Scale,
        options,
    ) {
        Ok(mut written) => {
            written.warnings.extend(warnings);
            Ok(Some(written))
        }
        Err(status) if status.is_conflict() => Ok(None),
        Err(status) => Err(status),
    }
}
