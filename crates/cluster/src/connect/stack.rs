//! The HTTP stack of a client: HTTP/2 if the server supports it, keep-alive pings so that a dead
//! connection is noticed, and a proxy.

use super::{
    proxy::Proxy,
    tokens::{Bearer, Tokens},
};
use crate::{
    client::{Client, root_cause},
    error::Error,
};
use hyper::rt::{Read, Write};
use hyper_rustls::HttpsConnectorBuilder;
use hyper_util::{
    client::legacy::{
        self,
        connect::{Connection, HttpConnector},
    },
    rt::{TokioExecutor, TokioTimer},
};
use kube::{Config, client::ConfigExt};
use std::{sync::Arc, time::Duration};
use tower::{BoxError, Layer, Service, ServiceExt, filter::AsyncFilterLayer, util::option_layer};

/// Windows large enough for a page of a list in flight.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// Installs the process-wide crypto provider; the first caller wins.
pub(super) fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have installed it first, which is fine.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

/// Which versions of HTTP a client speaks.
#[derive(Clone, Copy)]
pub(super) enum Versions {
    /// HTTP/2 if the server supports it.
    All,
    Http1,
}

/// A client that uses a proxy and adds these tokens to its requests.
pub(super) fn client(
    config: &Config,
    proxy: &Proxy,
    tokens: Option<&Arc<Tokens>>,
    versions: Versions,
    origin: &str,
) -> Result<Client, Error> {
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(Duration::from_secs(30)));
    match proxy.clone() {
        Proxy::None => over(tcp, config, tokens, versions, origin),
        Proxy::Http {
            uri,
            auth,
            tls: false,
        } => over(
            Proxy::tunnel(uri, auth, tcp),
            config,
            tokens,
            versions,
            origin,
        ),
        Proxy::Http {
            uri,
            auth,
            tls: true,
        } => {
            // The proxy's certificate is verified with the cluster's CA, as in Go, but against the
            // proxy's own name.
            let https = HttpsConnectorBuilder::new()
                .with_tls_config(tls(config, origin)?)
                .https_only()
                .enable_http1();
            over(
                Proxy::tunnel(uri, auth, https.wrap_connector(tcp)),
                config,
                tokens,
                versions,
                origin,
            )
        }
        Proxy::Socks { uri, auth } => over(
            Proxy::socks(uri, auth, tcp),
            config,
            tokens,
            versions,
            origin,
        ),
    }
}

fn wrong(origin: &str, e: &(dyn std::error::Error + 'static)) -> Error {
    Error::config(
        origin,
        root_cause(e),
        "correct the credentials or certificates",
    )
}

fn tls(config: &Config, origin: &str) -> Result<rustls::ClientConfig, Error> {
    config.rustls_client_config().map_err(|e| wrong(origin, &e))
}

/// A client whose connections are made by `connector`.
fn over<C>(
    connector: C,
    config: &Config,
    tokens: Option<&Arc<Tokens>>,
    versions: Versions,
    origin: &str,
) -> Result<Client, Error>
where
    C: Service<http::Uri> + Clone + Send + Sync + 'static,
    C::Response: Connection + Read + Write + Send + Unpin + 'static,
    C::Future: Send + 'static,
    C::Error: Into<BoxError>,
{
    let mut https = HttpsConnectorBuilder::new()
        .with_tls_config(tls(config, origin)?)
        .https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|e| {
            Error::config(origin, format!("tls-server-name: {e}"), "use a host name")
        })?;
        https = https.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name));
    }
    let https = match versions {
        Versions::All => https.enable_all_versions().wrap_connector(connector),
        Versions::Http1 => https.enable_http1().wrap_connector(connector),
    };
    let hyper: legacy::Client<_, kube::client::Body> =
        legacy::Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .timer(TokioTimer::new())
            .http2_initial_stream_window_size(STREAM_WINDOW)
            .http2_initial_connection_window_size(CONNECTION_WINDOW)
            .http2_keep_alive_interval(Duration::from_secs(20))
            .http2_keep_alive_timeout(Duration::from_secs(20))
            .http2_keep_alive_while_idle(true)
            .build(https);
    let headers = config
        .extra_headers_layer()
        .map_err(|e| wrong(origin, &e))?;
    let auth = config.auth_layer().map_err(|e| wrong(origin, &e))?;
    let tokens = tokens.map(|tokens| AsyncFilterLayer::new(Bearer(tokens.clone())));
    let service = option_layer(tokens).layer(headers.layer(hyper.map_err(BoxError::from)));
    let service = config
        .base_uri_layer()
        .layer(option_layer(auth).layer(service));
    Ok(Client::new(service, &config.default_namespace))
}
