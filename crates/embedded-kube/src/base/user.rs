//! The user who makes a request. Main type: [`UserInfo`]; it does not include permissions.

use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// The group with full access, whatever the roles say.
pub const MASTERS: &str = "system:masters";
pub const AUTHENTICATED: &str = "system:authenticated";
pub const UNAUTHENTICATED: &str = "system:unauthenticated";
pub const ANONYMOUS: &str = "system:anonymous";

/// A user as roles and reviews see it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

/// A user with the bearer token that it logs in with. No Debug: the token is a secret.
#[derive(Clone)]
pub struct TokenUser {
    pub token: String,
    /// The groups need not include `system:authenticated`.
    pub info: UserInfo,
}

impl UserInfo {
    pub fn new(name: &str, groups: &[&str]) -> Self {
        Self {
            name: name.to_owned(),
            groups: groups.iter().map(|g| (*g).to_owned()).collect(),
            ..Self::default()
        }
    }

    /// The user of the administrator's token.
    pub fn admin() -> Self {
        Self {
            uid: "admin".to_owned(),
            ..Self::new("admin", &[MASTERS, AUTHENTICATED])
        }
    }

    /// A service account.
    pub fn account(namespace: &str, name: &str) -> Self {
        let mut groups = account_groups(namespace);
        groups.push(AUTHENTICATED.to_owned());
        Self {
            name: account_name(namespace, name),
            groups,
            ..Self::default()
        }
    }

    pub fn anonymous() -> Self {
        Self::new(ANONYMOUS, &[UNAUTHENTICATED])
    }

    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|g| g == group)
    }

    pub fn join(&mut self, group: &str) {
        if !self.is_in(group) {
            self.groups.push(group.to_owned());
        }
    }

    /// As `authentication.k8s.io` writes a `UserInfo`.
    pub fn to_json(&self) -> Value {
        let mut map = Map::new();
        map.insert("username".into(), self.name.clone().into());
        if !self.uid.is_empty() {
            map.insert("uid".into(), self.uid.clone().into());
        }
        if !self.groups.is_empty() {
            map.insert("groups".into(), json!(self.groups));
        }
        if !self.extra.is_empty() {
            map.insert("extra".into(), json!(self.extra));
        }
        Value::Object(map)
    }
}

/// The user name of a service account.
pub fn account_name(namespace: &str, name: &str) -> String {
    format!("system:serviceaccount:{namespace}:{name}")
}

/// The groups of every service account in a namespace.
pub fn account_groups(namespace: &str) -> Vec<String> {
    vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

/// Namespace and name of the service account with this user name.
pub fn split_account(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user
        .strip_prefix("system:serviceaccount:")?
        .split_once(':')?;
    let label = |s: &str, dots: bool, max: usize| {
        let allowed = |c: char| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || (dots && c == '.')
        };
        let edge =
            |c: Option<char>| c.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        s.len() <= max && s.chars().all(allowed) && edge(s.chars().next()) && edge(s.chars().last())
    };
    (label(namespace, false, 63) && label(name, true, 253)).then_some((namespace, name))
}
