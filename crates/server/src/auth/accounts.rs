//! The accounts of argocd-cm and argocd-secret.
//!
//! Main function: [`read`].

use super::ADMIN;
use crate::ports::SecretRecord;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What an account may be used for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Capability {
    ApiKey,
    Login,
}

impl Capability {
    pub const ALL: [Self; 2] = [Self::ApiKey, Self::Login];

    pub fn word(self) -> &'static str {
        match self {
            Self::ApiKey => "apiKey",
            Self::Login => "login",
        }
    }
}

/// A local account. There is no Debug, because it contains the hash of the password.
#[derive(Clone, Default)]
pub struct LocalAccount {
    pub enabled: bool,
    pub capabilities: Vec<Capability>,
    pub password_hash: String,
    pub password_mtime: Option<Timestamp>,
    pub tokens: Vec<ApiToken>,
}

/// A token of an account, without the token itself.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiToken {
    pub id: String,
    #[serde(default)]
    pub iat: i64,
    /// 0: never.
    #[serde(default, skip_serializing_if = "is_never")]
    pub exp: i64,
}

fn is_never(exp: &i64) -> bool {
    *exp == 0
}

impl LocalAccount {
    pub fn can(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|c| c.word() == capability)
    }
}

/// The key of a value of an account in argocd-secret, such as `password`.
pub fn secret_key(account: &str, value: &str) -> String {
    if account == ADMIN {
        format!("{ADMIN}.{value}")
    } else {
        format!("accounts.{account}.{value}")
    }
}

/// All accounts by name; `admin` always exists.
pub fn read(
    config: &BTreeMap<String, String>,
    secret: &SecretRecord,
) -> BTreeMap<String, LocalAccount> {
    let admin = LocalAccount {
        enabled: config.get("admin.enabled").is_none_or(|v| v != "false"),
        capabilities: vec![Capability::Login],
        ..LocalAccount::default()
    };
    let mut accounts = BTreeMap::from([(ADMIN.to_owned(), admin)]);
    for (key, value) in config {
        let Some(name) = key.strip_prefix("accounts.") else {
            continue;
        };
        // `accounts.<name>.enabled` belongs to `accounts.<name>`.
        if name.is_empty() || name.ends_with(".enabled") {
            continue;
        }
        let capabilities = value.split(',').map(str::trim).filter(|w| !w.is_empty());
        let account = accounts.entry(name.to_owned()).or_insert_with(|| {
            let enabled = config.get(&format!("accounts.{name}.enabled"));
            LocalAccount {
                enabled: enabled.is_none_or(|v| v != "false"),
                ..LocalAccount::default()
            }
        });
        for word in capabilities {
            match Capability::ALL.into_iter().find(|c| c.word() == word) {
                Some(capability) if !account.capabilities.contains(&capability) => {
                    account.capabilities.push(capability);
                }
                Some(_) => {}
                None => tracing::warn!(
                    account = name,
                    capability = word,
                    "argocd-cm names an unknown capability"
                ),
            }
        }
    }
    for (name, account) in &mut accounts {
        account.password_hash = secret.text(&secret_key(name, "password"));
        account.password_mtime = secret.text(&secret_key(name, "passwordMtime")).parse().ok();
        account.tokens = tokens(&secret.text(&secret_key(name, "tokens")), name);
    }
    accounts
}

fn tokens(text: &str, account: &str) -> Vec<ApiToken> {
    if text.is_empty() {
        return Vec::new();
    }
    serde_json::from_str(text).unwrap_or_else(|_| {
        tracing::error!(
            account,
            "the tokens of the account in argocd-secret cannot be read; none of them is valid"
        );
        Vec::new()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounts_are_in_two_records() {
        let config = [
            ("accounts.ci", "apiKey, login"),
            ("accounts.off", "login"),
            ("accounts.off.enabled", "false"),
            ("accounts.odd", "fly"),
            ("accounts.admin", "apiKey"),
            ("other", "x"),
        ]
        .map(|(k, v)| (k.to_owned(), v.to_owned()))
        .into();
        let secret = SecretRecord {
            data: [
                ("accounts.ci.password", "hash"),
                ("accounts.ci.passwordMtime", "2024-01-02T03:04:05Z"),
                (
                    "accounts.ci.tokens",
                    r#"[{"id":"a","iat":1},{"id":"b","iat":2,"exp":3}]"#,
                ),
                ("admin.password", "admins"),
                ("accounts.off.tokens", "broken"),
            ]
            .map(|(k, v)| (k.to_owned(), v.as_bytes().to_vec()))
            .into(),
            ..SecretRecord::default()
        };
        let accounts = read(&config, &secret);
        let names: Vec<&str> = accounts.keys().map(String::as_str).collect();
        assert_eq!(names, ["admin", "ci", "odd", "off"]);
        let ci = &accounts["ci"];
        assert!(ci.enabled && ci.can("login") && ci.can("apiKey"));
        assert_eq!(ci.password_hash, "hash");
        assert_eq!(
            ci.password_mtime.map(|t| t.as_second()),
            Some(1_704_164_645)
        );
        assert_eq!((ci.tokens.len(), ci.tokens[1].exp), (2, 3));
        assert!(accounts["admin"].can("login") && accounts["admin"].can("apiKey"));
        assert_eq!(accounts["admin"].password_hash, "admins");
        assert!(!accounts["off"].enabled && accounts["off"].tokens.is_empty());
        assert!(accounts["odd"].capabilities.is_empty());
    }
}
