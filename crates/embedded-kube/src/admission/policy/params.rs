//! Finds the parameter objects that a binding refers to. Main function: [`collect`].

use crate::admission::request::Request;
use serde_json::Value;
use std::sync::Arc;
use tiphys_apimachinery::selector::LabelSelector;
use tiphys_apimachinery::{Gvk, Object};

/// The parameter kind of a policy as messages show it, with the error `what`.
pub fn kind(
    request: &Request<'_>,
    kind: &Value,
) -> Result<Option<Arc<crate::catalog::Resource>>, String> {
    if kind.is_null() {
        return Ok(None);
    }
    let text = |field: &str| kind[field].as_str().unwrap_or("");
    let gvk = Gvk::from_api_version(text("apiVersion"), text("kind"));
    let found = request.cluster.catalog().kind(&gvk).cloned();
    let shown = || format!("{}/{}, Kind={}", gvk.group, gvk.version, gvk.kind);
    found.map(Some).ok_or_else(|| {
        format!(
            "failed to find resource referenced by paramKind: '{}'",
            shown()
        )
    })
}

/// One entry per run of the policy; `None` is a run without a parameter.
pub fn collect(
    request: &Request<'_>,
    kind: Option<&Arc<crate::catalog::Resource>>,
    reference: &Value,
) -> Result<Vec<Option<Arc<Object>>>, String> {
    let (Some(kind), true) = (kind, reference.is_object()) else {
        return Ok(vec![None]);
    };
    let text = |field: &str| reference[field].as_str().unwrap_or("");
    let namespace = match (kind.namespaced, text("namespace"), request.namespace) {
        (false, "", _) => "",
        (false, ..) => return Err("paramRef.namespace must not be provided for a cluster-scoped `paramKind`".to_owned()),
        (true, "", "") => return Err("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources".to_owned()),
        (true, "", own) => own,
        (true, given, _) => given,
    };
    let found: Vec<Arc<Object>> = if text("name").is_empty() {
        let selector =
            LabelSelector::from_json(&reference["selector"]).map_err(|e| e.to_string())?;
        let scope = kind.namespaced.then_some(namespace);
        let all = request.cluster.all_stored(&kind.table, scope);
        all.iter()
            .map(|stored| stored.object())
            .filter(|o| selector.matches_object(o))
            .collect()
    } else {
        request
            .cluster
            .stored(&kind.table, namespace, text("name"))
            .map(|stored| stored.object())
            .into_iter()
            .collect()
    };
    if found.is_empty() && text("parameterNotFoundAction") == "Deny" {
        return Err(
            "no params found for policy binding with `Deny` parameterNotFoundAction".to_owned(),
        );
    }
    Ok(found.into_iter().map(Some).collect())
}
