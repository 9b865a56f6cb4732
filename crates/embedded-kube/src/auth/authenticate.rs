//! Resolves a bearer token to a user: static tokens, and tokens of service accounts that still
//! exist.

use super::Auth;
use super::jwt::{Claims, ISSUER, Ref};
use crate::base::user::{AUTHENTICATED, TokenUser, UserInfo, account_groups, account_name};
use crate::registry::Registry;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::Arc;

/// Users with static tokens, keyed by the hash of the token, so that the time of a lookup reveals
/// nothing about a token.
pub struct StaticTokens(HashMap<[u8; 32], Arc<UserInfo>>);

impl StaticTokens {
    pub fn new(users: impl IntoIterator<Item = TokenUser>) -> Self {
        let one = |user: TokenUser| {
            let mut info = user.info;
            info.join(AUTHENTICATED);
            (Sha256::digest(&user.token).into(), Arc::new(info))
        };
        Self(
            users
                .into_iter()
                .filter(|u| !u.token.is_empty())
                .map(one)
                .collect(),
        )
    }
}

/// A user and the accepted audiences of the token.
pub type Authenticated = (Arc<UserInfo>, Vec<String>);

const UNKNOWN: &str = "invalid bearer token";

impl Auth {
    /// The token must be meant for at least one of `audiences`. The error says why the token is
    /// invalid.
    pub fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Authenticated, String> {
        let key: [u8; 32] = Sha256::digest(token).into();
        if let Some(user) = self.tokens.0.get(&key) {
            return Ok((user.clone(), audiences.to_vec()));
        }
        let claims = self.signer.verify(token).ok_or(UNKNOWN)?;
        let wrong = |why: String| format!("[{UNKNOWN}, {why}]");
        let good: Vec<String> = audiences
            .iter()
            .filter(|a| claims.audiences.contains(a))
            .cloned()
            .collect();
        if good.is_empty() {
            let list = |l: &[String]| crate::rbac::rules::quoted_list(l);
            let (has, wants) = (list(&claims.audiences), list(audiences));
            return Err(wrong(format!(
                "token audiences {has} is invalid for the target audiences {wants}"
            )));
        }
        let user = self.check_account(&claims, token).map_err(wrong)?;
        Ok((Arc::new(user), good))
    }

    /// The audience of the API server itself.
    pub fn own_audience() -> Vec<String> {
        vec![ISSUER.to_owned()]
    }

    /// Checks that the account of a signed token and the objects that the token is bound to still
    /// exist.
    fn check_account(&self, claims: &Claims, token: &str) -> Result<UserInfo, String> {
        claims.check_time(self.registry.now().as_second())?;
        let bound = &claims.bound;
        let (namespace, account) = (bound.namespace.as_str(), &bound.serviceaccount);
        let uid = uid_of(&self.registry, "/serviceaccounts", namespace, &account.name)
            .ok_or_else(|| format!("serviceaccounts {:?} not found", account.name))?;
        if uid != account.uid {
            return Err(format!(
                "service account UID ({uid}) does not match claim ({})",
                account.uid
            ));
        }
        let gone = || "service account token has been invalidated".to_owned();
        if claims.legacy {
            let name = bound.secret.as_ref().map_or("", |s| s.name.as_str());
            let secret = self
                .registry
                .read()
                .get("/secrets", namespace, name)
                .map(|s| s.object())
                .ok_or_else(gone)?;
            let kept = super::decode_data(&secret, "token");
            if kept.as_deref() != Some(token.as_bytes()) {
                return Err("token does not match server's copy".to_owned());
            }
        } else {
            let still = |table: &str, namespace: &str, what: &Option<Ref>| match what {
                None => Ok(()),
                Some(r) => uid_of(&self.registry, table, namespace, &r.name)
                    .filter(|uid| *uid == r.uid)
                    .map(drop)
                    .ok_or_else(gone),
            };
            still("/secrets", namespace, &bound.secret)?;
            still("/pods", namespace, &bound.pod)?;
            // The node of a pod is for information only; a token bound to a node depends on it.
            if bound.pod.is_none() {
                still("/nodes", "", &bound.node)?;
            }
        }
        Ok(user_of(claims))
    }
}

fn user_of(claims: &Claims) -> UserInfo {
    let bound = &claims.bound;
    let mut user = UserInfo {
        name: account_name(&bound.namespace, &bound.serviceaccount.name),
        uid: bound.serviceaccount.uid.clone(),
        groups: account_groups(&bound.namespace),
        extra: Default::default(),
    };
    user.join(AUTHENTICATED);
    let mut tell = |key: &str, value: &str| {
        if !value.is_empty() {
            user.extra.insert(
                format!("authentication.kubernetes.io/{key}"),
                vec![value.to_owned()],
            );
        }
    };
    for (word, what) in [("pod", &bound.pod), ("node", &bound.node)] {
        if let Some(r) = what {
            tell(&format!("{word}-name"), &r.name);
            tell(&format!("{word}-uid"), &r.uid);
        }
    }
    if !claims.id.is_empty() {
        tell("credential-id", &format!("JTI={}", claims.id));
    }
    user
}

fn uid_of(registry: &Registry, table: &str, namespace: &str, name: &str) -> Option<String> {
    registry
        .read()
        .get(table, namespace, name)
        .map(|s| s.meta.uid.clone())
}
