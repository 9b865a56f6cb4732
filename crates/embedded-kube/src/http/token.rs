//! `serviceaccounts/token`: a signed token of an account with a limited lifetime, optionally bound
//! to a pod, node or Secret.

use super::pod_requests::{changed, judged};
use super::{Call, body, json_response, with_warnings, write};
use crate::auth::Auth;
use crate::auth::jwt::{Bound, Claims, Ref};
use crate::base::{Part, WriteOptions};
use crate::catalog::Resource;
use crate::registry::meta;
use crate::status::{Cause, Status};
use crate::strategy;
use axum::body::Body;
use http::{Response, StatusCode};
use jiff::Timestamp;
use serde_json::{Value, json};
use tiphys_apimachinery::object::map_entry;
use tiphys_apimachinery::{Gvk, Gvr, Object};
use tiphys_kube_schema::gotypes;

const GROUP: &str = "authentication.k8s.io";
const KIND: &str = "TokenRequest";
const MIN_SECONDS: i64 = 600;
const MAX_SECONDS: i64 = 1 << 32;
const DEFAULT_SECONDS: i64 = 3_600;

pub async fn create(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let mut options = write::options(call)?;
    let bytes = body::read(incoming).await?;
    let (mut request, findings) = body::read_object(
        "TokenRequest",
        gotypes::find("authentication/v1.TokenRequest"),
        &call.parts.headers,
        &bytes,
    )?;
    options.findings = findings;
    let resource = call.spoken()?;
    meta::check_type(&resource, &mut request)?;
    let mut warnings = strategy::check_fields(&resource, &mut request, &options)?;
    meta::check_namespace(&resource, &call.namespace, &mut request)
        .map_err(|status| status.warned(&warnings))?;
    let (answer, said) =
        sign(call, &resource, request, &options).map_err(|status| status.warned(&warnings))?;
    warnings.extend(said);
    let mut response = with_warnings(json_response(&answer.into_value()), &warnings);
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}

/// Adds the token to a decoded request. Returns warnings.
fn sign(
    call: &Call<'_>,
    resource: &Resource,
    mut request: Object,
    options: &WriteOptions,
) -> Result<(Object, Vec<String>), Status> {
    let seconds = map_entry(&mut request.0, "spec")
        .entry("expirationSeconds")
        .or_insert(Value::Null);
    if seconds.is_null() {
        *seconds = DEFAULT_SECONDS.into();
    }
    strategy::drop_empty(resource, &mut request);
    call.registry()
        .track_new(resource, &mut request, Part::Token, options);
    let answers = changed(call, "token", &mut request, options)?;
    if !request.name().is_empty() && request.name() != call.name() {
        let cause = Cause::invalid(
            "metadata.name",
            &request.name().into(),
            "must match the service account name if specified",
        );
        return Err(Status::invalid(GROUP, KIND, call.name(), vec![cause]));
    }
    let account = call
        .registry()
        .get_stored(&call.resource, &call.namespace, call.name())?;
    if !request.uid().is_empty() && request.uid() != account.meta.uid {
        let why = format!(
            "the UID in the token request ({}) does not match the UID of the service account ({})",
            request.uid(),
            account.meta.uid
        );
        return Err(Status::conflict(GROUP, KIND, call.name(), &why));
    }
    let seconds = request
        .i64_at("/spec/expirationSeconds")
        .unwrap_or(DEFAULT_SECONDS);
    check_seconds(seconds)?;
    let mut named = request.clone();
    named
        .metadata_mut()
        .insert("name".into(), call.name().into());
    named
        .metadata_mut()
        .insert("namespace".into(), call.namespace.clone().into());
    let warnings = judged(call, "token", &named, (options, answers))?;
    let account = Ref {
        name: call.name().to_owned(),
        uid: account.meta.uid.clone(),
    };
    let mut bound = Bound {
        namespace: call.namespace.clone(),
        serviceaccount: account.clone(),
        ..Bound::default()
    };
    if let Some(to) = request
        .pointer("/spec/boundObjectRef")
        .filter(|r| !r.is_null())
    {
        bind(call, to, &mut bound)?;
    }
    let audiences = request
        .pointer("/spec/audiences")
        .and_then(Value::as_array)
        .filter(|l| !l.is_empty());
    let audiences: Vec<String> = audiences.map_or_else(Auth::own_audience, |l| {
        l.iter()
            .filter_map(|a| a.as_str().map(str::to_owned))
            .collect()
    });
    let now = call.registry().now();
    let second = now.as_second();
    let id = uuid::Uuid::new_v4().to_string();
    let claims = Claims {
        audiences: audiences.clone(),
        not_before: second,
        expires: Some(second + seconds),
        id,
        bound,
        legacy: false,
    };
    let token = call
        .shared
        .auth
        .signer
        .sign(&claims, second)
        .map_err(|e| Status::internal(format!("failed to generate token: {e}")))?;
    // Default audiences have no owner.
    let spec = map_entry(&mut request.0, "spec");
    spec.insert("audiences".into(), json!(audiences));
    spec.entry("boundObjectRef").or_insert(Value::Null);
    let end = Timestamp::from_second(second + seconds).unwrap_or(Timestamp::MAX);
    request.0.insert(
        "status".into(),
        json!({"token": token, "expirationTimestamp": crate::base::timestamp(end)}),
    );
    let metadata = request.metadata_mut();
    metadata.insert("name".into(), account.name.into());
    metadata.insert("namespace".into(), call.namespace.clone().into());
    metadata.insert("uid".into(), account.uid.into());
    metadata.insert(
        "creationTimestamp".into(),
        crate::base::timestamp(now).into(),
    );
    Ok((request, warnings))
}

