//! `apply view-last-applied`, `set-last-applied` and `edit-last-applied`: the annotation that remembers what was applied.
//! Main type: [`LastApplied`].

use super::{
    Told,
    failure::Trouble,
    kube::{KubeArgs, Target},
    print::print_name,
    read::{self, Rules},
    source::FileArgs,
};
use crate::output;
use http::Method;
use serde_json::{Value, json};
use tiphys_apimachinery::{Object, patch::last_applied};
use tiphys_cluster::{
    Kind,
    apply::{Failure, last_applied_text},
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
    /// Not supported yet: use view-last-applied, an editor and set-last-applied
    #[command(name = "edit-last-applied", hide = true)]
    Edit {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        words: Vec<String>,
    },
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
    pub async fn run(self, kube: &KubeArgs) -> Result<(), Told> {
        match self {
            Self::View(view) => view.run(kube).await,
            Self::Set(set) => set.run(kube).await,
            Self::Edit { .. } => Err(Trouble::text(
                "edit-last-applied is not supported yet: save what view-last-applied prints, edit it and give it to set-last-applied -f",
            )
            .into()),
        }
    }
}

async fn get(target: &Target, kind: &Kind, namespace: &str, name: &str) -> Result<Object, Failure> {
    Ok(target.discovery.cluster().http().json(&Call::get(kind.object_path(namespace, name))).await?)
}

async fn objects(files: &FileArgs, target: &Target) -> Result<Vec<tiphys_cluster::apply::Item>, Told> {
    let found = read::read(files, target, &Rules { validate: false, selector: String::new() }).await?;
    match found.trouble {
        Some(trouble) => Err(Told { trouble, hints: found.hints }),
        None => Ok(found.items),
    }
}

impl View {
    async fn run(self, kube: &KubeArgs) -> Result<(), Told> {
        if self.output != "yaml" && self.output != "json" {
            let text = format!("Unexpected -o output mode: {}, the flag 'output' must be one of yaml|json", self.output);
            return Err(Trouble::text(text).into());
        }
        let target = kube.connect().await?;
        let mut live = Vec::new();
        if self.words.is_empty() {
            self.files.check()?;
            for item in objects(&self.files, &target).await? {
                live.push((get(&target, &item.kind, item.object.namespace(), item.object.name()).await?, item.source));
            }
        } else {
            for (resource, name) in pairs(&self.words)? {
                let unknown = || Trouble::text(format!("the server doesn't have a resource type {resource:?}"));
                let kind = target.discovery.kinds().find(&resource).cloned().ok_or_else(unknown)?;
                live.push((get(&target, &kind, &target.namespace, &name).await?, String::new()));
            }
        }
        for (object, source) in live {
            let Some(text) = last_applied_text(&object) else {
                let problem = format!("no last-applied-configuration annotation found on resource: {}", object.name());
                return Err(Trouble::text(if source.is_empty() { problem } else { format!("{source}: {problem}") }).into());
            };
            let value = yaml::parse_document(text, &Limits::default(), Duplicates::LastWins)
                .map_err(|e| Trouble::text(format!("the annotation of {} is not JSON: {e}", print_name(&object))))?;
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
            Ok(names.iter().map(|n| (resource.clone(), n.clone())).collect())
        }
        _ => Err(Trouble::text("name the objects as TYPE NAME or TYPE/NAME")),
    }
}

impl Set {
    async fn run(self, kube: &KubeArgs) -> Result<(), Told> {
        self.files.check()?;
        let target = kube.connect().await?;
        for item in objects(&self.files, &target).await? {
            let live = get(&target, &item.kind, item.object.namespace(), item.object.name()).await?;
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
                _ => {
                    let patch: Value = json!({"metadata": {"annotations": {last_applied::ANNOTATION: text}}});
                    let path = item.kind.object_path(item.object.namespace(), item.object.name());
                    let call = Call::new(Method::PATCH, path).query("fieldManager", tiphys_cluster::apply::CLIENT_SIDE_MANAGER);
                    let call = call.with_body(MERGE_PATCH, patch.to_string());
                    target.discovery.cluster().http().send(&call).await.map_err(Failure::from)?;
                }
            }
            output::print(&format!("{} configured\n", print_name(&live)));
        }
        Ok(())
    }
}
