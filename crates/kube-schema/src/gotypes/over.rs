//! A value decoded over an earlier one, as Go does for duplicate keys in a text. Main function:
//! [`read_over`].

use super::{Field, Struct, Type};
use serde_json::{Map, Value};

/// Decodes a value into a field: structs, lists and maps keep what the new value does not contain,
/// as far as Go decodes into existing values.
pub fn read_over(old: &mut Value, new: Value, field: &Field) {
    if new.is_null() && !field.pointer && keeps(&field.ty) {
        return;
    }
    over(old, new, &field.ty);
}

/// Whether a null leaves the value unchanged, unless it is behind a pointer.
fn keeps(ty: &Type) -> bool {
    matches!(
        ty,
        Type::Message(_)
            | Type::String
            | Type::Bool
            | Type::Int32
            | Type::Int64
            | Type::Float
            | Type::Raw
    )
}

fn over(old: &mut Value, new: Value, ty: &Type) {
    match (ty, &mut *old, new) {
        (Type::Message(message), Value::Object(old), Value::Object(new)) => {
            if let Some(of) = message.find() {
                object(old, new, of);
            }
        }
        // A type error is reported, whatever follows it.
        (Type::Message(_) | Type::Map(_), other, _) if !other.is_object() && !other.is_null() => {}
        (Type::Map(_), Value::Object(old), Value::Object(new)) => old.extend(new),
        (Type::List(item), Value::Array(old), Value::Array(new)) => list(old, new, item),
        (_, old, new) => *old = new,
    }
}

fn object(old: &mut Map<String, Value>, new: Map<String, Value>, of: &'static Struct) {
    for (key, value) in new {
        match (of.field(&key), old.get_mut(&key)) {
            (Some(field), Some(old)) => read_over(old, value, field),
            _ => drop(old.insert(key, value)),
        }
    }
}

/// Decodes each element into the one at its position; superfluous ones are dropped.
fn list(old: &mut Vec<Value>, new: Vec<Value>, item: &Type) {
    old.truncate(new.len());
    for (at, value) in new.into_iter().enumerate() {
        match old.get_mut(at) {
            Some(old) if value.is_null() && !old.is_null() && keeps(item) => {}
            Some(old) => over(old, value, item),
            None => old.push(value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::find;
    use super::*;
    use serde_json::json;

    #[test]
    fn what_is_not_said_again_stays() {
        let field = find("core/v1.Pod")
            .and_then(|pod| pod.field("spec"))
            .expect("a field");
        let mut spec = json!({"containers": [{"name": "a", "image": "b"}, {"name": "c"}], "nodeSelector": {"a": "b"}, "hostNetwork": true});
        let again =
            json!({"containers": [{"name": "d"}], "nodeSelector": {"c": "d"}, "hostNetwork": null});
        read_over(&mut spec, again, field);
        let expected = json!({"containers": [{"name": "d", "image": "b"}], "nodeSelector": {"a": "b", "c": "d"}, "hostNetwork": true});
        assert_eq!(spec, expected);
        read_over(&mut spec, Value::Null, field);
        assert_eq!(spec, expected);
        read_over(
            &mut spec,
            json!({"containers": null, "nodeSelector": {}}),
            field,
        );
        assert_eq!(
            spec,
            json!({"containers": null, "nodeSelector": {"a": "b", "c": "d"}, "hostNetwork": true})
        );
    }
}
