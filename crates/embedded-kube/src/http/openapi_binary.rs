//! An OpenAPI v2 document in the protobuf form that kubectl asks for. Main function: [`encode`].
//!
//! Only what the generated documents contain is encoded: paths with their parameters, definitions,
//! vendor extensions. Field numbers are those of gnostic's `OpenAPIv2.proto`.

use serde_json::Value;

/// The media type of the response.
pub const MEDIA_TYPE: &str = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
/// The media type that clients request: the same, but in an invalid syntax.
pub const ASKED_TYPE: &str = "application/com.github.proto-openapi.spec.v2@v1.0+protobuf";

#[derive(Default)]
struct Writer(Vec<u8>);

impl Writer {
    fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push((n as u8 & 0x7f) | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    fn bytes(&mut self, field: u32, bytes: &[u8]) {
        self.varint(u64::from(field << 3 | 2));
        self.varint(bytes.len() as u64);
        self.0.extend_from_slice(bytes);
    }

    fn text(&mut self, field: u32, value: &Value) {
        if let Some(text) = value.as_str().filter(|t| !t.is_empty()) {
            self.bytes(field, text.as_bytes());
        }
    }

    fn message(&mut self, field: u32, fill: impl FnOnce(&mut Writer)) {
        let mut inner = Writer::default();
        fill(&mut inner);
        self.bytes(field, &inner.0);
    }

    /// `Any`: the value as YAML, of which JSON is a subset.
    fn any(&mut self, field: u32, value: &Value) {
        self.message(field, |w| w.bytes(2, value.to_string().as_bytes()));
    }

    /// `NamedX`: name and value.
    fn named(&mut self, field: u32, name: &str, fill: impl FnOnce(&mut Writer)) {
        self.message(field, |w| {
            w.bytes(1, name.as_bytes());
            w.message(2, fill);
        });
    }

    fn extensions(&mut self, field: u32, of: &Value) {
        for (name, value) in of
            .as_object()
            .into_iter()
            .flatten()
            .filter(|(name, _)| name.starts_with("x-"))
        {
            self.message(field, |w| {
                w.bytes(1, name.as_bytes());
                w.any(2, value);
            });
        }
    }
}

/// The document in protobuf.
pub fn encode(document: &Value) -> Vec<u8> {
    let mut out = Writer::default();
    out.text(1, &document["swagger"]);
    out.message(2, |w| {
        w.text(1, &document["info"]["title"]);
        w.text(2, &document["info"]["version"]);
    });
    out.message(8, |w| {
        for (name, item) in document["paths"].as_object().into_iter().flatten() {
            w.named(2, name, |w| path_item(w, item));
        }
    });
    out.message(9, |w| {
        for (name, definition) in document["definitions"].as_object().into_iter().flatten() {
            w.named(1, name, |w| schema(w, definition));
        }
    });
    out.0
}

fn path_item(out: &mut Writer, item: &Value) {
    for (field, method) in [
        (2, "get"),
        (3, "put"),
        (4, "post"),
        (5, "delete"),
        (8, "patch"),
    ] {
        if let Some(operation) = item.get(method) {
            out.message(field, |w| {
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    // ParametersItem, Parameter, NonBodyParameter, QueryParameterSubSchema.
                    w.message(8, |w| {
                        w.message(1, |w| {
                            w.message(2, |w| w.message(3, |w| query_parameter(w, parameter)))
                        })
                    });
                }
                w.extensions(13, operation);
            });
        }
    }
}

fn query_parameter(out: &mut Writer, parameter: &Value) {
    out.text(2, &parameter["in"]);
    out.text(4, &parameter["name"]);
    out.text(6, &parameter["schema"]["type"]);
}

fn schema(out: &mut Writer, of: &Value) {
    out.text(1, &of["$ref"]);
    out.text(2, &of["format"]);
    if let Some(default) = of.get("default") {
        out.any(5, default);
    }
    for name in of["required"].as_array().into_iter().flatten() {
        out.text(19, name);
    }
    for value in of["enum"].as_array().into_iter().flatten() {
        out.any(20, value);
    }
    match of.get("additionalProperties") {
        Some(Value::Bool(allowed)) => out.message(21, |w| {
            w.varint(2 << 3);
            w.varint(u64::from(*allowed));
        }),
        Some(inner) => out.message(21, |w| w.message(1, |w| schema(w, inner))),
        None => {}
    }
    if of["type"].is_string() {
        out.message(22, |w| w.text(1, &of["type"]));
    }
    if let Some(items) = of.get("items") {
        out.message(23, |w| w.message(1, |w| schema(w, items)));
    }
    for inner in of["allOf"].as_array().into_iter().flatten() {
        out.message(24, |w| schema(w, inner));
    }
    if let Some(properties) = of["properties"].as_object().filter(|p| !p.is_empty()) {
        out.message(25, |w| {
            properties
                .iter()
                .for_each(|(name, field)| w.named(1, name, |w| schema(w, field)))
        });
    }
    out.extensions(31, of);
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_is_written_field_by_field() {
        let mut out = Writer::default();
        schema(
            &mut out,
            &json!({"type": "string", "format": "int-or-string"}),
        );
        assert_eq!(out.0, b"\x12\x0dint-or-string\xb2\x01\x08\x0a\x06string");
    }
}
