//! Requests about a pod other than writes: eviction, which disruption budgets may forbid, and
//! binding to a node.

use super::{Call, body, bytes_response, delete_options, negotiate, with_warnings, write};
use crate::admission::{Answers, Objects, Operation, Request};
use crate::base::{DeleteOptions, Part, WriteOptions};
use crate::registry::{check_preconditions, meta};
use crate::status::{Cause, Status};
use crate::{admission, strategy};
use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use std::sync::Arc;
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::selector::LabelSelector;
use tiphys_apimachinery::{Gvk, Gvr, Object};
use tiphys_kube_schema::gotypes;

/// The maximum number of evicted pods that a budget waits for.
const MAX_DISRUPTED: usize = 2_000;
/// How often a budget or a pod is read again after a concurrent change.
const ATTEMPTS: usize = 20;
/// The condition type of a budget.
const DISRUPTION_ALLOWED: &str = "DisruptionAllowed";
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

/// Deletes a pod if its disruption budget allows it.
pub async fn evict(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (mut request, findings) = body::read_object(
        "Eviction",
        gotypes::find("policy/v1.Eviction"),
        &call.parts.headers,
        &bytes,
    )?;
    options.findings = findings;
    let resource = call.spoken()?;
    if request.gvk() == Gvk::new("policy", "v1beta1", "Eviction") {
        request
            .0
            .insert("apiVersion".into(), resource.api_version().into());
    }
    meta::check_type(&resource, &mut request)?;
    let mut warnings = strategy::check_fields(&resource, &mut request, &options)?;
    meta::check_namespace(&resource, &call.namespace, &mut request)
        .map_err(|status| status.warned(&warnings))?;
    let answer = evicted(call, request, &options, &mut warnings)
        .await
        .map_err(|status| status.warned(&warnings))?;
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
        return Err(Status::bad_request(
            "name in URL does not match name in Eviction object",
        ));
    }
    if request.pointer("/deleteOptions/ignoreStoreReadErrorWithClusterBreakingPotential")
        == Some(&Value::Bool(true))
    {
        let field = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential";
        let cause = Cause::invalid(
            field,
            &true.into(),
            "can not be set for pod eviction, try after removing the option",
        );
        return Err(Status::invalid(
            "policy",
            "Eviction",
            call.name(),
            vec![cause],
        ));
    }
    let dry_run = is_dry(&request, written.dry_run)?;
    warnings.extend(judged(call, "eviction", &request, (written, answers))?);
    let pod = call.registry().get(&pods(), &call.namespace, call.name())?;
    let counts = !matches!(
        pod.str_at("/status/phase"),
        "Succeeded" | "Failed" | "Pending"
    ) && pod.deletion_timestamp().is_none();
    let unready = counts && permit(call, &pod, dry_run)? == Permit::Unready;
    let sent = request.0.get("deleteOptions").and_then(Value::as_object);
    let mut options: DeleteOptions =
        delete_options::understood(sent.unwrap_or(&serde_json::Map::new()))?;
    options.dry_run = dry_run;
    if let Some(version) = options.resource_version.as_mut().filter(|_| unready) {
        // The delete requires the revision at which the pod was found to be unready.
        pod.resource_version().clone_into(version);
    }
    if !options.dry_run {
        mark(call, &pod, &mut options)?;
    }
    let deleted = call
        .registry()
        .delete(&pods(), &call.namespace, call.name(), &options)?;
    call.registry().durable(deleted.revision).await?;
    Ok(created())
}

/// Whether an eviction is a dry run; the query and the body must agree.
fn is_dry(eviction: &Object, asked: bool) -> Result<bool, Status> {
    let list = eviction
        .pointer("/deleteOptions/dryRun")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
    if asked && !matches!(words[..], [] | ["All"]) {
        let text = format!(
            "Non-matching dry-run options in request and content: [All] and [{}]",
            words.join(" ")
        );
        return Err(Status::new(500, "", text));
    }
    Ok(asked || !list.is_empty())
}

/// Runs mutating admission for a request to a named object that is not stored itself.
pub fn changed(
    call: &Call<'_>,
    subresource: &str,
    asked: &mut Object,
    options: &WriteOptions,
) -> Result<Answers, Status> {
    let (name, mut answers) = (name_of(call, asked), Answers::default());
    admission::admit(
        &request(call, subresource, &name, options),
        asked,
        None,
        &mut answers,
    )?;
    Ok(answers)
}

