//! `app get-resource`: the live objects of a kind, whole or some of their fields.

use super::AppRef;
use crate::{
    client::{ConnectArgs, Failure},
    output::{self, log, table},
};
use serde::Serialize as _;
use serde_json::{Map, Value};
use tiphys_api::{
    resource::ApplicationTree,
    rpc::application::{ApplicationResourceRequest, ApplicationResourceResponse, ResourcesQuery},
};
use tiphys_gocompat::yaml;

#[derive(clap::Args)]
pub struct GetResource {
    /// The application
    app: String,
    /// Namespace of the application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Name of resource, if none is included will output details of all resources with specified
    /// kind
    #[arg(long, default_value = "", hide_default_value = true)]
    resource_name: String,
    /// Kind of resource
    #[arg(long)]
    kind: String,
    /// Group
    #[arg(long, default_value = "", hide_default_value = true)]
    group: String,
    /// Project of resource
    #[arg(long, default_value = "", hide_default_value = true)]
    project: String,
    /// A comma separated list of fields to display, if not provided will output the entire manifest
    #[arg(long, value_delimiter = ',')]
    filter_fields: Vec<String>,
    /// Show managed fields in the output manifest
    #[arg(long)]
    show_managed_fields: bool,
    /// Format of the output, wide, yaml, or json
    #[arg(long, short, default_value = "wide", value_name = "FORMAT")]
    output: String,
}

impl GetResource {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let app = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let query = ResourcesQuery {
            application_name: app.name.clone(),
            app_namespace: app.namespace(),
            ..Default::default()
        };
        let tree: ApplicationTree = client
            .unary("/application.ApplicationService/ResourceTree", query)
            .await?;
        let mut objects = Vec::new();
        for node in tree.nodes {
            let r = node.resource_ref;
            let is_meant = (self.resource_name.is_empty() || r.name == self.resource_name)
                && (self.group.is_empty() || r.group == self.group)
                && r.kind == self.kind;
            if !is_meant {
                continue;
            }
            let request = ApplicationResourceRequest {
                name: app.name.clone(),
                app_namespace: app.namespace(),
                namespace: Some(r.namespace),
                resource_name: r.name,
                version: r.version,
                group: Some(r.group),
                kind: r.kind,
                project: Some(self.project.clone()),
            };
            let answer: ApplicationResourceResponse = client
                .unary("/application.ApplicationService/GetResource", request)
                .await?;
            let object: Map<String, Value> = serde_json::from_str(&answer.manifest)
                .map_err(|e| Failure::error(e.to_string()))?;
            objects.push(self.shown(object));
        }
        let names: Vec<&str> = objects.iter().map(name).collect();
        let names = names.join(", ");
        output::print(&self.text(objects)?);
        log::info(&format!("Resources '{names}' fetched"));
        Ok(())
    }

    /// The part of an object that is asked for.
    fn shown(&self, mut object: Map<String, Value>) -> Map<String, Value> {
        if !self.show_managed_fields
            && let Some(Value::Object(metadata)) = object.get_mut("metadata")
        {
            metadata.remove("managedFields");
        }
        match self.filter_fields.as_slice() {
            [] => object,
            fields => filtered(&object, fields),
        }
    }

    fn text(&self, objects: Vec<Map<String, Value>>) -> Result<String, Failure> {
        if matches!(self.output.as_str(), "json" | "yaml") {
            let texts = objects.into_iter().map(|o| self.document(o));
            return Ok(texts.collect::<Result<Vec<_>, _>>()?.join("---\n"));
        }
        let with_names = self.resource_name.is_empty();
        let mut text = match with_names {
            true => "FIELD\tRESOURCE NAME\tVALUE\n",
            false => "FIELD\tVALUE\n",
        }
        .to_owned();
        for mut object in objects {
            let column = match with_names {
                true => format!("{}\t", name(&object)),
                false => String::new(),
            };
            if !self.filter_fields.is_empty()
                && let Some(Value::Object(metadata)) = object.get_mut("metadata")
            {
                metadata.remove("name");
            }
            rows(&mut text, "", &column, object.iter());
        }
        Ok(table::align(&text, 0))
    }

    /// As Go's libraries write it: JSON indented by one blank, YAML by four.
    fn document(&self, object: Map<String, Value>) -> Result<String, Failure> {
        let value = Value::Object(object);
        if self.output == "yaml" {
            return Ok(yaml::to_string_v3_wide(&(&value).into()) + "\n");
        }
        let mut bytes = Vec::new();
        let indented = serde_json::ser::PrettyFormatter::with_indent(b" ");
        value
            .serialize(&mut serde_json::Serializer::with_formatter(
                &mut bytes, indented,
            ))
            .map_err(|e| Failure::error(e.to_string()))?;
        Ok(output::escape_html(&String::from_utf8_lossy(&bytes)) + "\n")
    }
}

