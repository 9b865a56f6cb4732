//! The service account through which another cluster is managed, and its token.
//!
//! Main type: [`Manager`]. Names, rules and messages are those of `argocd cluster add`, so that
//! either program can take over what the other one created.

use crate::{
    error::Error,
    request::{Call, Http, MERGE_PATCH},
};
use base64::{
    Engine as _,
    prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD},
};
use http::Method;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// The name of the service account.
pub const MANAGER: &str = "argocd-manager";
const ROLE: &str = "argocd-manager-role";
const BINDING: &str = "argocd-manager-role-binding";
const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";
const TOKEN_SUFFIX: &str = "-long-lived-token";

/// How often and how long a Secret is read until the token controller has filled it.
const POLL: Duration = Duration::from_millis(200);
const PATIENCE: Duration = Duration::from_secs(30);

/// Manages the account in one cluster. `say` gets a line for each step that is done.
pub struct Manager<'a> {
    pub http: &'a Http,
    /// The namespace of the service account, normally `kube-system`.
    pub namespace: &'a str,
    pub say: &'a (dyn Fn(String) + Send + Sync),
}

/// Whose token it is, as it says itself; nothing is verified.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct TokenOwner {
    #[serde(rename = "kubernetes.io/serviceaccount/namespace", default)]
    pub namespace: String,
    #[serde(rename = "kubernetes.io/serviceaccount/secret.name", default)]
    pub secret: String,
    #[serde(rename = "kubernetes.io/serviceaccount/service-account.name", default)]
    pub account: String,
}

/// Why a token cannot be replaced.
#[derive(Debug, thiserror::Error)]
pub enum TokenError {
    #[error("failed to parse service account token: token is malformed: {0}")]
    Malformed(&'static str),
    #[error("the token does not come from a Secret of a service account, so it cannot be replaced")]
    NoSecret,
    #[error(transparent)]
    Cluster(#[from] Error),
    #[error(
        "failed to get token for serviceaccount {account:?}: failed to get secret {secret:?} for \
         serviceaccount {account:?}: {why}"
    )]
    Unread {
        account: String,
        secret: String,
        why: Box<Error>,
    },
    #[error("timed out waiting for secret to generate new token: Secret {0}")]
    NoToken(String),
}

impl TokenOwner {
    /// Reads the claims of a service account's token.
    pub fn of(token: &str) -> Result<Self, TokenError> {
        let parts: Vec<&str> = token.split('.').collect();
        let [_, claims, _] = parts.as_slice() else {
            return Err(TokenError::Malformed(
                "token contains an invalid number of segments",
            ));
        };
        let claims = BASE64_URL_SAFE_NO_PAD
            .decode(claims.trim_end_matches('='))
            .map_err(|_| TokenError::Malformed("could not base64 decode claim"))?;
        serde_json::from_slice(&claims)
            .map_err(|_| TokenError::Malformed("could not JSON decode claim"))
    }
}

