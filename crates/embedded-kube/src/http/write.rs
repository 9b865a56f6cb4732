//! Create, update, patch, delete and delete-collection over HTTP.

use super::negotiate::{self, Form};
use super::selectors::Filter;
use super::{
    Call, body, delete_options, json_response, list, object, patch_body, table, with_warnings,
};
use crate::base::{DeleteOptions, Deleted, FieldValidation, Part, Sender, WriteOptions, Written};
use crate::registry::Registry;
use crate::status::{Cause, Details, Status};
use axum::body::Body;
use http::header::USER_AGENT;
use http::{Response, StatusCode};
use serde_json::{Map, Value};
use tiphys_apimachinery::Object;
use tiphys_kube_schema::gotypes;

/// Options from the query; the field manager defaults to the client's name.
pub fn options(call: &Call<'_>) -> Result<WriteOptions, Status> {
    let mut causes = patch_problem(call).into_iter().collect::<Vec<_>>();
    causes.extend(call.query.write_problems());
    if !causes.is_empty() {
        let kind = match call.parts.method {
            http::Method::PUT => "UpdateOptions",
            http::Method::PATCH => "PatchOptions",
            _ => "CreateOptions",
        };
        return Err(Status::invalid("meta.k8s.io", kind, "", causes));
    }
    let agent = call
        .parts
        .headers
        .get(USER_AGENT)
        .and_then(|v| v.to_str().ok())
        .unwrap_or("");
    let manager = match call.query.get("fieldManager") {
        Some(name) => name.to_owned(),
        None => agent
            .split('/')
            .next()
            .unwrap_or("")
            .chars()
            .filter(|c| !c.is_control())
            .take(128)
            .collect(),
    };
    Ok(WriteOptions {
        from_tree: false,
        applied: false,
        manager,
        dry_run: call.query.dry_run(),
        force: call.query.flag("force"),
        validation: call.query.validation(),
        findings: Vec::new(),
        named: None,
        guard: call.guard(),
        sender: sender(call),
    })
}

/// The sender of the request, with the options as sent.
pub fn sender(call: &Call<'_>) -> Sender {
    let sent = |name: &str| {
        call.query
            .get(name)
            .map(|value| (name.to_owned(), Value::from(value)))
    };
    let mut options: Map<String, Value> = ["fieldManager", "fieldValidation"]
        .into_iter()
        .filter_map(sent)
        .collect();
    if call.query.dry_run() {
        options.insert("dryRun".into(), vec![Value::from("All")].into());
    }
    Sender {
        user: call.user(),
        options,
    }
}

/// Does the work in place, or on a blocking thread if a webhook may delay it.
async fn carried_out<T: Send + 'static>(
    call: &Call<'_>,
    work: impl FnOnce(&Registry) -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let registry = call.registry().clone();
    let converts = call
        .resource
        .custom
        .as_ref()
        .is_some_and(|custom| custom.conversion.is_some());
    if !converts && !registry.hooks().calls_out() {
        return work(&registry);
    }
    tokio::task::spawn_blocking(move || work(&registry))
        .await
        .map_err(Status::internal)?
}

/// The object in a body. Without a Go type, only the object itself says which kind it is.
fn read_object(call: &Call<'_>, bytes: &[u8]) -> Result<(Object, Vec<String>), Status> {
    let of = gotypes::of(&call.resource.gvk()).filter(|_| call.resource.custom.is_none());
    let (object, findings) =
        body::read_object(&call.resource.kind, of, &call.parts.headers, bytes)?;
    if call.resource.custom.is_some() && object.kind().is_empty() {
        let validated = call.query.validation() != FieldValidation::Ignore;
        return Err(body::without_kind(&call.resource, validated, bytes));
    }
    let said = object.gvk();
    if call.resource.custom.is_none()
        && said.version.is_empty()
        && !said.group.is_empty()
        && said.group != call.resource.group
    {
        let kind = if said.kind.is_empty() {
            &call.resource.kind
        } else {
            &said.kind
        };
        return Err(body::without_version(&call.resource, kind, bytes));
    }
    Ok((object, findings))
}

