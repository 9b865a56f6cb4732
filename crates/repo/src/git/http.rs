//! Settings of the https client that gix uses.

use crate::RepoAccess;
use base64::{Engine, engine::general_purpose::STANDARD};
use gix::protocol::transport::client::blocking_io::http::{self, options::FollowRedirects};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(15);

/// With credentials in custom headers gix would refuse every redirect. So username and password for
/// https are provided through its credential callback, which is called again for the host of a
/// redirect.
pub(super) fn options(access: &RepoAccess, timeout: Duration) -> http::Options {
    let mut extra_headers = Vec::new();
    if !access.bearer_token.is_empty() {
        extra_headers.push(format!(
            "Authorization: Bearer {}",
            one_line(access.bearer_token.expose())
        ));
    } else if access.url.starts_with("http://")
        && !(access.username.is_empty() && access.password.is_empty())
    {
        let pair = STANDARD.encode(format!("{}:{}", access.username, access.password.expose()));
        extra_headers.push(format!("Authorization: Basic {pair}"));
    }
    let access = access.clone();
    let configure = move |builder: reqwest::blocking::ClientBuilder| {
        client(&access, timeout, builder).map_err(gix::Error::from_error)
    };
    let backend = http::reqwest::Options {
        configure_client: Some(Box::new(configure)),
        configure_request: None,
    };
    http::Options {
        extra_headers,
        follow_redirects: FollowRedirects::Initial,
        backend: Some(Arc::new(Mutex::new(backend))),
        ..http::Options::default()
    }
}

fn one_line(token: &str) -> String {
    token.chars().filter(|c| !c.is_control()).collect()
}

fn client(
    access: &RepoAccess,
    timeout: Duration,
    builder: reqwest::blocking::ClientBuilder,
) -> reqwest::Result<reqwest::blocking::ClientBuilder> {
    let mut builder = builder.connect_timeout(CONNECT_TIMEOUT).timeout(timeout);
    if !access.ca_data.is_empty() {
        builder = builder.tls_certs_merge(reqwest::Certificate::from_pem_bundle(
            access.ca_data.as_bytes(),
        )?);
    }
    if !access.tls_client_cert.is_empty() {
        let pem = format!(
            "{}\n{}",
            access.tls_client_cert,
            access.tls_client_key.expose()
        );
        builder = builder.identity(reqwest::Identity::from_pem(pem.as_bytes())?);
    }
    if access.insecure {
        builder = builder.tls_danger_accept_invalid_certs(true);
    }
    if !access.proxy.is_empty() {
        builder = builder.proxy(reqwest::Proxy::all(&access.proxy)?);
    }
    Ok(builder)
}
