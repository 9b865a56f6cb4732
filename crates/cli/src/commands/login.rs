//! `login`: requests a token and stores it in the config file.

use super::{
    claims::Claims,
    forward, prompt,
    sso::{self, SsoArgs},
};
use crate::{
    client::{
        Client, ConnectArgs, Connection, ContextRef, FORWARDED, Failure, LocalConfig, Server,
        TlsProbe, User, exit, probe,
    },
    output,
};
use tiphys_api::rpc::session::{SessionCreateRequest, SessionResponse};
use tonic::{Code, Status};

/// What the server of a context is called that has none.
const KUBERNETES: &str = "kubernetes";

#[derive(clap::Args)]
pub struct Login {
    /// Address of the server
    #[arg(value_name = "SERVER")]
    address: Option<String>,
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
    #[command(flatten)]
    browser: SsoArgs,
}

impl Login {
    pub async fn run(self, args: &ConnectArgs) -> Result<(), Failure> {
        if args.core_flag()? {
            let name = self.name.unwrap_or_else(|| KUBERNETES.to_owned());
            return core(args, name);
        }
        let address = match args.forward()? {
            Some(_) => FORWARDED.to_owned(),
            None => self.address.ok_or_else(Failure::misuse)?,
        };
        let mut connection = args.for_login(&address)?;
        forward::settle(args, &mut connection).await?;
        if !self.skip_test_tls {
            settle_tls(&mut connection).await?;
        }
        let (token, refresh_token) = if self.sso {
            let tokens = sso::sign_in(connection.clone(), &self.browser).await?;
            (tokens.id_token, tokens.refresh_token)
        } else {
            let username = given_or(self.username, || prompt::text("Username"))?;
            let password = given_or(self.password, prompt::password)?;
            let token = session(connection.clone(), username, password).await?;
            (token, String::new())
        };
        let claims = Claims::read(&token)
            .ok_or_else(|| Failure::error("the server's token is not a JSON Web Token"))?;
        let name = self
            .name
            .unwrap_or_else(|| match connection.root_path.trim_matches('/') {
                "" => address.clone(),
                root => format!("{address}/{root}"),
            });
        let user = User {
            name: name.clone(),
            auth_token: token,
            refresh_token,
        };
        // Nobody is told of a login that no later command would know of.
        store(args, &address, user, &connection)?;
        output::print(&format!(
            "'{}' logged in successfully\nContext '{name}' updated\n",
            claims.display_name()
        ));
        Ok(())
    }
}

const SPEAKS_TLS: &str = "if the server speaks TLS, leave out --plaintext; --insecure accepts a \
                          certificate that nobody known has signed";

/// The token of a new session.
pub async fn session(
    connection: Connection,
    username: String,
    password: String,
) -> Result<String, Failure> {
    let request = SessionCreateRequest {
        username,
        password,
        token: String::new(),
    };
    let is_plaintext = connection.plaintext;
    let session: Result<SessionResponse, Status> = Client::connect(connection)
        .await?
        .unary("/session.SessionService/Create", request)
        .await;
    // A server with TLS answers others with a redirect, which is no answer of gRPC.
    let failed = |status: Status| match status.code() {
        Code::Unknown if is_plaintext => Failure::from(status).with_hint(SPEAKS_TLS),
        _ => Failure::from(status),
    };
    Ok(session.map_err(failed)?.token)
}

/// What is given, or what is answered to a question.
pub fn given_or(
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
                return Err(Failure::exit(exit::FAILED));
            }
            connection.plaintext = true;
        }
        TlsProbe::Untrusted(why) if !connection.insecure && !connection.plaintext => {
            if !prompt::proceed(&format!(
                "WARNING: server certificate had error: {why}. Proceed insecurely (y/n)? "
            ))? {
                return Err(Failure::exit(exit::FAILED));
            }
            connection.insecure = true;
        }
        _ => {}
    }
    Ok(())
}

/// Makes a context for the Kubernetes API, where nobody has to log in.
fn core(args: &ConnectArgs, name: String) -> Result<(), Failure> {
    let path = args.config_path()?;
    LocalConfig::change(&path, |config| {
        config.upsert_server(Server {
            server: KUBERNETES.to_owned(),
            core: true,
            ..Default::default()
        });
        config.upsert_context(ContextRef {
            name: name.clone(),
            server: KUBERNETES.to_owned(),
            user: name.clone(),
        });
        config.current_context.clone_from(&name);
        config.upsert_user(User {
            name: name.clone(),
            ..User::default()
        });
    })?;
    output::print(&format!("Context '{name}' updated\n"));
    Ok(())
}

fn store(args: &ConnectArgs, server: &str, user: User, c: &Connection) -> Result<(), Failure> {
    let path = args.config_path()?;
    LocalConfig::change(&path, |config| {
        config.upsert_server(Server {
            server: server.to_owned(),
            plain_text: c.plaintext,
            insecure: c.insecure,
            grpc_web: c.grpc_web && c.root_path.is_empty(),
            grpc_web_root_path: c.root_path.clone(),
            ..Default::default()
        });
        config.upsert_context(ContextRef {
            name: user.name.clone(),
            server: server.to_owned(),
            user: user.name.clone(),
        });
        config.current_context.clone_from(&user.name);
        config.upsert_user(user);
    })
}
