//! What is asked of a pod besides changing it: eviction, which disruption budgets may forbid, and binding to a node.

use super::{Call, Query, body, bytes_response, negotiate, with_warnings, write};
use crate::registry::{DeleteOptions, Part, WriteOptions, meta};
use crate::status::{Cause, Status};
use crate::strategy;
use crate::strategy::admission::{self, Answers, Objects, Operation, Request};
use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::selector::LabelSelector;
use tiphys_apimachinery::{Gvk, Gvr, Object};

/// How many evicted pods a budget waits for at most.
const MAX_DISRUPTED: usize = 2_000;
/// How often a budget is read again when its status changes meanwhile.
const ATTEMPTS: usize = 20;
const REFUSED: &str = "Cannot evict pod as it would violate the pod's disruption budget.";

fn created() -> Response<Body> {
    let mut response = bytes_response(Status::new(201, "", "").to_json().to_string().into());
    *response.status_mut() = StatusCode::CREATED;
    response
}

fn pods() -> Gvr {
    Gvr::new("", "v1", "pods")
}

fn budgets() -> Gvr {
    Gvr::new("policy", "v1", "poddisruptionbudgets")
}

/// A delete that the pod's disruption budget has to allow.
pub async fn evict(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (mut request, findings) = body::read_object("Eviction", &call.parts.headers, &bytes)?;
    options.findings = findings;
    let resource = call.spoken()?;
    if request.gvk() == Gvk::new("policy", "v1beta1", "Eviction") {
        request.0.insert("apiVersion".into(), resource.api_version().into());
    }
    meta::check_type(&resource, &mut request)?;
    let mut warnings = strategy::check_fields(&resource, &mut request, &options)?;
    let answer = evicted(call, request, &options, &mut warnings).await.map_err(|status| status.warned(&warnings))?;
    Ok(with_warnings(answer, &warnings))
}

async fn evicted(
    call: &Call<'_>,
    mut request: Object,
    written: &WriteOptions,
    warnings: &mut Vec<String>,
) -> Result<Response<Body>, Status> {
    let answers = changed(call, "eviction", &mut request, written)?;
    if request.name() != call.name() {
        return Err(Status::bad_request("name in URL does not match name in Eviction object"));
    }
    let asked = request.pointer("/deleteOptions/dryRun").and_then(Value::as_array);
    let dry_run = written.dry_run || asked.is_some_and(|list| !list.is_empty());
    warnings.extend(judged(call, "eviction", &request, (written, answers))?);
    let pod = call.registry().get(&pods(), &call.namespace, call.name())?;
    let counts = !matches!(pod.str_at("/status/phase"), "Succeeded" | "Failed" | "Pending") && pod.deletion_timestamp().is_none();
    if counts {
        permit(call, &pod, dry_run)?;
    }
    let mut options: DeleteOptions = Query::default().delete_options(request.0.get("deleteOptions"))?;
    options.dry_run = dry_run;
    if !options.dry_run {
        mark(call, &pod)?;
    }
    let deleted = call.registry().delete(&pods(), &call.namespace, call.name(), &options)?;
    call.registry().durable(deleted.revision).await?;
    Ok(created())
}

/// Lets policies and webhooks change something that is asked for under a name, and not kept.
pub fn changed(call: &Call<'_>, subresource: &str, asked: &mut Object, options: &WriteOptions) -> Result<Answers, Status> {
    let (name, mut answers) = (name_of(call, asked), Answers::default());
    admission::admit(&request(call, subresource, &name, options), asked, None, &mut answers)?;
    Ok(answers)
}

/// What they have to say of it then; gives warnings.
pub fn judged(
    call: &Call<'_>,
    subresource: &str,
    asked: &Object,
    (options, answers): (&WriteOptions, Answers),
) -> Result<Vec<String>, Status> {
    let name = name_of(call, asked);
    admission::check(&request(call, subresource, &name, options), Objects { new: Some(asked), old: None }, answers)
}

fn name_of(call: &Call<'_>, asked: &Object) -> String {
    if call.name().is_empty() { asked.name() } else { call.name() }.to_owned()
}

fn request<'a>(call: &'a Call<'_>, subresource: &'a str, name: &'a str, options: &'a WriteOptions) -> Request<'a> {
    let by = (options.dry_run, &options.sender);
    Request::new(call.registry(), &call.resource, Operation::Create, (&call.namespace, name), by).of(subresource)
}

