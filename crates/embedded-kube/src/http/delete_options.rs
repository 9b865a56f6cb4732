//! The options of a delete: those in the body, or those in the query if there is no body. Main
//! functions: [`sent`], [`understood`].

use super::{Call, body};
use crate::base::{DeleteOptions, Propagation, Sender};
use crate::status::{Cause, Status};
use axum::body::Body;
use serde_json::{Map, Value, json};
use tiphys_kube_schema::gotypes;

/// The options as sent, as a `DeleteOptions` without kind and version.
pub async fn sent(call: &Call<'_>, incoming: Body) -> Result<Map<String, Value>, Status> {
    let bytes = body::read(incoming).await?;
    match bytes.is_empty() {
        true => of_query(call),
        false => of_body(call, &bytes),
    }
}

fn of_body(call: &Call<'_>, bytes: &[u8]) -> Result<Map<String, Value>, Status> {
    let mut map = body::read_typed(
        gotypes::find("meta/v1.DeleteOptions"),
        &call.parts.headers,
        bytes,
    )?
    .map_err(Status::bad_request)?
    .0;
    let mut word = |field| {
        map.remove(field)
            .and_then(|value| value.as_str().map(str::to_owned))
            .filter(|text| !text.is_empty())
    };
    let (version, kind) = (word("apiVersion"), word("kind"));
    if let Some(kind) = kind.filter(|kind| kind != "DeleteOptions") {
        let version = version.unwrap_or_else(|| "meta.k8s.io/v1".to_owned());
        let why = format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        );
        return Err(Status::bad_request(why));
    }
    let of = gotypes::find("meta/v1.DeleteOptions").expect("a struct of the table");
    map.retain(|field, _| of.fields.iter().any(|known| known.name == field));
    gotypes::read_into(&mut map, of, false)
        .map_err(|wrong| Status::bad_request(wrong.to_string()))?;
    Ok(map)
}

fn of_query(call: &Call<'_>) -> Result<Map<String, Value>, Status> {
    let query = &call.query;
    let mut map = Map::new();
    if let Some(seconds) = query.number("gracePeriodSeconds")? {
        map.insert("gracePeriodSeconds".into(), seconds.into());
    }
    if query.has("orphanDependents") {
        map.insert(
            "orphanDependents".into(),
            query.flag("orphanDependents").into(),
        );
    }
    map.extend(
        query
            .all("propagationPolicy")
            .first()
            .map(|policy| ("propagationPolicy".to_owned(), Value::from(*policy))),
    );
    if query.has("dryRun") {
        map.insert("dryRun".into(), query.all("dryRun").into());
    }
    let conditions = ["uid", "resourceVersion"]
        .into_iter()
        .filter_map(|field| Some((field.to_owned(), query.get(field)?.into())));
    let conditions: Map<String, Value> = conditions.collect();
    if !conditions.is_empty() {
        map.insert("preconditions".into(), conditions.into());
    }
    Ok(map)
}

/// Parses the options and checks that they can be combined.
pub fn understood(options: &Map<String, Value>) -> Result<DeleteOptions, Status> {
    let dry_run = options
        .get("dryRun")
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default();
    let orphan = options.get("orphanDependents").and_then(Value::as_bool);
    let policy = options.get("propagationPolicy").and_then(Value::as_str);
    let mut causes = Vec::new();
    if let (Some(policy), Some(_)) = (policy, orphan) {
        let detail = "orphanDependents and deletionPropagation cannot be both set";
        causes.push(Cause::invalid("propagationPolicy", &policy.into(), detail));
    }
    let propagation = match policy {
        None => orphan.map(|orphan| {
            if orphan {
                Propagation::Orphan
            } else {
                Propagation::Background
            }
        }),
        Some("Orphan") => Some(Propagation::Orphan),
        Some("Background") => Some(Propagation::Background),
        Some("Foreground") => Some(Propagation::Foreground),
        Some(other) => {
            causes.push(Cause::not_supported(
                "propagationPolicy",
                &other.into(),
                &["Foreground", "Background", "Orphan", "nil"],
            ));
            None
        }
    };
    causes.extend(dry_run_problem(dry_run));
    if !causes.is_empty() {
        return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", causes));
    }
    let precondition = |field: &str| {
        Some(
            options
                .get("preconditions")?
                .get(field)?
                .as_str()?
                .to_owned(),
        )
    };
    Ok(DeleteOptions {
        dry_run: !dry_run.is_empty(),
        grace_period_seconds: options.get("gracePeriodSeconds").and_then(Value::as_i64),
        propagation,
        uid: precondition("uid"),
        resource_version: precondition("resourceVersion"),
        sender: Sender {
            options: options.clone(),
            ..Sender::default()
        },
        of_many: false,
    })
}

/// Every value must be `All`.
pub fn dry_run_problem(values: &[Value]) -> Option<Cause> {
    let known = values.iter().all(|v| v == "All");
    (!known).then(|| Cause::not_supported("dryRun", &json!(values), &["All"]))
}
