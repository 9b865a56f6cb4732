//! `catalog upgrade`: an Application gets another version of its chart.

use super::{chosen::Chosen, failed};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{
        app::{self, AppRef},
        connect,
        helm::values::ValueArgs,
        prompt,
    },
    output,
};
use clap::ValueEnum;
use serde_json::Value;
use std::sync::Arc;
use tiphys_catalog::{
    RepoSpec, Store,
    release::{
        merge,
        upgrade::{self, Plan, Wanted},
    },
};
use tiphys_render::helm::Limits;

/// Whose value counts where both changed it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Prefer {
    /// What you entered
    Ours,
    /// The new default of the chart
    Theirs,
}

/// Upgrade an Application to another version of its chart
///
/// Whoever made the Application: its source says which chart it is. What you left at the old
/// defaults takes the new ones, what you changed stays. The values that you and the chart both
/// changed are named, and so is what would change in the manifests; then you are asked.
#[derive(clap::Args)]
#[command(disable_version_flag = true)]
pub struct Upgrade {
    /// Name of the Application
    app: String,
    /// Version of the chart [default: the newest]
    #[arg(long)]
    version: Option<String>,
    /// Whose value counts where you and the chart both changed it
    #[arg(long, value_enum)]
    prefer: Option<Prefer>,
    #[command(flatten)]
    values: ValueArgs,
    /// The chart among several sources, counted from 1
    #[arg(long, value_name = "NUMBER")]
    source_position: Option<usize>,
    /// Namespace of the Application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Only print what would change
    #[arg(long, conflicts_with = "yes")]
    preview: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Upgrade {
    pub async fn run(self, store: Arc<Store>, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let app = app::get(&client, &app_ref, None).await?;
        let chosen = Chosen::one(&app, self.source_position)?;
        let origin = chosen.origin(&store)?;
        let decided = self.values.read(&Limits::default());
        let wanted = Wanted {
            source: chosen.source.clone(),
            installed: chosen.version().unwrap_or_default().to_owned(),
            digest: chosen.digest(),
            version: self.version.clone(),
            prefer: match self.prefer {
                Some(Prefer::Theirs) => merge::Prefer::Theirs,
                _ => merge::Prefer::Ours,
            },
            decided: decided.map_err(|e| Failure::error(e.to_string()))?,
            facts: chosen.facts(),
        };
        let status = store
            .repo(&origin.repo)
            .map_err(failed)?
            .unwrap_or_default();
        let visitor = RepoSpec::visitor(Arc::clone(&store), &status, &origin.chart.repo);
        let visitor = visitor.map_err(failed)?;
        let plan = upgrade::plan(store, &visitor, &origin, wanted);
        let plan = plan.await.map_err(failed)?;
        output::print(&report(&plan));
        if self.preview {
            return Ok(());
        }
        let name = &app.metadata.name;
        if self.yes && self.prefer.is_none() && !plan.undecided.is_empty() {
            return Err(Failure::error(format!(
                "application '{name}' has conflicts: decide them with --prefer, --set or --values"
            )));
        }
        let question = format!("Upgrade '{name}' to {} {}? (y/n) ", plan.chart, plan.to);
        if !self.yes && !prompt::proceed(&question)? {
            return Err(Failure::error("nothing was changed"));
        }
        let origin = Some((&origin, plan.digest.as_str()));
        chosen.replace(&client, plan.source, origin).await?;
        output::print(&format!("application '{name}' upgraded to {}\n", plan.to));
        Ok(())
    }
}

/// A plan for people.
fn report(plan: &Plan) -> String {
    let mut out = format!("{}: {} -> {}\n", plan.chart, plan.from, plan.to);
    for note in &plan.notes {
        out.push_str(&format!("note: {note}\n"));
    }
    let merged = &plan.merged;
    for (title, paths) in [
        ("New defaults", &merged.taken_from_new),
        ("Defaults that are gone", &merged.gone),
        ("Yours, no longer in the chart", &merged.removed_in_chart),
        ("Yours, unknown to the chart", &merged.unknown_to_chart),
    ] {
        if !paths.is_empty() {
            out.push_str(&format!("{title}: {}\n", paths.join(", ")));
        }
    }
    let shown = |value: Option<&Value>| value.map_or("-".to_owned(), ToString::to_string);
    for conflict in &merged.conflicts {
        let is_decided = !plan.undecided.contains(conflict);
        out.push_str(&format!(
            "Conflict: {}{}\n  old default: {}\n  yours:       {}\n  new default: {}\n",
            conflict.path,
            if is_decided { " (decided)" } else { "" },
            shown(conflict.old.as_ref()),
            conflict.ours,
            shown(conflict.theirs.as_ref()),
        ));
    }
    match (plan.difference(), &plan.after) {
        (Some(text), _) if text.is_empty() => out.push_str("The manifests do not change.\n"),
        (Some(text), _) => out.push_str(&text),
        (None, Some(after)) => {
            out.push_str("The new manifests, which cannot be compared:\n");
            out.push_str(&after.text());
        }
        (None, None) => {}
    }
    out
}
