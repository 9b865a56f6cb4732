//! Objects as Go writes them: the fields of a struct in the order of their declaration. Main function: [`text_of_patched`].

use super::{Struct, Type, find};
use crate::structural::gofmt;
use serde_json::{Map, Value};

/// The text of an object after a patch. The maps that the patch names are written anew, in order of their keys; what lies in
/// them untouched still is as Go wrote it.
pub fn text_of_patched(object: &Map<String, Value>, of: &'static Struct, touched: &Value) -> String {
    written_anew(object, Some(&of.ty()), touched)
}

/// A struct as Go writes it.
pub fn text_of(object: &Map<String, Value>, of: &'static Struct) -> String {
    let mut members = Vec::new();
    push_members(object, of, &mut members);
    format!("{{{}}}", members.join(","))
}

impl Struct {
    fn ty(&self) -> Type {
        Type::Message(self.name)
    }
}

fn written_anew(map: &Map<String, Value>, ty: Option<&Type>, touched: &Value) -> String {
    let member = |(key, value): (&String, &Value)| {
        let inner = ty.and_then(|ty| member_type(ty, key));
        let text = match (value, touched.get(key)) {
            (value, None) => text(value, inner),
            (Value::Object(map), Some(touched @ Value::Object(_))) => written_anew(map, inner, touched),
            (Value::Array(list), Some(touched @ Value::Object(_))) => {
                let item = match inner {
                    Some(Type::List(item)) => Some(&**item),
                    _ => None,
                };
                let one = |(at, value): (usize, &Value)| match (value, touched.get(at.to_string())) {
                    (Value::Object(map), Some(touched @ Value::Object(_))) => written_anew(map, item, touched),
                    (value, Some(_)) => gofmt::json(value),
                    (value, None) => text(value, item),
                };
                format!("[{}]", list.iter().enumerate().map(one).collect::<Vec<_>>().join(","))
            }
            // It came with the patch.
            (value, Some(_)) => gofmt::json(value),
        };
        format!("{}:{text}", gofmt::json(&key.as_str().into()))
    };
    format!("{{{}}}", map.iter().map(member).collect::<Vec<_>>().join(","))
}

fn member_type(ty: &Type, key: &str) -> Option<&'static Type> {
    let Type::Message(name) = ty else { return None };
    find(name).and_then(|of| field_type(of, key))
}

fn field_type(of: &'static Struct, key: &str) -> Option<&'static Type> {
    of.fields.iter().find_map(|field| match &field.ty {
        Type::Message(name) if field.inline => find(name).and_then(|inner| field_type(inner, key)),
        ty if !field.inline && field.name == key => Some(ty),
        _ => None,
    })
}

fn text(value: &Value, ty: Option<&Type>) -> String {
    match (value, ty) {
        (Value::Object(map), Some(Type::Message(name))) => match find(name) {
            Some(of) => text_of(map, of),
            None => gofmt::json(value),
        },
        (Value::Array(list), Some(Type::List(item))) => {
            format!("[{}]", list.iter().map(|v| text(v, Some(item))).collect::<Vec<_>>().join(","))
        }
        (Value::Object(map), Some(Type::Map(item))) => {
            let member = |(key, value): (&String, &Value)| format!("{}:{}", gofmt::json(&key.as_str().into()), text(value, Some(item)));
            format!("{{{}}}", map.iter().map(member).collect::<Vec<_>>().join(","))
        }
        _ => gofmt::json(value),
    }
}

fn push_members(map: &Map<String, Value>, of: &'static Struct, out: &mut Vec<String>) {
    for field in &of.fields {
        match &field.ty {
            Type::Message(name) if field.inline => {
                if let Some(inner) = find(name) {
                    push_members(map, inner, out);
                }
            }
            ty => {
                if let Some(value) = map.get(field.name) {
                    out.push(format!("\"{}\":{}", field.name, text(value, Some(ty))));
                }
            }
        }
    }
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
        let map = object.as_object().expect("a map");
        let expected = r#"{"apiVersion":"v1","data":{"a":"2","b":1},"kind":"ConfigMap","metadata":{"name":"n","uid":"u","labels":{"x":"y"},"managedFields":[{"manager":"m","apiVersion":"v1"}]}}"#;
        assert_eq!(text_of_patched(map, of, &json!({"data": {"b": 1}})), expected);
        let touched = text_of_patched(map, of, &json!({"metadata": {"labels": {"x": "y"}}}));
        assert!(touched.contains(r#""metadata":{"labels":{"x":"y"},"managedFields":[{"manager":"m","apiVersion":"v1"}],"name":"n""#));
    }
}
