//! Sorts Endpoints for comparison.
//!
//! Main function: [`sort`]. The order of subsets, addresses and ports has no meaning. For display
//! they are in Argo CD's order: by the hash of Go's text representation of each struct.

use md5::{Digest, Md5};
use serde_json::{Map, Value, json};
use std::fmt::Write;
use tiphys_apimachinery::Object;

/// Sorts subsets, their addresses and their ports, and fills in the protocol.
pub fn sort(object: &mut Object) {
    let Some(Value::Array(subsets)) = object.0.get_mut("subsets") else {
        return;
    };
    for subset in subsets.iter_mut() {
        let Some(subset) = subset.as_object_mut() else {
            return;
        };
        if let Some(Value::Array(ports)) = subset.get_mut("ports") {
            for port in ports.iter_mut().filter_map(Value::as_object_mut) {
                port.entry("protocol").or_insert_with(|| json!("TCP"));
            }
            ports.sort_by_cached_key(|p| hash(&go_struct(p, "v1.EndpointPort", &PORT)));
        }
        for field in ["addresses", "notReadyAddresses"] {
            if let Some(Value::Array(addresses)) = subset.get_mut(field) {
                addresses.sort_by_cached_key(|a| {
                    (text(a, "ip"), a.get("targetRef").map(|r| text(r, "uid")))
                });
            }
        }
    }
    subsets.sort_by_cached_key(|s| hash(&go_struct(s, "v1.EndpointSubset", &SUBSET)));
}

/// A field of a Go struct.
struct Field {
    name: &'static str,
    key: &'static str,
    kind: Kind,
}

/// How Go prints its value.
enum Kind {
    /// A string type; the zero value if absent.
    Text(&'static str),
    Number(&'static str),
    /// A pointer to a string.
    Optional,
    Pointer(&'static str, &'static [Field]),
    List(&'static str, &'static [Field]),
}

const fn field(name: &'static str, key: &'static str, kind: Kind) -> Field {
    Field { name, key, kind }
}

static PORT: [Field; 4] = [
    field("Name", "name", Kind::Text("string")),
    field("Port", "port", Kind::Number("int32")),
    field("Protocol", "protocol", Kind::Text("v1.Protocol")),
    field("AppProtocol", "appProtocol", Kind::Optional),
];

static REFERENCE: [Field; 7] = [
    field("Kind", "kind", Kind::Text("string")),
    field("Namespace", "namespace", Kind::Text("string")),
    field("Name", "name", Kind::Text("string")),
    field("UID", "uid", Kind::Text("types.UID")),
    field("APIVersion", "apiVersion", Kind::Text("string")),
    field("ResourceVersion", "resourceVersion", Kind::Text("string")),
    field("FieldPath", "fieldPath", Kind::Text("string")),
];

static ADDRESS: [Field; 4] = [
    field("IP", "ip", Kind::Text("string")),
    field("Hostname", "hostname", Kind::Text("string")),
    field("NodeName", "nodeName", Kind::Optional),
    field(
        "TargetRef",
        "targetRef",
        Kind::Pointer("v1.ObjectReference", &REFERENCE),
    ),
];

static SUBSET: [Field; 3] = [
    field(
        "Addresses",
        "addresses",
        Kind::List("v1.EndpointAddress", &ADDRESS),
    ),
    field(
        "NotReadyAddresses",
        "notReadyAddresses",
        Kind::List("v1.EndpointAddress", &ADDRESS),
    ),
    field("Ports", "ports", Kind::List("v1.EndpointPort", &PORT)),
];

/// A value as Go prints it, with its type.
fn go_struct(value: &Value, name: &str, fields: &[Field]) -> String {
    let mut out = format!("({name})");
    write_fields(&mut out, value, fields);
    out
}

fn write_fields(out: &mut String, value: &Value, fields: &[Field]) {
    let none = Map::new();
    let map = value.as_object().unwrap_or(&none);
    out.push('{');
    for (i, field) in fields.iter().enumerate() {
        if i > 0 {
            out.push(' ');
        }
        let _ = write!(out, "{}:", field.name);
        write_value(out, map.get(field.key).unwrap_or(&Value::Null), &field.kind);
    }
    out.push('}');
}

fn write_value(out: &mut String, value: &Value, kind: &Kind) {
    let _ = match (kind, value) {
        (Kind::Text(name), value) => write!(out, "({name}){}", value.as_str().unwrap_or_default()),
        (Kind::Number(name), value) => {
            write!(out, "({name}){}", value.as_i64().unwrap_or_default())
        }
        (Kind::Optional, Value::String(text)) => write!(out, "(*string){text}"),
        (Kind::Optional, _) => write!(out, "(*string)<nil>"),
        (Kind::Pointer(name, _), Value::Null) => write!(out, "(*{name})<nil>"),
        (Kind::Pointer(name, fields), value) => {
            write!(out, "(*{name})").map(|()| write_fields(out, value, fields))
        }
        (Kind::List(name, fields), Value::Array(items)) => {
            let _ = write!(out, "([]{name})[");
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(' ');
                }
                write_fields(out, item, fields);
            }
            write!(out, "]")
        }
        (Kind::List(name, _), _) => write!(out, "([]{name})<nil>"),
    };
}

fn hash(text: &str) -> [u8; 16] {
    Md5::digest(text.as_bytes()).into()
}

fn text(value: &Value, field: &str) -> String {
    value
        .get(field)
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Recorded from Go.
    #[test]
    fn structures_have_the_hashes_of_go() {
        let hex = |hash: [u8; 16]| hash.iter().map(|b| format!("{b:02x}")).collect::<String>();
        let port = |port: Value| hex(hash(&go_struct(&port, "v1.EndpointPort", &PORT)));
        assert_eq!(
            port(json!({"port": 8983, "name": "solr-http", "protocol": "TCP"})),
            "3b0938a031d423d7f717a004ee63f56b"
        );
        let with_protocol =
            json!({"port": 1, "name": "solr-node", "protocol": "TCP", "appProtocol": "h"});
        assert_eq!(port(with_protocol), "3513bc59d87cc126a59b497d0e49e064");
        let subset = json!({
            "addresses": [{"ip": "1.2.3.4", "nodeName": "n", "targetRef": {"kind": "Pod", "uid": "u"}}],
            "notReadyAddresses": [], "ports": [{"port": 1, "protocol": "UDP"}]});
        assert_eq!(
            hex(hash(&go_struct(&subset, "v1.EndpointSubset", &SUBSET))),
            "775f1a6e6b2bbb65c4441236ac875c8c"
        );
    }

    #[test]
    fn what_is_no_list_of_subsets_is_left_alone() {
        for odd in [
            json!("text"),
            json!([1, {}]),
            json!([{"ports": 1, "addresses": [3, null]}]),
            json!(null),
        ] {
            let mut object = Object::from_value(
                json!({"apiVersion": "v1", "kind": "Endpoints", "subsets": odd}),
            )
            .expect("a map");
            sort(&mut object);
            assert_eq!(object.0["subsets"], odd);
        }
    }
}
