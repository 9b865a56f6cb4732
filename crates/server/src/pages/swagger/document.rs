//! The OpenAPI document (Swagger 2.0), made from the table of calls and its messages: what it says
//! of a call is what the call reads and writes. Main function: [`document`].

use crate::state::State;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use tiphys_rpc::{
    Call,
    table::{self, BodyOf, Find, Kind, Rest, Shape},
};

/// How deep the fields of messages are listed as parameters of a query.
const QUERY_DEPTH: usize = 3;
const ERROR: &str = "runtimeError";
const STREAM_ERROR: &str = "runtimeStreamError";

pub fn document(calls: &[Call<State>], version: &str) -> Value {
    let mut definitions = Definitions::default();
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for call in calls {
        for (at, rest) in call.rest.iter().enumerate() {
            let method = rest.method.as_str().to_ascii_lowercase();
            let operation = operation(&mut definitions, call, rest, at);
            let of_path = paths.entry(path(rest)).or_default();
            of_path.insert(method, operation);
        }
    }
    definitions.add_errors();
    json!({
        "swagger": "2.0",
        "info": {
            "title": "Tiphys",
            "description": "The calls of the API that have a REST path.",
            "version": version,
        },
        "consumes": ["application/json"],
        "produces": ["application/json"],
        "paths": paths,
        "definitions": definitions.all,
    })
}

/// The path as the document writes it: a variable for the rest of a path looks like any other.
fn path(rest: &Rest) -> String {
    rest.pattern.to_string().replace("=**}", "}")
}

/// The names of the variables in a path.
fn variables(path: &str) -> Vec<&str> {
    path.split('/')
        .filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
        .collect()
}

fn operation(definitions: &mut Definitions, call: &Call<State>, rest: &Rest, at: usize) -> Value {
    let (service, method) = call
        .rpc
        .trim_start_matches('/')
        .split_once('/')
        .unwrap_or_default();
    let service = service.rsplit('.').next().unwrap_or_default();
    let id = match at {
        0 => format!("{service}_{method}"),
        _ => format!("{service}_{method}{}", at + 1),
    };
    let package = table::package(&call.rpc);
    let mut parameters = Vec::new();
    let mut reply = json!({});
    if let Some(shapes) = call.shapes {
        let mut messages = Messages {
            definitions,
            package: &package,
        };
        parameters = messages.parameters(shapes.request, rest);
        let whole = messages.schema(shapes.reply, &mut Vec::new());
        reply = match call.kind {
            Kind::ServerStream => json!({
                "type": "object",
                "title": format!("Each line of the stream of {id}"),
                "properties": {"result": whole, "error": reference(STREAM_ERROR)},
            }),
            Kind::Unary | Kind::ClientStream => whole,
        };
    }
    json!({
        "tags": [service],
        "operationId": id,
        "parameters": parameters,
        "responses": {
            "200": {"description": "A successful response.", "schema": reply},
            "default": {
                "description": "An unexpected error response.",
                "schema": reference(ERROR),
            },
        },
    })
}

fn reference(name: &str) -> Value {
    json!({"$ref": format!("#/definitions/{name}")})
}

/// The schemas of messages.
#[derive(Default)]
struct Definitions {
    all: BTreeMap<String, Value>,
    /// Which message has which name: messages of different parts of the API may be called the same.
    names: BTreeMap<String, &'static [&'static str]>,
}

impl Definitions {
    /// The name of a message, and whether it is new.
    fn name(&mut self, message: &str, fields: &'static [&'static str]) -> (String, bool) {
        let mut name = message.to_owned();
        let mut number = 1;
        while let Some(others) = self.names.get(&name) {
            if *others == fields {
                return (name, false);
            }
            number += 1;
            name = format!("{message}{number}");
        }
        self.names.insert(name.clone(), fields);
        (name, true)
    }

    fn add_errors(&mut self) {
        let text = || json!({"type": "string"});
        let number = || json!({"type": "integer", "format": "int32"});
        let error = json!({"error": text(), "message": text(), "code": number()});
        let of_stream = json!({
            "grpc_code": number(), "http_code": number(), "message": text(), "http_status": text()
        });
        for (name, properties) in [(ERROR, error), (STREAM_ERROR, of_stream)] {
            let schema = json!({"type": "object", "properties": properties});
            self.all.insert(name.to_owned(), schema);
        }
    }
}

