//! Prints results: one line per object, or the objects themselves. Main type: [`Printer`].

use crate::{
    kubectl::{
        failure::Trouble,
        template::{self, Template, TemplateArgs},
    },
    output,
};
use serde_json::Value;
use tiphys_apimachinery::Object;
use tiphys_cluster::apply::DryRun;
use tiphys_gocompat::{json, yaml};

/// The flags that say how objects are printed.
#[derive(clap::Args)]
pub struct PrintArgs {
    /// Print the objects (json, yaml), only their names (name), or what a template selects
    /// (jsonpath=..., go-template=... and others) [default: a line for each object]
    #[arg(long, short = 'o', value_name = "FORMAT")]
    pub output: Option<String>,
    /// Keep managedFields when objects are printed
    #[arg(long)]
    pub show_managed_fields: bool,
    #[command(flatten)]
    pub templates: TemplateArgs,
}

enum Format {
    /// `deployment.apps/web created`
    Line,
    /// `deployment.apps/web`
    Name,
    Json,
    Yaml,
    /// Of all objects together.
    Template(Template),
    /// A template without a format: for each object, instead of its line.
    Each(Template),
}

/// Prints in the format of `-o`.
pub struct Printer {
    format: Format,
    dry_run: DryRun,
    managed_fields: bool,
}

impl Printer {
    pub fn new(args: &PrintArgs, dry_run: DryRun) -> Result<Self, Trouble> {
        let name = args.output.as_deref();
        let template = Template::of(name, &args.templates).map_err(Trouble::text)?;
        let format = match (template, name.unwrap_or_default()) {
            (Some(template), _) if args.templates.is_alone(name) => Format::Each(template),
            (Some(template), _) => Format::Template(template),
            (None, "") => Format::Line,
            (None, name) => match name.to_lowercase().as_str() {
                "name" => Format::Name,
                "json" => Format::Json,
                "yaml" => Format::Yaml,
                _ => return Err(unknown(name)),
            },
        };
        Ok(Self {
            format,
            dry_run,
            managed_fields: args.show_managed_fields,
        })
    }

    /// Whether the objects themselves are printed, all at the end.
    pub fn prints_objects(&self) -> bool {
        matches!(
            self.format,
            Format::Json | Format::Yaml | Format::Template(_)
        )
    }

    pub fn is_json(&self) -> bool {
        matches!(self.format, Format::Json)
    }

    pub fn is_yaml(&self) -> bool {
        matches!(self.format, Format::Yaml)
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
    pub fn line(&self, object: &Object, verb: &str) -> Result<(), Trouble> {
        let name = print_name(object);
        match &self.format {
            Format::Name => output::print(&format!("{name}\n")),
            Format::Line => output::print(&format!("{name} {}\n", self.verb(verb))),
            Format::Each(template) => by(template, &object.clone().into_value())?,
            // kubectl prints pruned objects one by one.
            Format::Json | Format::Yaml | Format::Template(_) => {
                self.objects(std::slice::from_ref(object))?;
            }
        }
        Ok(())
    }

    /// All objects, several as a List.
    pub fn objects(&self, objects: &[Object]) -> Result<(), Trouble> {
        if let Format::Template(template) = &self.format {
            let all: Vec<Value> = objects.iter().map(|o| o.clone().into_value()).collect();
            return match &all[..] {
                [] => Ok(()),
                [one] => by(template, one),
                _ => by(template, &list(all)),
            };
        }
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
            (_, false) => output::print(&yaml::to_string(&list(shown))),
        }
        Ok(())
    }

    fn shown(&self, object: &Object) -> Value {
        let mut object = object.clone();
        if !self.managed_fields && object.metadata("managedFields").is_some() {
            object.metadata_mut().remove("managedFields");
        }
        object.into_value()
    }
}

fn list(items: Vec<Value>) -> Value {
    serde_json::json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
}

fn by(template: &Template, object: &Value) -> Result<(), Trouble> {
    let text = template.print(object).map_err(Trouble::text)?;
    output::print(&text);
    Ok(())
}

fn unknown(format: &str) -> Trouble {
    let mut allowed = vec!["json", "name", "yaml"];
    allowed.extend(template::FORMATS);
    allowed.sort_unstable();
    Trouble::text(format!(
        "unable to match a printer suitable for the output format {format:?}, allowed formats are: {}",
        allowed.join(",")
    ))
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