/// Runs validating admission for it; returns warnings.
pub fn judged(
    call: &Call<'_>,
    subresource: &str,
    asked: &Object,
    (options, answers): (&WriteOptions, Answers),
) -> Result<Vec<String>, Status> {
    let name = name_of(call, asked);
    admission::check(
        &request(call, subresource, &name, options),
        Objects {
            new: Some(asked),
            old: None,
        },
        answers,
    )
}

fn name_of(call: &Call<'_>, asked: &Object) -> String {
    if call.name().is_empty() {
        asked.name()
    } else {
        call.name()
    }
    .to_owned()
}

fn request<'a>(
    call: &'a Call<'_>,
    subresource: &'a str,
    name: &'a str,
    options: &'a WriteOptions,
) -> Request<'a> {
    let by = (options.dry_run, &options.sender);
    Request::new(
        call.registry(),
        &call.resource,
        Operation::Create,
        (&call.namespace, name),
        by,
    )
    .of(subresource)
}

/// Why a pod may be evicted.
#[derive(PartialEq, Eq)]
enum Permit {
    Unready,
    InBudget,
}

/// Checks the disruption budget of the pod and takes one disruption from it.
fn permit(call: &Call<'_>, pod: &Object, dry_run: bool) -> Result<Permit, Status> {
    let labels = pod.labels();
    for _ in 0..ATTEMPTS {
        let covers = |b: &Arc<Object>| {
            b.pointer("/spec/selector").is_some_and(|s| {
                LabelSelector::from_json(s).is_ok_and(|selector| selector.matches(&labels))
            })
        };
        let found: Vec<Arc<Object>> = call
            .registry()
            .list(&budgets(), Some(&call.namespace))?
            .into_iter()
            .filter(covers)
            .collect();
        let budget = match found.as_slice() {
            [] => return Ok(Permit::InBudget),
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
            return Ok(Permit::Unready);
        }
        let taken = take_one(call, budget, pod)?;
        if dry_run {
            return Ok(Permit::InBudget);
        }
        let options = WriteOptions::manager("kube-apiserver");
        match call.registry().update_part(
            &budgets(),
            &call.namespace,
            taken,
            Part::Status,
            &options,
        ) {
            Ok(_) => return Ok(Permit::InBudget),
            Err(status) if status.is_conflict() => {}
            Err(status) => return Err(status),
        }
    }
    Err(Status::new(
        504,
        "Timeout",
        "Timeout: couldn't update PodDisruptionBudget due to conflicts",
    ))
}

/// The budget with one disruption less.
fn take_one(call: &Call<'_>, budget: &Object, pod: &Object) -> Result<Object, Status> {
    let name = budget.name();
    let number = |field: &str| budget.i64_at(&format!("/status/{field}")).unwrap_or(0);
    let (healthy, desired, allowed) = (
        number("currentHealthy"),
        number("desiredHealthy"),
        number("disruptionsAllowed"),
    );
    if number("observedGeneration") < budget.generation() {
        return Err(too_many(
            format!("The disruption budget {name} is still being processed by the server."),
            10,
        ));
    }
    let forbid = |why: &str| Status::forbidden("policy", "poddisruptionbudget", name, why);
    if allowed < 0 {
        return Err(forbid("pdb disruptions allowed is negative"));
    }
    if budget
        .pointer("/status/disruptedPods")
        .and_then(Value::as_object)
        .is_some_and(|m| m.len() > MAX_DISRUPTED)
    {
        return Err(forbid(
            "DisruptedPods map too big - too many evictions not confirmed by PDB controller",
        ));
    }
    if allowed == 0 {
        return Err(too_many(why_none(budget, healthy, desired), 0));
    }
    let mut taken = budget.clone();
    let status = map_entry(&mut taken.0, "status");
    status.insert("disruptionsAllowed".into(), (allowed - 1).into());
    let now = crate::base::timestamp(call.registry().now());
    map_entry(status, "disruptedPods").insert(pod.name().to_owned(), now.clone().into());
    if allowed == 1 {
        let condition = json!({
            "type": DISRUPTION_ALLOWED, "status": "False", "observedGeneration": number("observedGeneration"),
            "lastTransitionTime": now, "reason": "InsufficientPods", "message": "",
        });
        set_condition(&mut taken, condition);
    }
    Ok(taken)
}

