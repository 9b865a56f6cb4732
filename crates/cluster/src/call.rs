//! One request to an API server, before it is sent.
//!
//! Main type: [`Call`]. Callers know it as a part of [`crate::request`].

use crate::error::Error;
use bytes::Bytes;
use http::{Method, Request, header};
use kube::client::Body;
use std::{sync::Arc, time::Duration};

/// The header that names the impersonated user.
pub const IMPERSONATE_USER: &str = "Impersonate-User";

pub const JSON: &str = "application/json";
pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC_MERGE_PATCH: &str = "application/strategic-merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// One request. `path` starts with `/` and is already percent-encoded; `query` likewise, without
/// `?`.
#[derive(Clone, Debug)]
pub struct Call {
    pub method: Method,
    pub path: String,
    pub query: String,
    pub content_type: &'static str,
    pub accept: &'static str,
    pub body: Bytes,
    /// Timeout for the whole response.
    pub timeout: Duration,
    /// Impersonate this user.
    pub impersonate: Option<Arc<str>>,
}

impl Call {
    pub fn new(method: Method, path: impl Into<String>) -> Self {
        let timeout = Duration::from_secs(60);
        Self {
            method,
            path: path.into(),
            query: String::new(),
            content_type: JSON,
            accept: JSON,
            body: Bytes::new(),
            timeout,
            impersonate: None,
        }
    }

    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path)
    }

    pub fn with_body(mut self, content_type: &'static str, body: impl Into<Bytes>) -> Self {
        (self.content_type, self.body) = (content_type, body.into());
        self
    }

    /// Adds `name=value` to the query, encoding the value; an empty value adds nothing.
    pub fn query(mut self, name: &str, value: &str) -> Self {
        if !value.is_empty() {
            push_query(&mut self.query, name, value);
        }
        self
    }

    pub fn accept(mut self, accept: &'static str) -> Self {
        self.accept = accept;
        self
    }

    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Kubernetes' verb for it.
    pub fn verb(&self) -> &'static str {
        match self.method {
            Method::GET if self.query.contains("watch=true") => "Watch",
            Method::GET if self.parts().2 => "Get",
            Method::GET => "List",
            Method::POST => "Create",
            Method::PUT => "Update",
            Method::PATCH => "Patch",
            Method::DELETE => "Delete",
            _ => "Unknown",
        }
    }

    /// Resource and namespace in the path, and whether it addresses a single object.
    pub fn parts(&self) -> (&str, &str, bool) {
        let parts: Vec<&str> = self.path.trim_matches('/').split('/').collect();
        let rest = match parts.as_slice() {
            ["api", _, rest @ ..] | ["apis", _, _, rest @ ..] => rest,
            _ => return ("", "", false),
        };
        match rest {
            ["namespaces", namespace, resource, rest @ ..] => {
                (resource, namespace, !rest.is_empty())
            }
            [resource, rest @ ..] => (resource, "", !rest.is_empty()),
            [] => ("", "", false),
        }
    }

    pub(crate) fn what(&self) -> String {
        format!("{} {}", self.method, self.path)
    }

    pub(crate) fn request(&self) -> Result<Request<Body>, Error> {
        let uri = if self.query.is_empty() {
            self.path.clone()
        } else {
            format!("{}?{}", self.path, self.query)
        };
        let mut b = Request::builder()
            .method(self.method.clone())
            .uri(uri)
            .header(header::ACCEPT, self.accept);
        if !self.body.is_empty() {
            b = b.header(header::CONTENT_TYPE, self.content_type);
        }
        if let Some(user) = &self.impersonate {
            b = b.header(IMPERSONATE_USER, &**user);
        }
        b.body(Body::from(self.body.clone()))
            .map_err(|e| Error::transport(self.what(), e))
    }
}

/// Appends `name=value` to a query string, percent-encoding the value.
pub fn push_query(query: &mut String, name: &str, value: &str) {
    if !query.is_empty() {
        query.push('&');
    }
    query.push_str(name);
    query.push('=');
    query.push_str(&encode(value));
}

/// Percent-encodes all characters that are special in a path segment or a query value.
pub fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for b in text.bytes() {
        if b.is_ascii_alphanumeric() || b"-._~:@,".contains(&b) {
            out.push(char::from(b));
        } else {
            out.push('%');
            for half in [b >> 4, b & 15] {
                out.push(char::from(b"0123456789ABCDEF"[usize::from(half)]));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_encoded_and_empty_values_left_out() {
        let call = Call::get("/api/v1/pods")
            .query("labelSelector", "a=b,c in (d)")
            .query("limit", "");
        assert_eq!(call.query, "labelSelector=a%3Db,c%20in%20%28d%29");
    }
}
