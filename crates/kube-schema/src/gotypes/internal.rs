//! A value in the form of the real server's messages: its internal structs have no JSON names, so
//! Go's own field names appear, and empty fields are included. Main function: [`internal`].

use super::internal_names::{self as names, MOVED};
use super::{Field, Struct, Type, find};
use serde_json::Value;

/// Words that Go capitalizes when a field's name starts with them.
const CAPITALS: [&str; 11] = [
    "api", "cel", "cidr", "dns", "fqdn", "http", "id", "ip", "tls", "uid", "url",
];

/// The JSON of a value of the named type (`core/v1.ServicePort`; `[]` and `{}` before it for lists
/// and maps).
pub fn internal(value: &Value, of: &str) -> String {
    if let Some(item) = of.strip_prefix("[]") {
        return list(value, |v| internal(v, item));
    }
    match find(of) {
        Some(of) if !value.is_null() => structure(value, of),
        _ => value.to_string(),
    }
}

fn list(value: &Value, item: impl Fn(&Value) -> String) -> String {
    match value.as_array() {
        Some(list) => format!("[{}]", list.iter().map(item).collect::<Vec<_>>().join(",")),
        None => "null".to_owned(),
    }
}

fn structure(value: &Value, of: &'static Struct) -> String {
    if of.name == "core/v1.PodSpec" {
        return format!("{{{}}}", fields(&as_internal(value), of).join(","));
    }
    format!("{{{}}}", fields(value, of).join(","))
}

/// A pod spec with the fields moved to its security context that are there internally.
fn as_internal(spec: &Value) -> Value {
    let mut spec = spec.clone();
    let moved: Vec<(String, Value)> = MOVED
        .iter()
        .filter_map(|f| Some(((*f).to_owned(), spec.get(f)?.clone())))
        .collect();
    if let Some(context) = spec
        .get_mut("securityContext")
        .and_then(Value::as_object_mut)
    {
        context.extend(moved);
    }
    spec
}

fn fields(value: &Value, of: &'static Struct) -> Vec<String> {
    // Types of apimachinery keep their JSON names, and omit empty fields.
    if of.name.starts_with("meta/") {
        let shown = |f: &Field, v: &Value| !v.is_null() && !super::omitted(f, v);
        let held = of
            .fields
            .iter()
            .filter_map(|f| Some((f, value.get(f.name).filter(|v| shown(f, v))?)));
        return held
            .map(|(f, held)| format!("\"{}\":{}", f.name, typed(held, &f.ty, true)))
            .collect();
    }
    let mut parts = Vec::new();
    for field in in_order(of) {
        let held = value.get(field.name).unwrap_or(&Value::Null);
        match &field.ty {
            // The fields of embedded structs appear as fields of the outer struct.
            Type::Message(message) if field.inline => parts.extend(
                message
                    .find()
                    .map(|inner| fields(value, inner))
                    .unwrap_or_default(),
            ),
            Type::Message(message) if message.name == "meta/v1.ObjectMeta" => parts.extend(
                message
                    .find()
                    .map(|inner| fields(held, inner))
                    .unwrap_or_default(),
            ),
            _ => {
                let name = names::name(of.name, field.name)
                    .map_or_else(|| go_name(field.name), str::to_owned);
                parts.push(format!(
                    "\"{name}\":{}",
                    typed(held, &field.ty, field.pointer && !names::is_plain(of.name))
                ));
            }
        }
    }
    parts
}

fn in_order(of: &'static Struct) -> Vec<&'static Field> {
    let Some(order) = names::order(of.name) else {
        return of.fields.iter().collect();
    };
    let moved = find("core/v1.PodSpec")
        .map(|spec| spec.fields.as_slice())
        .unwrap_or_default();
    let all: Vec<&'static Field> = of.fields.iter().chain(moved).collect();
    order
        .filter_map(|name| all.iter().find(|f| f.name == name).copied())
        .collect()
}

fn typed(value: &Value, ty: &Type, pointer: bool) -> String {
    match ty {
        _ if pointer && value.is_null() => "null".to_owned(),
        Type::Message(message) => message
            .find()
            .map_or_else(|| value.to_string(), |of| structure(value, of)),
        Type::List(item) => list(value, |v| typed(v, item, false)),
        Type::Map(item) => match value.as_object() {
            Some(map) => {
                let entries: Vec<String> = map
                    .iter()
                    .map(|(k, v)| format!("{}:{}", Value::from(k.as_str()), typed(v, item, false)))
                    .collect();
                format!("{{{}}}", entries.join(","))
            }
            None => "null".to_owned(),
        },
        _ if !value.is_null() => value.to_string(),
        Type::String => "\"\"".to_owned(),
        Type::Bool => "false".to_owned(),
        Type::Int32 | Type::Int64 | Type::Float | Type::IntOrString => "0".to_owned(),
        Type::Quantity => "\"0\"".to_owned(),
        Type::Duration => "\"0s\"".to_owned(),
        _ => "null".to_owned(),
    }
}

/// The Go name of a JSON field.
fn go_name(json: &str) -> String {
    let word_end = |prefix: &&&str| {
        json[prefix.len()..]
            .chars()
            .next()
            .is_none_or(|c| c.is_ascii_uppercase() || c == 's')
    };
    let capital = CAPITALS
        .iter()
        .find(|w| json.starts_with(**w) && word_end(w));
    let mut name = match capital {
        Some(word) => format!("{}{}", word.to_uppercase(), &json[word.len()..]),
        None => json[..1].to_uppercase() + &json[1..],
    };
    // The plural of ID and the like keeps its small s.
    if let Some(stem) = name.strip_suffix("Id") {
        name = format!("{stem}ID");
    }
    name
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn everything_is_shown_under_its_go_name() {
        let port = json!({"port": 80, "protocol": "TCP"});
        let shown = "{\"Name\":\"\",\"Protocol\":\"TCP\",\"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}";
        assert_eq!(internal(&port, "core/v1.ServicePort"), shown);
        assert_eq!(
            internal(&json!([port]), "[]core/v1.ServicePort"),
            format!("[{shown}]")
        );
        let selector = json!({"matchLabels": {"a": "b"}});
        assert_eq!(
            internal(&selector, "meta/v1.LabelSelector"),
            "{\"matchLabels\":{\"a\":\"b\"}}"
        );
        assert_eq!(
            [
                go_name("clusterIP"),
                go_name("apiGroup"),
                go_name("uid"),
                go_name("ipFamily")
            ],
            ["ClusterIP", "APIGroup", "UID", "IPFamily"]
        );
    }
}
