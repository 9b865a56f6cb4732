//! Where a PostgreSQL is and how it is spoken to, as users write it.
//!
//! Main functions: [`PostgresOptions::at`] and [`Ssl::new`]. Nothing is read here.

use super::{PostgresOptions, tls::Ssl};
use crate::CatalogError;
use percent_encoding::percent_decode_str;
use tokio_postgres::{Config, config::Host};

const PORT: &str = "5432";
const SCHEMES: [&str; 2] = ["postgres://", "postgresql://"];

impl PostgresOptions {
    /// The same of the server that an address names: HOST:PORT, HOST, or a URL with `postgres:`,
    /// whose parts count before what is there. Its user, password and name of the database are
    /// percent-encoded; `sslmode`, `sslrootcert`, `sslcert` and `sslkey` may be in its query.
    ///
    /// # Errors
    /// It is neither, or says something that is not known. No message has its password.
    pub fn at(mut self, address: &str) -> Result<Self, CatalogError> {
        if is_url(address) {
            return self.at_url(address);
        }
        let (host, port) = address.rsplit_once(':').unwrap_or((address, PORT));
        let port = port.parse();
        self.port = port.map_err(|_| {
            let shown = shown(address);
            CatalogError::Invalid(format!("{shown} is not HOST:PORT"))
        })?;
        host.clone_into(&mut self.host);
        Ok(self)
    }

    fn at_url(mut self, url: &str) -> Result<Self, CatalogError> {
        let (base, query) = url.split_once('?').unwrap_or((url, ""));
        let mut ours = [
            ("sslmode", None),
            ("sslrootcert", None),
            ("sslcert", None),
            ("sslkey", None),
        ];
        let mut others = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
            match ours.iter_mut().find(|(known, _)| *known == key) {
                Some((_, found)) => *found = Some(decoded(value)?),
                None => others.push(pair),
            }
        }
        let known: Config = format!("{base}?{}", others.join("&"))
            .parse()
            .map_err(|e: tokio_postgres::Error| invalid(&cause(&e)))?;
        let [Host::Tcp(host), rest @ ..] = known.get_hosts() else {
            return Err(invalid("it names no host"));
        };
        if !rest.is_empty() {
            return Err(invalid("it names several hosts"));
        }
        self.host.clone_from(host);
        self.port = known.get_ports().first().copied().unwrap_or(5432);
        if let Some(user) = known.get_user() {
            user.clone_into(&mut self.user);
        }
        if let Some(name) = known.get_dbname() {
            name.clone_into(&mut self.database);
        }
        if let Some(password) = known.get_password() {
            let password = std::str::from_utf8(password);
            let password = password.map_err(|_| invalid("its password is not UTF-8"))?;
            self.password = password.into();
        }
        let before = self.ssl.words();
        let [mode, root, certificate, key] = ours.map(|(_, value)| value);
        self.ssl = Ssl::new(
            &mode.unwrap_or(before.0),
            root.unwrap_or(before.1),
            certificate.unwrap_or(before.2),
            key.unwrap_or(before.3),
        )?;
        Ok(self)
    }
}

pub(crate) fn is_url(address: &str) -> bool {
    SCHEMES.iter().any(|scheme| address.starts_with(scheme))
}

/// An address without what may be a password in it.
pub(crate) fn shown(address: &str) -> &str {
    address.rsplit('@').next().unwrap_or_default()
}

/// What is wrong with a URL: the name of a part, never its value.
fn cause(e: &tokio_postgres::Error) -> String {
    let cause = std::error::Error::source(e);
    cause.map_or_else(|| e.to_string(), ToString::to_string)
}

fn invalid(why: &str) -> CatalogError {
    CatalogError::Invalid(format!("the database's URL: {why}"))
}

fn decoded(text: &str) -> Result<String, CatalogError> {
    let decoded = percent_decode_str(text).decode_utf8();
    let decoded = decoded.map_err(|_| invalid("it has a value that is not UTF-8"))?;
    Ok(decoded.into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::SslMode;

    fn before() -> PostgresOptions {
        PostgresOptions {
            user: "u".to_owned(),
            password: "of%20old".into(),
            database: "charts".to_owned(),
            ssl: Ssl::new("require", "/root.crt", "", "").expect("words"),
            ..PostgresOptions::default()
        }
    }

    #[test]
    fn addresses_in_all_forms() {
        for (address, host, port, user, password, database, mode, root) in [
            (
                "db:6",
                "db",
                6,
                "u",
                "of%20old",
                "charts",
                "require",
                "/root.crt",
            ),
            (
                "db",
                "db",
                5432,
                "u",
                "of%20old",
                "charts",
                "require",
                "/root.crt",
            ),
            (
                "postgres://db",
                "db",
                5432,
                "u",
                "of%20old",
                "charts",
                "require",
                "/root.crt",
            ),
            (
                "postgresql://a%40b:p%2Fw%3A%25@db:7/other?sslmode=verify-full&sslrootcert=%2Fx%20y",
                "db",
                7,
                "a@b",
                "p/w:%",
                "other",
                "verify-full",
                "/x y",
            ),
            (
                "postgres://db/?sslmode=disable&connect_timeout=3",
                "db",
                5432,
                "u",
                "of%20old",
                "charts",
                "disable",
                "/root.crt",
            ),
            (
                "postgres://db?sslmode=&sslrootcert=system",
                "db",
                5432,
                "u",
                "of%20old",
                "charts",
                "verify-full",
                "system",
            ),
        ] {
            let found = before().at(address).expect(address);
            assert_eq!((&*found.host, found.port), (host, port), "{address}");
            let who = (&*found.user, found.password.expose(), &*found.database);
            assert_eq!(who, (user, password, database), "{address}");
            let mode: SslMode = mode.parse().expect("a mode");
            let words = found.ssl.words();
            assert_eq!((found.ssl.mode, &*words.1), (mode, root), "{address}");
        }
    }

    #[test]
    fn what_is_wrong_is_said_without_the_password() {
        for (address, why) in [
            ("db:x", "is not HOST:PORT"),
            ("u:hidden@db", "is not HOST:PORT"),
            ("postgres://u:hidden@db:x", "invalid"),
            (
                "postgres://u:hidden@db?sslmode=sure",
                "verify-ca, verify-full",
            ),
            ("postgres://u:hidden@db?nothing=hidden", "nothing"),
            ("postgres://u:hidden@a,b", "several hosts"),
            ("postgres://u:hidden@db?sslkey=%FF", "not UTF-8"),
            (
                "postgres://u:hidden@db?sslmode=require&sslrootcert=system",
                "weak sslmode",
            ),
        ] {
            let found = before().at(address).expect_err(address).to_string();
            assert!(found.contains(why), "{address}: {found}");
            assert!(!found.contains("hidden"), "{address}: {found}");
        }
    }
}
