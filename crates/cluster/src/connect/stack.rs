//! The HTTP stack of a client: HTTP/2 where the server speaks it, keep-alive pings so that a dead connection is noticed.

use super::config::root_cause;
use crate::error::Error;
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::{TokioExecutor, TokioTimer},
};
use kube::{Config, client::ConfigExt};
use std::time::Duration;
use tower::{BoxError, Layer, ServiceExt, util::option_layer};

/// Windows large enough for a page of a list in flight.
const STREAM_WINDOW: u32 = 2 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;

/// One crypto provider for the process; whoever comes first wins.
pub(super) fn install_crypto() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Another thread may have been faster, which is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
    }
}

pub(super) fn client(config: &Config, origin: &str) -> Result<kube::Client, Error> {
    let wrong = |e: &dyn std::error::Error| Error::config(origin, root_cause(e), "correct the credentials or certificates");
    if config.proxy_url.is_some() {
        return Err(Error::config(origin, "proxy-url is not supported yet", "remove it and connect directly"));
    }
    let tls = config.rustls_client_config().map_err(|e| wrong(&e))?;
    let mut tcp = HttpConnector::new();
    tcp.enforce_http(false);
    tcp.set_nodelay(true);
    tcp.set_connect_timeout(config.connect_timeout);
    tcp.set_keepalive(Some(Duration::from_secs(30)));
    let mut https = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(tls).https_or_http();
    if let Some(name) = &config.tls_server_name {
        let name = name.clone().try_into().map_err(|e| Error::config(origin, format!("tls-server-name: {e}"), "use a host name"))?;
        https = https.with_server_name_resolver(hyper_rustls::FixedServerNameResolver::new(name));
    }
    let hyper: Client<_, kube::client::Body> = Client::builder(TokioExecutor::new())
        .pool_timer(TokioTimer::new())
        .timer(TokioTimer::new())
        .http2_initial_stream_window_size(STREAM_WINDOW)
        .http2_initial_connection_window_size(CONNECTION_WINDOW)
        .http2_keep_alive_interval(Duration::from_secs(20))
        .http2_keep_alive_timeout(Duration::from_secs(20))
        .http2_keep_alive_while_idle(true)
        .build(https.enable_all_versions().wrap_connector(tcp));
    let headers = config.extra_headers_layer().map_err(|e| wrong(&e))?;
    let auth = config.auth_layer().map_err(|e| wrong(&e))?;
    let service = config.base_uri_layer().layer(option_layer(auth).layer(headers.layer(hyper.map_err(BoxError::from))));
    Ok(kube::Client::new(service, config.default_namespace.clone()))
}