impl Manager<'_> {
    /// Creates or updates the account with all rights in these namespaces, or in the whole cluster
    /// if there are none, and returns its token.
    pub async fn install(&self, namespaces: &[String]) -> Result<String, TokenError> {
        self.create_account().await?;
        let everything = json!({"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]});
        if namespaces.is_empty() {
            let urls = json!({"nonResourceURLs": ["*"], "verbs": ["*"]});
            let rules = json!({ "rules": [everything, urls] });
            self.upsert("", "ClusterRole", ROLE, rules).await?;
            self.upsert("", "ClusterRoleBinding", BINDING, self.bound("ClusterRole"))
                .await?;
        }
        for namespace in namespaces {
            let rules = json!({ "rules": [everything] });
            self.upsert(namespace, "Role", ROLE, rules).await?;
            self.upsert(namespace, "RoleBinding", BINDING, self.bound("Role"))
                .await?;
        }
        self.token_of(MANAGER).await
    }

    /// Deletes the account and its rights in the whole cluster. What is missing is said.
    pub async fn uninstall(&self) -> Result<(), Error> {
        for (plural, kind, name) in [
            ("clusterrolebindings", "ClusterRoleBinding", BINDING),
            ("clusterroles", "ClusterRole", ROLE),
        ] {
            let found = self.delete(format!("{RBAC}/{plural}/{name}")).await?;
            let done = if found { "deleted" } else { "not found" };
            (self.say)(format!("{kind} {name:?} {done}"));
        }
        let namespace = self.namespace;
        let found = self
            .delete(format!("{}/{MANAGER}", core(namespace, "serviceaccounts")))
            .await?;
        (self.say)(if found {
            format!("ServiceAccount {MANAGER:?} deleted")
        } else {
            format!("ServiceAccount {MANAGER:?} in namespace {namespace:?} not found")
        });
        Ok(())
    }

    /// The lasting token of a service account, which is created if there is none.
    pub async fn token_of(&self, account: &str) -> Result<String, TokenError> {
        let name = format!("{account}{TOKEN_SUFFIX}");
        let secret = json!({
            "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
            "metadata": {
                "name": name,
                "annotations": {"kubernetes.io/service-account.name": account},
            },
        });
        let how = match self.post(core(self.namespace, "secrets"), &secret).await {
            Ok(_) => "Created",
            Err(e) if e.is_already_exists() => "Using existing",
            Err(e) => return Err(e.into()),
        };
        (self.say)(format!(
            "{how} bearer token secret {name:?} for ServiceAccount {account:?}"
        ));
        self.filled(&name).await.map_err(|e| match e {
            TokenError::Cluster(why) => TokenError::Unread {
                account: account.to_owned(),
                secret: name,
                why: Box::new(why),
            },
            other => other,
        })
    }

    async fn create_account(&self) -> Result<(), Error> {
        let account = json!({
            "apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": MANAGER},
        });
        let namespace = self.namespace;
        let done = match self
            .post(core(namespace, "serviceaccounts"), &account)
            .await
        {
            Ok(_) => "created",
            Err(e) if e.is_already_exists() => "already exists",
            Err(e) => return Err(e),
        };
        (self.say)(format!(
            "ServiceAccount {MANAGER:?} {done} in namespace {namespace:?}"
        ));
        Ok(())
    }

    /// The reference of a binding to the role of this kind, and the account as its subject.
    fn bound(&self, role_kind: &str) -> Value {
        json!({
            "roleRef": {
                "apiGroup": "rbac.authorization.k8s.io", "kind": role_kind, "name": ROLE,
            },
            "subjects": [{
                "kind": "ServiceAccount", "name": MANAGER, "namespace": self.namespace,
            }],
        })
    }

    async fn upsert(
        &self,
        namespace: &str,
        kind: &str,
        name: &str,
        mut object: Value,
    ) -> Result<(), Error> {
        let plural = format!("{}s", kind.to_lowercase());
        let (collection, shown) = if namespace.is_empty() {
            (format!("{RBAC}/{plural}"), name.to_owned())
        } else {
            (
                format!("{RBAC}/namespaces/{namespace}/{plural}"),
                format!("{namespace}/{name}"),
            )
        };
        let content = serde_json::to_vec(&object).unwrap_or_default();
        object["apiVersion"] = "rbac.authorization.k8s.io/v1".into();
        object["kind"] = kind.into();
        object["metadata"] = json!({ "name": name });
        let done = match self.post(collection.clone(), &object).await {
            Ok(_) => "created",
            Err(e) if e.is_already_exists() => {
                let call = Call::new(Method::PATCH, format!("{collection}/{name}"));
                self.http
                    .send(&call.with_body(MERGE_PATCH, content))
                    .await?;
                "updated"
            }
            Err(e) => return Err(e),
        };
        (self.say)(format!("{kind} {shown:?} {done}"));
        Ok(())
    }

    async fn post(&self, path: String, object: &Value) -> Result<Value, Error> {
        let body = serde_json::to_vec(object).unwrap_or_default();
        let call = Call::new(Method::POST, path).with_body(crate::request::JSON, body);
        self.http.json(&call).await
    }

    /// Whether it was there.
    async fn delete(&self, path: String) -> Result<bool, Error> {
        let name = path.rsplit('/').next().unwrap_or_default().to_owned();
        match self.http.send(&Call::new(Method::DELETE, path)).await {
            Ok(_) => Ok(true),
            Err(e) if e.is_absent(&name) => Ok(false),
            Err(e) => Err(e),
        }
    }

    /// The token in a Secret, as soon as the cluster has put it there.
    async fn filled(&self, name: &str) -> Result<String, TokenError> {
        let call = Call::get(format!("{}/{name}", core(self.namespace, "secrets")));
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            let secret: Value = self.http.json(&call).await?;
            let token = secret["data"]["token"]
                .as_str()
                .and_then(|t| BASE64_STANDARD.decode(t).ok())
                .and_then(|t| String::from_utf8(t).ok())
                .filter(|t| !t.is_empty());
            if let Some(token) = token {
                return Ok(token);
            }
            sleep(POLL).await;
        }
        Err(TokenError::NoToken(name.to_owned()))
    }
}

