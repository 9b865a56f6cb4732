//! `app patch-resource` and `app delete-resource`: single live objects of an Application.

use super::{AppRef, actions::Filter};
use crate::{
    client::{ConnectArgs, Failure},
    commands::prompt,
    output::{self, log},
};
use tiphys_api::rpc::application::{
    ApplicationResourceDeleteRequest, ApplicationResourcePatchRequest, ApplicationResourceResponse,
    ApplicationResponse,
};

#[derive(clap::Args)]
pub struct PatchResource {
    /// The application
    app: String,
    /// Patch
    #[arg(long)]
    patch: String,
    /// Which Patching strategy to use: 'application/json-patch+json',
    /// 'application/merge-patch+json', or 'application/strategic-merge-patch+json'
    #[arg(
        long,
        default_value = "application/merge-patch+json",
        value_name = "TYPE"
    )]
    patch_type: String,
    /// Kind
    #[arg(long)]
    kind: String,
    #[command(flatten)]
    filter: Filter,
    /// Indicates whether to patch multiple matching of resources
    #[arg(long)]
    all: bool,
    /// The name of the application's project - specifying this allows the command to report "not
    /// found" instead of "permission denied" if the app does not exist
    #[arg(long, default_value = "", hide_default_value = true)]
    project: String,
}

#[derive(clap::Args)]
pub struct DeleteResource {
    /// The application
    app: String,
    /// Kind
    #[arg(long)]
    kind: String,
    #[command(flatten)]
    filter: Filter,
    /// Indicates whether to force delete the resource
    #[arg(long)]
    force: bool,
    /// Indicates whether to orphan the dependents of the deleted resource
    #[arg(long)]
    orphan: bool,
    /// Indicates whether to delete multiple matching of resources
    #[arg(long)]
    all: bool,
    /// The name of the application's project - specifying this allows the command to report "not
    /// found" instead of "permission denied" if the app does not exist
    #[arg(long, default_value = "", hide_default_value = true)]
    project: String,
}

impl PatchResource {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        let app = AppRef::new(&self.app, self.filter.app_namespace());
        let objects = self
            .filter
            .managed(&client, &app, &self.kind, self.all)
            .await?;
        for object in objects {
            let request = ApplicationResourcePatchRequest {
                name: app.name.clone(),
                app_namespace: app.namespace(),
                namespace: Some(object.namespace().to_owned()),
                resource_name: object.name().to_owned(),
                version: object.gvk().version,
                group: Some(object.group().to_owned()),
                kind: object.kind().to_owned(),
                patch: self.patch.clone(),
                patch_type: self.patch_type.clone(),
                project: Some(self.project.clone()),
            };
            let _: ApplicationResourceResponse = client
                .unary("/application.ApplicationService/PatchResource", request)
                .await?;
            log::info(&format!("Resource '{}' patched", object.name()));
        }
        Ok(())
    }
}

impl DeleteResource {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        let app = AppRef::new(&self.app, self.filter.app_namespace());
        let objects = self
            .filter
            .managed(&client, &app, &self.kind, self.all)
            .await?;
        let asks = args.prompts()?;
        for object in objects {
            let place = format!(
                "{}/{} {}/{}",
                object.group(),
                object.kind(),
                object.namespace(),
                object.name()
            );
            let question = format!("Are you sure you want to delete {place} ? [y/n]");
            if asks && !prompt::proceed(&question)? {
                output::print(&format!("The command to delete {place} was cancelled.\n"));
                continue;
            }
            let request = ApplicationResourceDeleteRequest {
                name: app.name.clone(),
                app_namespace: app.namespace(),
                namespace: Some(object.namespace().to_owned()),
                resource_name: object.name().to_owned(),
                version: object.gvk().version,
                group: Some(object.group().to_owned()),
                kind: object.kind().to_owned(),
                force: Some(self.force),
                orphan: Some(self.orphan),
                project: Some(self.project.clone()),
            };
            let _: ApplicationResponse = client
                .unary("/application.ApplicationService/DeleteResource", request)
                .await?;
            log::info(&format!("Resource '{}' deleted", object.name()));
        }
        Ok(())
    }
}
