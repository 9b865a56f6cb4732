//! Clusters as they are stored: one Secret each, as Argo CD reads and writes them.

use crate::{ApiError, ports::SecretRecord};
use jiff::Timestamp;
use std::collections::BTreeMap;
use tiphys_api::{
    access::hide_password,
    cluster::{Cluster, ClusterConfig},
    constants::{MANAGED_BY, MANAGED_BY_VALUE, REFRESH, SECRET_TYPE_LABEL},
};
use tiphys_gocompat::fnv::hash32a;

/// The value of the label that makes a Secret a cluster.
pub const CLUSTER: &str = "cluster";
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// The cluster with its credentials.
///
/// # Errors
/// Names the Secret and the key, but no value.
pub fn parse(secret: &SecretRecord) -> Result<Cluster, ApiError> {
    let wrong = |key: &str, why: String| {
        ApiError::new(
            crate::Code::Internal,
            format!("Secret {}: data.{key} {why}", secret.name),
        )
    };
    let text = secret.text("config");
    let config: ClusterConfig = if text.trim().is_empty() {
        ClusterConfig::default()
    } else {
        // The parser's message may repeat a value.
        serde_json::from_str(&text).map_err(|e| {
            let place = format!("line {}, column {}", e.line(), e.column());
            wrong("config", format!("is not the expected JSON ({place})"))
        })?
    };
    let server = secret.text("server").trim_end_matches('/').to_owned();
    let shard = match secret.text("shard") {
        text if text.trim().is_empty() => None,
        text => Some(
            text.trim()
                .parse()
                .map_err(|_| wrong("shard", "is not a number".to_owned()))?,
        ),
    };
    let namespaces = secret.text("namespaces");
    let named = Some(secret.text("name")).filter(|n| !n.is_empty());
    let without = |from: &BTreeMap<String, String>, keys: &[&str]| {
        let mut kept = from.clone();
        kept.retain(|key, _| !keys.contains(&key.as_str()));
        kept
    };
    Ok(Cluster {
        name: named.unwrap_or_else(|| server.clone()),
        server,
        namespaces: namespaces
            .split(',')
            .map(str::trim)
            .filter(|n| !n.is_empty())
            .map(str::to_owned)
            .collect(),
        cluster_resources: secret.text("clusterResources") == "true",
        project: secret.text("project"),
        refresh_requested_at: secret
            .annotations
            .get(REFRESH)
            .and_then(|at| at.parse::<Timestamp>().ok())
            .map(Into::into),
        labels: without(&secret.labels, &[SECRET_TYPE_LABEL]),
        annotations: without(&secret.annotations, &[LAST_APPLIED, MANAGED_BY]),
        shard,
        config,
        ..Default::default()
    })
}

/// Refuses the annotation that belongs to the Secret itself.
pub fn check_annotations(cluster: &Cluster) -> Result<(), ApiError> {
    if cluster.annotations.contains_key(LAST_APPLIED) {
        return Err(ApiError::invalid(format!(
            "annotation {LAST_APPLIED} cannot be set"
        )));
    }
    Ok(())
}

/// The Secret that stores the cluster. Values of an existing Secret that say nothing about the
/// cluster are kept, and so is who made it.
///
/// # Errors
/// Fails if the address is no URL or the annotations name one that kubectl keeps.
pub fn secret_of(
    cluster: &Cluster,
    existing: Option<SecretRecord>,
) -> Result<SecretRecord, ApiError> {
    check_annotations(cluster)?;
    let mut secret = match existing {
        Some(secret) => secret,
        None => SecretRecord {
            name: secret_name(&cluster.server)?,
            annotations: BTreeMap::from([(MANAGED_BY.to_owned(), MANAGED_BY_VALUE.to_owned())]),
            ..Default::default()
        },
    };
    let config = serde_json::to_vec(&cluster.config)
        .map_err(|e| ApiError::new(crate::Code::Internal, format!("config: {e}")))?;
    let shard = cluster.shard.map(|s| s.to_string());
    let resources = if cluster.cluster_resources {
        "true"
    } else {
        ""
    };
    for (key, value) in [
        ("server", cluster.server.clone().into_bytes()),
        ("name", cluster.name.clone().into_bytes()),
        ("config", config),
        ("namespaces", cluster.namespaces.join(",").into_bytes()),
        ("shard", shard.unwrap_or_default().into_bytes()),
        ("clusterResources", resources.as_bytes().to_vec()),
        ("project", cluster.project.clone().into_bytes()),
    ] {
        if value.is_empty() {
            secret.data.remove(key);
        } else {
            secret.data.insert(key.to_owned(), value);
        }
    }
    secret.labels = cluster.labels.clone();
    secret
        .labels
        .insert(SECRET_TYPE_LABEL.to_owned(), CLUSTER.to_owned());
    let system = [LAST_APPLIED, MANAGED_BY];
    secret
        .annotations
        .retain(|key, _| system.contains(&key.as_str()));
    for (key, value) in &cluster.annotations {
        let is_system = system.contains(&key.as_str()) || key == REFRESH;
        if !is_system {
            secret.annotations.insert(key.clone(), value.clone());
        }
    }
    // Whoever wrote it before, it is managed here from now on.
    secret
        .annotations
        .insert(MANAGED_BY.to_owned(), MANAGED_BY_VALUE.to_owned());
    if let Some(at) = &cluster.refresh_requested_at {
        secret
            .annotations
            .insert(REFRESH.to_owned(), at.timestamp().to_string());
    }
    Ok(secret)
}

