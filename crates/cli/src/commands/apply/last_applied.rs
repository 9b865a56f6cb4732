//! `apply view-last-applied`, `set-last-applied` and `edit-last-applied`: the last-applied
//! annotation. Main type: [`LastApplied`].

use super::{
    HintedError,
    edit::Edit,
    flags::dry_run,
    live::{self, Live, Wanted},
    print::{PrintArgs, Printer, print_name},
    source::FileArgs,
    warnings,
};
use crate::{
    kubectl::{
        failure::Trouble,
        kube::{KubeArgs, Target},
    },
    output,
};
use http::Method;
use serde_json::{Value, json};
use tiphys_apimachinery::{Object, patch::last_applied};
use tiphys_cluster::{
    apply::{DryRun, Failure, Item, SERVER_SIDE_MANAGER, last_applied_text},
    request::{Call, MERGE_PATCH},
};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

#[derive(clap::Subcommand)]
pub enum LastApplied {
    /// Show what was applied last
    #[command(name = "view-last-applied")]
    View(View),
    /// Make the annotation say what files say, without changing anything else
    #[command(name = "set-last-applied")]
    Set(Set),
    #[command(name = "edit-last-applied")]
    Edit(Edit),
}

#[derive(clap::Args)]
pub struct View {
    /// TYPE NAME..., or TYPE/NAME...; with --all or -l only TYPE
    words: Vec<String>,
    #[command(flatten)]
    files: FileArgs,
    /// All objects of the type in the namespace
    #[arg(long)]
    all: bool,
    /// Only objects with these labels
    #[arg(long, short = 'l', value_name = "SELECTOR")]
    selector: Option<String>,
    /// yaml or json
    #[arg(long, short = 'o', default_value = "yaml")]
    output: String,
}

#[derive(clap::Args)]
pub struct Set {
    #[command(flatten)]
    files: FileArgs,
    /// Also where there is no such annotation yet
    #[arg(long)]
    create_annotation: bool,
    /// none; client: print what would be sent; server: let the server try without storing
    #[arg(long, value_name = "STRATEGY", num_args = 0..=1, require_equals = true, default_value = "none", default_missing_value = "unchanged")]
    dry_run: String,
    #[command(flatten)]
    print: PrintArgs,
}

impl LastApplied {
    pub async fn run(self, kube: &KubeArgs) -> Result<(), HintedError> {
        match self {
            Self::View(view) => view.run(kube).await,
            Self::Set(set) => set.run(kube).await,
            Self::Edit(edit) => edit.run(kube).await,
        }
    }
}

/// The annotation's text where it is set by itself: unlike `apply`, it gives no empty map of
/// annotations to an object without them.
fn text(object: &Object) -> String {
    if object.metadata("annotations").is_some() {
        return last_applied::text(object);
    }
    tiphys_gocompat::json::to_string(&object.clone().into_value()) + "\n"
}

/// Sets the annotation to the content of an object; returns the object with it.
pub async fn remember(
    target: &Target,
    item: &Item,
    manager: &str,
    dry_run: DryRun,
) -> Result<Object, Failure> {
    let patch: Value =
        json!({"metadata": {"annotations": {last_applied::ANNOTATION: text(&item.object)}}});
    let path = item
        .kind
        .object_path(item.object.namespace(), item.object.name());
    let tries = if dry_run == DryRun::Server { "All" } else { "" };
    let call = Call::new(Method::PATCH, path)
        .query("fieldManager", manager)
        .query("dryRun", tries)
        .with_body(MERGE_PATCH, patch.to_string());
    Ok(target.discovery.cluster().http().json(&call).await?)
}

impl View {
    async fn run(self, kube: &KubeArgs) -> Result<(), HintedError> {
        if self.output != "yaml" && self.output != "json" {
            let text = format!(
                "Unexpected -o output mode: {}, the flag 'output' must be one of yaml|json",
                self.output
            );
            return Err(Trouble::text(text).into());
        }
        let target = kube.connect().await?;
        let wanted = Wanted {
            words: &self.words,
            files: &self.files,
            all: self.all,
            selector: self.selector.as_deref().unwrap_or_default().trim(),
        };
        let is_named = self.words.is_empty() || !wanted.is_bulk(&target);
        let mut texts = Vec::new();
        for Live { object, source, .. } in live::live(&wanted, &target).await? {
            match last_applied_text(&object) {
                Some(text) => texts.push(self.shown(&object, text)?),
                // Among all objects, those that were never applied are left out.
                None if is_named => return Err(absent(&object, &source).into()),
                None => {}
            }
        }
        texts.iter().for_each(|text| output::print(text));
        Ok(())
    }

    fn shown(&self, object: &Object, text: &str) -> Result<String, Trouble> {
        let value =
            yaml::parse_document(text, &Limits::default(), Duplicates::LastWins).map_err(|e| {
                Trouble::text(format!(
                    "the annotation of {} is not JSON: {e}",
                    print_name(object)
                ))
            })?;
        Ok(match self.output.as_str() {
            "json" => tiphys_gocompat::json::to_string_pretty(&value, "  ") + "\n",
            _ => yaml::to_string(&value),
        })
    }
}

fn absent(object: &Object, source: &str) -> Trouble {
    let problem = format!(
        "no last-applied-configuration annotation found on resource: {}",
        object.name()
    );
    Trouble::text(if source.is_empty() {
        problem
    } else {
        format!("{source}: {problem}")
    })
}

/// An object whose annotation is to be set.
struct Change {
    item: Item,
    live: Object,
}

impl Set {
    async fn run(self, kube: &KubeArgs) -> Result<(), HintedError> {
        let dry_run = dry_run(&self.dry_run, &warnings())?;
        let printer = Printer::new(&self.print, dry_run)?;
        self.files.check()?;
        let target = kube.connect().await?;
        let changes = self.changes(&target).await?;
        for (at, Change { item, live }) in changes.into_iter().enumerate() {
            let set = match dry_run {
                DryRun::Client => live,
                DryRun::None | DryRun::Server => {
                    remember(&target, &item, SERVER_SIDE_MANAGER, dry_run).await?
                }
            };
            if at > 0 && printer.is_yaml() {
                output::print("---\n");
            }
            printer.line(&set, "configured")?;
        }
        Ok(())
    }

    /// What is to be set. Nothing is, if one of the objects is missing or was never applied.
    async fn changes(&self, target: &Target) -> Result<Vec<Change>, HintedError> {
        let mut changes = Vec::new();
        for item in live::objects(&self.files, "", target).await? {
            let (namespace, name) = (item.object.namespace(), item.object.name());
            let live = live::get(target, &item.kind, namespace, name).await?;
            let old = last_applied_text(&live);
            if old.is_none() && !self.create_annotation {
                let problem = format!(
                    "no last-applied-configuration annotation found on resource: {}, to create the annotation, run the command with --create-annotation",
                    live.name()
                );
                return Err(Trouble::text(problem).into());
            }
            if old.is_some_and(|old| old == text(&item.object)) {
                output::print(&format!(
                    "set-last-applied {}: no changes required.\n",
                    live.name()
                ));
            } else {
                changes.push(Change { item, live });
            }
        }
        Ok(changes)
    }
}
