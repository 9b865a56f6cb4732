//! Review requests, which are answered but not stored: who am I, may a user do something, whose
//! token is this.
//!
//! Main function: [`answer`]. The answers come from `auth`.

use super::negotiate::{self, Form};
use super::{Call, body, json_response, object, with_warnings, write};
use crate::auth::Auth;
use crate::base::{Part, UserInfo};
use crate::catalog::Resource;
use crate::rbac::{Attributes, together};
use crate::registry::meta;
use crate::status::{Cause, Status};
use crate::strategy;
use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Map, Value, json};
use tiphys_apimachinery::Object;
use tiphys_apimachinery::selector::{FieldSelector, LabelSelector};
use tiphys_kube_schema::gotypes;

/// Resources that are answered, not stored.
pub fn is_review(resource: &Resource) -> bool {
    matches!(
        resource.group.as_str(),
        "authentication.k8s.io" | "authorization.k8s.io"
    )
}

pub async fn answer(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let form = negotiate::form_but_table(&call.parts.headers)?;
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (mut object, findings) = body::read_object(
        &call.resource.kind,
        gotypes::of(&call.resource.gvk()),
        &call.parts.headers,
        &bytes,
    )?;
    options.findings = findings;
    meta::check_type(&call.resource, &mut object)?;
    let mut warnings = strategy::check_fields(&call.resource, &mut object, &options)?;
    meta::check_namespace(&call.resource, &call.namespace, &mut object)
        .map_err(|status| status.warned(&warnings))?;
    warnings.extend(meta::distinct_owners(&mut object, false));
    for field in [
        "uid",
        "creationTimestamp",
        "deletionTimestamp",
        "deletionGracePeriodSeconds",
        "selfLink",
    ] {
        object.metadata_mut().remove(field);
    }
    strategy::drop_empty(&call.resource, &mut object);
    let status = match call.resource.resource.as_str() {
        "selfsubjectreviews" => {
            let metadata =
                json!({"creationTimestamp": crate::base::timestamp(call.registry().now())});
            object = plain(call, metadata);
            json!({"userInfo": call.user().to_json()})
        }
        "selfsubjectrulesreviews" => {
            let status = rules(call, object.str_at("/spec/namespace"))
                .map_err(|status| status.warned(&warnings))?;
            object = plain(call, json!({}));
            object.0.insert("spec".into(), json!({}));
            status
        }
        "tokenreviews" => {
            let status = token(call, &object).map_err(|status| status.warned(&warnings))?;
            call.registry()
                .track_new(&call.resource, &mut object, Part::Main, &options);
            status
        }
        kind => {
            call.registry()
                .track_new(&call.resource, &mut object, Part::Main, &options);
            access(call, &object, kind).map_err(|status| status.warned(&warnings))?
        }
    };
    object.0.insert("status".into(), status);
    let answer = match form {
        Form::Metadata => negotiate::in_version(
            negotiate::is_beta(&call.parts.headers),
            object::metadata_only(&call.resource, &object),
        ),
        Form::MetadataList => {
            return Err(negotiate::wrong_number(&call.resource, false).warned(&warnings));
        }
        _ => object.into_value(),
    };
    let mut response = with_warnings(json_response(&answer), &warnings);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

fn plain(call: &Call<'_>, metadata: Value) -> Object {
    let mut map = Map::new();
    map.insert("kind".into(), call.resource.kind.clone().into());
    map.insert("apiVersion".into(), call.resource.api_version().into());
    map.insert("metadata".into(), metadata);
    Object(map)
}

fn rules(call: &Call<'_>, namespace: &str) -> Result<Value, Status> {
    if namespace.is_empty() {
        return Err(Status::bad_request("no namespace on request"));
    }
    let user = call.user();
    let (rules, wrong) = call.shared.auth.policy().rules_for(&user, namespace);
    let of = |fields: &[&str], wanted: &str| -> Vec<Value> {
        let shown = |rule: &Value| {
            fields
                .iter()
                .filter_map(|f| Some(((*f).to_owned(), rule.get(*f)?.clone())))
                .collect::<Map<_, _>>()
                .into()
        };
        rules
            .iter()
            .map(crate::rbac::Rule::to_json)
            .filter(|r| r.get(wanted).is_some())
            .map(|r| shown(&r))
            .collect()
    };
    let mut status = json!({
        "resourceRules": of(&["verbs", "apiGroups", "resources", "resourceNames"], "resources"),
        "nonResourceRules": of(&["verbs", "nonResourceURLs"], "nonResourceURLs"),
        "incomplete": false,
    });
    if !wrong.is_empty() {
        status["evaluationError"] = together(&wrong).into();
    }
    Ok(status)
}

fn token(call: &Call<'_>, review: &Object) -> Result<Value, Status> {
    let given = review.str_at("/spec/token");
    if given.is_empty() {
        return Err(Status::bad_request(
            "token is required for TokenReview in authentication",
        ));
    }
    let audiences = texts(review.pointer("/spec/audiences"));
    let audiences = if audiences.is_empty() {
        Auth::own_audience()
    } else {
        audiences
    };
    // If authentication finds nothing, the status that was sent is kept.
    let mut status = review.0.get("status").cloned().unwrap_or_default();
    match call.shared.auth.authenticate(given, &audiences) {
        Ok((user, good)) => {
            status["authenticated"] = true.into();
            status["user"] = user.to_json();
            status["audiences"] = good.into();
        }
        Err(error) => {
            status
                .as_object_mut()
                .map(|map| map.remove("authenticated"));
            status["error"] = error.into();
        }
    }
    Ok(status)
}

fn texts(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array);
    list.map(|l| {
        l.iter()
            .filter_map(|v| v.as_str().map(str::to_owned))
            .collect()
    })
    .unwrap_or_default()
}

