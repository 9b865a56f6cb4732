//! Settings of the https client that gix uses.

use crate::{
    RepoAccess,
    http::{Names, configured},
};
use base64::{Engine, engine::general_purpose::STANDARD};
use gix::protocol::transport::client::blocking_io::http::{self, options::FollowRedirects};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

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
    Ok(configured!(builder, access, timeout).dns_resolver(Arc::new(Names)))
}
