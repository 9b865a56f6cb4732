//! Prints results: one line per object, or the objects themselves. Main type: [`Printer`].

use crate::{kubectl::failure::Trouble, output};
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_cluster::apply::DryRun;
use tiphys_gocompat::{json, yaml};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    /// `deployment.apps/web created`
    Line,
    /// `deployment.apps/web`
    Name,
    Json,
    Yaml,
}

/// Prints in the format of `-o`.
pub struct Printer {
    format: Format,
    dry_run: DryRun,
    managed_fields: bool,
}

impl Printer {
    pub fn new(
        format: Option<&str>,
        dry_run: DryRun,
        managed_fields: bool,
    ) -> Result<Self, Trouble> {
        let format = match format.unwrap_or_default() {
            "" => Format::Line,
            "name" => Format::Name,
            "json" => Format::Json,
            "yaml" => Format::Yaml,
            other => {
                let text = format!(
                    "unable to match a printer suitable for the output format {other:?}, allowed formats are: json,name,yaml"
                );
                return Err(Trouble::text(text));
            }
        };
        Ok(Self {
            format,
            dry_run,
            managed_fields,
        })
    }

    /// Whether the objects themselves are printed, all at the end.
    pub fn prints_objects(&self) -> bool {
        matches!(self.format, Format::Json | Format::Yaml)
    }

    pub fn is_json(&self) -> bool {
        self.format == Format::Json
    }

    /// The form of verbs like `created` in a dry run.
    pub fn verb(&self, verb: &str) -> String {
        match self.dry_run {
            DryRun::None => verb.to_owned(),
            DryRun::Client => format!("{verb} (dry run)"),
            DryRun::Server => format!("{verb} (server dry run)"),
        }
    }

    /// The line of one object.
    pub fn line(&self, object: &Object, verb: &str) {
        let name = print_name(object);
        match self.format {
            Format::Name => output::print(&format!("{name}\n")),
            Format::Line => output::print(&format!("{name} {}\n", self.verb(verb))),
            // kubectl prints pruned objects one by one.
            Format::Json | Format::Yaml => self.objects(std::slice::from_ref(object)),
        }
    }

    /// All objects, several as a List.
    pub fn objects(&self, objects: &[Object]) {
        let shown: Vec<Value> = objects.iter().map(|o| self.shown(o)).collect();
        let json = self.is_json();
        match (&shown[..], json) {
            ([], _) => {}
            ([one], true) => output::print(&format!("{}\n", json::to_string_pretty(one, "    "))),
            ([one], false) => output::print(&yaml::to_string(one)),
            (_, true) => {
                let items =
                    json::to_string_pretty(&Value::Array(shown), "    ").replace('\n', "\n    ");
                output::print(&format!(
                    "{{\n    \"kind\": \"List\",\n    \"apiVersion\": \"v1\",\n    \"metadata\": {{}},\n    \"items\": {items}\n}}\n"
                ));
            }
            (_, false) => {
                let list = serde_json::json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": shown});
                output::print(&yaml::to_string(&list));
            }
        }
    }

    fn shown(&self, object: &Object) -> Value {
        let mut object = object.clone();
        if !self.managed_fields && object.metadata("managedFields").is_some() {
            object.metadata_mut().remove("managedFields");
        }
        object.into_value()
    }
}

/// `deployment.apps/web`
pub fn print_name(object: &Object) -> String {
    let (kind, group) = (object.kind().to_lowercase(), object.group());
    if group.is_empty() {
        format!("{kind}/{}", object.name())
    } else {
        format!("{kind}.{group}/{}", object.name())
    }
}
