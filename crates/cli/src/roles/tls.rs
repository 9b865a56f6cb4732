//! Versions and ciphers of a port with TLS. Main type: [`TlsVersionArgs`].

use anyhow::{Context as _, bail};
use clap::Args;
use tiphys_rpc::{TlsRules, TlsVersion};

#[derive(Args, Debug)]
pub struct TlsVersionArgs {
    /// Oldest version of TLS: 1.2 or 1.3
    #[arg(
        long = "tlsminversion",
        value_name = "VERSION",
        default_value = "1.2",
        env = "ARGOCD_TLS_MIN_VERSION"
    )]
    oldest: String,
    /// Newest version of TLS
    #[arg(
        long = "tlsmaxversion",
        value_name = "VERSION",
        default_value = "1.3",
        env = "ARGOCD_TLS_MAX_VERSION"
    )]
    newest: String,
    /// Cipher suites of TLS 1.2, by their IANA names, with colons between them [default: all that
    /// are safe]
    #[arg(
        long = "tlsciphers",
        value_name = "NAMES",
        value_delimiter = ':',
        env = "ARGOCD_TLS_CIPHERS"
    )]
    ciphers: Vec<String>,
}

impl Default for TlsVersionArgs {
    fn default() -> Self {
        Self {
            oldest: "1.2".to_owned(),
            newest: "1.3".to_owned(),
            ciphers: Vec::new(),
        }
    }
}

impl TlsVersionArgs {
    /// `client_authorities`: whose certificates clients must have, as PEM.
    pub fn rules(&self, client_authorities: Option<String>) -> anyhow::Result<TlsRules> {
        Ok(TlsRules {
            client_authorities,
            version: self.version()?,
            ciphers: self.ciphers.clone(),
        })
    }

    /// The only version. What is older than 1.2 is not offered.
    fn version(&self) -> anyhow::Result<Option<TlsVersion>> {
        let rank = |text: &str| {
            let known = ["1.0", "1.1", "1.2", "1.3"];
            let found = known.iter().position(|version| *version == text);
            found.with_context(|| format!("TLS version {text:?} is not known"))
        };
        let (oldest, newest) = (rank(&self.oldest)?, rank(&self.newest)?);
        if oldest > newest {
            bail!(
                "minimum TLS version {} must not be higher than maximum TLS version {}",
                self.oldest,
                self.newest
            );
        }
        match (oldest, newest) {
            (_, 0 | 1) => bail!("TLS versions before 1.2 are not supported"),
            (3, _) => Ok(Some(TlsVersion::V13)),
            (_, 2) => Ok(Some(TlsVersion::V12)),
            _ => Ok(None),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(oldest: &str, newest: &str) -> TlsVersionArgs {
        TlsVersionArgs {
            oldest: oldest.to_owned(),
            newest: newest.to_owned(),
            ciphers: Vec::new(),
        }
    }

    #[test]
    fn versions() {
        for (oldest, newest, expected) in [
            ("1.2", "1.3", Some(None)),
            ("1.0", "1.3", Some(None)),
            ("1.3", "1.3", Some(Some(TlsVersion::V13))),
            ("1.2", "1.2", Some(Some(TlsVersion::V12))),
            ("1.0", "1.1", None),
            ("1.3", "1.2", None),
            ("2", "1.3", None),
        ] {
            let version = args(oldest, newest).version().ok();
            assert_eq!(version, expected, "{oldest} {newest}");
        }
    }
}
