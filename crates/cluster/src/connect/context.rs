//! What a kubeconfig says of one context, to tell somebody else how to connect to its cluster.

use crate::error::Error;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use kube::config::{AuthInfo, Kubeconfig, NamedContext};
use secrecy::ExposeSecret as _;
use std::path::PathBuf;

/// The cluster and the client certificate of a context. Certificates and keys are PEM.
#[derive(Default)]
pub struct Context {
    pub server: String,
    pub insecure: bool,
    pub server_name: String,
    pub ca_data: Vec<u8>,
    pub cert_data: Vec<u8>,
    pub key_data: Vec<u8>,
    pub proxy_url: String,
    pub disable_compression: bool,
}

/// A context, for a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    pub is_current: bool,
    pub name: String,
    pub cluster: String,
    pub server: String,
}

fn read(path: Option<&PathBuf>) -> Result<Kubeconfig, Error> {
    let read = match path {
        Some(path) => Kubeconfig::read_from(path),
        None => Kubeconfig::read(),
    };
    let shown = path.map_or_else(
        || std::env::var("KUBECONFIG").unwrap_or_else(|_| "~/.kube/config".to_owned()),
        |path| path.display().to_string(),
    );
    read.map_err(|e| {
        Error::config(
            format!("kubeconfig {shown}"),
            crate::client::root_cause(&e),
            "name a readable file with --kubeconfig or KUBECONFIG",
        )
    })
}

/// The contexts of a kubeconfig (`None`: `$KUBECONFIG`, then `~/.kube/config`) whose cluster it
/// describes, by name.
pub fn contexts(path: Option<&PathBuf>) -> Result<Vec<Listed>, Error> {
    let config = read(path)?;
    let server = |cluster: &str| {
        let found = config.clusters.iter().find(|c| c.name == cluster)?;
        found.cluster.as_ref()?.server.clone()
    };
    let listed = |named: &NamedContext| {
        let cluster = named.context.as_ref()?.cluster.clone();
        Some(Listed {
            is_current: config.current_context.as_ref() == Some(&named.name),
            name: named.name.clone(),
            server: server(&cluster)?,
            cluster,
        })
    };
    let mut all: Vec<Listed> = config.contexts.iter().filter_map(listed).collect();
    all.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(all)
}

/// What the kubeconfig says of the context; `None`: it has no such context.
///
/// # Errors
/// Names the entry or the file that cannot be read.
pub fn context(path: Option<&PathBuf>, name: &str) -> Result<Option<Context>, Error> {
    let config = read(path)?;
    let Some(context) = config
        .contexts
        .iter()
        .find(|c| c.name == name)
        .and_then(|c| c.context.as_ref())
    else {
        return Ok(None);
    };
    let origin = format!("kubeconfig, context {name:?}");
    let cluster = config
        .clusters
        .iter()
        .find(|c| c.name == context.cluster)
        .and_then(|c| c.cluster.as_ref())
        .ok_or_else(|| {
            let what = format!("there is no cluster {:?}", context.cluster);
            Error::config(&origin, what, "correct the name of the context's cluster")
        })?;
    let user: Option<&AuthInfo> = config
        .auth_infos
        .iter()
        .find(|u| Some(&u.name) == context.user.as_ref())
        .and_then(|u| u.auth_info.as_ref());
    let content = |field: &str, data: Option<&str>, file: Option<&String>| {
        let wrong = |why: String| Error::config(&origin, format!("{field} {why}"), "correct it");
        match (data, file) {
            (Some(data), _) => BASE64_STANDARD
                .decode(data.trim())
                .map_err(|_| wrong("is not base64".to_owned())),
            (None, Some(file)) => {
                std::fs::read(file).map_err(|e| wrong(format!("cannot be read: {file}: {e}")))
            }
            (None, None) => Ok(Vec::new()),
        }
    };
    let key = user.and_then(|u| u.client_key_data.as_ref());
    Ok(Some(Context {
        server: cluster.server.clone().unwrap_or_default(),
        insecure: cluster.insecure_skip_tls_verify.unwrap_or_default(),
        server_name: cluster.tls_server_name.clone().unwrap_or_default(),
        ca_data: content(
            "certificate-authority",
            cluster.certificate_authority_data.as_deref(),
            cluster.certificate_authority.as_ref(),
        )?,
        cert_data: content(
            "client-certificate",
            user.and_then(|u| u.client_certificate_data.as_deref()),
            user.and_then(|u| u.client_certificate.as_ref()),
        )?,
        key_data: content(
            "client-key",
            key.map(|k| k.expose_secret()),
            user.and_then(|u| u.client_key.as_ref()),
        )?,
        proxy_url: cluster.proxy_url.clone().unwrap_or_default(),
        disable_compression: cluster.disable_compression.unwrap_or_default(),
    }))
}

/// The address and the CA (PEM) of the first cluster of a kubeconfig that a cluster publishes
/// about itself. The error says what is missing.
pub fn published(text: &str) -> Result<(String, Vec<u8>), String> {
    let config = Kubeconfig::from_yaml(text)
        .map_err(|e| format!("failed to parse cluster-info kubeconfig: {e}"))?;
    let cluster = config
        .clusters
        .first()
        .and_then(|named| named.cluster.as_ref())
        .ok_or("cluster-info kubeconfig does not have any clusters")?;
    let server = cluster.server.clone().unwrap_or_default();
    let ca = cluster.certificate_authority_data.as_deref();
    let ca = BASE64_STANDARD
        .decode(ca.unwrap_or_default())
        .map_err(|_| "certificate-authority-data is not base64")?;
    if server.is_empty() {
        return Err("cluster-info kubeconfig has no server".to_owned());
    }
    Ok((server, ca))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "apiVersion: v1
kind: Config
current-context: b
clusters:
- name: one
  cluster:
    server: https://one.example:6443
    certificate-authority-data: Y2E=
    tls-server-name: kube
    proxy-url: http://proxy.example
contexts:
- name: b
  context: {cluster: one, user: admin}
- name: a
  context: {cluster: one, user: nobody}
- name: broken
  context: {cluster: none, user: admin}
users:
- name: admin
  user:
    client-certificate-data: Y2VydA==
    client-key-data: a2V5
";

    #[test]
    fn contexts_are_described() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        std::fs::write(&path, FILE).expect("written");
        let listed = contexts(Some(&path)).expect("a list");
        let names: Vec<_> = listed
            .iter()
            .map(|c| (c.name.as_str(), c.is_current))
            .collect();
        assert_eq!(names, [("a", false), ("b", true)]);
        let found = context(Some(&path), "b")
            .expect("it reads")
            .expect("it is there");
        assert_eq!(found.server, "https://one.example:6443");
        assert_eq!(found.proxy_url, "http://proxy.example");
        assert_eq!(
            (found.ca_data, found.cert_data, found.key_data),
            (b"ca".to_vec(), b"cert".to_vec(), b"key".to_vec())
        );
        let found = context(Some(&path), "a")
            .expect("it reads")
            .expect("it is there");
        assert!(found.cert_data.is_empty());
        assert!(context(Some(&path), "c").expect("it reads").is_none());
        let Err(e) = context(Some(&path), "broken") else {
            panic!("there is no such cluster");
        };
        assert!(
            e.to_string().contains("there is no cluster \"none\""),
            "{e}"
        );
        let (server, ca) = published(FILE).expect("published");
        assert_eq!(
            (server.as_str(), ca.as_slice()),
            ("https://one.example:6443", &b"ca"[..])
        );
        assert!(published("clusters: []").is_err());
    }
}
