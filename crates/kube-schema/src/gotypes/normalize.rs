//! Normalizes an object as the real server does by decoding it into Go structs and encoding it
//! again. Main functions: [`read_into`], which keeps empty lists and maps, as Go does in memory,
//! and [`normalize`], which drops them, as Go does in writing.

use super::read::{WrongType, read};
use super::{Field, Message, SCHEMA, Struct, Type};
use serde_json::{Map, Value};
use tiphys_apimachinery::quantity::Quantity;

/// Drops what Go omits, writes what Go always writes, and brings quantities to their canonical
/// form.
pub fn normalize(map: &mut Map<String, Value>, of: &'static Struct) -> Result<(), WrongType> {
    read(map, of, false)?;
    walk(map, of, false);
    Ok(())
}

/// The same without dropping empty lists and maps.
pub fn read_into(
    map: &mut Map<String, Value>,
    of: &'static Struct,
    tree: bool,
) -> Result<(), WrongType> {
    read(map, of, tree)?;
    walk(map, of, true);
    Ok(())
}

/// Drops the empty lists and maps that Go does not write. The object must be normalized.
pub fn drop_empty(map: &mut Map<String, Value>, of: &'static Struct) {
    walk(map, of, false);
}

/// Drops the other fields that Go does not write. The object must be normalized.
pub fn drop_zero(map: &mut Map<String, Value>, of: &'static Struct) {
    walk(map, of, true);
}

/// Copies values from `from` to `to` that are equal in Go: quantities in a different notation, and
/// empty lists and maps that are missing in `to`.
pub fn share_equal(from: &Map<String, Value>, to: &mut Map<String, Value>, of: &'static Struct) {
    for field in &of.fields {
        if let (Type::Message(message), true) = (&field.ty, field.inline) {
            message
                .find()
                .into_iter()
                .for_each(|inner| share_equal(from, to, inner));
            continue;
        }
        let Some(value) = from.get(field.name) else {
            continue;
        };
        let nothing = value.as_array().is_some_and(Vec::is_empty)
            || value.as_object().is_some_and(Map::is_empty);
        match to.get_mut(field.name).filter(|old| !old.is_null()) {
            Some(old) => share_equal_parts(value, old, &field.ty),
            None if nothing && matches!(field.ty, Type::List(_) | Type::Map(_)) => {
                to.insert(field.name.to_owned(), value.clone());
            }
            None => {}
        }
    }
}

/// Whether [`share_equal`] might have any effect.
pub fn may_share(from: &Map<String, Value>, to: &Map<String, Value>) -> bool {
    from.iter()
        .any(|(key, value)| key != "managedFields" && may_share_part(value, to.get(key)))
}

fn may_share_part(from: &Value, to: Option<&Value>) -> bool {
    let is_amount =
        |text: &str| text.starts_with(|c: char| c.is_ascii_digit() || "+-. ".contains(c));
    match (from, to) {
        (Value::Object(from), Some(Value::Object(to))) => may_share(from, to),
        (Value::Array(from), Some(Value::Array(to))) => from
            .iter()
            .zip(to)
            .any(|(from, to)| may_share_part(from, Some(to))),
        (Value::String(from), Some(Value::String(to))) => from != to && is_amount(from),
        (Value::Object(from), None | Some(Value::Null)) => from.is_empty(),
        (Value::Array(from), None | Some(Value::Null)) => from.is_empty(),
        _ => false,
    }
}

fn share_equal_parts(from: &Value, to: &mut Value, ty: &Type) {
    match (ty, from, to) {
        (Type::Message(message), Value::Object(from), Value::Object(to)) => message
            .find()
            .into_iter()
            .for_each(|inner| share_equal(from, to, inner)),
        (Type::List(item), Value::Array(from), Value::Array(to)) => {
            from.iter()
                .zip(to)
                .for_each(|(from, to)| share_equal_parts(from, to, item));
        }
        (Type::Map(item), Value::Object(from), Value::Object(to)) => {
            for (key, to) in to.iter_mut() {
                from.get(key)
                    .into_iter()
                    .for_each(|from| share_equal_parts(from, to, item));
            }
        }
        (Type::Quantity, Value::String(from), Value::String(to)) if from != to => {
            if let (Ok(one), Ok(other)) = (from.parse::<Quantity>(), to.parse::<Quantity>())
                && one.cmp(&other).is_eq()
            {
                to.clone_from(from);
            }
        }
        _ => {}
    }
}

