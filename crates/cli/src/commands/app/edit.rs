//! `app edit`.

use super::AppRef;
use crate::{
    client::{ConnectArgs, Failure},
    commands::edit,
    output,
};
use tiphys_api::{application::ApplicationSpec, rpc::application::ApplicationUpdateSpecRequest};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

#[derive(clap::Args)]
pub struct Edit {
    /// The application
    app: String,
    /// Only edit application in namespace
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

impl Edit {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let app_ref = AppRef::new(&self.app, self.app_namespace.as_deref());
        let client = super::super::connect(args).await?;
        let app = super::get(&client, &app_ref, None).await?;
        let text = output::yaml(&*app.spec)?;
        edit::until_saved(&text, &app_ref.name, async |text| {
            let request = ApplicationUpdateSpecRequest {
                name: app_ref.name.clone(),
                spec: spec(&text)?,
                validate: Some(false),
                app_namespace: app_ref.namespace(),
                project: None,
            };
            let saved: Result<ApplicationSpec, _> = client
                .unary("/application.ApplicationService/UpdateSpec", request)
                .await;
            saved.map(drop).map_err(|e| {
                let e = Failure::from(e);
                format!("failed to update application spec: {e}")
            })
        })
        .await
    }
}

fn spec(text: &str) -> Result<ApplicationSpec, String> {
    let value = yaml::parse_document(text.as_bytes(), &Limits::default(), Duplicates::LastWins)
        .map_err(|e| format!("error converting YAML to JSON: {e}"))?;
    if value.is_null() {
        return Ok(ApplicationSpec::default());
    }
    serde_json::from_value(value)
        .map_err(|e| format!("error unmarshaling input into application spec: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_user_wrote() {
        assert_eq!(spec("project: p\n").map(|s| s.project), Ok("p".into()));
        let why = |text| spec(text).err().unwrap_or_default();
        assert!(why("spec: [").starts_with("error converting YAML to JSON: "));
        assert!(why("project: [1]").starts_with("error unmarshaling input into application spec"));
    }
}
