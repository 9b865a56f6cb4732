//! Signing in with the identity provider of a server: the browser does it, and comes back to an
//! address of this machine. Main function: [`sign_in`].
//!
//! The provider gets nothing that is for the server, such as tokens or headers.

use super::claims::Claims;
use crate::{
    client::{Client, ConnectArgs, Connection, Failure, LocalConfig, User},
    output,
};
use http::{Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper_util::rt::TokioIo;
use reqwest::{Url, redirect::Policy};
use std::{
    collections::BTreeMap,
    process::{Command, Stdio},
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};
use tiphys_api::rpc::settings::{Claim, Settings, SettingsQuery};
use tiphys_server::sso::oidc::{self, Discovery, OidcError, Tokens, letters};
use tokio::{net::TcpListener, sync::mpsc};

const TIMEOUT: Duration = Duration::from_secs(30);
/// What Dex knows the command line as.
const DEX_CLIENT: &str = "argo-cd-cli";
const CALLBACK: &str = "/auth/callback";
const DONE: &str = "<!doctype html><title>Signed in</title><p>You are signed in. You can close this page and return to the terminal.";

/// The flags of commands that sign in.
#[derive(clap::Args)]
pub struct SsoArgs {
    /// Port on this machine to which the browser comes back
    #[arg(long, default_value_t = 8085)]
    sso_port: u16,
    /// Scheme, host and port to which the browser comes back, if that is not this machine itself
    #[arg(long, value_name = "URL")]
    callback: Option<String>,
    /// Open the system's browser; without it the address is printed
    #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
    sso_launch_browser: bool,
}

/// The provider, and what this program is to it.
struct Provider {
    client: reqwest::Client,
    client_id: String,
    scopes: Vec<String>,
    claims: BTreeMap<String, Claim>,
    discovery: Discovery,
}

/// Signs in with the provider that the server names.
pub async fn sign_in(connection: Connection, args: &SsoArgs) -> Result<Tokens, Failure> {
    let provider = provider(connection).await?;
    let listener = TcpListener::bind(("127.0.0.1", args.sso_port))
        .await
        .map_err(|e| {
            Failure::fatal(format!(
                "Temporary HTTP server failed: port {}: {e}",
                args.sso_port
            ))
            .with_hint("choose another port with --sso-port; the provider must know it")
        })?;
    let own = || format!("http://localhost:{}", args.sso_port);
    let redirect = args.callback.clone().filter(|c| !c.is_empty());
    let redirect = redirect.unwrap_or_else(own);
    let redirect = format!("{}{CALLBACK}", redirect.trim_end_matches('/'));
    let (state, verifier) = (letters(24), oidc::verifier());
    let url = provider.authorization(&redirect, &state, &verifier)?;
    output::print(&format!(
        "Performing authorization_code flow login: {url}\n"
    ));
    show(url.as_str(), args.sso_launch_browser);
    let code = code(listener, state).await?;
    let form = [
        ("grant_type", "authorization_code"),
        ("code", &code),
        ("redirect_uri", &redirect),
        ("client_id", &provider.client_id),
        ("code_verifier", &verifier),
    ];
    let tokens = provider.tokens(&form).await?;
    output::print("Authentication successful\n");
    Ok(tokens)
}

/// New tokens for a refresh token. The provider may keep the refresh token as it is.
async fn refresh(connection: Connection, refresh_token: &str) -> Result<Tokens, Failure> {
    let provider = provider(connection).await?;
    let form = [
        ("grant_type", "refresh_token"),
        ("refresh_token", refresh_token),
        ("client_id", &provider.client_id),
    ];
    let mut tokens = provider.tokens(&form).await?;
    if tokens.refresh_token.is_empty() {
        refresh_token.clone_into(&mut tokens.refresh_token);
    }
    Ok(tokens)
}

/// A new token, if the one of the context has expired and the provider gave a refresh token. What
/// fails is said; the server then refuses the old token.
pub async fn renewed(args: &ConnectArgs, connection: &Connection) -> Option<String> {
    let path = args.config_path().ok()?;
    let config = LocalConfig::read(&path).ok()??;
    let user = args.context_of(&config).ok()??.user;
    let is_theirs = user.auth_token == connection.token && !user.refresh_token.is_empty();
    let is_over = |token: &str| Claims::read(token).is_some_and(|claims| claims.is_over());
    if !is_theirs || !is_over(&user.auth_token) {
        return None;
    }
    let renewed = async {
        let tokens = refresh(connection.clone(), &user.refresh_token).await?;
        let user = User {
            name: user.name,
            auth_token: tokens.id_token.clone(),
            refresh_token: tokens.refresh_token,
        };
        LocalConfig::change(&path, |config| config.upsert_user(user))?;
        Ok::<_, Failure>(tokens.id_token)
    };
    match renewed.await {
        Ok(token) => Some(token),
        Err(e) => {
            output::log::warn(&format!("the session could not be refreshed: {e}"));
            None
        }
    }
}

async fn provider(connection: Connection) -> Result<Provider, Failure> {
    let server = connection.server.clone();
    let insecure = connection.insecure;
    let settings: Settings = Client::connect(connection)
        .await?
        .unary("/cluster.SettingsService/Get", SettingsQuery {})
        .await?;
    let default = ["openid", "profile", "email", "groups"];
    let default = || default.map(str::to_owned).to_vec();
    let (issuer, client_id, mut scopes, claims) = match (settings.oidc_config, settings.dex_config)
    {
        (Some(oidc), _) if !oidc.issuer.is_empty() => {
            let id = [oidc.cli_client_id, oidc.client_id];
            let scopes = Some(oidc.scopes).filter(|s| !s.is_empty());
            (
                oidc.issuer,
                id.into_iter().find(|id| !id.is_empty()).unwrap_or_default(),
                scopes.unwrap_or_else(default),
                oidc.id_token_claims,
            )
        }
        (_, Some(dex)) if !dex.connectors.is_empty() => {
            let mut scopes = default();
            scopes.push("federated:id".to_owned());
            let issuer = format!("{}/api/dex", settings.url.trim_end_matches('/'));
            (issuer, DEX_CLIENT.to_owned(), scopes, BTreeMap::new())
        }
        _ => {
            return Err(Failure::error(format!(
                "{server} is not configured with SSO"
            )));
        }
    };
    let base = Url::parse(&issuer)
        .map_err(|e| Failure::error(format!("the server names the provider {issuer:?}: {e}")))?;
    // Dex is behind the server, whose certificate need not be known.
    let is_server = base.host_str() == server.split(':').next();
    let client = reqwest::Client::builder()
        .redirect(Policy::none())
        .timeout(TIMEOUT)
        .tls_danger_accept_invalid_certs(insecure && is_server);
    let client = oidc::client_for(client, &issuer).map_err(|e| Failure::error(e.to_string()))?;
    let discovery = oidc::metadata(&client, &issuer)
        .await
        .map_err(|e| Failure::error(format!("failed to query provider {issuer:?}: {e}")))?;
    if discovery
        .scopes_supported
        .iter()
        .any(|s| s == "offline_access")
    {
        scopes.push("offline_access".to_owned());
    }
    Ok(Provider {
        client,
        client_id,
        scopes,
        claims,
        discovery,
    })
}

impl Provider {
    fn authorization(&self, redirect: &str, state: &str, verifier: &str) -> Result<Url, Failure> {
        let endpoint = &self.discovery.authorization_endpoint;
        let mut url = Url::parse(endpoint)
            .map_err(|e| Failure::error(format!("authorization_endpoint {endpoint:?}: {e}")))?;
        if !matches!(url.scheme(), "http" | "https") {
            // It is opened by a program of this machine.
            return Err(Failure::error(format!(
                "authorization_endpoint {endpoint:?} is not a web address"
            )));
        }
        url.query_pairs_mut()
            .append_pair("access_type", "offline")
            .append_pair("client_id", &self.client_id)
            .append_pair("redirect_uri", redirect)
            .append_pair("response_type", "code")
            .append_pair("scope", &self.scopes.join(" "))
            .append_pair("state", state);
        oidc::add_challenge(&mut url, verifier);
        if !self.claims.is_empty() {
            let claims = serde_json::json!({"id_token": self.claims});
            url.query_pairs_mut()
                .append_pair("claims", &claims.to_string());
        }
        Ok(url)
    }

    async fn tokens(&self, form: &[(&str, &str)]) -> Result<Tokens, Failure> {
        let url = &self.discovery.token_endpoint;
        let tokens = oidc::tokens(self.client.post(url), url, form).await;
        let tokens = tokens.map_err(|e| Failure::fatal(self.why(&e)))?;
        if tokens.id_token.is_empty() {
            return Err(Failure::fatal("no id_token in token response"));
        }
        Ok(tokens)
    }
}

impl Provider {
    /// What a refusal means here, where no secret is sent.
    fn why(&self, e: &OidcError) -> String {
        match e {
            OidcError::Refused { code, .. } if code == "invalid_client" => format!(
                "{e}: the command line has no secret. Register {:?} as a public client (with PKCE) \
                 at the provider, or a second client, and name that in cliClientID of oidc.config",
                self.client_id
            ),
            _ => e.to_string(),
        }
    }
}

/// Opens the browser, or says where to go.
fn show(url: &str, launch: bool) {
    if launch {
        output::print("Opening system default browser for authentication\n");
        if opened(url) {
            return;
        }
        output::log::warn("no browser could be opened");
    }
    output::print(&format!(
        "To authenticate, copy-and-paste the following URL into your preferred browser: {url}\n"
    ));
}

fn opened(url: &str) -> bool {
    let own = std::env::var("BROWSER").ok().filter(|b| !b.is_empty());
    let program = own.unwrap_or_else(|| {
        let program = if cfg!(target_os = "macos") {
            "open"
        } else {
            "xdg-open"
        };
        program.to_owned()
    });
    Command::new(program)
        .arg(url)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .is_ok()
}

/// Waits until the browser brings a code. Everything else that asks gets an answer and changes
/// nothing, because any page can make a browser ask here.
async fn code(listener: TcpListener, state: String) -> Result<String, Failure> {
    let (sender, mut receiver) = mpsc::channel(1);
    let served = tokio::spawn(async move {
        let state = Arc::new(Mutex::new(Some(state)));
        while let Ok((stream, _)) = listener.accept().await {
            let (state, sender) = (Arc::clone(&state), sender.clone());
            let service = hyper::service::service_fn(move |request| {
                let (answer, code) = answer(&request, &state);
                let sender = sender.clone();
                async move {
                    if let Some(code) = code {
                        let _ = sender.send(code).await;
                    }
                    Ok::<_, std::convert::Infallible>(answer)
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new()
                    .serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    let code = receiver.recv().await;
    // The browser's page is still on its way.
    tokio::time::sleep(Duration::from_millis(100)).await;
    served.abort();
    code.unwrap_or_else(|| Err("Temporary HTTP server failed".to_owned()))
        .map_err(Failure::fatal)
}

/// The page, and the code or the error of the provider if this is its answer.
fn answer(
    request: &Request<Incoming>,
    state: &Mutex<Option<String>>,
) -> (Response<Full<Bytes>>, Option<Result<String, String>>) {
    let page = |status: StatusCode, text: String, kind: &'static str| {
        let mut page = Response::new(Full::new(Bytes::from(text)));
        *page.status_mut() = status;
        let kind = http::HeaderValue::from_static(kind);
        page.headers_mut().insert("content-type", kind);
        page
    };
    let plain = |status, text: &str| page(status, format!("{text}\n"), "text/plain; charset=utf-8");
    if request.uri().path() != CALLBACK {
        return (plain(StatusCode::NOT_FOUND, "not found"), None);
    }
    let query = request.uri().query().unwrap_or_default();
    let url = Url::parse(&format!("http://query.invalid/?{query}")).ok();
    let values: BTreeMap<String, String> = url
        .map(|url| url.query_pairs().into_owned().collect())
        .unwrap_or_default();
    let value = |name: &str| values.get(name).map_or("", String::as_str);
    let mut expected = state.lock().unwrap_or_else(PoisonError::into_inner);
    if expected.as_deref() != Some(value("state")) {
        return (plain(StatusCode::BAD_REQUEST, "Unknown state nonce"), None);
    }
    *expected = None;
    if !value("error").is_empty() {
        let why = format!("{}: {}", value("error"), value("error_description"));
        return (plain(StatusCode::BAD_REQUEST, &why), Some(Err(why)));
    }
    if value("code").is_empty() {
        let why = "no code in request";
        return (
            plain(StatusCode::BAD_REQUEST, why),
            Some(Err(why.to_owned())),
        );
    }
    let done = page(StatusCode::OK, DONE.to_owned(), "text/html; charset=utf-8");
    (done, Some(Ok(value("code").to_owned())))
}
