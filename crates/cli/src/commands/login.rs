//! `login`: requests a token and stores it in the config file.

use super::prompt;
use crate::{
    client::{
        Client, ConnectArgs, Connection, ContextRef, Failure, LocalConfig, Server, TlsProbe, User,
        probe,
    },
    output,
};
use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use serde_json::Value;
use tiphys_api::rpc::session::{SessionCreateRequest, SessionResponse};

#[derive(clap::Args)]
pub struct Login {
    /// Address of the server
    server: String,
    /// Name to use for the context
    #[arg(long)]
    name: Option<String>,
    /// The username of an account to authenticate
    #[arg(long)]
    username: Option<String>,
    /// The password of an account to authenticate
    #[arg(long)]
    password: Option<String>,
    /// Skip testing whether the server is configured with TLS
    #[arg(long)]
    skip_test_tls: bool,
    /// Perform SSO login
    #[arg(long)]
    sso: bool,
}

impl Login {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        if self.sso {
            return Err(Failure::fatal(
                "login with --sso is not supported yet: log in with --username and --password",
            ));
        }
        let mut connection = args.for_login(&self.server)?;
        if !self.skip_test_tls {
            settle_tls(&mut connection).await?;
        }
        let username = given_or(self.username, || prompt::text("Username"))?;
        let password = given_or(self.password, prompt::password)?;
        let client = Client::connect(connection.clone()).await?;
        let request = SessionCreateRequest {
            username,
            password,
            token: String::new(),
        };
        let session: SessionResponse = client
            .unary("/session.SessionService/Create", request)
            .await?;
        output::print(&format!(
            "'{}' logged in successfully\n",
            display_name(&session.token)?
        ));

        let name = self
            .name
            .unwrap_or_else(|| match connection.root_path.trim_matches('/') {
                "" => self.server.clone(),
                root => format!("{}/{root}", self.server),
            });
        store(args, &self.server, &name, session.token, &connection)?;
        output::print(&format!("Context '{name}' updated\n"));
        Ok(())
    }
}

fn given_or(
    given: Option<String>,
    ask: impl FnOnce() -> Result<String, Failure>,
) -> Result<String, Failure> {
    match given.filter(|g| !g.is_empty()) {
        Some(given) => Ok(given),
        None => ask(),
    }
}

/// Asks before using a connection that others could read or intercept.
pub async fn settle_tls(connection: &mut Connection) -> Result<(), Failure> {
    match probe(connection).await? {
        TlsProbe::Plaintext if !connection.plaintext => {
            if !prompt::proceed("WARNING: server is not configured with TLS. Proceed (y/n)? ")? {
                return Err(Failure::exit(1));
            }
            connection.plaintext = true;
        }
        TlsProbe::Untrusted(why) if !connection.insecure && !connection.plaintext => {
            if !prompt::proceed(&format!(
                "WARNING: server certificate had error: {why}. Proceed insecurely (y/n)? "
            ))? {
                return Err(Failure::exit(1));
            }
            connection.insecure = true;
        }
        _ => {}
    }
    Ok(())
}

fn store(
    args: &ConnectArgs,
    server: &str,
    name: &str,
    token: String,
    c: &Connection,
) -> Result<(), Failure> {
    let path = args.config_path()?;
    let mut config = LocalConfig::read(&path)?.unwrap_or_default();
    config.upsert_server(Server {
        server: server.to_owned(),
        plain_text: c.plaintext,
        insecure: c.insecure,
        grpc_web: c.grpc_web && c.root_path.is_empty(),
        grpc_web_root_path: c.root_path.clone(),
        ..Default::default()
    });
    config.upsert_user(User {
        name: name.to_owned(),
        auth_token: token,
        ..Default::default()
    });
    config.upsert_context(ContextRef {
        name: name.to_owned(),
        server: server.to_owned(),
        user: name.to_owned(),
    });
    name.clone_into(&mut config.current_context);
    config.write(&path)
}

/// The owner of a token: e-mail, name or subject.
fn display_name(token: &str) -> Result<String, Failure> {
    let unreadable = || Failure::error("the server's token is not a JSON Web Token");
    let claims = token.split('.').nth(1).ok_or_else(unreadable)?;
    let claims: Value = URL_SAFE_NO_PAD
        .decode(claims)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .ok_or_else(unreadable)?;
    let text = |name: &str| {
        claims[name]
            .as_str()
            .filter(|t| !t.is_empty())
            .map(str::to_owned)
    };
    let federated = || {
        claims["federated_claims"]["user_id"]
            .as_str()
            .map(str::to_owned)
    };
    Ok(text("email")
        .or_else(|| text("name"))
        .or_else(federated)
        .or_else(|| text("sub"))
        .unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_a_token_is_for() {
        let token = |claims: &str| format!("x.{}.y", URL_SAFE_NO_PAD.encode(claims));
        assert_eq!(
            display_name(&token(r#"{"sub":"admin:login"}"#)).expect("a token"),
            "admin:login"
        );
        assert_eq!(
            display_name(&token(r#"{"sub":"x","email":"a@example.com"}"#)).expect("a token"),
            "a@example.com"
        );
        assert!(display_name("x").is_err());
    }
}