fn name(object: &Map<String, Value>) -> &str {
    object
        .get("metadata")
        .and_then(|metadata| metadata["name"].as_str())
        .unwrap_or_default()
}

/// A row for each value that is no list or map. Objects are as deep as the parser allows.
fn rows<'a>(
    text: &mut String,
    parent: &str,
    column: &str,
    fields: impl Iterator<Item = (&'a String, &'a Value)>,
) {
    for (key, value) in fields {
        let field = format!("{parent}{key}");
        match value {
            Value::Object(inner) => rows(text, &format!("{field}."), column, inner.iter()),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    let field = format!("{field}[{index}]");
                    match item {
                        Value::Object(inner) => {
                            rows(text, &format!("{field}."), column, inner.iter());
                        }
                        _ => text.push_str(&format!("{field}\t{column}{}\n", plain(item))),
                    }
                }
            }
            _ => text.push_str(&format!("{field}\t{column}{}\n", plain(value))),
        }
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "<nil>".to_owned(),
        other => other.to_string(),
    }
}

/// Only the named fields, and the object's name. A field inside the objects of a list takes the
/// place of what was named before it, as in the `argocd` command.
fn filtered(object: &Map<String, Value>, fields: &[String]) -> Map<String, Value> {
    let mut out = Map::new();
    for field in fields {
        let path: Vec<&str> = field.split('.').collect();
        match nested(object, &path) {
            Some(value) => set(&mut out, &path, value.clone()),
            None => out = in_lists(object, &path).unwrap_or_default(),
        }
    }
    set(&mut out, &["metadata", "name"], name(object).into());
    out
}

fn nested<'a>(object: &'a Map<String, Value>, path: &[&str]) -> Option<&'a Value> {
    let (first, rest) = path.split_first()?;
    let value = object.get(*first)?;
    rest.iter()
        .try_fold(value, |value, field| value.as_object()?.get(*field))
}

/// Whatever is in the way is replaced.
fn set(object: &mut Map<String, Value>, path: &[&str], value: Value) {
    let Some((first, rest)) = path.split_first() else {
        return;
    };
    if rest.is_empty() {
        object.insert((*first).to_owned(), value);
        return;
    }
    let entry = object.entry(*first).or_insert_with(|| Map::new().into());
    if !entry.is_object() {
        *entry = Map::new().into();
    }
    if let Value::Object(inner) = entry {
        set(inner, rest, value);
    }
}

