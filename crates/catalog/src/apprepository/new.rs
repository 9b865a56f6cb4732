//! An AppRepository that a user asks for, before it exists. Main type: [`NewRepository`].

use super::schedule;
use crate::{CatalogError, RepoId};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};
use tiphys_api::{
    access::shown_url,
    app_repository::{GROUP, KIND, VERSION},
};
use tiphys_repo::Secret;

/// As long as a label's value.
const LONGEST_NAME: usize = 63;
const KEY: &str = "authorizationHeader";

/// What is asked for.
#[derive(Clone, Debug, Default)]
pub struct NewRepository {
    pub id: RepoId,
    pub url: String,
    pub is_registry: bool,
    /// Of a registry; empty: those that it lists.
    pub oci_repositories: Vec<String>,
    /// A duration, or a crontab; empty: the usual one.
    pub interval: String,
    pub username: String,
    pub password: Secret,
}

/// What is written for it.
pub struct NewObjects {
    pub repository: Value,
    /// Its credentials.
    pub secret: Option<Value>,
}

impl NewRepository {
    /// # Errors
    /// A field cannot be used; the text names it.
    pub fn objects(&self) -> Result<NewObjects, CatalogError> {
        self.check().map_err(CatalogError::Invalid)?;
        let RepoId { namespace, name } = &self.id;
        let mut spec = json!({
            "type": if self.is_registry { "oci" } else { "helm" },
            "url": self.url,
        });
        if self.is_registry && !self.oci_repositories.is_empty() {
            spec["ociRepositories"] = self.oci_repositories.clone().into();
        }
        if !self.interval.is_empty() {
            spec["interval"] = self.interval.clone().into();
        }
        // As kubeapps calls it.
        let secret = format!("apprepo-{name}");
        let has_credentials = !self.username.is_empty() || !self.password.is_empty();
        if has_credentials {
            spec["auth"] = json!({"header": {"secretKeyRef": {"name": secret, "key": KEY}}});
        }
        Ok(NewObjects {
            repository: json!({
                "apiVersion": format!("{GROUP}/{VERSION}"),
                "kind": KIND,
                "metadata": {"name": name, "namespace": namespace},
                "spec": spec,
            }),
            secret: has_credentials.then(|| {
                let pair = format!("{}:{}", self.username, self.password.expose());
                json!({
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": {"name": secret, "namespace": namespace},
                    "type": "Opaque",
                    "stringData": {KEY: format!("Basic {}", STANDARD.encode(pair))},
                })
            }),
        })
    }

    fn check(&self) -> Result<(), String> {
        let name = &self.id.name;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty()
            || name.len() > LONGEST_NAME
            || !name.chars().all(is_plain)
            || name.starts_with('-')
            || name.ends_with('-')
        {
            return Err(format!(
                "name: {name:?} is not made of up to {LONGEST_NAME} lower-case letters, digits and \
                 dashes inside"
            ));
        }
        let (scheme, rest) = self.url.split_once("://").unwrap_or_default();
        let schemes: &[&str] = match self.is_registry {
            true => &["oci", "https", "http"],
            false => &["https", "http"],
        };
        let host = rest.split(['/', '?', '#']).next().unwrap_or_default();
        if host.is_empty() || !schemes.contains(&scheme.to_ascii_lowercase().as_str()) {
            return Err(format!(
                "url: {:?} does not begin with {}://",
                shown_url(&self.url),
                schemes.join(":// or ")
            ));
        }
        if host.contains('@') {
            return Err(
                "url: credentials belong into username and password, which are kept in a Secret"
                    .to_owned(),
            );
        }
        if !self.is_registry && !self.oci_repositories.is_empty() {
            return Err("ociRepositories: only a registry has them (type oci)".to_owned());
        }
        match schedule(&self.interval, "")
            .warning
            .filter(|_| !self.interval.is_empty())
        {
            Some(warning) => Err(format!("interval: {warning}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked() -> NewRepository {
        NewRepository {
            id: RepoId::new("argocd", "team"),
            url: "https://charts.example.com/x".to_owned(),
            ..NewRepository::default()
        }
    }

    #[test]
    fn what_is_entered_becomes_objects() {
        let plain = asked().objects().expect("it is good");
        assert!(plain.secret.is_none());
        let wanted = json!({"type": "helm", "url": "https://charts.example.com/x"});
        assert_eq!(plain.repository["spec"], wanted);
        let private = NewRepository {
            url: "oci://registry.example.com/team".to_owned(),
            is_registry: true,
            oci_repositories: vec!["web".to_owned()],
            interval: "30m".to_owned(),
            username: "u".to_owned(),
            password: "p:w".into(),
            ..asked()
        };
        let objects = private.objects().expect("it is good");
        let spec = &objects.repository["spec"];
        assert_eq!(spec["type"], "oci");
        assert_eq!(spec["interval"], "30m");
        let secret = objects.secret.expect("it has credentials");
        let reference = &spec["auth"]["header"]["secretKeyRef"];
        assert_eq!(reference["name"], secret["metadata"]["name"]);
        let key = reference["key"].as_str().expect("a key");
        assert_eq!(secret["stringData"][key], "Basic dTpwOnc=");
        assert!(!objects.repository.to_string().contains("dTpwOnc"));
        assert!(!format!("{private:?}").contains("p:w"));
    }

    #[test]
    fn what_cannot_be_used_is_named() {
        type Change = fn(&mut NewRepository);
        let cases: [(Change, &str); 9] = [
            (|r| r.id.name = String::new(), "name: "),
            (|r| r.id.name = "Team".to_owned(), "name: "),
            (|r| r.id.name = "-team".to_owned(), "name: "),
            (|r| r.id.name = "a/b".to_owned(), "name: "),
            (|r| r.url = "charts.example.com".to_owned(), "url: "),
            (|r| r.url = "oci://r.example.com".to_owned(), "url: "),
            (
                |r| r.url = "https://u:hunter2@charts.example.com".to_owned(),
                "url: credentials",
            ),
            (
                |r| r.oci_repositories = vec!["web".to_owned()],
                "ociRepositories: ",
            ),
            (|r| r.interval = "soon".to_owned(), "interval: "),
        ];
        for (change, begin) in cases {
            let mut wanted = asked();
            change(&mut wanted);
            let why = wanted.objects().err().expect(begin).to_string();
            assert!(why.starts_with(begin), "{why}");
            assert!(!why.contains("hunter2"), "{why}");
        }
    }
}
