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
use tiphys_cloud::proxy::from_environment;

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
}
