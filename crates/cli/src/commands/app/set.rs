//! `app set`.

use super::{AppRef, source_position, spec::AppOptions};
use crate::{
    client::{ConnectArgs, Failure},
    output::log,
};
use tiphys_api::{application::ApplicationSpec, rpc::application::ApplicationUpdateSpecRequest};

#[derive(clap::Args)]
pub struct Set {
    /// The application
    app: String,
    /// Set application parameters in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
    /// Position of the source from the list of sources of the app. Counting starts at 1
    #[arg(long)]
    source_position: Option<i64>,
    #[command(flatten)]
    options: AppOptions,
}

impl Set {
    pub async fn run(mut self, args: &ConnectArgs) -> Result<(), Failure> {
        if self.options.is_empty() {
            log::error("Please set at least one option to update");
            return Err(Failure::misuse());
        }
        self.options.download().await?;
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let mut app = super::get(&client, &app_ref, None).await?;
        let position = source_position(
            &app,
            self.source_position,
            self.options.source_name.as_deref(),
        )?;
        self.options.apply(&mut app, position)?;
        let request = ApplicationUpdateSpecRequest {
            name: app_ref.name.clone(),
            spec: app.spec.into_inner(),
            validate: Some(self.options.validate.unwrap_or(true)),
            app_namespace: app_ref.namespace(),
            project: None,
        };
        let _: ApplicationSpec = client
            .unary("/application.ApplicationService/UpdateSpec", request)
            .await?;
        Ok(())
    }
}
