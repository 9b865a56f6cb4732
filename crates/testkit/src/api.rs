//! A small JSON client for the Kubernetes API (through a kubeconfig) and for our own REST API. Main
//! type: [`Api`].

use base64::{Engine, engine::general_purpose::STANDARD};
use reqwest::{
    Certificate, Method,
    blocking::{Client, ClientBuilder, Response},
};
use serde_json::{Value, json};
use std::{io::Read, path::Path, time::Duration};

/// No response: the other side does not exist, or closed the connection.
#[derive(Clone, Debug)]
pub struct TransportError(pub String);

/// A response with any status.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub body: Value,
}

impl Answer {
    pub fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }
}

/// A client with an address and a token.
#[derive(Clone)]
pub struct Api {
    client: Client,
    base: String,
    token: String,
}

/// The path of a namespaced collection, `group_version` as in `v1` or `apps/v1`.
pub fn namespaced(group_version: &str, namespace: &str, plural: &str) -> String {
    let root = if group_version.contains('/') {
        "/apis"
    } else {
        "/api"
    };
    format!("{root}/{group_version}/namespaces/{namespace}/{plural}")
}

/// The Applications in the control plane's namespace.
pub fn apps_path() -> String {
    namespaced("argoproj.io/v1alpha1", "argocd", "applications")
}

impl Api {
    /// A client for a plaintext URL.
    pub fn plain(base: &str) -> Self {
        Self {
            client: finish(builder()),
            base: base.trim_end_matches('/').to_owned(),
            token: String::new(),
        }
    }

    /// A client for a kubeconfig with one cluster and a token.
    ///
    /// # Errors
    /// If the file does not exist or lacks a field.
    pub fn kubeconfig(path: &Path) -> Result<Self, String> {
        let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        let field = |name: &str| {
            value_of(&text, name).ok_or_else(|| format!("{}: no {name}", path.display()))
        };
        let ca = STANDARD
            .decode(field("certificate-authority-data")?)
            .map_err(|e| e.to_string())?;
        let ca = Certificate::from_pem(&ca).map_err(|e| e.to_string())?;
        let client = finish(builder().tls_certs_only([ca]));
        Ok(Self {
            client,
            base: field("server")?,
            token: field("token")?,
        })
    }