/// The cluster without secrets.
pub fn sanitized(mut cluster: Cluster) -> Cluster {
    let config = std::mem::take(&mut cluster.config);
    cluster.config.aws_auth_config = config.aws_auth_config;
    cluster.config.disable_compression = config.disable_compression;
    cluster.config.proxy_url = hide_password(&config.proxy_url).unwrap_or(config.proxy_url);
    cluster.config.tls_client_config.insecure = config.tls_client_config.insecure;
    cluster.config.tls_client_config.server_name = config.tls_client_config.server_name;
    cluster
}

/// `cluster-HOST-` and FNV-1a of the address: the name that Argo CD gives.
pub fn secret_name(server: &str) -> Result<String, ApiError> {
    let parsed = server
        .parse::<http::Uri>()
        .ok()
        .and_then(|uri| Some(uri.host()?.to_lowercase()));
    let Some(host) = parsed.filter(|h| !h.is_empty()) else {
        return Err(ApiError::invalid(format!(
            "server: {server:?} is not the URL of an API server, such as https://10.0.0.1:6443"
        )));
    };
    let host = match host.trim_matches(['[', ']']).parse::<std::net::Ipv6Addr>() {
        Ok(address) => {
            let groups: Vec<String> = address
                .segments()
                .iter()
                .map(|group| format!("{group:04x}"))
                .collect();
            groups.join("-")
        }
        Err(_) => host,
    };
    Ok(format!("cluster-{host}-{}", hash32a(server.bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_argo_cds() {
        for (server, name) in [
            (
                "https://kubernetes.default.svc",
                "cluster-kubernetes.default.svc-3396314289",
            ),
            (
                "https://[2001:db8::1]:6443",
                "cluster-2001-0db8-0000-0000-0000-0000-0000-0001-",
            ),
        ] {
            assert!(
                secret_name(server).expect(server).starts_with(name),
                "{server}"
            );
        }
        assert!(secret_name("not a url").is_err());
        assert!(secret_name("").is_err());
    }

    #[test]
    fn a_cluster_survives_its_secret() {
        let cluster = Cluster {
            server: "https://c.example:6443".into(),
            name: "far".into(),
            namespaces: vec!["a".into(), "b".into()],
            shard: Some(0),
            cluster_resources: true,
            project: "p".into(),
            labels: BTreeMap::from([("env".into(), "prod".into())]),
            annotations: BTreeMap::from([("owner".into(), "ops".into())]),
            config: ClusterConfig {
                bearer_token: "secret".into(),
                ..Default::default()
            },
            ..Default::default()
        };
        let secret = secret_of(&cluster, None).expect("a Secret");
        assert_eq!(secret.text("shard"), "0");
        assert_eq!(parse(&secret).expect("it reads"), cluster);
        let shown = sanitized(cluster);
        assert!(!format!("{shown:?}").contains("secret"), "{shown:?}");
        let mut changed = shown;
        changed.labels.clear();
        changed.shard = None;
        let secret = secret_of(&changed, Some(secret)).expect("a Secret");
        assert_eq!(secret.labels.len(), 1);
        assert!(!secret.data.contains_key("shard"));
        assert_eq!(secret.annotations[MANAGED_BY], MANAGED_BY_VALUE);
    }
}
