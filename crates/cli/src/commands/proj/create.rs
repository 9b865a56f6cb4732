//! `proj create` and `proj set`.

use super::{
    get,
    options::{ProjectOptions, project},
    save,
};
use crate::{
    client::{ConnectArgs, Failure},
    commands::connect,
    output::log,
};
use tiphys_api::{project::AppProject, rpc::project::ProjectCreateRequest};

#[derive(clap::Args)]
pub struct Create {
    /// Name of the project
    #[arg(value_name = "PROJECT")]
    names: Vec<String>,
    /// Filename or URL to Kubernetes manifests for the project
    #[arg(long, short, value_name = "FILE")]
    file: Option<String>,
    /// Allows to override a project with the same name even if supplied project spec is different
    /// from existing spec
    #[arg(long)]
    upsert: bool,
    #[command(flatten)]
    options: ProjectOptions,
}

impl Create {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let project = project(&self.names, self.file.as_deref(), &self.options).await?;
        let request = ProjectCreateRequest {
            project: Some(project),
            upsert: self.upsert,
        };
        let _: AppProject = connect(args)
            .await?
            .unary("/project.ProjectService/Create", request)
            .await?;
        Ok(())
    }
}

#[derive(clap::Args)]
pub struct Set {
    /// The project
    #[arg(value_name = "PROJECT")]
    name: String,
    #[command(flatten)]
    options: ProjectOptions,
}

impl Set {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = connect(args).await?;
        let mut project = get(&client, self.name).await?;
        if self.options.is_empty() {
            log::error("Please set at least one option to update");
            return Err(Failure::misuse());
        }
        self.options.apply(&mut project.spec)?;
        save(&client, project).await.map(drop)
    }
}
