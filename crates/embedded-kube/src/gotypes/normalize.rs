//! An object as the real server would write it after reading it into Go structs. Main function: [`normalize`].

use super::{Field, Struct, Type, find};
use serde_json::{Map, Value};
use tiphys_apimachinery::quantity::Quantity;
use tiphys_gocompat::json;

/// Structs whose empty lists a message shows as they were sent; of others protobuf, which does not tell empty from absent, makes null.
const SHOWN_AS_SENT: [&str; 2] = ["apiextensions", "batch/"];

/// A value of the wrong type, as Go's JSON decoder reports it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WrongType {
    #[error("json: cannot unmarshal {found} into Go struct field {field} of type {wanted}")]
    Json { found: String, field: String, wanted: String },
    #[error("illegal base64 data at input byte {0}")]
    Base64(usize),
    #[error("{0}")]
    Quantity(String),
    #[error("{0}")]
    Time(String),
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
                // Go names the struct in the paths of its errors.
                let name = inner.name.split('.').next_back().unwrap_or("");
                walk(map, inner, &if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") })?;
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
                } else if is_empty_list(field, value) && !SHOWN_AS_SENT.iter().any(|group| of.name.starts_with(group)) {
                    // Protobuf does not tell empty from absent.
                    *value = Value::Null;
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

/// Whether it is a list or map without anything in it that Go writes all the same.
fn is_empty_list(field: &Field, value: &Value) -> bool {
    let empty = value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
    matches!(field.ty, Type::List(_) | Type::Map(_)) && !field.omit_empty && empty
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

fn word(value: &Value, wanted: &Type) -> String {
    match value {
        // Where a number is wanted, Go shows the one that does not fit.
        Value::Number(n) if matches!(wanted, Type::Int32 | Type::Int64 | Type::Float | Type::IntOrString) => format!("number {n}"),
        other => json::kind(other).to_owned(),
    }
}

fn go_name(ty: &Type) -> String {
    match ty {
        Type::String | Type::Bytes => "string".into(),
        Type::Bool => "bool".into(),
        Type::Int32 | Type::IntOrString => "int32".into(),
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
    let wrong = |value: &Value, wanted: &Type| {
        Err(WrongType::Json { found: word(value, wanted), field: format!("{short}.{path}"), wanted: go_name(wanted) })
    };
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
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            *value = text.parse::<Quantity>().map_err(|e| WrongType::Quantity(e.to_string()))?.to_string().into();
            Ok(())
        }
        (Type::Bytes, Value::String(text)) => base64_error(text).map_or(Ok(()), |at| Err(WrongType::Base64(at))),
        (Type::Time | Type::MicroTime, Value::String(text)) => time_error(text, ty).map_or(Ok(()), |e| Err(WrongType::Time(e))),
        (Type::String | Type::Duration, Value::String(_))
        | (Type::Bool, Value::Bool(_))
        | (Type::Float, Value::Number(_))
        | (Type::IntOrString, Value::String(_))
        | (Type::Raw, _) => Ok(()),
        (Type::Quantity, found) => {
            Err(WrongType::Quantity(found.to_string().parse::<Quantity>().map_or_else(|e| e.to_string(), |_| String::new())))
        }
        (Type::Int32 | Type::IntOrString, Value::Number(n)) if n.as_i64().is_some_and(|n| i32::try_from(n).is_ok()) => Ok(()),
        (Type::Int64, Value::Number(n)) if n.is_i64() => Ok(()),
        // A whole number written as a float is a number to Go's decoder of Kubernetes.
        (Type::Int32 | Type::Int64, Value::Number(n)) if n.as_f64().is_some_and(|f| f.fract() == 0.0 && f.abs() < 2e9) => {
            *value = (n.as_f64().unwrap_or(0.0) as i64).into();
            Ok(())
        }
        (wanted, found) => wrong(found, wanted),
    }
}

/// What Go says of a text that is no time. It names the part of the layout that does not fit.
fn time_error(text: &str, ty: &Type) -> Option<String> {
    if text.parse::<jiff::Timestamp>().is_ok() {
        return None;
    }
    let layout = if matches!(ty, Type::MicroTime) { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
    let parts = ["2006", "-", "01", "-", "02", "T", "15", ":", "04", ":", "05"];
    let mut rest = text;
    let misfit = parts.into_iter().find(|part| {
        let digits = part.bytes().all(|b| b.is_ascii_digit());
        let fits = match rest.get(..part.len()) {
            Some(head) if digits => head.bytes().all(|b| b.is_ascii_digit()),
            Some(head) => head == *part,
            None => false,
        };
        rest = if fits { &rest[part.len()..] } else { rest };
        !fits
    });
    let part = misfit.unwrap_or(if matches!(ty, Type::MicroTime) && !rest.starts_with('.') { ".000000" } else { "Z07:00" });
    Some(format!("parsing time {text:?} as {layout:?}: cannot parse {rest:?} as {part:?}"))
}

/// Where Go's decoder stops, if it does. It skips line ends.
fn base64_error(text: &str) -> Option<usize> {
    let bytes: Vec<(usize, u8)> = text.bytes().enumerate().filter(|(_, b)| !matches!(b, b'\n' | b'\r')).collect();
    let is_digit = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'+' | b'/');
    let count = bytes.iter().take_while(|(_, b)| is_digit(*b)).count();
    let padding = bytes.len() - count;
    match bytes.get(count) {
        None if count % 4 == 0 => None,
        None => Some(text.len() - count % 4),
        Some((at, b'=')) => match (count % 4, bytes[count..].iter().all(|(_, b)| *b == b'=')) {
            (2, true) if padding == 2 => None,
            (3, true) if padding == 1 => None,
            (2, _) if padding == 1 => Some(text.len()),
            (2, _) if bytes[count + 1].1 != b'=' => Some(bytes[count + 1].0),
            (2, _) => Some(bytes[count + 2].0),
            (3, _) => Some(bytes[count + 1].0),
            _ => Some(*at),
        },
        Some((at, _)) => Some(*at),
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
