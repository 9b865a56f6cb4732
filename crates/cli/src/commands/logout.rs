//! `logout`: invalidates the token on the server, and removes it from the config file.

use super::{forward, prompt};
use crate::{
    client::{Client, ConnectArgs, Failure, LocalConfig},
    output::{self, log},
};
use tiphys_api::rpc::session::{SessionDeleteRequest, SessionResponse};

#[derive(clap::Args)]
pub struct Logout {
    /// The context to log out from
    context: String,
}

impl Logout {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        let path = args.config_path()?;
        let config =
            LocalConfig::read(&path)?.ok_or_else(|| Failure::fatal("Nothing to logout from"))?;
        let name = &self.context;
        if args.prompts()?
            && !prompt::proceed(&format!("Are you sure you want to log out from '{name}'?"))?
        {
            log::info(&format!("Logout from '{name}' cancelled"));
            return Ok(());
        }
        let context = config
            .resolve(name)
            .map_err(|_| Failure::fatal(format!("Context {name} does not exist")))?;
        let mut connection = args.for_context(&context)?;
        connection.token.clone_from(&context.user.auth_token);
        forward::settle(args, &mut connection).await?;
        match revoke(connection).await {
            Ok(()) => log::info("token successfully invalidated on server"),
            Err(e) => log::warn(&format!("failed to invalidate token on server: {e}.")),
        }
        LocalConfig::change(&path, |config| {
            let users = config.users.iter_mut();
            for user in users.filter(|u| u.name == context.user.name) {
                user.auth_token.clear();
                user.refresh_token.clear();
            }
        })?;
        output::print(&format!("Logged out from '{name}'\n"));
        Ok(())
    }
}

async fn revoke(connection: crate::client::Connection) -> Result<(), Failure> {
    if connection.token.is_empty() {
        return Err(Failure::error(
            "error getting token from local context file",
        ));
    }
    let client = Client::connect(connection).await?;
    let _: SessionResponse = client
        .unary("/session.SessionService/Delete", SessionDeleteRequest {})
        .await?;
    Ok(())
}
