//! `catalog upgrade`: an Application gets another version of its chart.

use super::{
    Catalogue, better, called,
    commit::{Change, CommitArgs},
    failed, is_ours, write,
};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::{
        app::{self, AppRef},
        helm::values::ValueArgs,
        prompt,
    },
    output,
};
use clap::ValueEnum;
use std::sync::Arc;
use tiphys_api::rpc::catalog::{UpgradeRequest, UpgradeResponse};
use tiphys_catalog::{
    CatalogError, RepoSpec, Store,
    release::{
        Chosen, Origin,
        merge::{self, Values},
        upgrade::{self, Plan, Wanted},
    },
};
use tiphys_render::helm::Limits;

const PREVIEW: &str = "/catalog.CatalogService/PreviewUpgrade";

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
    #[arg(long, visible_alias = "dry-run", conflicts_with_all = ["yes", "commit_to"])]
    preview: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    #[command(flatten)]
    git: CommitArgs,
}

impl Upgrade {
    pub async fn run(self, of: &Catalogue, args: &ConnectArgs) -> Result<(), Failure> {
        let client = of.control_plane(args).await?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let app = app::get(&client, &app_ref, None).await?;
        let chosen = Chosen::one(&app, self.source_position).map_err(failed)?;
        let decided = self.values.read(&Limits::default());
        let decided = decided.map_err(|e| Failure::error(e.to_string()))?;
        let request = self.request(&app_ref, &decided);
        let plan: UpgradeResponse = match of {
            Catalogue::Of(server) => server.ask(PREVIEW, request).await?,
            Catalogue::Here(store) => {
                let asked = (&client, request);
                self.planned(store, &chosen, decided, asked).await?
            }
        };
        if self.git.commit_to.is_none() {
            output::print(&report(&plan));
        }
        if self.preview {
            return Ok(());
        }
        let name = &app.metadata.name;
        let is_open = plan.conflicts.iter().any(|conflict| !conflict.decided);
        let is_decided = self.prefer.is_some() || !is_open;
        // Nobody is asked where the change is looked at before it is merged.
        if (self.yes || self.git.commit_to.is_some()) && !is_decided {
            return Err(Failure::error(format!(
                "application '{name}' has conflicts: decide them with --prefer, --set or --values"
            )));
        }
        if let Some(url) = &self.git.commit_to {
            return self.committed(url, &plan).await;
        }
        let question = format!("Upgrade '{name}' from {} to {}? (y/n) ", plan.from, plan.to);
        if !self.yes && !prompt::proceed(&question)? {
            return Err(Failure::error("nothing was changed"));
        }
        write(&client, &app, plan.application).await?;
        output::print(&format!("application '{name}' upgraded to {}\n", plan.to));
        Ok(())
    }

    /// From a database of this machine, or by the control plane, where it has the credentials.
    async fn planned(
        &self,
        store: &Arc<Store>,
        chosen: &Chosen<'_>,
        decided: Values,
        (client, request): (&Client, UpgradeRequest),
    ) -> Result<UpgradeResponse, Failure> {
        let origin = Origin::of(store, chosen.source).map_err(failed)?;
        let origin = origin.ok_or_else(|| failed(chosen.unknown()))?;
        match self.plan(store, (chosen, &origin), decided).await {
            Ok(plan) => Ok(plan.response(chosen, &origin, &called(&origin.repo))),
            // The credentials of a cluster's repositories are in the cluster.
            Err(CatalogError::Repo(e)) if !is_ours(store, &origin.repo)? => {
                let asked = client.unary(PREVIEW, request).await;
                asked.map_err(|why| better(why.into(), e.into()))
            }
            Err(e) => Err(failed(e)),
        }
    }

    async fn committed(&self, url: &str, plan: &UpgradeResponse) -> Result<(), Failure> {
        let application = serde_json::to_value(&plan.application);
        let application = application.map_err(|e| Failure::error(e.to_string()))?;
        let change = Change {
            application: &application,
            version: &plan.to,
            title: format!("Upgrade {} from {} to {}", self.app, plan.from, plan.to),
            text: report(plan),
        };
        self.git.upgrade(url, &change).await
    }

    async fn plan(
        &self,
        store: &Arc<Store>,
        (chosen, origin): (&Chosen<'_>, &Origin),
        decided: Values,
    ) -> Result<Plan, CatalogError> {
        let wanted = Wanted {
            source: chosen.source.clone(),
            installed: chosen.version().unwrap_or_default().to_owned(),
            digest: chosen.digest(),
            version: self.version.clone(),
            prefer: match self.prefer {
                Some(Prefer::Theirs) => merge::Prefer::Theirs,
                _ => merge::Prefer::Ours,
            },
            decided,
            facts: chosen.facts(),
        };
        let status = store.repo(&origin.repo)?.unwrap_or_default();
        let visitor = RepoSpec::visitor(Arc::clone(store), &status, &origin.chart.repo)?;
        upgrade::plan(Arc::clone(store), &visitor, origin, wanted).await
    }

    /// The same for the control plane.
    fn request(&self, app: &AppRef, decided: &Values) -> UpgradeRequest {
        let values = match decided.is_empty() {
            true => String::new(),
            false => tiphys_gocompat::yaml::to_string(&decided.clone().into()),
        };
        let position = self.source_position.and_then(|at| i32::try_from(at).ok());
        let prefer = match self.prefer {
            None => "",
            Some(Prefer::Ours) => "ours",
            Some(Prefer::Theirs) => "theirs",
        };
        UpgradeRequest {
            name: app.name.clone(),
            app_namespace: app.namespace.clone(),
            source_position: position.unwrap_or_default(),
            version: self.version.clone().unwrap_or_default(),
            prefer: prefer.to_owned(),
            values,
        }
    }
}

/// A plan for people.
fn report(plan: &UpgradeResponse) -> String {
    let mut out = format!("{} -> {}\n", plan.from, plan.to);
    for note in &plan.notes {
        out.push_str(&format!("note: {note}\n"));
    }
    for (title, paths) in [
        ("New defaults", &plan.taken_from_new),
        ("Defaults that are gone", &plan.gone),
        ("Yours, no longer in the chart", &plan.removed_in_chart),
        ("Yours, unknown to the chart", &plan.unknown_to_chart),
    ] {
        if !paths.is_empty() {
            out.push_str(&format!("{title}: {}\n", paths.join(", ")));
        }
    }
    let shown = |value: &str| if value.is_empty() { "-" } else { value }.to_owned();
    for conflict in &plan.conflicts {
        out.push_str(&format!(
            "Conflict: {}{}\n  old default: {}\n  yours:       {}\n  new default: {}\n",
            conflict.path,
            if conflict.decided { " (decided)" } else { "" },
            shown(&conflict.old),
            conflict.ours,
            shown(&conflict.theirs),
        ));
    }
    out.push_str(match (plan.compared, plan.difference.as_str()) {
        (false, _) => "The manifests cannot be compared.\n",
        (true, "") => "The manifests do not change.\n",
        (true, difference) => difference,
    });
    out
}
