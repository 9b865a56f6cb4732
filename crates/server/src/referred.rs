//! What settings refer to in Secrets: `$key` of argocd-secret, and `$secret:key`.

use std::collections::BTreeMap;

/// By the reference without its dollar sign.
pub type Referred = BTreeMap<String, Result<String, Unresolved>>;

/// What is missing where a reference leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unresolved {
    Secret,
    Key,
    Label,
}

impl Unresolved {
    /// Names what is missing.
    pub fn of(self, reference: &str) -> String {
        let (secret, key) = match reference.split_once(':') {
            Some((secret, key)) => (format!("Secret {secret}"), key),
            None => ("argocd-secret".to_owned(), reference),
        };
        let why = match self {
            Self::Secret => format!("there is no {secret}"),
            Self::Key => format!("{secret} has no key {key}"),
            Self::Label => format!("{secret} has no label app.kubernetes.io/part-of: argocd"),
        };
        format!("${reference} does not resolve: {why}")
    }
}