/// Asks the budget of the pod, and takes one disruption from it.
fn permit(call: &Call<'_>, pod: &Object, dry_run: bool) -> Result<(), Status> {
    let labels = pod.labels();
    for _ in 0..ATTEMPTS {
        let covers = |b: &Arc<Object>| {
            b.pointer("/spec/selector").is_some_and(|s| LabelSelector::from_json(s).is_ok_and(|selector| selector.matches(&labels)))
        };
        let found: Vec<Arc<Object>> = call.registry().list(&budgets(), Some(&call.namespace))?.into_iter().filter(covers).collect();
        let budget = match found.as_slice() {
            [] => return Ok(()),
            [one] => one,
            _ => {
                let text = "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.";
                return Err(Status::new(500, "", text));
            }
        };
        let number = |field: &str| budget.i64_at(&format!("/status/{field}")).unwrap_or(0);
        let (healthy, desired) = (number("currentHealthy"), number("desiredHealthy"));
        let always = budget.str_at("/spec/unhealthyPodEvictionPolicy") == "AlwaysAllow";
        if !is_ready(pod) && (always || (healthy >= desired && desired > 0)) {
            return Ok(());
        }
        let taken = take_one(call, budget, pod)?;
        if dry_run {
            return Ok(());
        }
        let options = WriteOptions::manager("kube-apiserver");
        match call.registry().update_part(&budgets(), &call.namespace, taken, Part::Status, &options) {
            Ok(_) => return Ok(()),
            Err(status) if status.is_conflict() => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::new(504, "Timeout", "Timeout: couldn't update PodDisruptionBudget due to conflicts"))
}

/// The budget with one disruption less.
fn take_one(call: &Call<'_>, budget: &Object, pod: &Object) -> Result<Object, Status> {
    let name = budget.name();
    let number = |field: &str| budget.i64_at(&format!("/status/{field}")).unwrap_or(0);
    let (healthy, desired, allowed) = (number("currentHealthy"), number("desiredHealthy"), number("disruptionsAllowed"));
    if number("observedGeneration") < budget.generation() {
        return Err(too_many(format!("The disruption budget {name} is still being processed by the server."), 10));
    }
    let forbid = |why: &str| Status::forbidden("policy", "poddisruptionbudget", name, why);
    if allowed < 0 {
        return Err(forbid("pdb disruptions allowed is negative"));
    }
    if budget.pointer("/status/disruptedPods").and_then(Value::as_object).is_some_and(|m| m.len() > MAX_DISRUPTED) {
        return Err(forbid("DisruptedPods map too big - too many evictions not confirmed by PDB controller"));
    }
    if allowed == 0 {
        let why = if healthy <= desired {
            format!("The disruption budget {name} needs {desired} healthy pods and has {healthy} currently")
        } else {
            format!("The disruption budget {name} does not allow evicting pods currently")
        };
        return Err(too_many(why, 0));
    }
    let mut taken = budget.clone();
    let status = map_entry(&mut taken.0, "status");
    status.insert("disruptionsAllowed".into(), (allowed - 1).into());
    let now = meta::timestamp(call.registry().now());
    map_entry(status, "disruptedPods").insert(pod.name().to_owned(), now.into());
    Ok(taken)
}

fn too_many(why: String, seconds: u32) -> Status {
    let cause = Cause { reason: "DisruptionBudget", message: why, field: String::new() };
    let mut status = Status::new(429, "TooManyRequests", REFUSED).with_causes(vec![cause]);
    status.details.get_or_insert_default().retry_after_seconds = seconds;
    status
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|l| l.iter().any(|c| c["type"] == "Ready" && c["status"] == "True"))
}

/// Says in the pod's status why it goes.
fn mark(call: &Call<'_>, pod: &Object) -> Result<(), Status> {
    let now = meta::timestamp(call.registry().now());
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        "lastTransitionTime": now,
    });
    for _ in 0..ATTEMPTS {
        let mut pod = (*call.registry().get(&pods(), &call.namespace, pod.name())?).clone();
        set_condition(&mut pod, condition.clone());
        match call.registry().update_part(&pods(), &call.namespace, pod, Part::Binding, &WriteOptions::default()) {
            Err(status) if status.is_conflict() => {}
            other => return other.map(drop),
        }
    }
    Ok(())
}

