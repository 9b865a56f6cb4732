//! Node annotations that later became fields. Main function: [`check`].

use super::nodes::node_taints;
use super::rules::At;
use crate::status::Cause;
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_kube_schema::gotypes;

const TAINTS: &str = "scheduler.alpha.kubernetes.io/taints";
const AVOIDED: &str = "scheduler.alpha.kubernetes.io/preferAvoidPods";
const ALL: &str = "metadata.annotations";

pub fn check(object: &Object, causes: &mut Vec<Cause>) {
    let said = |key| object.annotation(key).filter(|text| !text.is_empty());
    if let Some(text) = said(TAINTS) {
        match read(text, Value::is_array, "[]core.Taint") {
            Ok(taints) => node_taints(&At::new(&taints, format!("{ALL}.{TAINTS}")), causes),
            Err(why) => causes.push(Cause::invalid(ALL, &TAINTS.into(), &why)),
        }
    }
    if let Some(text) = said(AVOIDED) {
        match read(text, Value::is_object, "v1.AvoidPods") {
            Ok(avoided) => controllers(&avoided, causes),
            Err(why) => causes.push(Cause::invalid(
                &format!("{ALL}.AvoidPods"),
                &AVOIDED.into(),
                &why,
            )),
        }
    }
}

fn read(text: &str, fits: fn(&Value) -> bool, wanted: &str) -> Result<Value, String> {
    let value: Value = serde_json::from_str(text)
        .map_err(|e| gotypes::syntax_error(text.as_bytes()).unwrap_or_else(|| e.to_string()))?;
    match value.is_null() || fits(&value) {
        true => Ok(value),
        false => Err(format!(
            "json: cannot unmarshal {} into Go value of type {wanted}",
            tiphys_gocompat::json::kind(&value)
        )),
    }
}

/// A preference to avoid pods identifies them by their controller.
fn controllers(avoided: &Value, causes: &mut Vec<Cause>) {
    let all = At::new(avoided, "").get("preferAvoidPods");
    for (i, entry) in all.items().iter().enumerate() {
        let (path, owner) = (
            format!("{ALL}.{AVOIDED}[{i}].PodSignature"),
            entry.get("podSignature.podController"),
        );
        match owner.is_null() {
            true => causes.push(Cause::required(&path, "")),
            false if !owner.get("controller").is_true() => {
                causes.push(Cause::invalid(
                    &format!("{path}.PodController.Controller"),
                    &false.into(),
                    "must point to a controller",
                ));
            }
            false => {}
        }
    }
}