/// The field in the objects of the first list on the path, and of lists in these.
fn in_lists(object: &Map<String, Value>, path: &[&str]) -> Option<Map<String, Value>> {
    for end in 1..path.len() {
        let (before, after) = path.split_at(end);
        let Some(Value::Array(items)) = nested(object, before) else {
            continue;
        };
        let objects = || items.iter().filter_map(Value::as_object);
        let with_field = |item: &Map<String, Value>| {
            let mut out = Map::new();
            set(&mut out, after, nested(item, after)?.clone());
            Some(Value::Object(out))
        };
        let mut found: Vec<Value> = objects().filter_map(with_field).collect();
        if found.is_empty() {
            found = objects()
                .map(|item| in_lists(item, after).map_or(Value::Null, Value::Object))
                .collect();
        }
        let mut out = Map::new();
        set(&mut out, before, found.into());
        return Some(out);
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn command(name: &str, fields: &[&str], output: &str) -> GetResource {
        GetResource {
            app: "web".into(),
            app_namespace: None,
            resource_name: name.into(),
            kind: "Pod".into(),
            group: String::new(),
            project: String::new(),
            filter_fields: fields.iter().map(|f| (*f).to_owned()).collect(),
            show_managed_fields: false,
            output: output.into(),
        }
    }

    fn pod() -> Map<String, Value> {
        let pod = json!({
            "kind": "Pod",
            "metadata": {"name": "one", "managedFields": [{"manager": "x"}]},
            "spec": {
                "containers": [
                    {"name": "a", "image": "i", "ports": [{"port": 80}]},
                    {"name": "b", "args": ["<x>", "y"]},
                ],
                "hostNetwork": false, "nothing": null,
            },
        });
        pod.as_object().cloned().expect("an object")
    }

    fn text(command: &GetResource) -> String {
        let objects = vec![command.shown(pod())];
        command.text(objects).expect("it can be written")
    }

    #[test]
    fn objects_in_rows() {
        let expected = "\
FIELD                             VALUE
kind                              Pod
metadata.name                     one
spec.containers[0].image          i
spec.containers[0].name           a
spec.containers[0].ports[0].port  80
spec.containers[1].args[0]        <x>
spec.containers[1].args[1]        y
spec.containers[1].name           b
spec.hostNetwork                  false
spec.nothing                      <nil>
";
        let sorted = |text: &str| {
            let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
            lines.sort();
            lines
        };
        assert_eq!(
            sorted(&text(&command("one", &[], "wide"))),
            sorted(expected)
        );
        let expected = "FIELD  RESOURCE NAME  VALUE\nkind   one            Pod\n";
        assert_eq!(text(&command("", &["kind"], "wide")), expected);
        let none = command("", &[], "wide").text(Vec::new());
        assert_eq!(none.ok().as_deref(), Some("FIELD  RESOURCE NAME  VALUE\n"));
    }

    #[test]
    fn fields_of_objects_and_of_lists() {
        for (fields, expected) in [
            (
                &["kind", "spec.hostNetwork"][..],
                json!({"kind": "Pod", "spec": {"hostNetwork": false}}),
            ),
            (
                &["spec.containers.image"],
                json!({"spec": {"containers": [{"image": "i"}]}}),
            ),
            (
                &["spec.containers.ports.port"],
                json!({"spec": {"containers": [{"ports": [{"port": 80}]}, null]}}),
            ),
            (
                &["kind", "spec.containers.args"],
                json!({"spec": {"containers": [{"args": ["<x>", "y"]}]}}),
            ),
            (&["nope"], json!({})),
        ] {
            let mut expected = expected;
            expected["metadata"] = json!({"name": "one"});
            let shown = command("one", fields, "wide").shown(pod());
            assert_eq!(Value::Object(shown), expected, "{fields:?}");
        }
    }

    #[test]
    fn documents_are_indented_as_gos_libraries_do() {
        let yaml = text(&command("one", &["spec.containers.args"], "yaml"));
        let expected = "metadata:\n    name: one\nspec:\n    containers:\n        - args:\n            \
                        - <x>\n            - \"y\"\n\n";
        assert_eq!(yaml, expected);
        let nested = json!({"a": [{"b": {"c": "x\ny\n"}, "d": [["e"], "f"]}]});
        let nested = nested.as_object().cloned().expect("an object");
        let expected = "a:\n    - b:\n        c: |\n            x\n            y\n      d:\n        \
                        - - e\n        - f\n\n";
        let yaml = command("one", &[], "yaml").text(vec![nested]);
        assert_eq!(yaml.ok().as_deref(), Some(expected));
        let json = text(&command("one", &["kind"], "json"));
        assert_eq!(
            json,
            "{\n \"kind\": \"Pod\",\n \"metadata\": {\n  \"name\": \"one\"\n }\n}\n"
        );
        let json = text(&command("one", &["spec.containers.args"], "json"));
        assert!(json.contains("\\u003cx\\u003e"), "{json}");
        let two = command("", &["kind"], "json");
        let objects = vec![two.shown(pod()), two.shown(pod())];
        assert_eq!(
            two.text(objects).map(|t| t.matches("---\n").count()).ok(),
            Some(1)
        );
    }
}