    /// The same with a token.
    #[must_use]
    pub fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.token);
        self
    }

    /// One request.
    ///
    /// # Errors
    /// If there was no response.
    pub fn send(
        &self,
        method: &str,
        path: &str,
        content_type: &str,
        body: Option<&Value>,
    ) -> Result<Answer, TransportError> {
        let method = Method::from_bytes(method.as_bytes()).expect("a method");
        let mut request = self
            .client
            .request(method, format!("{}{path}", self.base))
            .header("Accept", "application/json");
        if !self.token.is_empty() {
            request = request.header("Authorization", format!("Bearer {}", self.token));
        }
        if let Some(body) = body {
            request = request
                .header("Content-Type", content_type)
                .body(body.to_string());
        }
        let failed = |e: reqwest::Error| TransportError(e.to_string());
        let response = request.send().map_err(failed)?;
        let status = response.status().as_u16();
        let text = response.text().map_err(failed)?;
        let body = serde_json::from_str(&text).unwrap_or(Value::String(text));
        Ok(Answer { status, body })
    }

    /// The unparsed body of a successful GET: a large list, or a watch.
    ///
    /// # Errors
    /// If there was no successful response.
    pub fn stream(&self, path: &str) -> Result<impl Read + use<>, TransportError> {
        let request = self
            .client
            .get(format!("{}{path}", self.base))
            .header("Accept", "application/json")
            .bearer_auth(&self.token);
        request
            .send()
            .and_then(Response::error_for_status)
            .map_err(|e| TransportError(e.to_string()))
    }

    /// # Errors
    /// If there was no response.
    pub fn get(&self, path: &str) -> Result<Answer, TransportError> {
        self.send("GET", path, "", None)
    }

    /// # Errors
    /// If there was no response.
    pub fn post(&self, path: &str, body: &Value) -> Result<Answer, TransportError> {
        self.send("POST", path, "application/json", Some(body))
    }

    /// The object, or `None` if it does not exist.
    ///
    /// # Panics
    /// If there is no response, or one other than 200 and 404.
    #[track_caller]
    pub fn find(&self, path: &str) -> Option<Value> {
        let answer = self
            .get(path)
            .unwrap_or_else(|e| panic!("GET {path}: {}", e.0));
        match answer.status {
            200 => Some(answer.body),
            404 => None,
            status => panic!("GET {path}: {status} {}", answer.body),
        }
    }

    /// The items of a collection; empty if the collection does not exist.
    #[track_caller]
    pub fn list(&self, path: &str) -> Vec<Value> {
        self.find(path)
            .and_then(|mut list| list["items"].as_array_mut().map(std::mem::take))
            .unwrap_or_default()
    }

    /// Creates an object that must be new.
    ///
    /// # Panics
    /// If it was not created.
    #[track_caller]
    pub fn create(&self, path: &str, object: &Value) -> Value {
        let answer = self
            .post(path, object)
            .unwrap_or_else(|e| panic!("POST {path}: {}", e.0));
        assert_eq!(answer.status, 201, "POST {path}: {}", answer.body);
        answer.body
    }

    /// A JSON merge patch.
    ///
    /// # Errors
    /// If there was no response.
    pub fn merge(&self, path: &str, patch: &Value) -> Result<Answer, TransportError> {
        self.send("PATCH", path, "application/merge-patch+json", Some(patch))
    }

    /// A JSON merge patch that must succeed.
    ///
    /// # Panics
    /// If it did not.
    #[track_caller]
    pub fn patch(&self, path: &str, patch: &Value) -> Value {
        let answer = self
            .merge(path, patch)
            .unwrap_or_else(|e| panic!("PATCH {path}: {}", e.0));
        assert_eq!(answer.status, 200, "PATCH {path}: {}", answer.body);
        answer.body
    }

    /// Deletes the object, if it exists.
    ///
    /// # Panics
    /// If it could not be deleted.
    #[track_caller]
    pub fn delete(&self, path: &str) {
        let answer = self
            .send("DELETE", path, "", None)
            .unwrap_or_else(|e| panic!("DELETE {path}: {}", e.0));
        assert!(
            answer.is_success() || answer.status == 404,
            "DELETE {path}: {} {}",
            answer.status,
            answer.body
        );
    }

    /// Creates a namespace, unless it exists.
    ///
    /// # Panics
    /// If it can be neither found nor created.
    #[track_caller]
    pub fn namespace(&self, name: &str) {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        let answer = self
            .post("/api/v1/namespaces", &object)
            .unwrap_or_else(|e| panic!("POST namespace {name}: {}", e.0));
        assert!(
            matches!(answer.status, 201 | 409),
            "POST namespace {name}: {} {}",
            answer.status,
            answer.body
        );
    }
}

pub(crate) fn builder() -> ClientBuilder {
    // Fails only if one is already installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .no_proxy()
        .timeout(Duration::from_secs(60))
}

pub(crate) fn finish(builder: ClientBuilder) -> Client {
    builder.build().expect("a client")
}

/// The value of a field in YAML as simple as a kubeconfig with one cluster and one user, in block
/// or flow style.
pub(crate) fn value_of(text: &str, name: &str) -> Option<String> {
    let start = text.match_indices(&format!("{name}:")).find(|(at, _)| {
        let before = text[..*at].chars().next_back();
        before.is_none_or(|c| c.is_whitespace() || c == '{')
    })?;
    let rest = text[start.0 + name.len() + 1..].trim_start_matches([' ', '"', '\'']);
    let end = rest
        .find(['"', '\'', ',', '}', '\n', ' '])
        .unwrap_or(rest.len());
    Some(rest[..end].to_owned()).filter(|v| !v.is_empty())
}

#[cfg(test)]
mod tests {
    use super::value_of;

    #[test]
    fn fields_of_both_styles_are_found() {
        let flow = "clusters: [{name: test, cluster: {server: \"https://127.0.0.1:1\", certificate-authority-data: \"QQ==\"}}]\nusers: [{name: a, user: {token: \"t\"}}]\n";
        let block = "clusters:\n- cluster:\n    server: https://127.0.0.1:1\n    certificate-authority-data: QQ==\nusers:\n- user:\n    token: t\n";
        for text in [flow, block] {
            let found = ["server", "certificate-authority-data", "token"]
                .map(|n| value_of(text, n).unwrap_or_default());
            assert_eq!(found, ["https://127.0.0.1:1", "QQ==", "t"]);
        }
        assert_eq!(value_of(block, "password"), None);
    }
}
