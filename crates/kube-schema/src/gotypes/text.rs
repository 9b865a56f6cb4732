//! Objects as Go writes them, with the fields of a struct in the order of their declaration. Main
//! type: [`AsWritten`].
//!
//! The real server patches the text of an object. The parts that the patch looks into are then
//! written again, with sorted keys; everything else stays as it was written, wherever it is moved
//! to.

use super::{Message, Struct, Type, find};
use crate::gofmt;
use serde_json::{Map, Value};

/// The key that marks the struct of a map. No field of a struct has this name.
const STRUCT: &str = "\0";

/// An object in which every part knows whether it is still as Go wrote it.
pub struct AsWritten(Value);

impl AsWritten {
    pub fn new(object: &Map<String, Value>, of: &'static Struct) -> Self {
        let mut value = Value::Object(object.clone());
        mark(&mut value, &Type::Message(Message::new(of.name)));
        Self(value)
    }

    /// The text after a JSON Patch that applies.
    pub fn json_patched(mut self, operations: &Value) -> String {
        for operation in operations.as_array().into_iter().flatten() {
            let pointer = |field: &str| operation.get(field).and_then(Value::as_str);
            let is = |op: &str| operation["op"] == op;
            for place in pointer("from")
                .filter(|_| is("move") || is("copy"))
                .into_iter()
                .chain(pointer("path"))
            {
                self.look_into(place, is("test"));
            }
            if !is("test")
                && let Ok(next) = tiphys_apimachinery::patch::json::apply(
                    &self.0,
                    &Value::Array(vec![operation.clone()]),
                )
            {
                self.0 = next;
            }
        }
        text(&self.0)
    }

    /// The text after a merge patch.
    pub fn merge_patched(mut self, patch: &Value) -> String {
        look_where(&mut self.0, patch);
        match tiphys_apimachinery::patch::json_merge::apply(&self.0, patch) {
            Ok(patched) => text(&patched),
            Err(_) => text(&self.0),
        }
    }

    /// Marks everything on the path to a location to be written again, and the whole value there if
    /// it is compared.
    fn look_into(&mut self, pointer: &str, compared: bool) {
        let mut at = &mut self.0;
        for step in pointer.split('/').skip(1) {
            if let Value::Object(map) = at {
                map.remove(STRUCT);
            }
            let step = step.replace("~1", "/").replace("~0", "~");
            let next = match at {
                Value::Object(map) => map.get_mut(&step),
                Value::Array(list) => {
                    let last = list.len();
                    let index = step
                        .parse::<isize>()
                        .ok()
                        .map(|i| if i < 0 { i + last.cast_signed() } else { i });
                    index
                        .and_then(|i| usize::try_from(i).ok())
                        .and_then(|i| list.get_mut(i))
                }
                _ => None,
            };
            let Some(next) = next else { return };
            at = next;
        }
        if compared {
            forget(at);
        }
    }
}

/// A struct as Go writes it.
pub fn text_of(object: &Map<String, Value>, of: &'static Struct) -> String {
    text(&AsWritten::new(object, of).0)
}

fn mark(value: &mut Value, ty: &Type) {
    match (value, ty) {
        (Value::Object(map), Type::Message(message)) => {
            if let Some(of) = message.find() {
                mark_fields(map, of);
                map.insert(STRUCT.to_owned(), message.name.into());
            }
        }
        (Value::Array(list), Type::List(item)) => list.iter_mut().for_each(|v| mark(v, item)),
        (Value::Object(map), Type::Map(item)) => map.values_mut().for_each(|v| mark(v, item)),
        _ => {}
    }
}

fn mark_fields(map: &mut Map<String, Value>, of: &'static Struct) {
    for field in &of.fields {
        match &field.ty {
            Type::Message(message) if field.inline => message
                .find()
                .into_iter()
                .for_each(|inner| mark_fields(map, inner)),
            ty => map
                .get_mut(field.name)
                .into_iter()
                .for_each(|value| mark(value, ty)),
        }
    }
}

