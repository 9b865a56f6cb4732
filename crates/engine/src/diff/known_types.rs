//! Custom resources that contain a type of Kubernetes itself.
//!
//! Main function: [`rewrite`]. An API server keeps custom resources as they were written, but their controllers write them as Go does:
//! so the known part is compared in Go's form.

use super::remarshal;
use serde_json::{Map, Value};
use tiphys_apimachinery::{Object, schema};

const POD_SPEC: &str = "io.k8s.api.core.v1.PodSpec";

/// Brings the Pod template of an Argo Rollout into Go's form, on either side of a comparison.
pub fn rewrite(object: &mut Object) {
    if object.kind() != "Rollout" || object.group() != "argoproj.io" {
        return;
    }
    let spec = object.0.get_mut("spec").and_then(|spec| spec.pointer_mut("/template/spec"));
    let (Some(spec), Some(ty)) = (spec, schema::builtin().definition(POD_SPEC)) else { return };
    let Some(mut written) = remarshal::lenient(spec, ty) else { return };
    for list in ["containers", "initContainers"] {
        let containers = written.get_mut(list).and_then(Value::as_array_mut);
        for container in containers.into_iter().flatten().filter_map(Value::as_object_mut) {
            // Go writes structs even when they are empty.
            container.entry("resources").or_insert_with(|| Map::new().into());
        }
    }
    *spec = written;
}

#[cfg(test)]
mod tests {
    use super::rewrite;
    use serde_json::{Value, json};
    use tiphys_apimachinery::Object;

    #[test]
    fn rollouts_are_compared_in_go_s_form() {
        let form = |spec: Value| {
            let rollout = json!({"apiVersion": "argoproj.io/v1alpha1", "kind": "Rollout", "spec": {"template": {"spec": spec}}});
            let mut rollout = Object::from_value(rollout).expect("a map");
            rewrite(&mut rollout);
            rollout
        };
        let written =
            form(json!({"hostNetwork": false, "containers": [{"name": "a", "resources": {"limits": {"cpu": "1000m"}}}, {"name": "b"}]}));
        let read = form(json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}}, {"name": "b", "resources": {}}]}));
        assert_eq!(written, read);
    }
}
