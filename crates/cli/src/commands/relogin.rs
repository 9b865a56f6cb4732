//! `relogin`: a new token for the user of a context.

use super::{
    claims::Claims,
    login::{given_or, session},
    prompt,
};
use crate::{
    client::{ConnectArgs, Failure, LocalConfig, User},
    output,
};
use std::path::PathBuf;

/// The issuer of the tokens for local accounts.
pub const ISSUER: &str = "argocd";

#[derive(clap::Args)]
pub struct Relogin {
    /// The password of an account to authenticate
    #[arg(long)]
    password: Option<String>,
}

impl Relogin {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let stored = Stored::read(args)?;
        let claims = &stored.claims;
        if claims.text("iss") != ISSUER {
            return Err(Failure::fatal(
                "login with SSO is not supported yet: log in with --username and --password",
            ));
        }
        output::print(&format!("Relogging in as '{}'\n", claims.display_name()));
        let password = given_or(self.password, prompt::password)?;
        stored.renew(args, password).await
    }
}

/// Replaces the token of the current context.
pub async fn renew(args: &ConnectArgs, password: String) -> Result<(), Failure> {
    Stored::read(args)?.renew(args, password).await
}

/// A context in the config file.
struct Stored {
    path: PathBuf,
    config: LocalConfig,
    name: String,
    claims: Claims,
}

impl Stored {
    fn read(args: &ConnectArgs) -> Result<Self, Failure> {
        let path = args.config_path()?;
        let config = LocalConfig::read(&path)?
            .ok_or_else(|| Failure::fatal("No context found. Login using `argocd login`"))?;
        let name = match args.context_name() {
            "" => config.current_context.clone(),
            name => name.to_owned(),
        };
        let context = config
            .resolve(&name)
            .map_err(|e| Failure { code: 20, ..e })?;
        let claims = Claims::read(&context.user.auth_token)
            .ok_or_else(|| Failure::error("token is malformed: log in with `tiphys login`"))?;
        Ok(Self {
            path,
            config,
            name,
            claims,
        })
    }

    async fn renew(mut self, args: &ConnectArgs, password: String) -> Result<(), Failure> {
        let subject = self.claims.text("sub");
        let username = subject.split(':').next().unwrap_or_default().to_owned();
        let context = self.config.resolve(&self.name)?;
        let connection = args.for_context(&context)?;
        let auth_token = session(connection, username, password).await?;
        self.config.upsert_user(User {
            name: context.user.name,
            auth_token,
            ..Default::default()
        });
        self.config.write(&self.path)?;
        output::print(&format!("Context '{}' updated\n", self.name));
        Ok(())
    }
}