pub async fn create(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    body::check_media_type(&call.parts.headers)?;
    let bytes = body::read(incoming).await?;
    let mut options = options(call)?;
    let (object, findings) = read_object(call, &bytes)?;
    options.findings = findings;
    let (gvr, namespace) = (call.resource.gvr(), call.namespace.clone());
    let written = carried_out(call, move |registry| {
        registry.create(&gvr, &namespace, object, &options)
    })
    .await?;
    answer(call, &written, StatusCode::CREATED).await
}

/// Replaces the object, or the part of it that belongs to the subresource.
pub async fn update(call: &Call<'_>, incoming: Body, part: Part) -> Result<Response<Body>, Status> {
    let bytes = body::read(incoming).await?;
    let mut options = options(call)?;
    let (object, findings) = read_object(call, &bytes)?;
    options.findings = findings;
    options.named = Some(call.name().to_owned());
    let (gvr, namespace) = (call.resource.gvr(), call.namespace.clone());
    let written = carried_out(call, move |registry| {
        registry.update_part(&gvr, &namespace, object, part, &options)
    })
    .await?;
    let code = if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    answer(call, &written, code).await
}

pub async fn patch(call: &Call<'_>, incoming: Body, part: Part) -> Result<Response<Body>, Status> {
    let media = patch_type(call)?;
    let bytes = body::read(incoming).await?;
    let mut options = options(call)?;
    let applies = media == patch_body::APPLY;
    let (patch, findings) = match patch_body::read(&media, call.query.validation(), &bytes) {
        Ok(found) => found,
        // A patch for a missing object is not decoded.
        Err(status) if !applies => {
            call.registry()
                .get_stored(&call.resource, &call.namespace, call.name())?;
            return Err(status);
        }
        Err(status) => return Err(status),
    };
    options.findings = findings;
    let (gvr, namespace, name) = (
        call.resource.gvr(),
        call.namespace.clone(),
        call.name().to_owned(),
    );
    let written = carried_out(call, move |registry| {
        registry.patch(&gvr, (&namespace, &name), part, &patch, &options)
    })
    .await?;
    let code = if written.created {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    answer(call, &written, code).await
}

/// Options that only one patch type may or must have.
fn patch_problem(call: &Call<'_>) -> Option<Cause> {
    if call.parts.method != http::Method::PATCH {
        return None;
    }
    let applies = body::patch_type(&call.parts.headers) == patch_body::APPLY;
    if applies && call.query.get("fieldManager").is_none_or(str::is_empty) {
        return Some(Cause::required(
            "fieldManager",
            "is required for apply patch",
        ));
    }
    let forces = !applies && call.query.has("force");
    forces.then(|| Cause::forbidden("force", "may not be specified for non-apply patch"))
}

/// The patch type of a request, if its resource supports it.
pub fn patch_type(call: &Call<'_>) -> Result<String, Status> {
    let media = body::patch_type(&call.parts.headers);
    match media.as_str() {
        patch_body::JSON | patch_body::MERGE | patch_body::APPLY => Ok(media),
        patch_body::STRATEGIC if call.resource.custom.is_none() => Ok(media),
        _ if call.resource.custom.is_some() => {
            let known = "application/json-patch+json, application/merge-patch+json, application/apply-patch+yaml";
            Err(Status::unsupported_media_type(known))
        }
        // The route accepts a list of media types, the patch does not.
        _ if body::names_one_of(&call.parts.headers, &patch_body::ALL) => {
            Err(Status::unsupported_media_type(&patch_body::ALL.join(", ")))
        }
        _ => Err(
            Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type")
                .with_causes(Vec::new()),
        ),
    }
}

async fn answer(
    call: &Call<'_>,
    written: &Written,
    code: StatusCode,
) -> Result<Response<Body>, Status> {
    call.registry().durable(written.revision).await?;
    Ok(with_warnings(
        object::respond(call, &written.stored, code)?,
        &written.warnings,
    ))
}

async fn delete_options(call: &Call<'_>, incoming: Body) -> Result<DeleteOptions, Status> {
    let mut options = delete_options::understood(&delete_options::sent(call, incoming).await?)?;
    options.sender.user = call.user();
    Ok(options)
}

/// Warns about deleting jobs without saying whether their pods are deleted.
fn orphans_warning(call: &Call<'_>, options: &DeleteOptions) -> Option<String> {
    (options.propagation.is_none() && call.resource.is("batch", "jobs")).then(|| {
        "child pods are preserved by default when jobs are deleted; set propagationPolicy=Background to remove them or set \
         propagationPolicy=Orphan to suppress this warning"
            .to_owned()
    })
}

pub async fn delete(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let options = delete_options(call, incoming).await?;
    // Only a request with the deprecated option gets a code that says the delete is not finished.
    let old_way = options.sender.options.get("orphanDependents") == Some(&Value::Bool(false));
    let orphans = orphans_warning(call, &options);
    let (gvr, namespace, name) = (
        call.resource.gvr(),
        call.namespace.clone(),
        call.name().to_owned(),
    );
    let deleted = carried_out(call, move |registry| {
        registry.delete(&gvr, &namespace, &name, &options)
    })
    .await;
    let deleted = deleted.map_err(|status| status.warned(orphans.as_slice()))?;
    call.registry().durable(deleted.revision).await?;
    let warnings: Vec<String> = deleted.warnings.iter().cloned().chain(orphans).collect();
    if !deleted.removed || deleted.hollow || returns_object(call) {
        let code = if !deleted.removed && old_way {
            StatusCode::ACCEPTED
        } else {
            StatusCode::OK
        };
        let code = if call.resource.is("", "pods") {
            StatusCode::OK
        } else {
            code
        };
        return Ok(with_warnings(
            object::respond(call, &deleted.stored, code)?,
            &warnings,
        ));
    }
    if negotiate::form(&call.parts.headers)? == Form::Table {
        // A Status has no rows, but the row option is still validated.
        table::Include::from_query(call.query.get("includeObject"))?;
    }
    Ok(with_warnings(
        json_response(&success(call, &deleted)),
        &warnings,
    ))
}

/// Some kinds answer a delete with the object even if it has been removed.
fn returns_object(call: &Call<'_>) -> bool {
    match (
        call.resource.group.as_str(),
        call.resource.resource.as_str(),
    ) {
        (
            "",
            "pods"
            | "services"
            | "serviceaccounts"
            | "persistentvolumes"
            | "persistentvolumeclaims"
            | "podtemplates",
        ) => true,
        ("", "resourcequotas") => true,
        ("storage.k8s.io", resource) => resource != "csistoragecapacities",
        ("resource.k8s.io", _) => call.resource.custom.is_none(),
        _ => false,
    }
}

fn success(call: &Call<'_>, deleted: &Deleted) -> Value {
    let details = Details {
        name: call.name().to_owned(),
        group: call.resource.group.clone(),
        kind: call.resource.resource.clone(),
        uid: deleted.stored.meta.uid.clone(),
        ..Details::default()
    };
    let mut status = Status::new(200, "", "");
    status.details = Some(Box::new(details));
    let mut value = status.to_json();
    if let Some(map) = value.as_object_mut() {
        map.remove("code");
    }
    value
}

/// Deletes the objects that the selectors match, and returns their list.
pub async fn delete_collection(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    if call.resource.namespaced && call.target.namespace.is_none() {
        return Err(if call.resource.custom.is_some() {
            Status::no_such_path()
        } else {
            Status::not_allowed()
        });
    }
    let form = negotiate::form(&call.parts.headers)?;
    let filter = Filter::from_query(&call.query, &call.resource, &call.query.list_problems())?;
    let mut options = delete_options(call, incoming).await?;
    options.of_many = true;
    let warnings: Vec<String> = orphans_warning(call, &options).into_iter().collect();
    let mut page = list::page(call, &filter)?;
    let mut last = 0;
    for item in &page.items {
        match call.registry().delete(
            &call.resource.gvr(),
            &item.meta.namespace,
            &item.meta.name,
            &options,
        ) {
            Ok(deleted) => last = last.max(deleted.revision),
            Err(status) if status.is_not_found() => {}
            Err(status) => return Err(status.warned(&warnings)),
        }
    }
    call.registry().durable(last).await?;
    // In their state when listed, not when removed.
    page.items = call.registry().as_served(&call.resource, page.items)?;
    Ok(with_warnings(list::answer(call, form, &page)?, &warnings))
}