fn walk(map: &mut Map<String, Value>, of: &'static Struct, keep_empty: bool) {
    for field in &of.fields {
        if field.inline {
            // An inlined pointer adds nothing of its own; inlined structs of this API hold only
            // optional fields or need all.
            if let Type::Message(message) = &field.ty
                && let Some(inner) = message.find()
            {
                walk(map, inner, keep_empty);
            }
            continue;
        }
        if let Some(value) = map.get_mut(field.name) {
            walk_parts(value, &field.ty, keep_empty);
            let kept = keep_empty && matches!(field.ty, Type::List(_) | Type::Map(_));
            if value.is_null() || (!kept && omitted(field, value)) {
                map.remove(field.name);
            }
        }
        if !map.contains_key(field.name)
            && let Some(zero) = written_anyway(field)
        {
            map.insert(field.name.to_owned(), zero);
        }
    }
}

fn walk_parts(value: &mut Value, ty: &Type, keep_empty: bool) {
    match (ty, value) {
        (Type::Message(message), Value::Object(map)) => {
            if let Some(inner) = message.find() {
                walk(map, inner, keep_empty);
            }
        }
        (
            Type::SchemaOrList | Type::SchemaOrBool | Type::SchemaOrTexts,
            whole @ Value::Object(_),
        ) => {
            walk_parts(whole, &Type::Message(Message::new(SCHEMA)), keep_empty);
        }
        (Type::SchemaOrList, Value::Array(list)) if !list.is_empty() => {
            list.iter_mut().for_each(|element| {
                walk_parts(element, &Type::Message(Message::new(SCHEMA)), keep_empty)
            });
        }
        (Type::SchemaOrList, neither) if !keep_empty => *neither = Value::Null,
        (Type::List(item), Value::Array(list)) => list
            .iter_mut()
            .for_each(|element| walk_parts(element, item, keep_empty)),
        (Type::Map(item), Value::Object(map)) => map
            .values_mut()
            .for_each(|element| walk_parts(element, item, keep_empty)),
        _ => {}
    }
}

/// Sets empty lists and maps that Go always writes to null: in the store, protobuf does not
/// distinguish empty from absent.
pub fn forget_empty(map: &mut Map<String, Value>, of: &'static Struct) {
    for field in &of.fields {
        match (&field.ty, field.inline) {
            (Type::Message(message), true) => {
                if let Some(inner) = message.find() {
                    forget_empty(map, inner);
                }
            }
            _ => {
                if let Some(value) = map.get_mut(field.name) {
                    forget_empty_parts(value, &field.ty);
                    if is_empty_list(field, value) {
                        *value = Value::Null;
                    }
                }
            }
        }
    }
}

fn forget_empty_parts(value: &mut Value, ty: &Type) {
    match (ty, value) {
        (Type::Message(message), Value::Object(map)) => {
            if let Some(inner) = message.find() {
                forget_empty(map, inner);
            }
        }
        (Type::List(item), Value::Array(list)) => list
            .iter_mut()
            .for_each(|element| forget_empty_parts(element, item)),
        (Type::Map(item), Value::Object(map)) => map
            .values_mut()
            .for_each(|element| forget_empty_parts(element, item)),
        _ => {}
    }
}

/// Whether it is an empty list or map that Go writes anyway.
fn is_empty_list(field: &Field, value: &Value) -> bool {
    let empty =
        value.as_array().is_some_and(Vec::is_empty) || value.as_object().is_some_and(Map::is_empty);
    matches!(field.ty, Type::List(_) | Type::Map(_)) && !field.omit_empty && empty
}