/// The three access reviews: of the user himself, of any user, of any user in this namespace.
fn access(call: &Call<'_>, review: &Object, kind: &str) -> Result<Value, Status> {
    let causes = check(call, review, kind);
    if !causes.is_empty() {
        return Err(Status::invalid("authorization.k8s.io", "", "", causes));
    }
    let of_self = kind == "selfsubjectaccessreviews";
    let user = if of_self {
        (*call.user()).clone()
    } else {
        subject(review)
    };
    let asked = asked(review);
    let (allowed, reason) = call.shared.auth.authorize(&user, &asked);
    let mut status = json!({"allowed": allowed});
    if !reason.is_empty() {
        status["reason"] = reason.into();
    }
    let ignored = ignored_selectors(
        review
            .pointer("/spec/resourceAttributes")
            .unwrap_or(&Value::Null),
    );
    if !ignored.is_empty() {
        status["evaluationError"] = ignored.join("; ").into();
    }
    Ok(status)
}

/// The selectors that pass validation but cannot be used.
fn ignored_selectors(attributes: &Value) -> Vec<String> {
    const ONE_VALUE: [&str; 2] = ["In", "NotIn"];
    const OPERATORS: [&str; 4] = ["In", "NotIn", "Exists", "DoesNotExist"];
    let text = |value: &Value, field: &str| value[field].as_str().unwrap_or("").to_owned();
    let field_fits = |r: &Value| {
        ONE_VALUE.contains(&text(r, "operator").as_str())
            && r["values"].as_array().is_some_and(|v| v.len() == 1)
    };
    let label_fits = |r: &Value| OPERATORS.contains(&text(r, "operator").as_str());
    let mut out = Vec::new();
    for name in ["fieldSelector", "labelSelector"] {
        let selector = &attributes[name];
        let of_fields = name == "fieldSelector";
        let (raw, requirements) = (
            text(selector, "rawSelector"),
            selector["requirements"]
                .as_array()
                .map(Vec::as_slice)
                .unwrap_or_default(),
        );
        let unread = !raw.is_empty()
            && if of_fields {
                FieldSelector::parse(&raw).is_err()
            } else {
                LabelSelector::parse(&raw).is_err()
            };
        let good = requirements
            .iter()
            .filter(|r| {
                if of_fields {
                    field_fits(r)
                } else {
                    label_fits(r)
                }
            })
            .count();
        if unread || good < requirements.len() {
            let partially = if good > 0 { "partially " } else { "" };
            out.push(format!(
                "spec.resourceAttributes.{name} {partially}ignored due to parse error"
            ));
        }
    }
    out
}