fn check_seconds(seconds: i64) -> Result<(), Status> {
    let why = if seconds < MIN_SECONDS {
        "may not specify a duration less than 10 minutes"
    } else if seconds > MAX_SECONDS {
        "may not specify a duration larger than 2^32 seconds"
    } else {
        return Ok(());
    };
    Err(Status::invalid(
        GROUP,
        KIND,
        "",
        vec![Cause::invalid(
            "spec.expirationSeconds",
            &seconds.into(),
            why,
        )],
    ))
}

/// Looks up the object that the token is bound to.
fn bind(call: &Call<'_>, to: &Value, bound: &mut Bound) -> Result<(), Status> {
    let word = |field: &str| to.get(field).and_then(Value::as_str).unwrap_or("");
    let (name, kind) = (word("name"), word("kind"));
    let registry = call.registry();
    let get = |resource: &str, namespace: &str, name: &str| match name.is_empty() {
        true => Err(Status::bad_request("Name parameter required.")),
        false => registry.get(&Gvr::new("", "v1", resource), namespace, name),
    };
    let reference = |o: &Object| {
        Some(Ref {
            name: o.name().to_owned(),
            uid: o.uid().to_owned(),
        })
    };
    let namespace = call.namespace.as_str();
    // An invalid version counts as none.
    let api_version = Some(word("apiVersion"))
        .filter(|text| text.matches('/').count() < 2)
        .unwrap_or("");
    let object = match (
        Gvk::from_api_version(api_version, kind).group.as_str(),
        kind,
    ) {
        ("", "Pod") => {
            let pod = get("pods", namespace, name)?;
            if pod.str_at("/spec/serviceAccountName") != call.name() {
                let account = call.name();
                return Err(Status::bad_request(format!(
                    "cannot bind token for serviceaccount {account:?} to pod running with different serviceaccount name."
                )));
            }
            bound.pod = reference(&pod);
            let node = pod.str_at("/spec/nodeName");
            if !node.is_empty() {
                let uid = get("nodes", "", node)
                    .map(|n| n.uid().to_owned())
                    .unwrap_or_default();
                bound.node = Some(Ref {
                    name: node.to_owned(),
                    uid,
                });
            }
            pod
        }
        ("", "Node") => {
            let node = get("nodes", "", name)?;
            bound.node = reference(&node);
            node
        }
        ("", "Secret") => {
            let secret = get("secrets", namespace, name)?;
            bound.secret = reference(&secret);
            secret
        }
        _ => {
            let gvk = Gvk::from_api_version(api_version, kind);
            let (group, version) = (gvk.group, gvk.version);
            return Err(Status::bad_request(format!(
                "cannot bind token to object of type {group}/{version}, Kind={kind}"
            )));
        }
    };
    let uid = word("uid");
    if !uid.is_empty() && uid != object.uid() {
        let why = format!(
            "the UID in the bound object reference ({uid}) does not match the UID in record. The object might have been deleted and then \
             recreated"
        );
        return Err(Status::conflict("", kind, name, &why));
    }
    Ok(())
}
