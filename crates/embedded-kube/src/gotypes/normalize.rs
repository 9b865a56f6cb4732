//! An object as the real server would write it after reading it into Go structs. Main function: [`normalize`].

use super::{Field, Struct, Type, find};
use serde_json::{Map, Value};
use tiphys_apimachinery::quantity;

/// A value of the wrong type, as Go's JSON decoder reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")]
pub struct WrongType {
    found: &'static str,
    field: String,
    wanted: String,
}

/// Drops what Go omits, writes what Go always writes, and brings quantities to their canonical form.
pub fn normalize(map: &mut Map<String, Value>, of: &'static Struct) -> Result<(), WrongType> {
    walk(map, of, "")
}

fn walk(map: &mut Map<String, Value>, of: &'static Struct, path: &str) -> Result<(), WrongType> {
    for field in &of.fields {
        if field.inline {
            if let Type::Message(name) = field.ty
                && let Some(inner) = find(name)
            {
                // An inlined pointer adds nothing of its own; inlined structs of this API hold only optional fields or need all.
                walk(map, inner, path)?;
            }
            continue;
        }
        let here = || if path.is_empty() { field.name.to_owned() } else { format!("{path}.{}", field.name) };
        match map.get_mut(field.name) {
            None => {}
            Some(Value::Null) => {
                map.remove(field.name);
            }
            Some(value) => {
                convert(value, &field.ty, &here(), of)?;
                if omitted(field, value) {
                    map.remove(field.name);
                }
            }
        }
        if !map.contains_key(field.name)
            && let Some(zero) = written_anyway(field)?
        {
            map.insert(field.name.to_owned(), zero);
        }
    }
    Ok(())
}

/// Whether Go leaves the field out: an empty value that is not behind a pointer.
fn omitted(field: &Field, value: &Value) -> bool {
    if !(field.omit_empty || field.omit_zero) || field.pointer {
        return false;
    }
    match (&field.ty, value) {
        (Type::Message(_), Value::Object(map)) => field.omit_zero && map.is_empty(),
        (Type::List(_) | Type::Map(_), Value::Array(list)) => list.is_empty(),
        (Type::List(_) | Type::Map(_), Value::Object(map)) => map.is_empty(),
        (Type::Quantity | Type::IntOrString | Type::Time | Type::MicroTime | Type::Raw | Type::Duration, _) => false,
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(b)) => !b,
        (_, Value::Number(n)) => n.as_f64() == Some(0.0),
        _ => false,
    }
}

/// What Go writes for a field that was not given: structs that are not behind a pointer, and anything without `omitempty`.
fn written_anyway(field: &Field) -> Result<Option<Value>, WrongType> {
    if field.omit_zero || (field.pointer && field.omit_empty) {
        return Ok(None);
    }
    if field.pointer {
        return Ok(Some(Value::Null));
    }
    // Structs are never "empty" to Go, whatever they look like in JSON.
    match &field.ty {
        Type::Message(name) => {
            let mut map = Map::new();
            if let Some(inner) = find(name) {
                walk(&mut map, inner, "")?;
            }
            return Ok(Some(Value::Object(map)));
        }
        Type::Time | Type::MicroTime => return Ok(Some(Value::Null)),
        Type::Quantity => return Ok(Some("0".into())),
        Type::IntOrString => return Ok(Some(0.into())),
        _ if field.omit_empty => return Ok(None),
        _ => {}
    }
    Ok(match &field.ty {
        Type::String => Some("".into()),
        Type::Bool => Some(false.into()),
        Type::Int32 | Type::Int64 | Type::Float => Some(0.into()),
        Type::List(_) | Type::Map(_) | Type::Bytes => Some(Value::Null),
        _ => None,
    })
}

/// The JSON of an empty struct: what was there, to Go, before an object is created.
pub fn zero(of: &'static Struct) -> Map<String, Value> {
    let mut map = Map::new();
    for field in &of.fields {
        match &field.ty {
            Type::Message(name) if field.inline => map.extend(find(name).map(zero).unwrap_or_default()),
            _ if field.pointer && field.omit_empty || field.omit_zero => {}
            Type::Message(name) if !field.pointer => {
                map.insert(field.name.to_owned(), find(name).map(zero).unwrap_or_default().into());
            }
            Type::Time | Type::MicroTime if !field.pointer => {
                map.insert(field.name.to_owned(), Value::Null);
            }
            _ if field.omit_empty => {}
            Type::String if !field.pointer => {
                map.insert(field.name.to_owned(), "".into());
            }
            Type::Bool if !field.pointer => {
                map.insert(field.name.to_owned(), false.into());
            }
            Type::Int32 | Type::Int64 | Type::Float if !field.pointer => {
                map.insert(field.name.to_owned(), 0.into());
            }
            _ => {
                map.insert(field.name.to_owned(), Value::Null);
            }
        }
    }
    map
}

