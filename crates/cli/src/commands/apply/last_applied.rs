//! `apply view-last-applied`, `set-last-applied` and `edit-last-applied`: the last-applied
//! annotation. Main type: [`LastApplied`].

use super::{
    HintedError,
    edit::Edit,
    print::print_name,
    read::{self, Rules},
    source::FileArgs,
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
use std::sync::Arc;
use tiphys_apimachinery::{Object, patch::last_applied};
use tiphys_cluster::{
    Kind,
    apply::{CLIENT_SIDE_MANAGER, Failure, Item, last_applied_text},
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
    /// TYPE NAME..., or TYPE/NAME...
    words: Vec<String>,
    #[command(flatten)]
    files: FileArgs,
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

async fn get(target: &Target, kind: &Kind, namespace: &str, name: &str) -> Result<Object, Failure> {
    Ok(target
        .discovery
        .cluster()
        .http()
        .json(&Call::get(kind.object_path(namespace, name)))
        .await?)
}

async fn objects(files: &FileArgs, target: &Target) -> Result<Vec<Item>, HintedError> {
    let found = read::read(
        files,
        target,
        &Rules {
            validate: false,
            selector: String::new(),
        },
    )
    .await?;
    match found.trouble {
        Some(trouble) => Err(HintedError {
            trouble,
            hints: found.hints,
        }),
        None => Ok(found.items),
    }
}

/// A live object, and the file that named it, if any.
pub struct Live {
    pub object: Object,
    pub kind: Arc<Kind>,
    source: String,
}

/// The live objects named on the command line or in files.
pub async fn live(
    words: &[String],
    files: &FileArgs,
    target: &Target,
) -> Result<Vec<Live>, HintedError> {
    let mut found = Vec::new();
    if words.is_empty() {
        files.check()?;
        for item in objects(files, target).await? {
            let object = get(
                target,
                &item.kind,
                item.object.namespace(),
                item.object.name(),
            )
            .await?;
            found.push(Live {
                object,
                kind: item.kind,
                source: item.source,
            });
        }
        return Ok(found);
    }
    for (resource, name) in pairs(words)? {
        let unknown = || {
            Trouble::text(format!(
                "the server doesn't have a resource type {resource:?}"
            ))
        };
        let kind = target
            .discovery
            .kinds()
            .find(&resource)
            .cloned()
            .ok_or_else(unknown)?;
        let object = get(target, &kind, &target.namespace, &name).await?;
        found.push(Live {
            object,
            kind,
            source: String::new(),
        });
    }
    Ok(found)
}

/// Sets the annotation to the content of an object.
pub async fn remember(target: &Target, item: &Item, manager: &str) -> Result<(), Failure> {
    let patch: Value = json!({"metadata": {"annotations": {last_applied::ANNOTATION: last_applied::text(&item.object)}}});
    let path = item
        .kind
        .object_path(item.object.namespace(), item.object.name());
    let call = Call::new(Method::PATCH, path)
        .query("fieldManager", manager)
        .with_body(MERGE_PATCH, patch.to_string());
    target.discovery.cluster().http().send(&call).await?;
    Ok(())
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
        for Live { object, source, .. } in live(&self.words, &self.files, &target).await? {
            let Some(text) = last_applied_text(&object) else {
                let problem = format!(
                    "no last-applied-configuration annotation found on resource: {}",
                    object.name()
                );
                return Err(Trouble::text(if source.is_empty() {
                    problem
                } else {
                    format!("{source}: {problem}")
                })
                .into());
            };
            let value = yaml::parse_document(text, &Limits::default(), Duplicates::LastWins)
                .map_err(|e| {
                    Trouble::text(format!(
                        "the annotation of {} is not JSON: {e}",
                        print_name(&object)
                    ))
                })?;
            output::print(&match self.output.as_str() {
                "json" => tiphys_gocompat::json::to_string_pretty(&value, "  ") + "\n",
                _ => yaml::to_string(&value),
            });
        }
        Ok(())
    }
}

/// `deployment web other` and `deployment/web service/api`.
fn pairs(words: &[String]) -> Result<Vec<(String, String)>, Trouble> {
    if words.iter().all(|w| w.contains('/')) {
        let split = |w: &String| w.split_once('/').map(|(t, n)| (t.to_owned(), n.to_owned()));
        return Ok(words.iter().filter_map(split).collect());
    }
    match words {
        [resource, names @ ..] if !names.is_empty() && !words.iter().any(|w| w.contains('/')) => {
            Ok(names
                .iter()
                .map(|n| (resource.clone(), n.clone()))
                .collect())
        }
        _ => Err(Trouble::text("name the objects as TYPE NAME or TYPE/NAME")),
    }
}

impl Set {
    async fn run(self, kube: &KubeArgs) -> Result<(), HintedError> {
        self.files.check()?;
        let target = kube.connect().await?;
        for item in objects(&self.files, &target).await? {
            let live = get(
                &target,
                &item.kind,
                item.object.namespace(),
                item.object.name(),
            )
            .await?;
            let text = last_applied::text(&item.object);
            match last_applied_text(&live) {
                None if !self.create_annotation => {
                    let name = live.name();
                    let problem = format!(
                        "no last-applied-configuration annotation found on resource: {name}, to create the annotation, run the command with --create-annotation"
                    );
                    return Err(Trouble::text(problem).into());
                }
                Some(old) if old == text => {}
                _ => remember(&target, &item, CLIENT_SIDE_MANAGER).await?,
            }
            output::print(&format!("{} configured\n", print_name(&live)));
        }
        Ok(())
    }
}
