//! Prints values as Go does in messages about an applied configuration.
//!
//! Main functions: [`plain`] (`%v`), [`source`] (`%#v`), [`type_name`] (`%T`).

use serde_json::{Number, Value};
use tiphys_gocompat::text;

pub(super) fn plain(value: &Value) -> String {
    match value {
        Value::Null => "<nil>".to_owned(),
        Value::String(text) => text.clone(),
        Value::Number(n) => number(n),
        Value::Bool(b) => b.to_string(),
        Value::Array(list) => format!("[{}]", list.iter().map(plain).collect::<Vec<_>>().join(" ")),
        Value::Object(map) => format!(
            "map[{}]",
            map.iter()
                .map(|(k, v)| format!("{k}:{}", plain(v)))
                .collect::<Vec<_>>()
                .join(" ")
        ),
    }
}

/// The value that identifies a list element, as structured-merge-diff prints it.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Array(list) => format!("[{}]", list.iter().map(shown).collect::<Vec<_>>().join(",")),
        Value::Object(map) => map
            .iter()
            .map(|(k, v)| format!("{k}={}", shown(v)))
            .collect(),
        Value::Null => "null".to_owned(),
        Value::String(text) => text::quote(text),
        other => plain(other),
    }
}

pub(super) fn source(value: &Value) -> String {
    match value {
        Value::Null => "interface {}(nil)".to_owned(),
        Value::String(text) => text::quote(text),
        Value::Number(n) => number(n),
        Value::Bool(b) => b.to_string(),
        Value::Array(list) => format!(
            "[]interface {{}}{{{}}}",
            list.iter().map(source).collect::<Vec<_>>().join(", ")
        ),
        Value::Object(map) => {
            let member = |(k, v): (&String, &Value)| format!("{}:{}", text::quote(k), source(v));
            format!(
                "map[string]interface {{}}{{{}}}",
                map.iter().map(member).collect::<Vec<_>>().join(", ")
            )
        }
    }
}

pub(super) fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "<nil>",
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(_) => "float64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    }
}

fn number(n: &Number) -> String {
    if n.is_f64() {
        text::float(n.as_f64().unwrap_or_default())
    } else {
        n.to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_look_as_go_prints_them() {
        let value =
            json!({"a": [1, 2.5, "x", true, null], "b": {"c": 5_000_000_000_i64, "d": 5e9}});
        assert_eq!(
            plain(&value),
            "map[a:[1 2.5 x true <nil>] b:map[c:5000000000 d:5e+09]]"
        );
        assert_eq!(
            shown(&value),
            r#"a=[1,2.5,"x",true,null]b=c=5000000000d=5e+09"#
        );
        let source_text = r#"map[string]interface {}{"a":[]interface {}{1, 2.5, "x", true, interface {}(nil)}, "b":map[string]interface {}{"c":5000000000, "d":5e+09}}"#;
        assert_eq!(source(&value), source_text);
    }
}
