//! `app delete`.

use super::{AppRef, watching};
use crate::{
    client::{Client, ConnectArgs, Failure},
    commands::prompt::{self, Answer},
    output::{self, summary},
};
use std::io::IsTerminal as _;
use tiphys_api::rpc::application::{
    ApplicationDeleteRequest, ApplicationQuery, ApplicationResponse,
};

#[derive(clap::Args)]
pub struct Delete {
    /// The applications
    #[arg(required_unless_present = "selector")]
    apps: Vec<String>,
    /// Perform a cascaded deletion of all application resources [default: true]
    #[arg(long)]
    cascade: Option<bool>,
    /// Specify propagation policy for deletion of application's resources. One of:
    /// foreground|background [default: foreground]
    #[arg(long, short = 'p')]
    propagation_policy: Option<String>,
    /// Turn off prompting to confirm cascaded deletion of application resources
    #[arg(long, short)]
    yes: bool,
    /// Delete all apps with matching label. Supports '=', '==', '!=', in, notin, exists & not
    /// exists
    #[arg(long, short = 'l')]
    selector: Option<String>,
    /// Wait until deletion of the application(s) completes
    #[arg(long)]
    wait: bool,
    /// Namespace where the application will be deleted from
    #[arg(long, short = 'N', value_name = "NAMESPACE")]
    app_namespace: Option<String>,
}

impl Delete {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let client = super::super::connect(args).await?;
        let names = self.names(&client).await?;
        let mut ask = self.cascade.unwrap_or(true) && !self.yes && std::io::stdout().is_terminal();
        for name in &names {
            if ask {
                // Nobody is asked about what is not there.
                let app = AppRef::new(name, self.app_namespace.as_deref());
                super::get(&client, &app, None).await?;
                match question(name, names.len())? {
                    Answer::Yes => {}
                    Answer::All => ask = false,
                    Answer::No => {
                        output::print(&format!("The command to delete '{name}' was cancelled.\n"));
                        continue;
                    }
                }
            }
            self.delete(&client, name).await?;
        }
        Ok(())
    }

    async fn names(&self, client: &Client) -> Result<Vec<String>, Failure> {
        let Some(selector) = self.selector.as_deref().filter(|s| !s.is_empty()) else {
            return Ok(self.apps.clone());
        };
        let query = ApplicationQuery {
            selector: Some(selector.to_owned()),
            ..Default::default()
        };
        let apps = super::list(client, query).await?;
        if apps.is_empty() {
            return Err(Failure::error(format!("no apps match selector {selector}")));
        }
        Ok(apps.iter().map(summary::qualified_name).collect())
    }

    async fn delete(&self, client: &Client, name: &str) -> Result<(), Failure> {
        let app = AppRef::new(name, self.app_namespace.as_deref());
        let request = ApplicationDeleteRequest {
            name: app.name.clone(),
            cascade: self.cascade,
            propagation_policy: self.propagation_policy.clone(),
            app_namespace: app.namespace(),
            project: None,
        };
        let deleted = async {
            client
                .unary::<_, ApplicationResponse>("/application.ApplicationService/Delete", request)
                .await
        };
        if self.wait {
            watching::until_deleted(client, &app, deleted).await?;
        } else {
            deleted.await?;
        }
        output::print(&format!("application '{name}' deleted\n"));
        Ok(())
    }
}

fn question(name: &str, count: usize) -> Result<Answer, Failure> {
    if count == 1 {
        let yes = prompt::proceed(&format!(
            "Are you sure you want to delete '{name}' and all its resources? [y/n] "
        ))?;
        return Ok(if yes { Answer::Yes } else { Answer::No });
    }
    prompt::proceed_or_all(&format!(
        "Are you sure you want to delete '{name}' and all its resources? [y/n/a] \
         where 'a' is to delete all specified apps and their resources without prompting "
    ))
}