/// Whether Go omits the field: an empty value that is not behind a pointer.
pub(super) fn omitted(field: &Field, value: &Value) -> bool {
    if !(field.omit_empty || field.omit_zero) || field.pointer {
        return false;
    }
    match (&field.ty, value) {
        (Type::Message(_), Value::Object(map)) => field.omit_zero && map.is_empty(),
        (Type::List(_) | Type::Map(_), Value::Array(list)) => list.is_empty(),
        (Type::List(_) | Type::Map(_), Value::Object(map)) => map.is_empty(),
        (
            Type::Quantity
            | Type::IntOrString
            | Type::Time
            | Type::MicroTime
            | Type::Raw
            | Type::SchemaOrList
            | Type::SchemaOrBool
            | Type::SchemaOrTexts
            | Type::Duration,
            _,
        ) => false,
        (_, Value::String(text)) => text.is_empty(),
        (_, Value::Bool(b)) => !b,
        (_, Value::Number(n)) => n.as_f64() == Some(0.0),
        _ => false,
    }
}

/// The value that Go writes for an absent field: structs that are not behind a pointer, and
/// anything without `omitempty`.
fn written_anyway(field: &Field) -> Option<Value> {
    if field.omit_zero || (field.pointer && field.omit_empty) {
        return None;
    }
    if field.pointer {
        return Some(Value::Null);
    }
    // A struct is never "empty" in Go, whatever its JSON looks like.
    match &field.ty {
        Type::Message(message) => {
            let mut map = Map::new();
            if let Some(inner) = message.find() {
                walk(&mut map, inner, false);
            }
            return Some(Value::Object(map));
        }
        Type::Time | Type::MicroTime | Type::Raw => return Some(Value::Null),
        Type::Quantity => return Some("0".into()),
        Type::IntOrString => return Some(0.into()),
        _ if field.omit_empty => return None,
        _ => {}
    }
    match &field.ty {
        Type::String => Some("".into()),
        Type::Bool => Some(false.into()),
        Type::Int32 | Type::Int64 | Type::Float => Some(0.into()),
        Type::List(_) | Type::Map(_) | Type::Bytes => Some(Value::Null),
        _ => None,
    }
}

/// The JSON of an empty struct: in Go, the previous state of an object being created.
pub fn zero(of: &'static Struct) -> Map<String, Value> {
    let mut map = Map::new();
    for field in &of.fields {
        match &field.ty {
            Type::Message(message) if field.inline => {
                map.extend(message.find().map(zero).unwrap_or_default())
            }
            _ if field.pointer && field.omit_empty || field.omit_zero => {}
            Type::Message(message) if !field.pointer => {
                map.insert(
                    field.name.to_owned(),
                    message.find().map(zero).unwrap_or_default().into(),
                );
            }
            Type::Time | Type::MicroTime | Type::Raw if !field.pointer => {
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

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;
    use serde_json::json;
    use tiphys_apimachinery::Gvk;

    fn normalized(group: &str, kind: &str, value: Value) -> Result<Value, String> {
        let Value::Object(mut map) = value else {
            panic!("a map")
        };
        normalize(
            &mut map,
            of(&Gvk::new(group, "v1", kind)).expect("a known kind"),
        )
        .map_err(|e| e.to_string())?;
        Ok(Value::Object(map))
    }

    #[test]
    fn what_go_omits_goes_and_what_go_writes_comes() {
        let pod = json!({"metadata": {"name": "p", "labels": {}}, "spec": {"hostNetwork": false, "nodeName": "",
            "containers": [{"name": "c", "resources": {"limits": {"cpu": "1000m"}}, "securityContext": {"privileged": false}}],
            "volumes": [{"name": "v", "emptyDir": {}}]}});
        let spec = normalized("", "Pod", pod).expect("normal")["spec"].clone();
        let container = json!({"name": "c", "resources": {"limits": {"cpu": "1"}}, "securityContext": {"privileged": false}});
        assert_eq!(
            spec,
            json!({"containers": [container], "volumes": [{"name": "v", "emptyDir": {}}]})
        );
        let deployment = normalized(
            "apps",
            "Deployment",
            json!({"spec": {"replicas": 0, "template": {"spec": {"containers": []}}}}),
        );
        let spec = deployment.expect("normal")["spec"].clone();
        assert_eq!(spec["strategy"], json!({}));
        assert_eq!(spec["replicas"], json!(0));
    }
}
