//! `catalog rollback`: the version of a chart that an Application had before, with its values.

use super::{Catalogue, called, failed, server::Server, write};
use crate::{
    client::{ConnectArgs, Failure},
    commands::{
        app::{self, AppRef},
        prompt,
    },
    output::{self, diff},
};
use tiphys_api::{
    Application,
    rpc::catalog::{RollbackRequest, RollbackResponse},
};
use tiphys_catalog::{
    Store,
    release::{Chosen, Origin, rollback},
};

const PREVIEW: &str = "/catalog.CatalogService/PreviewRollback";

/// Go back to the version of the chart that an Application had before
///
/// The version and the values are those of its history. They are written into the Application, so
/// automated syncs keep them.
#[derive(clap::Args)]
pub struct Rollback {
    /// Name of the Application
    app: String,
    /// A version that it had [default: the one before]
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,
    /// The chart among several sources, counted from 1
    #[arg(long, value_name = "NUMBER")]
    source_position: Option<usize>,
    /// Namespace of the Application
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Only print what would change
    #[arg(long, visible_alias = "dry-run", conflicts_with = "yes")]
    preview: bool,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
}

impl Rollback {
    pub async fn run(self, of: &Catalogue, args: &ConnectArgs) -> Result<(), Failure> {
        let client = of.control_plane(args).await?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let app = app::get(&client, &app_ref, None).await?;
        let chosen = Chosen::one(&app, self.source_position).map_err(failed)?;
        let plan = match of {
            Catalogue::Here(store) => self.plan(store, &chosen)?,
            Catalogue::Of(server) => self.asked(server, &app_ref).await?,
        };
        let after = Chosen::one(&plan.application, self.source_position).map_err(failed)?;
        let (old, new) = (output::yaml(chosen.source)?, output::yaml(after.source)?);
        output::print(&diff::normal(&old, &new));
        for note in &plan.notes {
            eprintln!("note: {note}");
        }
        if plan.compared {
            output::print(match plan.difference.as_str() {
                "" => "The manifests do not change.\n",
                difference => difference,
            });
        }
        if self.preview {
            return Ok(());
        }
        let (name, version) = (&app.metadata.name, &plan.to);
        let question = format!("Roll '{name}' back to {version}? (y/n) ");
        if !self.yes && !prompt::proceed(&question)? {
            return Err(Failure::error("nothing was changed"));
        }
        write(&client, &app, plan.application.clone()).await?;
        output::print(&format!("application '{name}' rolled back to {version}\n"));
        Ok(())
    }

    /// From a database of this machine, which need not have the archives.
    fn plan(&self, store: &Store, chosen: &Chosen<'_>) -> Result<RollbackResponse, Failure> {
        let before = rollback::before(chosen, self.to.as_deref()).map_err(failed)?;
        let to = before.target_revision.clone();
        let origin = Origin::of(store, &before).map_err(failed)?;
        let known = origin.as_ref().map(|origin| {
            let version = origin.installed(&to);
            let digest = version.map_or(String::new(), |version| version.digest.clone());
            (origin, called(&origin.repo), digest)
        });
        let application: Application = chosen.replaced(before, known.as_ref());
        Ok(RollbackResponse {
            application,
            to,
            ..RollbackResponse::default()
        })
    }

    /// From the server's catalogue.
    async fn asked(&self, server: &Server, app: &AppRef) -> Result<RollbackResponse, Failure> {
        let position = self.source_position.and_then(|at| i32::try_from(at).ok());
        let request = RollbackRequest {
            name: app.name.clone(),
            app_namespace: app.namespace.clone(),
            source_position: position.unwrap_or_default(),
            version: self.to.clone().unwrap_or_default(),
        };
        server.ask(PREVIEW, request).await
    }
}
