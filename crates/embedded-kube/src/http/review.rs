//! Questions about the caller: who am I, may I. Whoever gets here has the administrator's token or is in the same process.

use super::{Call, body, json_response};
use crate::catalog::Resource;
use crate::status::Status;
use axum::body::Body;
use http::{Response, StatusCode};
use serde_json::{Value, json};
use tiphys_apimachinery::object::map_entry;

/// Resources that are asked, not kept.
pub fn is_review(resource: &Resource) -> bool {
    matches!(resource.group.as_str(), "authentication.k8s.io" | "authorization.k8s.io") || resource.is("", "bindings")
}

pub async fn answer(call: &Call<'_>, incoming: Body) -> Result<Response<Body>, Status> {
    let status = match call.resource.resource.as_str() {
        "selfsubjectaccessreviews" => json!({"allowed": true, "reason": "the administrator may do everything"}),
        "selfsubjectrulesreviews" => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        "selfsubjectreviews" => json!({"userInfo": {"username": "admin", "groups": ["system:masters", "system:authenticated"]}}),
        other => {
            return Err(Status::not_implemented(format!(
                "{other} is not supported: this server has one administrator and evaluates no RBAC rules"
            )));
        }
    };
    let bytes = body::read(incoming).await?;
    let (mut object, _) = body::read_object(&call.parts.headers, &bytes)?;
    object.0.insert("apiVersion".into(), call.resource.api_version().into());
    object.0.insert("kind".into(), call.resource.kind.clone().into());
    map_entry(&mut object.0, "metadata").entry("creationTimestamp").or_insert(Value::Null);
    object.0.insert("status".into(), status);
    let mut response = json_response(&object.into_value());
    *response.status_mut() = StatusCode::CREATED;
    Ok(response)
}
