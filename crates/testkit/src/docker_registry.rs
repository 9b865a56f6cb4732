//! A real registry on loopback: `docker-registry` of Debian, or what `DOCKER_REGISTRY` names.
//!
//! Main type: [`DockerRegistry`].

use crate::registry::{HELM_CONFIG, HELM_LAYER, digest, manifest};
use reqwest::{Client, Method, StatusCode};
use serde_json::json;
use std::{
    net::TcpStream,
    path::Path,
    process::{Child, Command, Stdio},
};

pub const NAME: &str = "ann";
pub const PASSWORD: &str = "hunter2";
/// Both, as `htpasswd -B` writes them.
const USERS: &str = "ann:$2y$05$abcdefghijklmnopqrstuuoXuKqgZXLiJqzfmMXDDhSFPIvxV7t8.\n";

/// A running registry, which wants [`NAME`] and [`PASSWORD`]; it ends when this is dropped.
pub struct DockerRegistry {
    process: Child,
    host: String,
    client: Client,
}

impl Drop for DockerRegistry {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> String {
    std::env::var("DOCKER_REGISTRY").unwrap_or_else(|_| "docker-registry".to_owned())
}

impl DockerRegistry {
    /// Keeps what it has in a folder; `None`: its program is not here, and the test is skipped.
    ///
    /// # Panics
    /// If it does not start.
    pub fn start_or_skip(dir: &Path) -> Option<Self> {
        if Command::new(program()).arg("--version").output().is_err() {
            crate::skip(
                "docker-registry",
                "there is no docker-registry here (DOCKER_REGISTRY names one)",
            );
            return None;
        }
        Some(Self::start(dir))
    }

    fn start(dir: &Path) -> Self {
        let host = format!("127.0.0.1:{}", crate::free_port());
        let (users, config) = (dir.join("users"), dir.join("config.yml"));
        std::fs::write(&users, USERS).expect("a file");
        let text = json!({
            "version": "0.1",
            "log": {"level": "error"},
            "storage": {"filesystem": {"rootdirectory": dir.join("storage")}},
            "http": {"addr": host},
            "auth": {"htpasswd": {"realm": "test", "path": users}},
        });
        std::fs::write(&config, text.to_string()).expect("a file");
        let process = Command::new(program())
            .arg("serve")
            .arg(&config)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the registry starts");
        let registry = Self {
            process,
            host,
            client: Client::new(),
        };
        crate::eventually(crate::PATIENCE, "a registry that answers", || {
            TcpStream::connect(&registry.host).map_err(|e| e.to_string())
        });
        registry
    }

    /// Host and port.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// Asks for a path below `/v2/`, or a URL.
    ///
    /// # Errors
    /// There is no answer.
    pub async fn send(
        &self,
        method: Method,
        path: &str,
        kind: &str,
        body: Vec<u8>,
    ) -> reqwest::Result<reqwest::Response> {
        let url = if path.starts_with("http") {
            path.to_owned()
        } else {
            format!("http://{}/v2/{path}", self.host)
        };
        let request = self.client.request(method, url);
        let request = request.basic_auth(NAME, Some(PASSWORD));
        request.header("Content-Type", kind).body(body).send().await
    }

    async fn push_blob(&self, repository: &str, content: &[u8]) {
        let begun = self
            .send(
                Method::POST,
                &format!("{repository}/blobs/uploads/"),
                "",
                Vec::new(),
            )
            .await
            .expect("an upload begins");
        let location = begun.headers()["location"].to_str().expect("a URL");
        let mark = if location.contains('?') { '&' } else { '?' };
        let url = format!("{location}{mark}digest={}", digest(content));
        let put = self.send(
            Method::PUT,
            &url,
            "application/octet-stream",
            content.to_vec(),
        );
        assert_eq!(put.await.expect("an answer").status(), StatusCode::CREATED);
    }

    /// An artifact of one layer. Returns its digest.
    ///
    /// # Panics
    /// If it is refused.
    pub async fn push(&self, repository: &str, tag: &str, kind: &str, layer: &[u8]) -> String {
        let config = match kind {
            HELM_LAYER => HELM_CONFIG,
            _ => "application/vnd.oci.empty.v1+json",
        };
        self.push_blob(repository, b"{}").await;
        self.push_blob(repository, layer).await;
        let text = manifest(config, &[(kind, layer)], &json!({}));
        let digest = digest(&text);
        let path = format!("{repository}/manifests/{tag}");
        let put = self.send(
            Method::PUT,
            &path,
            "application/vnd.oci.image.manifest.v1+json",
            text,
        );
        assert_eq!(put.await.expect("an answer").status(), StatusCode::CREATED);
        digest
    }
}
