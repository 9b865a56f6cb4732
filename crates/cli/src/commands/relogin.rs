//! `relogin`: a new token for the user of a context.

use super::{
    claims::Claims,
    forward,
    login::{given_or, session},
    prompt,
    sso::{self, SsoArgs},
};
use crate::{
    client::{ConnectArgs, Failure, LocalConfig, User, exit},
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
    #[command(flatten)]
    browser: SsoArgs,
}

impl Relogin {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let stored = Stored::read(args)?;
        let claims = &stored.claims;
        if claims.text("iss") != ISSUER {
            output::print("Reinitiating SSO login\n");
            return stored.sign_in_again(args, &self.browser).await;
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
            .map_err(|e| e.with_code(exit::ERROR))?;
        let claims = Claims::read(&context.user.auth_token)
            .ok_or_else(|| Failure::error("token is malformed: log in with `tiphys login`"))?;
        Ok(Self {
            path,
            config,
            name,
            claims,
        })
    }

    /// With the provider and the browser.
    async fn sign_in_again(self, args: &ConnectArgs, browser: &SsoArgs) -> Result<(), Failure> {
        let context = self.config.resolve(&self.name)?;
        let mut connection = args.for_context(&context)?;
        forward::settle(args, &mut connection).await?;
        let tokens = sso::sign_in(connection, browser).await?;
        let claims = Claims::read(&tokens.id_token);
        let user = User {
            name: context.user.name,
            auth_token: tokens.id_token,
            refresh_token: tokens.refresh_token,
        };
        LocalConfig::change(&self.path, |config| config.upsert_user(user))?;
        if let Some(claims) = claims {
            output::print(&format!(
                "'{}' logged in successfully\n",
                claims.display_name()
            ));
        }
        output::print(&format!("Context '{}' updated\n", self.name));
        Ok(())
    }

    async fn renew(self, args: &ConnectArgs, password: String) -> Result<(), Failure> {
        let subject = self.claims.text("sub");
        let username = subject.split(':').next().unwrap_or_default().to_owned();
        let context = self.config.resolve(&self.name)?;
        let mut connection = args.for_context(&context)?;
        forward::settle(args, &mut connection).await?;
        let auth_token = session(connection, username, password).await?;
        let user = User {
            name: context.user.name,
            auth_token,
            ..Default::default()
        };
        LocalConfig::change(&self.path, |config| config.upsert_user(user))?;
        output::print(&format!("Context '{}' updated\n", self.name));
        Ok(())
    }
}
