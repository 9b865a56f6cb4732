//! Resolves the address and credentials of a cluster from a kubeconfig, the environment or a
//! cluster Secret to one [`kube::Config`].

use super::{Overrides, Source, secret, tokens::Tokens};
use crate::{client::root_cause, error::Error};
use kube::config::{Config, KubeConfigOptions, Kubeconfig, KubeconfigError};
use std::{path::PathBuf, sync::Arc};

/// The resolved settings of a client. `origin` names the source in messages.
pub(super) struct Resolved {
    pub config: Config,
    /// An explicitly configured proxy; not the one from the environment.
    pub proxy: Option<String>,
    /// The source of tokens that are created in this process.
    pub tokens: Option<Arc<Tokens>>,
    pub server: String,
    pub origin: String,
}

impl Resolved {
    pub fn new(mut config: Config, server: String, origin: String) -> Self {
        // It may come from the environment, whose rules are applied elsewhere.
        config.proxy_url = None;
        Self {
            config,
            proxy: None,
            tokens: None,
            server,
            origin,
        }
    }
}

pub(super) async fn resolve(source: Source, overrides: &Overrides) -> Result<Resolved, Error> {
    match source {
        Source::Kubeconfig { path, context } => kubeconfig(path, context, overrides).await,
        Source::InCluster => in_cluster(),
        Source::Secret(cluster) => secret::resolve(&cluster).await,
        Source::Client { .. } => Err(Error::config(
            "client",
            "is already made",
            "use it as it is",
        )),
    }
}

pub(super) fn in_cluster() -> Result<Resolved, Error> {
    const FIX: &str = "run inside a pod with a service account, or give --kubeconfig";
    let origin = "in-cluster configuration";
    // The client library does not say which of them it did not find.
    if let Some(name) = missing_variable(|name| std::env::var(name)) {
        let problem = format!("the environment variable {name} is not set");
        return Err(Error::config(origin, problem, FIX));
    }
    let config = Config::incluster().map_err(|e| Error::config(origin, root_cause(&e), FIX))?;
    Ok(Resolved::new(
        config,
        super::IN_CLUSTER_SERVER.to_owned(),
        origin.to_owned(),
    ))
}

/// What the kubelet sets in every container, and is not there.
fn missing_variable(
    read: impl Fn(&str) -> Result<String, std::env::VarError>,
) -> Option<&'static str> {
    let names = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"];
    let is_missing = |name: &&str| matches!(read(name), Err(std::env::VarError::NotPresent));
    names.into_iter().find(is_missing)
}