/// Why a budget allows no disruption, from its own condition or from its counts.
fn why_none(budget: &Object, healthy: i64, desired: i64) -> String {
    let name = budget.name();
    let conditions = budget
        .pointer("/status/conditions")
        .and_then(Value::as_array)
        .into_iter()
        .flatten();
    let text = |c: &Value, field: &str| c[field].as_str().unwrap_or_default().to_owned();
    let said = conditions
        .filter(|c| c["type"] == DISRUPTION_ALLOWED && c["status"] == "False")
        .map(|c| (text(c, "reason"), text(c, "message")))
        .find(|(_, message)| !message.is_empty());
    match said {
        Some((reason, message)) if reason == "SyncFailed" => {
            format!(
                "The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
            )
        }
        _ if healthy <= desired => format!(
            "The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        ),
        Some((reason, message)) => format!(
            "The disruption budget {name} does not allow evicting pods currently ({reason}): {message}"
        ),
        None => format!("The disruption budget {name} does not allow evicting pods currently"),
    }
}

fn too_many(why: String, seconds: u32) -> Status {
    let cause = Cause {
        reason: "DisruptionBudget",
        message: why,
        field: String::new(),
    };
    let mut status = Status::new(429, "TooManyRequests", REFUSED).with_causes(vec![cause]);
    status.details.get_or_insert_default().retry_after_seconds = seconds;
    status
}

fn is_ready(pod: &Object) -> bool {
    let conditions = pod.pointer("/status/conditions").and_then(Value::as_array);
    conditions.is_some_and(|l| {
        l.iter()
            .any(|c| c["type"] == "Ready" && c["status"] == "True")
    })
}

/// Adds the reason of the eviction to the status of the pod; the pod is then deleted in that state.
fn mark(call: &Call<'_>, pod: &Object, options: &mut DeleteOptions) -> Result<(), Status> {
    let resource = call.registry().resource(&pods())?;
    // An empty string means unset here, but the delete uses it literally.
    let some = |text: &Option<String>| text.clone().filter(|text| !text.is_empty());
    let said = DeleteOptions {
        uid: some(&options.uid),
        resource_version: some(&options.resource_version),
        ..DeleteOptions::default()
    };
    let now = crate::base::timestamp(call.registry().now());
    let condition = json!({
        "type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting",
        "lastTransitionTime": now,
    });
    for _ in 0..ATTEMPTS {
        let live = call.registry().get(&pods(), &call.namespace, pod.name())?;
        let mut pod = (*live).clone();
        check_preconditions(&resource, &pod, &said)?;
        set_condition(&mut pod, condition.clone());
        // A Binding may have put the pod into a state that its status validation rejects.
        strategy::validate(call.registry(), &resource, &pod, Some(&live), Part::Status)?;
        match call.registry().update_part(
            &pods(),
            &call.namespace,
            pod,
            Part::Binding,
            &WriteOptions::default(),
        ) {
            Err(status) if status.is_conflict() => {}
            other => {
                let marked = other?.object;
                if let Some(version) = &mut options.resource_version {
                    marked.resource_version().clone_into(version);
                }
                return Ok(());
            }
        }
    }
    Ok(())
}

/// An existing condition keeps its position, and its transition time if the status is the same.
fn set_condition(object: &mut Object, mut condition: Value) {
    let list = map_entry(&mut object.0, "status")
        .entry("conditions")
        .or_insert_with(|| json!([]));
    let Some(list) = list.as_array_mut() else {
        return;
    };
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

/// Assigns a pod to a node, as a scheduler does. The body is a Binding.
pub async fn bind(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    if call.resource.is("", "bindings") {
        negotiate::form_but_table(&call.parts.headers)?;
    }
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (mut binding, findings) = body::read_object(
        "Binding",
        gotypes::find("core/v1.Binding"),
        &call.parts.headers,
        &bytes,
    )?;
    options.findings = findings;
    // The legacy form is posted to the collection.
    let alone = call.resource.is("", "bindings");
    let resource = if alone {
        (*call.resource).clone()
    } else {
        call.spoken()?
    };
    meta::check_type(&resource, &mut binding)?;
    let mut warnings = strategy::check_fields(&resource, &mut binding, &options)?;
    meta::check_namespace(&resource, &call.namespace, &mut binding)
        .map_err(|status| status.warned(&warnings))?;
    if alone {
        // As for every created object. A Binding of a pod keeps the uid, which says which pod it
        // means.
        meta::forget_system(&mut binding);
    }
    let answer = bound(call, binding, (alone, &options), &mut warnings)
        .await
        .map_err(|status| status.warned(&warnings))?;
    Ok(with_warnings(answer, &warnings))
}

async fn bound(
    call: &Call<'_>,
    mut binding: Object,
    (alone, options): (bool, &WriteOptions),
    warnings: &mut Vec<String>,
) -> Result<Response<Body>, Status> {
    let subresource = if alone { "" } else { "binding" };
    if !alone {
        admission::fill_in_binding(call.registry(), &mut binding);
    }
    let answers = changed(call, subresource, &mut binding, options)?;
    let name = if alone {
        binding.name().to_owned()
    } else {
        call.name().to_owned()
    };
    if binding.name() != name {
        return Err(Status::bad_request(
            "name in URL does not match name in Binding object",
        ));
    }
    let (kind, node) = (
        binding.str_at("/target/kind"),
        binding.str_at("/target/name"),
    );
    let mut causes = Vec::new();
    if !matches!(kind, "" | "Node") {
        causes.push(Cause::not_supported(
            "target.kind",
            &kind.into(),
            &["Node", "<empty>"],
        ));
    }
    if node.is_empty() {
        causes.push(Cause::required("target.name", ""));
    }
    if !causes.is_empty() {
        let texts: Vec<String> = causes
            .iter()
            .map(|cause| format!("{}: {}", cause.field, cause.message))
            .collect();
        let one = matches!(texts.as_slice(), [_]);
        return Err(Status::new(
            500,
            "",
            if one {
                texts.concat()
            } else {
                format!("[{}]", texts.join(", "))
            },
        ));
    }
    if name.is_empty() {
        return Err(Status::bad_request("Name parameter required."));
    }
    let problems = tiphys_kube_schema::formats::path_segment(&name);
    if !problems.is_empty() {
        return Err(Status::bad_request(format!(
            "Name parameter invalid: {name:?}: {}",
            problems.join(";")
        )));
    }
    warnings.extend(judged(call, subresource, &binding, (options, answers))?);
    for _ in 0..ATTEMPTS {
        let pod = call.registry().get(&pods(), &call.namespace, &name)?;
        let pod = placed(call, &pod, &binding, options.dry_run)?;
        match call
            .registry()
            .update_part(&pods(), &call.namespace, pod, Part::Binding, options)
        {
            Err(status) if status.is_conflict() => {}
            written => {
                call.registry().durable(written?.revision).await?;
                return Ok(created());
            }
        }
    }
    let pods = call.registry().resource(&pods())?;
    Err(Status::modified(&pods.group, &pods.resource, &name))
}

/// The pod on the node in the Binding, if the pod may be assigned.
fn placed(
    call: &Call<'_>,
    pod: &Object,
    binding: &Object,
    dry_run: bool,
) -> Result<Object, Status> {
    let resource = call.registry().resource(&pods())?;
    let (name, mut pod) = (pod.name(), pod.clone());
    meta::check_uid(&resource, binding, pod.uid(), dry_run)?;
    let versions = (
        "ResourceVersion",
        binding.resource_version(),
        pod.resource_version(),
    );
    meta::check_precondition(&resource, binding, versions, dry_run)?;
    let refuse = |why: String| Err(Status::conflict("", "pods/binding", name, &why));
    if pod.deletion_timestamp().is_some() {
        return refuse(format!(
            "pod {name} is being deleted, cannot be assigned to a host"
        ));
    }
    let assigned = pod.str_at("/spec/nodeName");
    if !assigned.is_empty() {
        return refuse(format!(
            "pod {name} is already assigned to node {assigned:?}"
        ));
    }
    if pod
        .pointer("/spec/schedulingGates")
        .and_then(Value::as_array)
        .is_some_and(|l| !l.is_empty())
    {
        return refuse(format!("pod {name} has non-empty .spec.schedulingGates"));
    }
    map_entry(&mut pod.0, "spec").insert("nodeName".into(), binding.str_at("/target/name").into());
    for (key, value) in binding.annotations() {
        pod.set_annotation(&key, &value);
    }
    let labels = map_entry(pod.metadata_mut(), "labels");
    labels.extend(
        binding
            .labels()
            .into_iter()
            .map(|(key, value)| (key, value.into())),
    );
    let now = crate::base::timestamp(call.registry().now());
    map_entry(&mut pod.0, "status").remove("nominatedNodeName");
    set_condition(
        &mut pod,
        json!({"type": "PodScheduled", "status": "True", "lastProbeTime": null, "lastTransitionTime": now}),
    );
    Ok(pod)
}
