//! The page for people: a plain list of calls and messages, made from the document. It has no
//! script. Main function: [`page`].

use serde_json::Value;
use std::{collections::BTreeMap, fmt::Write as _};

const STYLE: &str = "body{font:15px/1.5 sans-serif;max-width:70em;margin:2em auto;padding:0 1em}\
    code{font-size:14px}summary{cursor:pointer}td{padding-right:2em;vertical-align:top}\
    details{margin:.2em 0}details>*:not(summary){margin-left:1.5em}";

pub fn page(document: &Value) -> String {
    let mut services: BTreeMap<&str, String> = BTreeMap::new();
    for (path, of_path) in entries(&document["paths"]) {
        for (method, operation) in entries(of_path) {
            let service = operation["tags"][0].as_str().unwrap_or_default();
            let text = services.entry(service).or_default();
            call(text, method, path, operation);
        }
    }
    let mut html = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>API</title>\
         <style>{STYLE}</style></head><body>\n<h1>API</h1>\n\
         <p>The same for programs: <a href=\"swagger.json\">swagger.json</a></p>\n"
    );
    for (service, calls) in services {
        html.push_str(&format!("<h2>{}</h2>\n{calls}", escaped(service)));
    }
    html.push_str("<h2>Messages</h2>\n");
    for (name, schema) in entries(&document["definitions"]) {
        let name = escaped(name);
        let heading = format!("<h3 id=\"{name}\"><code>{name}</code></h3>\n<table>\n");
        html.push_str(&heading);
        for (field, schema) in entries(&schema["properties"]) {
            let (field, kind) = (escaped(field), kind(schema));
            let row = format!("<tr><td><code>{field}</code></td><td>{kind}</td></tr>\n");
            html.push_str(&row);
        }
        html.push_str("</table>\n");
    }
    html.push_str("</body></html>\n");
    html
}

fn entries(value: &Value) -> impl Iterator<Item = (&String, &Value)> {
    value.as_object().into_iter().flatten()
}

/// One call.
fn call(html: &mut String, method: &str, path: &str, operation: &Value) {
    let id = operation["operationId"].as_str().unwrap_or_default();
    let (id, path) = (escaped(id), escaped(path));
    let method = method.to_ascii_uppercase();
    let answer = kind(&operation["responses"]["200"]["schema"]);
    let mut rows = String::new();
    for parameter in operation["parameters"].as_array().into_iter().flatten() {
        let name = escaped(parameter["name"].as_str().unwrap_or_default());
        let place = escaped(parameter["in"].as_str().unwrap_or_default());
        let kind = match parameter.get("schema") {
            Some(schema) => kind(schema),
            None => kind(parameter),
        };
        let row = format!("<tr><td><code>{name}</code></td><td>{place}</td><td>{kind}</td></tr>\n");
        rows.push_str(&row);
    }
    // Writing to a string cannot fail.
    let _ = writeln!(
        html,
        "<details id=\"{id}\"><summary><code>{method} {path}</code></summary>\n\
         <p>{id}</p>\n<table>\n{rows}</table>\n<p>Answer: {answer}</p></details>"
    );
}

/// The type of a value, with a link to its message.
fn kind(schema: &Value) -> String {
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.rsplit('/').next().unwrap_or_default();
        let name = escaped(name);
        return format!("<a href=\"#{name}\">{name}</a>");
    }
    match schema["type"].as_str() {
        Some("array") => format!("list of {}", kind(&schema["items"])),
        Some("object") => match schema["properties"].get("result") {
            Some(result) => format!("stream of {}", kind(result)),
            None => format!("map of {}", kind(&schema["additionalProperties"])),
        },
        Some(scalar) => escaped(scalar),
        None => "anything".to_owned(),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn calls_and_messages_are_listed() {
        let document = json!({
            "paths": {"/api/v1/a/{name}": {"get": {
                "tags": ["A"], "operationId": "A_Get",
                "parameters": [{"name": "name<", "in": "path", "type": "string"}],
                "responses": {"200": {"schema": {"$ref": "#/definitions/B"}}},
            }}},
            "definitions": {"B": {"properties": {
                "all": {"type": "array", "items": {"type": "integer"}},
            }}},
        });
        let html = page(&document);
        for part in [
            "<h2>A</h2>",
            "<code>GET /api/v1/a/{name}</code>",
            "<tr><td><code>name&lt;</code></td><td>path</td><td>string</td></tr>",
            "Answer: <a href=\"#B\">B</a>",
            "<h3 id=\"B\">",
            "<td>list of integer</td>",
        ] {
            assert!(html.contains(part), "{part}: {html}");
        }
        assert!(!html.contains("<script"));
    }
}