async fn kubeconfig(
    path: Option<PathBuf>,
    context: Option<String>,
    overrides: &Overrides,
) -> Result<Resolved, Error> {
    let (file, kubeconfig) = match path {
        Some(path) => (
            format!("kubeconfig {}", path.display()),
            Kubeconfig::read_from(&path),
        ),
        None => {
            let shown = std::env::var("KUBECONFIG").unwrap_or_else(|_| "~/.kube/config".to_owned());
            (format!("kubeconfig {shown}"), Kubeconfig::read())
        }
    };
    let mut kubeconfig = match kubeconfig {
        // With a server on the command line no file is needed.
        Err(KubeconfigError::FindPath | KubeconfigError::ReadConfig(..))
            if overrides.is_enough() =>
        {
            Overrides::base()
        }
        result => result.map_err(|e| describe(&file, None, &e))?,
    };
    let chosen = context
        .clone()
        .or_else(|| kubeconfig.current_context.clone())
        .filter(|c| !c.is_empty());
    let known: Vec<&str> = kubeconfig
        .contexts
        .iter()
        .map(|c| c.name.as_str())
        .collect();
    let Some(chosen) = chosen else {
        return Err(Error::config(
            file,
            "current-context is not set",
            format!("set it, or choose one with --context: {}", known.join(", ")),
        ));
    };
    if !known.contains(&chosen.as_str()) {
        let fix = if known.is_empty() {
            "the file has no contexts: is it a kubeconfig?".to_owned()
        } else {
            format!("it has: {}", known.join(", "))
        };
        return Err(Error::config(
            file,
            format!("context {chosen:?} does not exist"),
            fix,
        ));
    }
    if let Some(user) = &overrides.user
        && !kubeconfig
            .auth_infos
            .iter()
            .any(|known| known.name == *user)
    {
        // Without this the requests would be those of nobody.
        return Err(Error::config(
            file,
            format!("user {user:?} does not exist"),
            "add it under `users`, or choose another one with --user",
        ));
    }
    overrides.apply(&mut kubeconfig, &chosen);
    for named in &mut kubeconfig.clusters {
        if let Some(cluster) = &mut named.cluster {
            // As kubectl reads it.
            cluster
                .certificate_authority_data
                .take_if(|data| data.is_empty());
        }
    }
    let options = KubeConfigOptions {
        context: Some(chosen.clone()),
        ..KubeConfigOptions::default()
    };
    let origin = format!("{file}, context {chosen:?}");
    let proxy = proxy_of(&kubeconfig, &chosen);
    let config = Config::from_custom_kubeconfig(kubeconfig, &options)
        .await
        .map_err(|e| describe(&file, Some(&chosen), &e))?;
    has_authority(&config, &origin, "certificate-authority(-data)")?;
    let server = config
        .cluster_url
        .to_string()
        .trim_end_matches('/')
        .to_owned();
    Ok(Resolved {
        proxy,
        ..Resolved::new(config, server, origin)
    })
}

/// An address without a scheme is one of HTTP unless something says that the server has a
/// certificate, as kubectl reads it. Clients cannot be made of one.
pub(super) fn with_scheme(mut config: Config, origin: &str) -> Result<Config, Error> {
    if config.cluster_url.scheme().is_some() {
        return Ok(config);
    }
    let user = &config.auth_info;
    let has_tls = config.accept_invalid_certs
        || config.root_cert.as_ref().is_some_and(|c| !c.is_empty())
        || user.client_certificate.is_some()
        || user.client_certificate_data.is_some();
    let scheme = if has_tls { "https" } else { "http" };
    let server = config.cluster_url.to_string();
    let url = format!("{scheme}://{server}").parse::<http::Uri>();
    config.cluster_url = url.map_err(|e| {
        Error::config(
            origin,
            format!("server {server:?} is no address: {e}"),
            "write it as https://host:port",
        )
    })?;
    Ok(config)
}

/// An authority that was given is one: a text without a certificate is read as none, and then no
/// server is trusted, for a reason that nobody can see.
pub(super) fn has_authority(config: &Config, origin: &str, field: &str) -> Result<(), Error> {
    let is_used = !config.accept_invalid_certs && config.cluster_url.scheme_str() != Some("http");
    match &config.root_cert {
        Some(certificates) if is_used && certificates.is_empty() => Err(Error::config(
            origin,
            format!("{field} is no PEM: it has no certificate"),
            "put a PEM certificate there",
        )),
        _ => Ok(()),
    }
}

fn proxy_of(config: &Kubeconfig, context: &str) -> Option<String> {
    let context = config
        .contexts
        .iter()
        .find(|c| c.name == context)?
        .context
        .as_ref()?;
    let cluster = config
        .clusters
        .iter()
        .find(|c| c.name == context.cluster)?
        .cluster
        .as_ref()?;
    cluster.proxy_url.clone().filter(|url| !url.is_empty())
}