fn check(call: &Call<'_>, review: &Object, kind: &str) -> Vec<Cause> {
    let of = |field: &str| {
        review
            .pointer(&format!("/spec/{field}"))
            .filter(|v| !v.is_null())
    };
    let (resource, url) = (of("resourceAttributes"), of("nonResourceAttributes"));
    let mut causes = Vec::new();
    if let (Some(_), Some(url)) = (resource, url) {
        causes.push(Cause::invalid(
            "spec.nonResourceAttributes",
            &internal(url),
            "cannot be specified in combination with resourceAttributes",
        ));
    }
    if resource.is_none() && url.is_none() {
        let why = "exactly one of nonResourceAttributes or resourceAttributes must be specified";
        causes.push(Cause::invalid("spec.resourceAttributes", &Value::Null, why));
    }
    if kind != "selfsubjectaccessreviews"
        && review.str_at("/spec/user").is_empty()
        && texts(of("groups")).is_empty()
    {
        causes.push(Cause::invalid(
            "spec.user",
            &"".into(),
            "at least one of user or group must be specified",
        ));
    }
    causes.extend(crate::strategy::selector_attributes(
        resource.unwrap_or(&Value::Null),
    ));
    let metadata = review.0.get("metadata").and_then(Value::as_object);
    let local = kind == "localsubjectaccessreviews";
    let kept = |key: &String| key != "managedFields" && !(local && key == "namespace");
    if let Some(metadata) =
        metadata.filter(|m| m.iter().any(|(key, value)| kept(key) && !value.is_null()))
    {
        let why = if local {
            "must be empty except for namespace"
        } else {
            "must be empty"
        };
        let shown = gotypes::find("meta/v1.ObjectMeta")
            .map(|of| gotypes::text_of(metadata, of))
            .unwrap_or_default();
        let message = format!("Invalid value: {shown}: {why}");
        causes.push(Cause {
            reason: "FieldValueInvalid",
            message,
            field: "metadata".into(),
        });
    }
    if local {
        let namespace = review.str_at("/spec/resourceAttributes/namespace");
        if resource.is_some() && namespace != call.namespace {
            causes.push(Cause::invalid(
                "spec.resourceAttributes.namespace",
                &namespace.into(),
                "must match metadata.namespace",
            ));
        }
        if let Some(url) = url {
            causes.push(Cause::invalid(
                "spec.nonResourceAttributes",
                &internal(url),
                "disallowed on this kind of request",
            ));
        }
    }
    causes
}

/// The form of `nonResourceAttributes` in the server's internal struct.
fn internal(url: &Value) -> Value {
    let text = |field: &str| url[field].as_str().unwrap_or("");
    json!({"Path": text("path"), "Verb": text("verb")})
}

/// The user of the review. Being reviewed does not add the group `system:authenticated`.
fn subject(review: &Object) -> UserInfo {
    let extra = review.pointer("/spec/extra").and_then(Value::as_object);
    UserInfo {
        name: review.str_at("/spec/user").to_owned(),
        uid: review.str_at("/spec/uid").to_owned(),
        groups: texts(review.pointer("/spec/groups")),
        extra: extra
            .map(|m| {
                m.iter()
                    .map(|(key, value)| (key.clone(), texts(Some(value))))
                    .collect()
            })
            .unwrap_or_default(),
    }
}

fn asked(review: &Object) -> Attributes {
    let is_resource = review.pointer("/spec/resourceAttributes").is_some();
    let part = if is_resource {
        "resourceAttributes"
    } else {
        "nonResourceAttributes"
    };
    let word = |field: &str| review.str_at(&format!("/spec/{part}/{field}")).to_owned();
    Attributes {
        is_resource,
        verb: word("verb"),
        group: word("group"),
        resource: word("resource"),
        subresource: word("subresource"),
        name: word("name"),
        namespace: word("namespace"),
        path: word("path"),
    }
}
