//! Custom resources with fields of a built-in Kubernetes type.
//!
//! Main function: [`rewrite`]. An API server stores custom resources as they were written, but
//! their controllers write them as Go encodes them. So fields of a known type are compared in Go's
//! form.

use crate::{customize::Customizations, remarshal};
use serde_json::{Map, Value};
use tiphys_apimachinery::{Object, quantity, schema};
use tiphys_gocompat::duration;

/// Converts the fields of known types in a custom resource to Go's form, on either side of a
/// comparison: those that users name in `knownTypeFields`, and the Pod template of an Argo Rollout.
pub fn rewrite(object: &mut Object, customizations: Option<&Customizations>) {
    let fields = customizations
        .and_then(|c| c.exact(object))
        .map(|c| c.known_type_fields.as_slice())
        .unwrap_or_default();
    let mut value = Value::Object(std::mem::take(&mut object.0));
    for field in fields {
        at(
            &mut value,
            &field.field.split('.').collect::<Vec<_>>(),
            &|part| go_form(part, &field.type_),
        );
    }
    *object = Object::from_value(value).unwrap_or_default();
    if fields.is_empty() && object.kind() == "Rollout" && object.group() == "argoproj.io" {
        let spec = object
            .0
            .get_mut("spec")
            .and_then(|spec| spec.pointer_mut("/template/spec"));
        spec.into_iter()
            .for_each(|spec| go_form(spec, "core/v1/PodSpec"));
    }
}

/// Changes the value at a path, in every item of the lists along it.
fn at(value: &mut Value, path: &[&str], change: &dyn Fn(&mut Value)) {
    match (value, path) {
        (Value::Array(items), _) => items.iter_mut().for_each(|item| at(item, path, change)),
        (value, []) => change(value),
        (value, [first, rest @ ..]) => value
            .get_mut(first)
            .into_iter()
            .for_each(|field| at(field, rest, change)),
    }
}

/// The value as Go encodes it. Values that cannot be decoded, and unknown types, stay unchanged.
fn go_form(value: &mut Value, type_name: &str) {
    let written = match type_name {
        "core/Quantity" => quantity::canonical(value).map(Value::from),
        "core/v1/ResourceList" => resource_list(value),
        "meta/v1/Duration" => value
            .as_str()
            .and_then(|text| duration::parse(text).ok())
            .map(|nanos| duration::to_string(nanos).into()),
        other => other
            .strip_prefix("core/v1/")
            .and_then(|name| of_type(value, &format!("io.k8s.api.core.v1.{name}"))),
    };
    if let Some(written) = written {
        *value = written;
    }
}

/// The only type of core/v1 that is a map in Go. If one value is not a quantity, the whole map
/// stays unchanged; null is zero.
fn resource_list(value: &Value) -> Option<Value> {
    let canonical = |value: &Value| {
        if value.is_null() {
            Some("0".to_owned())
        } else {
            quantity::canonical(value)
        }
    };
    let written = value
        .as_object()?
        .iter()
        .map(|(name, value)| Some((name.clone(), canonical(value)?.into())));
    written.collect::<Option<Map<_, _>>>().map(Value::Object)
}

fn of_type(value: &Value, definition: &str) -> Option<Value> {
    let mut written = remarshal::lenient(value, schema::builtin().definition(definition)?)?;
    for list in ["containers", "initContainers"] {
        let containers = written.get_mut(list).and_then(Value::as_array_mut);
        for container in containers
            .into_iter()
            .flatten()
            .filter_map(Value::as_object_mut)
        {
            // Go encodes structs even when they are empty.
            container
                .entry("resources")
                .or_insert_with(|| Map::new().into());
        }
    }
    Some(written)
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
            rewrite(&mut rollout, None);
            rollout
        };
        let written = form(
            json!({"hostNetwork": false, "containers": [{"name": "a", "resources": {"limits": {"cpu": "1000m"}}}, {"name": "b"}]}),
        );
        let read = form(
            json!({"containers": [{"name": "a", "resources": {"limits": {"cpu": 1}}}, {"name": "b", "resources": {}}]}),
        );
        assert_eq!(written, read);
    }

    #[test]
    fn fields_that_users_name_are_compared_in_go_s_form() {
        let text = "[{field: spec.cpu, type: core/Quantity}, {field: spec.items.wait, type: meta/v1/Duration}, {field: spec.pod, type: core/v1/PodSpec}, {field: spec.x, type: no/Type}, {field: spec.limits, type: core/v1/ResourceList}, {field: spec.broken, type: core/v1/ResourceList}]";
        let config = [(
            "resource.customizations.knownTypeFields.x.io_X".to_owned(),
            text.to_owned(),
        )]
        .into();
        let (customizations, problems) =
            crate::customize::read(&config, || jiff::Timestamp::UNIX_EPOCH);
        assert!(problems.is_empty(), "{problems:?}");
        let spec = json!({"cpu": 0.5, "items": [{"wait": "60s"}, {"wait": 3}], "pod": {"hostNetwork": false, "nodeName": "n"}, "x": 1,
            "limits": {"cpu": 0.1, "memory": "1024Mi", "pods": null}, "broken": {"cpu": 0.1, "memory": "much"}});
        let mut object =
            Object::from_value(json!({"apiVersion": "x.io/v1", "kind": "X", "spec": spec}))
                .expect("a map");
        rewrite(&mut object, Some(&customizations));
        let expected = json!({"cpu": "500m", "items": [{"wait": "1m0s"}, {"wait": 3}], "pod": {"nodeName": "n"}, "x": 1,
            "limits": {"cpu": "100m", "memory": "1Gi", "pods": "0"}, "broken": {"cpu": 0.1, "memory": "much"}});
        let got = object.0.get("spec").cloned().unwrap_or_default();
        for field in ["cpu", "items", "x", "limits", "broken"] {
            assert_eq!(got[field], expected[field], "{field}");
        }
        assert_eq!(got["pod"].get("hostNetwork"), None);
    }
}