pub(super) fn describe(file: &str, context: Option<&str>, error: &KubeconfigError) -> Error {
    let origin = context.map_or_else(|| file.to_owned(), |c| format!("{file}, context {c:?}"));
    let (problem, fix) = match error {
        KubeconfigError::ReadConfig(e, _) => (
            format!("cannot be read: {e}"),
            "check the path and its permissions",
        ),
        KubeconfigError::FindPath => (
            "no home folder to look for it in".to_owned(),
            "give the file with --kubeconfig",
        ),
        KubeconfigError::Parse(e) => (format!("is not a kubeconfig: {e}"), "correct the YAML"),
        KubeconfigError::LoadClusterOfContext(name) => (
            format!("names the cluster {name:?}, which the file does not have"),
            "add it under `clusters`, or correct the context",
        ),
        KubeconfigError::MissingClusterUrl => (
            "the cluster has no `server`".to_owned(),
            "set clusters[].cluster.server",
        ),
        KubeconfigError::ParseClusterUrl(e) => (
            format!("clusters[].cluster.server is no URL: {e}"),
            "use https://host:port",
        ),
        KubeconfigError::LoadCertificateAuthority(e) => (
            format!("certificate-authority(-data): {}", root_cause(e)),
            "correct the file or the base64 data",
        ),
        KubeconfigError::LoadClientCertificate(e) => (
            format!("client-certificate(-data): {}", root_cause(e)),
            "correct the file or the base64 data",
        ),
        KubeconfigError::LoadClientKey(e) => (
            format!("client-key(-data): {}", root_cause(e)),
            "correct the file or the base64 data",
        ),
        KubeconfigError::ParseCertificates(e) => (
            format!("certificate-authority(-data) is no PEM: {e}"),
            "put a PEM certificate there",
        ),
        other => (root_cause(other), "correct the file"),
    };
    Error::config(origin, problem, fix)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_variable_that_is_missing_is_named() {
        let found = |set: &'static [&str]| {
            missing_variable(move |name| match set.contains(&name) {
                true => Ok(String::new()),
                false => Err(std::env::VarError::NotPresent),
            })
        };
        assert_eq!(found(&[]), Some("KUBERNETES_SERVICE_HOST"));
        assert_eq!(
            found(&["KUBERNETES_SERVICE_HOST"]),
            Some("KUBERNETES_SERVICE_PORT")
        );
        assert_eq!(
            found(&["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"]),
            None
        );
    }

    #[test]
    fn an_address_without_a_scheme_gets_one() {
        for (address, is_insecure, want) in [
            ("localhost:8080", false, Some("http://localhost:8080/")),
            ("x", true, Some("https://x/")),
            ("https://x/y", false, Some("https://x/y")),
            ("/x", false, None),
        ] {
            let mut config = Config::new(address.parse().expect("an address"));
            config.accept_invalid_certs = is_insecure;
            let got = with_scheme(config, "here").map(|config| config.cluster_url.to_string());
            match want {
                Some(want) => assert_eq!(got.expect(address), want),
                None => assert!(matches!(got, Err(Error::Config { .. })), "{got:?}"),
            }
        }
    }

    #[tokio::test]
    async fn a_kubeconfig_without_the_context_lists_those_it_has() {
        let file = std::env::temp_dir().join(format!("tiphys-kubeconfig-{}", std::process::id()));
        let text = "apiVersion: v1\nkind: Config\ncontexts: [{name: a, context: {cluster: a, user: a}}]\nclusters: []\nusers: []\n";
        std::fs::write(&file, text).expect("writable");
        let wrong = kubeconfig(Some(file.clone()), Some("b".into()), &Overrides::default())
            .await
            .err()
            .expect("no such context")
            .to_string();
        let none = kubeconfig(Some(file.clone()), None, &Overrides::default())
            .await
            .err()
            .expect("no current context")
            .to_string();
        let dangling = kubeconfig(Some(file.clone()), Some("a".into()), &Overrides::default())
            .await
            .err()
            .expect("no such cluster")
            .to_string();
        std::fs::remove_file(&file).expect("there");
        assert!(
            wrong.contains("context \"b\" does not exist; it has: a"),
            "{wrong}"
        );
        assert!(none.contains("current-context is not set"), "{none}");
        assert!(
            dangling.contains("context \"a\"") && dangling.contains("cluster"),
            "{dangling}"
        );
    }
}