fn word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn go_name(ty: &Type) -> String {
    match ty {
        Type::String | Type::Bytes => "string".into(),
        Type::Bool => "bool".into(),
        Type::Int32 => "int32".into(),
        Type::Int64 => "int64".into(),
        Type::Float => "float64".into(),
        Type::List(item) => format!("[]{}", go_name(item)),
        Type::Map(item) => format!("map[string]{}", go_name(item)),
        // Go names types by package and type: `v1.PodSpec`.
        Type::Message(name) => name.split('/').next_back().unwrap_or(name).to_owned(),
        _ => "string".into(),
    }
}

fn convert(value: &mut Value, ty: &Type, path: &str, of: &'static Struct) -> Result<(), WrongType> {
    let short = of.name.split('.').next_back().unwrap_or(of.name);
    let wrong =
        |value: &Value, wanted: &Type| Err(WrongType { found: word(value), field: format!("{short}.{path}"), wanted: go_name(wanted) });
    match (ty, &mut *value) {
        (Type::Message(name), Value::Object(map)) => match find(name) {
            Some(inner) => walk(map, inner, path),
            None => Ok(()),
        },
        (Type::List(item), Value::Array(list)) => {
            for element in list.iter_mut() {
                if element.is_null() {
                    *element = null_element(item)?;
                }
                convert(element, item, path, of)?;
            }
            Ok(())
        }
        (Type::Map(item), Value::Object(map)) => {
            for element in map.values_mut() {
                if element.is_null() {
                    *element = null_element(item)?;
                }
                convert(element, item, path, of)?;
            }
            Ok(())
        }
        (Type::Quantity, Value::String(_) | Value::Number(_)) => {
            if let Some(canonical) = quantity::canonical(value) {
                *value = canonical.into();
            }
            Ok(())
        }
        (Type::String | Type::Bytes | Type::Time | Type::MicroTime | Type::Duration, Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Float, Value::Number(_))
        | (Type::IntOrString, Value::Number(_) | Value::String(_))
        | (Type::Raw, _) => Ok(()),
        (Type::Int32, Value::Number(n)) if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => Ok(()),
        (Type::Int64, Value::Number(n)) if n.is_i64() => Ok(()),
        // A whole number written as a float is a number to Go's decoder of Kubernetes.
        (Type::Int32 | Type::Int64, Value::Number(n)) if n.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 2e9) => {
            *value = (n.as_f64().unwrap_or(0.0) as i64).into();
            Ok(())
        }
        (wanted, found) => wrong(found, wanted),
    }
}

/// A null inside a list or map is the zero value to Go.
fn null_element(item: &Type) -> Result<Value, WrongType> {
    Ok(match item {
        Type::String | Type::Bytes => "".into(),
        Type::Bool => false.into(),
        Type::Int32 | Type::Int64 | Type::Float => 0.into(),
        Type::Quantity => "0".into(),
        Type::Message(_) | Type::Map(_) => Value::Object(Map::new()),
        Type::List(_) => Value::Array(Vec::new()),
        _ => Value::Null,
    })
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;
    use serde_json::json;
    use tiphys_apimachinery::Gvk;

    fn normalized(group: &str, kind: &str, value: Value) -> Result<Value, String> {
        let Value::Object(mut map) = value else { panic!("a map") };
        normalize(&mut map, of(&Gvk::new(group, "v1", kind)).expect("a known kind")).map_err(|e| e.to_string())?;
        Ok(Value::Object(map))
    }

    #[test]
    fn what_go_omits_goes_and_what_go_writes_comes() {
        let pod = json!({"metadata": {"name": "p", "labels": {}}, "spec": {"hostNetwork": false, "nodeName": "",
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1000m"}}, "securityContext": {"privileged": false}}],
            "volumes": [{"name": "v", "emptyDir": {}}]}});
        let spec = normalized("", "Pod", pod).expect("normal")["spec"].clone();
        let container = json!({"name": "c", "resources": {"limits": {"cpu": "1"}}, "securityContext": {"privileged": false}});
        assert_eq!(spec, json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]}));
        let deployment = normalized("apps", "Deployment", json!({"spec": {"replicas": 0, "template": {"spec": {"containers": []}}}}));
        let spec = deployment.expect("normal")["spec"].clone();
        assert_eq!(spec["strategy"], json!({}));
        assert_eq!(spec["replicas"], json!(0));
    }

    #[test]
    fn a_wrong_type_is_reported_as_go_does() {
        let error = normalized("apps", "Deployment", json!({"spec": {"replicas": "3"}})).expect_err("wrong");
        assert_eq!(error, "json: cannot unmarshal string into Go struct field DeploymentSpec.spec.replicas of type int32");
    }
}