/// The messages of a service.
struct Messages<'a> {
    definitions: &'a mut Definitions,
    package: &'a str,
}

impl Messages<'_> {
    /// The schema of the part of a message at the end of a way.
    fn schema(&mut self, find: Find, way: &mut Vec<&'static str>) -> Value {
        let shape = find(way);
        self.of_shape(&shape, find, way)
    }

    fn of_shape(&mut self, shape: &Shape, find: Find, way: &mut Vec<&'static str>) -> Value {
        match shape {
            Shape::List(item) => {
                json!({"type": "array", "items": self.of_shape(item, find, way)})
            }
            Shape::Map(item) => {
                let item = self.of_shape(item, find, way);
                json!({"type": "object", "additionalProperties": item})
            }
            Shape::Message { name, fields } => {
                let qualified = table::qualified(name, self.package).replace('.', "");
                let (name, is_new) = self.definitions.name(&qualified, fields);
                if is_new {
                    let mut properties = Map::new();
                    for field in *fields {
                        way.push(field);
                        properties.insert((*field).to_owned(), self.schema(find, way));
                        way.pop();
                    }
                    let schema = json!({"type": "object", "properties": properties});
                    self.definitions.all.insert(name.clone(), schema);
                }
                reference(&name)
            }
            scalar => Value::Object(of_scalar(scalar)),
        }
    }

    fn parameters(&mut self, find: Find, rest: &Rest) -> Vec<Value> {
        let path = path(rest);
        let bound = variables(&path);
        let mut parameters = Vec::new();
        for name in &bound {
            let way: Vec<&str> = name.split('.').collect();
            let mut parameter = of_scalar(&find(&way));
            parameter.entry("type").or_insert_with(|| json!("string"));
            parameter.insert("name".to_owned(), json!(name));
            parameter.insert("in".to_owned(), json!("path"));
            parameter.insert("required".to_owned(), json!(true));
            parameters.push(Value::Object(parameter));
        }
        match rest.body {
            BodyOf::None => query(find, &mut Vec::new(), &bound, &mut parameters),
            BodyOf::Whole => {
                let schema = self.schema(find, &mut Vec::new());
                parameters.push(body(&schema));
            }
            BodyOf::Field(field) => {
                let schema = self.schema(find, &mut vec![field]);
                parameters.push(body(&schema));
                let bound = [&bound[..], &[field]].concat();
                query(find, &mut Vec::new(), &bound, &mut parameters);
            }
        }
        parameters
    }
}

fn body(schema: &Value) -> Value {
    json!({"name": "body", "in": "body", "required": true, "schema": schema})
}

/// Adds the fields that a query can set: scalars, lists of them, and those of messages inside.
/// `bound` are set elsewhere.
fn query(find: Find, way: &mut Vec<&'static str>, bound: &[&str], parameters: &mut Vec<Value>) {
    let name = way.join(".");
    if bound.contains(&name.as_str()) {
        return;
    }
    let mut parameter = match find(way) {
        Shape::Message { fields, .. } => {
            if way.len() < QUERY_DEPTH {
                for field in fields {
                    way.push(field);
                    query(find, way, bound, parameters);
                    way.pop();
                }
            }
            return;
        }
        Shape::List(item) => match *item {
            Shape::List(_) | Shape::Map(_) | Shape::Message { .. } | Shape::Any => return,
            scalar => {
                let mut list = Map::new();
                list.insert("type".to_owned(), json!("array"));
                list.insert("items".to_owned(), Value::Object(of_scalar(&scalar)));
                list.insert("collectionFormat".to_owned(), json!("multi"));
                list
            }
        },
        Shape::Map(_) | Shape::Any => return,
        scalar => of_scalar(&scalar),
    };
    parameter.insert("name".to_owned(), json!(name));
    parameter.insert("in".to_owned(), json!("query"));
    parameters.push(Value::Object(parameter));
}