/// Marks a whole value to be written again.
fn forget(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.remove(STRUCT);
            map.values_mut().for_each(forget);
        }
        Value::Array(list) => list.iter_mut().for_each(forget),
        _ => {}
    }
}

/// Marks the parts that a merge patch changes to be written again.
fn look_where(value: &mut Value, patch: &Value) {
    if let (Value::Object(map), Value::Object(patch)) = (value, patch) {
        map.remove(STRUCT);
        for (key, patch) in patch {
            map.get_mut(key)
                .into_iter()
                .for_each(|value| look_where(value, patch));
        }
    }
}

fn text(value: &Value) -> String {
    let member = |key: &str, value: &Value| format!("{}:{}", gofmt::json(&key.into()), text(value));
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(text).collect::<Vec<_>>().join(",")),
        Value::Object(map) => {
            let of = map.get(STRUCT).and_then(Value::as_str).and_then(find);
            let members: Vec<String> = match of {
                Some(of) => {
                    let own = field_names(of);
                    // An embedded object begins with its kind and version.
                    let says_type = ["kind", "apiVersion"]
                        .into_iter()
                        .filter(|name| !own.contains(name));
                    says_type
                        .chain(own.iter().copied())
                        .filter_map(|name| Some(member(name, map.get(name)?)))
                        .collect()
                }
                None => map.iter().map(|(key, value)| member(key, value)).collect(),
            };
            format!("{{{}}}", members.join(","))
        }
        other => gofmt::json(other),
    }
}

fn field_names(of: &'static Struct) -> Vec<&'static str> {
    let own = |field: &'static super::Field| match &field.ty {
        Type::Message(message) if field.inline => {
            message.find().map(field_names).unwrap_or_default()
        }
        _ => vec![field.name],
    };
    of.fields.iter().flat_map(own).collect()
}

#[cfg(test)]
mod tests {
    use super::super::of;
    use super::*;
    use serde_json::json;
    use tiphys_apimachinery::Gvk;

    #[test]
    fn what_was_not_touched_keeps_the_order_of_its_struct() {
        let object = json!({"apiVersion": "v1", "data": {"b": 1, "a": "2"}, "kind": "ConfigMap",
            "metadata": {"labels": {"x": "y"}, "name": "n", "uid": "u", "managedFields": [{"apiVersion": "v1", "manager": "m"}]}});
        let of = of(&Gvk::new("", "v1", "ConfigMap")).expect("a known kind");
        let written = || AsWritten::new(object.as_object().expect("a map"), of);
        let expected = r#"{"apiVersion":"v1","data":{"a":"2","b":1},"kind":"ConfigMap","metadata":{"name":"n","uid":"u","labels":{"x":"y"},"managedFields":[{"manager":"m","apiVersion":"v1"}]}}"#;
        assert_eq!(
            written().merge_patched(&json!({"data": {"b": 1}})),
            expected
        );
        let anew = r#""metadata":{"labels":{"x":"y"},"managedFields":[{"manager":"m","apiVersion":"v1"}],"name":"n""#;
        assert!(
            written()
                .merge_patched(&json!({"metadata": {"labels": {"x": "y"}}}))
                .contains(anew)
        );
        let replaced =
            written().json_patched(&json!([{"op": "replace", "path": "/data/b", "value": 1}]));
        assert_eq!(replaced, expected);
        let compared = json!([{"op": "test", "path": "/metadata", "value": object["metadata"]}]);
        let anew = r#""metadata":{"labels":{"x":"y"},"managedFields":[{"apiVersion":"v1","manager":"m"}],"name":"n""#;
        assert!(written().json_patched(&compared).contains(anew));
        let moved = json!([{"op": "move", "from": "/metadata/managedFields/0", "path": "/data/c"}]);
        assert!(
            written()
                .json_patched(&moved)
                .contains(r#""data":{"a":"2","b":1,"c":{"manager":"m","apiVersion":"v1"}}"#)
        );
    }
}