/// A condition that was there keeps its place, and its time if it says the same.
fn set_condition(object: &mut Object, mut condition: Value) {
    let list = map_entry(&mut object.0, "status").entry("conditions").or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else { return };
    match list.iter_mut().find(|c| c["type"] == condition["type"]) {
        Some(found) => {
            if found["status"] == condition["status"] {
                condition["lastTransitionTime"] = found["lastTransitionTime"].clone();
            }
            *found = condition;
        }
        None => list.push(condition),
    }
}

/// Places a pod on a node, as a scheduler does. The body is a Binding.
pub async fn bind(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    negotiate::form_but_table(&call.parts.headers)?;
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (mut binding, findings) = body::read_object("Binding", &call.parts.headers, &bytes)?;
    options.findings = findings;
    // The old form is posted to the collection.
    let alone = call.resource.is("", "bindings");
    let resource = if alone { (*call.resource).clone() } else { call.spoken()? };
    meta::check_type(&resource, &mut binding)?;
    let mut warnings = strategy::check_fields(&resource, &mut binding, &options)?;
    meta::check_namespace(&resource, &call.namespace, &mut binding).map_err(|status| status.warned(&warnings))?;
    let answer = bound(call, binding, (alone, &options), &mut warnings).await.map_err(|status| status.warned(&warnings))?;
    Ok(with_warnings(answer, &warnings))
}

async fn bound(
    call: &Call<'_>,
    mut binding: Object,
    (alone, options): (bool, &WriteOptions),
    warnings: &mut Vec<String>,
) -> Result<Response<Body>, Status> {
    let subresource = if alone { "" } else { "binding" };
    let answers = changed(call, subresource, &mut binding, options)?;
    let name = if alone { binding.name().to_owned() } else { call.name().to_owned() };
    if !binding.name().is_empty() && binding.name() != name {
        return Err(Status::bad_request("name in URL does not match name in Binding object"));
    }
    let (kind, node) = (binding.str_at("/target/kind"), binding.str_at("/target/name"));
    let mut causes = Vec::new();
    if !matches!(kind, "" | "Node") {
        causes.push(Cause::not_supported("target.kind", &kind.into(), &["Node", "<empty>"]));
    }
    if node.is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    if !causes.is_empty() {
        let texts: Vec<String> = causes.iter().map(|cause| format!("{}: {}", cause.field, cause.message)).collect();
        let one = matches!(texts.as_slice(), [_]);
        return Err(Status::new(500, "", if one { texts.concat() } else { format!("[{}]", texts.join(", ")) }));
    }
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let problems = strategy::validate::formats::path_segment(&name);
    if !problems.is_empty() {
        return Err(Status::bad_request(format!("Name parameter invalid: {name:?}: {}", problems.join(";"))));
    }
    warnings.extend(judged(call, subresource, &binding, (options, answers))?);
    let mut pod = (*call.registry().get(&pods(), &call.namespace, &name)?).clone();
    let resource = call.registry().resource(&pods())?;
    meta::check_uid(&resource, &binding, pod.uid(), options.dry_run)?;
    let refuse = |why: String| Err(Status::conflict("", "pods/binding", &name, &why));
    if pod.deletion_timestamp().is_some() {
        return refuse(format!("pod {name} is being deleted, cannot be assigned to a host"));
    if alone {
        // As of everything that is created. That of a pod says which pod it means.
        meta::forget_system(&mut binding);
    }
    }
    let assigned = pod.str_at("/spec/nodeName");
    if !assigned.is_empty() {
        return refuse(format!("pod {name} is already assigned to node {assigned:?}"));
    }
    if pod.pointer("/spec/schedulingGates").and_then(Value::as_array).is_some_and(|l| !l.is_empty()) {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    map_entry(&mut pod.0, "spec").insert("nodeName".into(), node.into());
    for (key, value) in binding.annotations() {
        pod.set_annotation(&key, &value);
    }
    let labels = map_entry(pod.metadata_mut(), "labels");
    labels.extend(binding.labels().into_iter().map(|(key, value)| (key, value.into())));
    let now = meta::timestamp(call.registry().now());
    set_condition(&mut pod, json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}));
    let written = call.registry().update_part(&pods(), &call.namespace, pod, Part::Binding, options)?;
    call.registry().durable(written.revision).await?;
    Ok(created())
}
    let versions = ("ResourceVersion", binding.resource_version(), pod.resource_version());
    meta::check_precondition(&resource, &binding, versions, options.dry_run)?;
    map_entry(&mut pod.0, "status").remove("nominatedNodeName");
