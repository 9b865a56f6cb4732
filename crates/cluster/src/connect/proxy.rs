//! The proxy for a server: the configured one, else the one from the environment (`HTTPS_PROXY`,
//! `NO_PROXY`, …).
//!
//! Main type: [`Proxy`]. As in Go, a configured proxy is used whatever `NO_PROXY` says, and the
//! environment's is never used for localhost.

use http::{HeaderValue, Uri};
use hyper_util::client::{
    legacy::connect::proxy::{SocksV5, Tunnel},
    proxy::matcher::{Intercept, Matcher},
};
use std::net::IpAddr;

/// The proxy to use.
#[derive(Clone)]
pub(super) enum Proxy {
    None,
    /// `CONNECT`; the connection to the proxy itself may use TLS.
    Http {
        uri: Uri,
        auth: Option<HeaderValue>,
        tls: bool,
    },
    /// The proxy resolves names.
    Socks {
        uri: Uri,
        auth: Option<(String, String)>,
    },
}

impl Proxy {
    /// # Errors
    /// If the configured proxy is invalid.
    pub fn of(server: &Uri, named: Option<&str>) -> Result<Self, String> {
        match named {
            Some(url) => Self::named(url),
            None => Ok(from_environment(server).map_or(Self::None, |found| Self::from(&found))),
        }
    }

    fn named(url: &str) -> Result<Self, String> {
        let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
        if !matches!(scheme, "http" | "https" | "socks5") {
            return Err(format!(
                "the scheme {scheme:?} is none of http, https and socks5"
            ));
        }
        let any: Uri = Uri::from_static("https://any.invalid");
        let found = Matcher::builder()
            .all(url.to_owned())
            .build()
            .intercept(&any);
        found
            .map(|found| Self::from(&found))
            .ok_or_else(|| "it is not a URL".to_owned())
    }

    pub fn tunnel<C>(uri: Uri, auth: Option<HeaderValue>, through: C) -> Tunnel<C> {
        let tunnel = Tunnel::new(uri, through);
        match auth {
            Some(auth) => tunnel.with_auth(auth),
            None => tunnel,
        }
    }

    pub fn socks<C>(uri: Uri, auth: Option<(String, String)>, through: C) -> SocksV5<C> {
        let socks = SocksV5::new(uri, through);
        match auth {
            Some((user, password)) => socks.with_auth(user, password),
            None => socks,
        }
    }
}

impl From<&Intercept> for Proxy {
    fn from(found: &Intercept) -> Self {
        let uri = found.uri().clone();
        match uri.scheme_str() {
            Some(scheme) if scheme.starts_with("socks") => Self::Socks {
                auth: found
                    .raw_auth()
                    .map(|(user, password)| (user.to_owned(), password.to_owned())),
                uri,
            },
            scheme => Self::Http {
                auth: found.basic_auth().cloned(),
                tls: scheme == Some("https"),
                uri,
            },
        }
    }
}

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
    fn proxies_are_named_by_url() {
        let of = |named| Proxy::of(&Uri::from_static("https://cluster.example"), Some(named));
        let Ok(Proxy::Http {
            uri,
            auth,
            tls: false,
        }) = of("http://user:p%40ss@proxy.example:3128")
        else {
            panic!("a proxy")
        };
        assert_eq!(
            (uri.host(), uri.port_u16()),
            (Some("proxy.example"), Some(3128))
        );
        assert_eq!(auth.expect("credentials"), "Basic dXNlcjpwQHNz");
        assert!(matches!(
            of("https://proxy.example"),
            Ok(Proxy::Http {
                tls: true,
                auth: None,
                ..
            })
        ));
        let Ok(Proxy::Socks { uri, auth }) = of("socks5://user:pass@127.0.0.1:1080") else {
            panic!("a proxy")
        };
        assert_eq!(
            (uri.port_u16(), auth),
            (Some(1080), Some(("user".to_owned(), "pass".to_owned())))
        );
        for (wrong, why) in [
            ("ftp://proxy", "\"ftp\" is none of"),
            ("proxy:3128", "\"\" is none of"),
            ("http://", "it is not a URL"),
        ] {
            let error = of(wrong).err().expect(wrong);
            assert!(error.contains(why), "{error}");
        }
    }

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