/// The schema of a scalar; of anything, where nothing is known.
fn of_scalar(shape: &Shape) -> Map<String, Value> {
    let (kind, format) = match shape {
        Shape::Boolean => ("boolean", None),
        Shape::Int32 => ("integer", Some("int32")),
        Shape::Int64 => ("integer", Some("int64")),
        Shape::Number => ("number", Some("double")),
        Shape::Text => ("string", None),
        Shape::Any | Shape::List(_) | Shape::Map(_) | Shape::Message { .. } => return Map::new(),
    };
    let mut schema = Map::new();
    schema.insert("type".to_owned(), json!(kind));
    if let Some(format) = format {
        schema.insert("format".to_owned(), json!(format));
    }
    schema
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::table;
    use std::collections::BTreeSet;

    fn references<'a>(value: &'a Value, found: &mut BTreeSet<&'a str>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Object(map) => {
                found.extend(map.get("$ref").and_then(Value::as_str));
                map.values().for_each(|inner| references(inner, found));
            }
            _ => {}
        }
    }

    #[test]
    fn every_binding_is_there_and_every_reference_leads_somewhere() {
        let table = table();
        let document = document(table.calls(), "v1");
        // The same list has two calls, of which the later one is described, as Argo CD does.
        let mut bindings = BTreeMap::new();
        for call in table.calls() {
            for rest in &call.rest {
                let method = rest.method.as_str().to_ascii_lowercase();
                let name = call.rpc.rsplit('.').next().expect("a name");
                bindings.insert((path(rest), method), name.replace('/', "_"));
            }
        }
        let mut ids = BTreeSet::new();
        for ((path, method), name) in &bindings {
            let operation = &document["paths"][path][method];
            let id = operation["operationId"].as_str();
            let id = id.unwrap_or_else(|| panic!("{method} {path} is missing"));
            assert!(id.starts_with(name), "{method} {path}: {id}");
            assert!(ids.insert(id), "{id} is there twice");
            let parameters = operation["parameters"].as_array().expect("a list");
            for name in variables(path) {
                let of_path = |p: &&Value| p["name"] == name && p["in"] == "path";
                assert_eq!(parameters.iter().filter(of_path).count(), 1, "{id}: {name}");
            }
        }
        let paths = document["paths"].as_object().expect("an object");
        let written = paths.values().filter_map(Value::as_object).map(Map::len);
        assert_eq!(
            written.sum::<usize>(),
            bindings.len(),
            "no more than the table has"
        );
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 50, "{}", found.len());
        for reference in found {
            let name = reference.strip_prefix("#/definitions/").expect("of ours");
            assert!(document["definitions"][name].is_object(), "{reference}");
        }
    }

    #[test]
    fn calls_are_described_as_they_are() {
        let table = table();
        let document = document(table.calls(), "v1");
        let at = |pointer: &str| document.pointer(pointer).cloned().unwrap_or_default();
        let create = at("/paths/~1api~1v1~1applications/post");
        let body = json!({"$ref": "#/definitions/v1alpha1Application"});
        let of_body = create["parameters"].as_array().and_then(|all| all.first());
        assert_eq!(of_body.map(|p| &p["schema"]), Some(&body));
        assert_eq!(create["responses"]["200"]["schema"], body);
        let names: Vec<&str> = create["parameters"]
            .as_array()
            .map(|all| all.iter().filter_map(|p| p["name"].as_str()).collect())
            .unwrap_or_default();
        assert_eq!(names, ["body", "upsert", "validate"]);
        let spec = at("/definitions/v1alpha1Application/properties/spec");
        assert_eq!(
            spec,
            json!({"$ref": "#/definitions/v1alpha1ApplicationSpec"})
        );
        let limit = at("/definitions/v1alpha1ApplicationSpec/properties/revisionHistoryLimit");
        assert_eq!(limit, json!({"type": "integer", "format": "int64"}));
        let sources = at("/definitions/v1alpha1ApplicationSpec/properties/sources");
        let source = json!({"$ref": "#/definitions/v1alpha1ApplicationSource"});
        assert_eq!(sources, json!({"type": "array", "items": source}));
        let projects = at("/paths/~1api~1v1~1applications/get/parameters");
        let is_projects = |p: &&Value| p["name"] == "projects";
        let projects = projects
            .as_array()
            .and_then(|all| all.iter().find(is_projects).cloned());
        assert_eq!(
            projects,
            Some(json!({
                "name": "projects", "in": "query", "type": "array",
                "items": {"type": "string"}, "collectionFormat": "multi",
            }))
        );
        let watched = at("/paths/~1api~1v1~1stream~1applications/get/responses/200/schema");
        let event = "#/definitions/v1alpha1ApplicationWatchEvent";
        assert_eq!(watched["properties"]["result"]["$ref"], event);
    }
}
