//! A registry on loopback that has what a test puts into it. It can ask for tokens, and everything
//! that it answers can be replaced by something wrong.
//!
//! Main type: [`Registry`].

use crate::charts::{Answer, FileServer};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::fmt::Write as _;

pub const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
pub const HELM_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
pub const TAR_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
pub const TAR_GZIP_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";

/// The token that [`Registry::with_tokens`] gives out.
pub const TOKEN: &str = "a-token";

pub fn digest(content: &[u8]) -> String {
    let mut text = "sha256:".to_owned();
    for byte in Sha256::digest(content) {
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// A manifest of layers: media type and content. Layers with equal content are one blob.
pub fn manifest(config: &str, layers: &[(&str, &[u8])], annotations: &Value) -> Vec<u8> {
    let of = |(kind, content): &(&str, &[u8])| json!({"mediaType": kind, "digest": digest(content), "size": content.len()});
    let layers: Vec<Value> = layers.iter().map(of).collect();
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": config, "digest": digest(b"{}"), "size": 2},
        "layers": layers,
        "annotations": annotations,
    });
    manifest.to_string().into_bytes()
}

pub struct Registry {
    pub server: FileServer,
    /// The Authorization header that it wants to see, and what it says to everybody else.
    only_with: Option<(String, String)>,
}

impl Registry {
    /// One that everybody can read.
    pub fn start() -> Self {
        Self {
            server: FileServer::start(),
            only_with: None,
        }
    }

    /// One that wants [`TOKEN`]. `realm`: where it says that there are tokens, or a path of its own.
    pub fn with_tokens(realm: &str) -> Self {
        let server = FileServer::start();
        let realm = match realm.starts_with('/') {
            true => format!("{}{realm}", server.url()),
            false => realm.to_owned(),
        };
        let challenge = format!("Bearer realm=\"{realm}\",service=\"fake\"");
        Self {
            server,
            only_with: Some((format!("Bearer {TOKEN}"), challenge)),
        }
    }

    /// Host and port.
    pub fn host(&self) -> String {
        self.server.url().replace("http://", "")
    }

    /// An answer to those who have a token, or to everybody.
    pub fn answer(&self, body: &[u8]) -> Answer {
        Answer {
            only_with: self.only_with.clone(),
            ..Answer::from(body.to_vec())
        }
    }

    pub fn tags(&self, repository: &str, tags: &[&str]) {
        let list = json!({"name": repository, "tags": tags}).to_string();
        let path = format!("/v2/{repository}/tags/list?n=1000");
        self.server.serve(&path, self.answer(list.as_bytes()));
    }

    /// Returns the digest.
    pub fn push_blob(&self, repository: &str, content: &[u8]) -> String {
        let digest = digest(content);
        let path = format!("/v2/{repository}/blobs/{digest}");
        self.server.serve(&path, self.answer(content));
        digest
    }

    /// Returns the digest.
    pub fn push_manifest(&self, repository: &str, tag: &str, manifest: &[u8]) -> String {
        let digest = digest(manifest);
        let mut answer = self.answer(manifest);
        answer.headers = vec![format!("Docker-Content-Digest: {digest}")];
        for name in [tag, &digest] {
            let path = format!("/v2/{repository}/manifests/{name}");
            self.server.serve(&path, answer.clone());
        }
        digest
    }

    /// An artifact of one layer. Returns its digest.
    pub fn push(&self, repository: &str, tag: &str, kind: &str, layer: &[u8]) -> String {
        let config = match kind {
            HELM_LAYER => HELM_CONFIG,
            _ => "application/vnd.oci.empty.v1+json",
        };
        self.push_blob(repository, layer);
        let manifest = manifest(config, &[(kind, layer)], &json!({}));
        self.push_manifest(repository, tag, &manifest)
    }
}
