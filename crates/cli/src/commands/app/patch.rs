//! `app patch`.

use super::AppRef;
use crate::{
    client::{ConnectArgs, Failure},
    output,
};
use tiphys_api::{Application, rpc::application::ApplicationPatchRequest};

#[derive(clap::Args)]
pub struct Patch {
    /// The application
    app: String,
    /// Patch body
    #[arg(long, default_value = "", hide_default_value = true)]
    patch: String,
    /// Which Patching strategy to use: 'json' or 'merge'
    #[arg(long = "type", default_value = "json")]
    kind: String,
    /// Patch application in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

impl Patch {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let app = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let request = ApplicationPatchRequest {
            app_namespace: app.namespace(),
            name: app.name,
            patch: self.patch,
            patch_type: self.kind,
            project: None,
        };
        let patched: Application = client
            .unary("/application.ApplicationService/Patch", request)
            .await?;
        output::print(&(output::yaml(&patched)? + "\n"));
        Ok(())
    }
}
