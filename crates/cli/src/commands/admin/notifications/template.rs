//! `admin notifications template`. Main type: [`TemplateCommand`].

use super::subject::{Loaded, SourceArgs, subject};
use crate::{client::Failure, output};
use rand::RngCore as _;
use serde_json::{Map, Value};
use tiphys_controllers::notifications::Link;
use tiphys_gocompat::{sprig::Random, yaml};
use tiphys_notify::{
    Destination, Notification, Outcome,
    send::{Threads, World, deliver},
};
use tokio::runtime::Handle;

/// The recipient that prints.
const CONSOLE: &str = "console";

#[derive(clap::Subcommand)]
pub enum TemplateCommand {
    Notify(Notify),
    Get(Get),
}

/// Generates notification using the specified template and send it to specified recipients
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Prints what would be sent
  tiphys admin notifications template notify app-sync-succeeded shop

  # Sends it
  tiphys admin notifications template notify app-sync-succeeded shop --recipient slack:releases")]
pub struct Notify {
    /// Name of the template
    name: String,
    /// Name of the Application, or a file with it
    resource: String,
    /// Service and recipient; can be repeated
    #[arg(
        long,
        value_name = "SERVICE:RECIPIENT",
        default_value = "console:stdout"
    )]
    recipient: Vec<String>,
    #[command(flatten)]
    source: SourceArgs,
}

/// Prints information about configured templates
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tiphys admin notifications template get
  tiphys admin notifications template get app-sync-succeeded -o yaml")]
pub struct Get {
    /// Only this template
    name: Option<String>,
    /// Output format: json, yaml, wide or name
    #[arg(long, short, default_value = "wide")]
    output: String,
    #[command(flatten)]
    source: SourceArgs,
}

impl TemplateCommand {
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Notify(command) => command.run().await,
            Self::Get(command) => command.run().await,
        }
    }
}

impl Notify {
    async fn run(self) -> Result<(), Failure> {
        let loaded = self.source.load().await?;
        let app = self.source.application(&self.resource).await?;
        let link = Link::new().map_err(|error| Failure::fatal(error.to_string()))?;
        let runtime = Handle::current();
        // Requests wait, which a thread of the runtime may not.
        let sent = tokio::task::spawn_blocking(move || self.send(&loaded, &app, &link, &runtime));
        sent.await
            .unwrap_or_else(|error| Err(Failure::fatal(error.to_string())))
    }

    fn send(
        &self,
        loaded: &Loaded,
        app: &Value,
        link: &Link,
        runtime: &Handle,
    ) -> Result<(), Failure> {
        let subject = subject(&loaded.config, app);
        let templates = std::slice::from_ref(&self.name);
        // Threads of Slack go on from one recipient to the next, as in Argo CD's command.
        let mut threads = Threads::default();
        for recipient in &self.recipient {
            let failed =
                |why: String| Failure::fatal(format!("failed to notify '{recipient}': {why}"));
            let (service, name) = recipient.split_once(':').unwrap_or((recipient, ""));
            let to = Destination {
                service: service.to_owned(),
                recipient: name.to_owned(),
            };
            if service == CONSOLE {
                let rendered = Notification::render(&subject, templates, &to, random());
                let rendered = rendered.map_err(|error| failed(error.to_string()))?;
                output::print(&output::yaml(&rendered.to_json())?);
                continue;
            }
            let mut transport = link.waiting(runtime.clone());
            let mut world = World {
                transport: &mut transport,
                threads: &mut threads,
                now: subject.clock.now,
                random: &mut |bytes| rand::rng().fill_bytes(bytes),
            };
            match deliver(&subject, templates, &to, random(), &mut world) {
                Outcome::Sent => {}
                Outcome::Refused(why) | Outcome::Failed(why) | Outcome::NoService(why) => {
                    return Err(failed(why));
                }
            }
        }
        Ok(())
    }
}

fn random() -> Random {
    Box::new(|bytes| rand::rng().fill_bytes(bytes))
}

impl Get {
    async fn run(self) -> Result<(), Failure> {
        let loaded = self.source.load().await?;
        let mut templates = Map::new();
        for (key, text) in &loaded.texts {
            let Some(name) = key.strip_prefix("template.") else {
                continue;
            };
            if self.name.as_deref().is_none_or(|own| own == name) {
                let (limits, last) = (yaml::Limits::default(), yaml::Duplicates::LastWins);
                let document = yaml::parse_document(text, &limits, last);
                templates.insert(name.to_owned(), document.unwrap_or_default());
            }
        }
        let text = match self.output.as_str() {
            "" | "wide" => {
                let mut text = String::from("NAME\tPREVIEW\n");
                for (name, template) in &templates {
                    text.push_str(&format!("{name}\t{}\n", preview(template)));
                }
                output::table::align(&text, 5)
            }
            "name" => templates.keys().map(|name| format!("{name}\n")).collect(),
            format => output::document(&templates, format)?,
        };
        output::print(&text);
        Ok(())
    }
}

/// Longest preview, in bytes.
const PREVIEW: usize = 100;

/// The first line of the message, or of the whole template if it has none.
fn preview(template: &Value) -> String {
    let text = match template["message"].as_str() {
        None => template.to_string(),
        Some("") => {
            let mut rest = template.as_object().cloned().unwrap_or_default();
            rest.remove("message");
            Value::from(rest).to_string()
        }
        Some(message) => message.to_owned(),
    };
    let line = text.lines().next().unwrap_or_default();
    if line.len() <= PREVIEW {
        return line.to_owned();
    }
    let cut = line.floor_char_boundary(PREVIEW - 1);
    format!("{}...", &line[..cut])
}
