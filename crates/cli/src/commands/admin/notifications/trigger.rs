//! `admin notifications trigger`. Main type: [`TriggerCommand`].

use super::subject::{Loaded, SourceArgs, subject};
use crate::{client::Failure, output};
use serde_json::{Map, Value, json};
use tiphys_notify::Trigger;

#[derive(clap::Subcommand)]
pub enum TriggerCommand {
    Run(Run),
    Get(Get),
}

/// Evaluates specified trigger condition and prints the result
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # A trigger of the cluster on an Application of a file
  tiphys admin notifications trigger run on-sync-status-unknown ./app.yaml

  # A trigger of a file on an Application of the cluster
  tiphys admin notifications trigger run on-sync-failed shop --config-map ./cm.yaml")]
pub struct Run {
    /// Name of the trigger
    name: String,
    /// Name of the Application, or a file with it
    resource: String,
    #[command(flatten)]
    source: SourceArgs,
}

/// Prints information about configured triggers
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tiphys admin notifications trigger get
  tiphys admin notifications trigger get on-sync-failed -o yaml")]
pub struct Get {
    /// Only this trigger
    name: Option<String>,
    /// Output format: json, yaml, wide or name
    #[arg(long, short, default_value = "wide")]
    output: String,
    #[command(flatten)]
    source: SourceArgs,
}

impl TriggerCommand {
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Run(command) => command.run().await,
            Self::Get(command) => command.run().await,
        }
    }
}

/// A trigger that works.
fn found<'l>(loaded: &'l Loaded, name: &str) -> Result<&'l Trigger, Failure> {
    match loaded.config.triggers.get(name) {
        Some(Ok(trigger)) => Ok(trigger),
        Some(Err(error)) => Err(Failure::fatal(format!("trigger '{name}': {error}"))),
        None => {
            let names: Vec<&str> = loaded.config.triggers.keys().map(String::as_str).collect();
            Err(Failure::fatal(format!(
                "trigger with name '{name}' does not exist (found {})",
                names.join(", ")
            )))
        }
    }
}

impl Run {
    async fn run(self) -> Result<(), Failure> {
        let loaded = self.source.load().await?;
        let trigger = found(&loaded, &self.name)?;
        let app = self.source.application(&self.resource).await?;
        let results = trigger.run(&subject(&loaded.config, &app));
        let mut text = String::from("CONDITION\tRESULT\n");
        for (condition, result) in trigger.conditions.iter().zip(&results) {
            text.push_str(&format!("{}\t{}\n", condition.when, result.triggered));
        }
        output::print(&output::table::align(&text, 5));
        for problem in results.iter().filter_map(|result| result.problem.as_ref()) {
            eprintln!("warning: {problem}");
        }
        Ok(())
    }
}

impl Get {
    async fn run(self) -> Result<(), Failure> {
        let loaded = self.source.load().await?;
        let wanted = |name: &String| self.name.as_ref().is_none_or(|own| own == name);
        let triggers: Vec<(&String, &Trigger)> = loaded
            .config
            .triggers
            .iter()
            .filter(|(name, _)| wanted(name))
            .filter_map(|(name, trigger)| Some((name, trigger.as_ref().ok()?)))
            .collect();
        let text = match self.output.as_str() {
            "" | "wide" => table(&triggers),
            "name" => triggers
                .iter()
                .map(|(name, _)| format!("{name}\n"))
                .collect(),
            format => output::document(&document(&triggers), format)?,
        };
        output::print(&text);
        Ok(())
    }
}

fn table(triggers: &[(&String, &Trigger)]) -> String {
    let mut text = String::from("NAME\tTEMPLATE\tCONDITION\n");
    for (name, trigger) in triggers {
        for (index, condition) in trigger.conditions.iter().enumerate() {
            let name = if index == 0 { name.as_str() } else { "" };
            let templates = condition.send.as_deref().unwrap_or_default().join(", ");
            text.push_str(&format!("{name}\t{templates}\t{}\n", condition.when));
        }
    }
    output::table::align(&text, 5)
}

fn document(triggers: &[(&String, &Trigger)]) -> Value {
    let conditions = |trigger: &Trigger| -> Value {
        let conditions = trigger.conditions.iter();
        let told = conditions.map(|condition| {
            let mut map = Map::new();
            for (name, value) in [
                ("oncePer", &condition.once_per),
                ("when", &condition.when),
                ("description", &condition.description),
            ] {
                if !value.is_empty() {
                    map.insert(name.to_owned(), json!(value));
                }
            }
            if let Some(send) = condition.send.as_ref().filter(|send| !send.is_empty()) {
                map.insert("send".to_owned(), json!(send));
            }
            Value::Object(map)
        });
        told.collect()
    };
    triggers
        .iter()
        .map(|(name, trigger)| ((*name).clone(), conditions(trigger)))
        .collect::<Map<_, _>>()
        .into()
}