/// A new token of the same account, and the name of its Secret. The old one stays valid until
/// [`retire`].
pub async fn renew(http: &Http, owner: &TokenOwner) -> Result<(String, String), TokenError> {
    if owner.secret.is_empty() || owner.namespace.is_empty() {
        return Err(TokenError::NoSecret);
    }
    let manager = Manager {
        http,
        namespace: &owner.namespace,
        say: &|_| {},
    };
    let secrets = core(&owner.namespace, "secrets");
    let old: Value = http
        .json(&Call::get(format!("{secrets}/{}", owner.secret)))
        .await?;
    let stem = owner.secret.rsplit_once('-').map_or("", |(stem, _)| stem);
    let new = json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "generateName": format!("{stem}-"),
            "annotations": {"kubernetes.io/service-account.name":
                old["metadata"]["annotations"]["kubernetes.io/service-account.name"]},
        },
    });
    let created = manager.post(secrets, &new).await?;
    let name = created["metadata"]["name"].as_str().unwrap_or_default();
    Ok((name.to_owned(), manager.filled(name).await?))
}

/// Takes the old token's Secret off the account's list and deletes it, so that the token is not
/// accepted any more.
pub async fn retire(http: &Http, owner: &TokenOwner, new_secret: &str) -> Result<(), Error> {
    let path = format!(
        "{}/{}",
        core(&owner.namespace, "serviceaccounts"),
        owner.account
    );
    let account: Value = http.json(&Call::get(path.clone())).await?;
    let listed = account["secrets"].as_array().cloned().unwrap_or_default();
    let mut secrets: Vec<Value> = listed
        .into_iter()
        .filter(|s| s["name"] != owner.secret.as_str() && s["name"] != new_secret)
        .collect();
    secrets.push(json!({ "name": new_secret }));
    let patch = json!({
        "metadata": {"resourceVersion": account["metadata"]["resourceVersion"]},
        "secrets": secrets,
    });
    let body = serde_json::to_vec(&patch).unwrap_or_default();
    http.send(&Call::new(Method::PATCH, path).with_body(MERGE_PATCH, body))
        .await?;
    let secret = format!("{}/{}", core(&owner.namespace, "secrets"), owner.secret);
    match http.send(&Call::new(Method::DELETE, secret)).await {
        Err(e) if !e.is_absent(&owner.secret) => Err(e),
        _ => Ok(()),
    }
}

fn core(namespace: &str, plural: &str) -> String {
    format!(
        "/api/v1/namespaces/{}/{plural}",
        crate::request::encode(namespace)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn owners_are_read_from_tokens() {
        let claims = r#"{"kubernetes.io/serviceaccount/namespace":"kube-system",
            "kubernetes.io/serviceaccount/secret.name":"a-token-x",
            "kubernetes.io/serviceaccount/service-account.name":"a","iss":"x"}"#;
        let token = format!("e30.{}.sig", BASE64_URL_SAFE_NO_PAD.encode(claims));
        let owner = TokenOwner::of(&token).expect("a token");
        assert_eq!(
            (
                owner.namespace.as_str(),
                owner.secret.as_str(),
                owner.account.as_str()
            ),
            ("kube-system", "a-token-x", "a")
        );
        for (token, why) in [
            ("opaque", "token contains an invalid number of segments"),
            ("a.b", "token contains an invalid number of segments"),
            ("e30.%.x", "could not base64 decode claim"),
            ("e30.YQ.x", "could not JSON decode claim"),
        ] {
            let said = TokenOwner::of(token).expect_err(token).to_string();
            assert!(said.ends_with(why), "{token}: {said}");
        }
    }
}
