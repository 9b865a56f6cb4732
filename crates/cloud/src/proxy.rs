//! The proxy that the environment names for a server (`HTTPS_PROXY`, `NO_PROXY`, …), by Go's rules.
//!
//! Main function: [`from_environment`].

use http::Uri;
use hyper_util::client::proxy::matcher::{Intercept, Matcher};
use std::net::IpAddr;

/// The proxy for a server that the environment names, by Go's rules: none for this machine, and
/// none for what `NO_PROXY` excepts.
pub fn from_environment(server: &Uri) -> Option<Intercept> {
    let list = std::env::var("NO_PROXY").or_else(|_| std::env::var("no_proxy"));
    if is_here(server) || is_excepted(server, &list.unwrap_or_default()) {
        return None;
    }
    Matcher::from_env().intercept(server)
}

/// Whether a list like that of `NO_PROXY` names a server: `*` is all; the rest are addresses,
/// networks and domains, each with a port or without.
fn is_excepted(server: &Uri, list: &str) -> bool {
    let usual = if server.scheme_str() == Some("https") {
        443
    } else {
        80
    };
    let port = server.port_u16().unwrap_or(usual);
    list.split(',').map(str::trim).any(|entry| {
        let (host, wanted) = with_port(entry);
        let host = host
            .strip_prefix('*')
            .filter(|h| h.starts_with('.'))
            .unwrap_or(host);
        let is_named = || {
            // Networks, and domains below a domain, are the library's business.
            let any = Matcher::builder().all("http://proxy.invalid").no(host);
            any.build().intercept(server).is_none()
        };
        entry == "*" || (!host.is_empty() && wanted.is_none_or(|w| w == port) && is_named())
    })
}

/// An entry without its port, and the port. An IPv6 address has one only behind brackets.
fn with_port(entry: &str) -> (&str, Option<u16>) {
    let parted = entry
        .rsplit_once(':')
        .filter(|(host, _)| host.ends_with(']') || !host.contains(':'));
    let (host, port) = match parted {
        Some((host, port)) => (host, port.parse().ok()),
        None => (entry, None),
    };
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    (bare.unwrap_or(host), port)
}

/// Whether a server is on this machine, and so never asked through a proxy.
pub fn is_here(server: &Uri) -> bool {
    let host = server
        .host()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_excepted_from_proxies() {
        for (server, list, excepted) in [
            ("https://cd.example.com", "*", true),
            ("https://10.1.2.3:6443", "*", true),
            ("https://cd.example.com", "", false),
            ("https://cd.example.com", " , ", false),
            ("https://cd.example.com", "other.com, example.com", true),
            ("https://cd.example.com", ".example.com", true),
            ("https://cd.example.com", "*.example.com", true),
            ("https://notexample.com", "example.com", false),
            ("https://cd.example.com:8443", "cd.example.com:8443", true),
            ("https://cd.example.com:8443", "example.com:8443", true),
            ("https://cd.example.com:8443", "cd.example.com:443", false),
            ("https://cd.example.com", "cd.example.com:443", true),
            ("http://cd.example.com", "cd.example.com:443", false),
            ("http://cd.example.com", "cd.example.com:80", true),
            ("https://10.1.2.3:6443", "10.0.0.0/8", true),
            ("https://10.1.2.3:6443", "10.1.2.3:6443", true),
            ("https://10.1.2.3:6443", "10.1.2.3:443", false),
            ("https://[2001:db8::1]:6443", "2001:db8::1", true),
            ("https://[2001:db8::1]:6443", "[2001:db8::1]:6443", true),
            ("https://[2001:db8::1]:6443", "[2001:db8::1]:1", false),
        ] {
            let server: Uri = server.parse().expect("a URL");
            assert_eq!(is_excepted(&server, list), excepted, "{server} {list:?}");
        }
    }

    #[test]
    fn what_is_here_needs_no_proxy() {
        for (url, here) in [
            ("https://localhost:1", true),
            ("https://[::1]:1", true),
            ("https://127.1.2.3", true),
            ("https://a.b", false),
        ] {
            assert_eq!(is_here(&url.parse().expect("a URL")), here, "{url}");
        }
    }
}
