//! The settings that Dex's configuration is made of, read from the Kubernetes API. Main type:
//! [`Installation`].

use crate::kubectl::kube::KubeArgs;
use anyhow::Context as _;
use base64::{Engine as _, prelude::BASE64_STANDARD};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::{collections::BTreeMap, sync::Arc};
use tiphys_cluster::{
    Cluster, Error,
    request::Call,
    watch::{self, EventKind, Sink, Target},
};
use tiphys_server::sso::{DexConfiguration, DexInput, DexOptions};
use tokio::sync::{Notify, Semaphore};
use tokio_util::sync::CancellationToken;

const CONFIG_MAP: &str = "argocd-cm";
const SECRET: &str = "argocd-secret";
/// What settings may refer to, besides argocd-secret.
const PART_OF: &str = "app.kubernetes.io/part-of=argocd";
const PAGE: &str = "500";

/// A namespace with the settings.
pub struct Installation {
    cluster: Cluster,
    pub namespace: String,
    options: DexOptions,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ConfigMap {
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Secret {
    metadata: Metadata,
    data: Option<BTreeMap<String, String>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    name: String,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct SecretList {
    metadata: ListMetadata,
    items: Option<Vec<Secret>>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ListMetadata {
    #[serde(rename = "continue")]
    next: String,
}

impl Secret {
    fn values(&self) -> anyhow::Result<Vec<(&str, Vec<u8>)>> {
        let values = self.data.iter().flatten();
        let decoded = values.map(|(key, value)| {
            // Not why: the reason may show a part of a secret.
            let bytes = BASE64_STANDARD.decode(value).ok();
            let bytes = bytes.with_context(|| {
                format!("{key} of the Secret {} is not base64", self.metadata.name)
            });
            bytes.map(|bytes| (key.as_str(), bytes))
        });
        decoded.collect()
    }
}

impl Installation {
    pub async fn connect(kube: &KubeArgs, options: DexOptions) -> anyhow::Result<Self> {
        let cluster = Cluster::connect(kube.options()).await?;
        let namespace = kube.namespace();
        let namespace = namespace.unwrap_or(cluster.default_namespace()).to_owned();
        Ok(Self {
            cluster,
            namespace,
            options,
        })
    }

    fn path(&self, plural: &str) -> String {
        format!("/api/v1/namespaces/{}/{plural}", self.namespace)
    }

    /// The configuration as of now; `None`: Dex is not configured.
    pub async fn configuration(&self) -> anyhow::Result<Option<DexConfiguration>> {
        let config = self.config().await?;
        let (mut secrets, mut signing_key) = (self.referable().await?, Vec::new());
        if let Some(own) = self.find::<Secret>("secrets", SECRET).await? {
            for (key, bytes) in own.values()? {
                secrets.insert(key.to_owned(), text(&bytes));
                if key == "server.secretkey" {
                    signing_key = bytes;
                }
            }
        }
        let options = self.options.clone();
        let made = tokio::task::spawn_blocking(move || {
            let input = DexInput {
                config: &config,
                signing_key: &signing_key,
                secrets: &secrets,
            };
            DexConfiguration::of(&input, &options)
        });
        Ok(made.await??)
    }

    async fn config(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let found = self.find::<ConfigMap>("configmaps", CONFIG_MAP).await?;
        Ok(found.and_then(|map| map.data).unwrap_or_default())
    }

    /// The values of the installation's Secrets, by `secret:key`.
    async fn referable(&self) -> anyhow::Result<BTreeMap<String, String>> {
        let (mut found, mut next) = (BTreeMap::new(), String::new());
        loop {
            let call = Call::get(self.path("secrets"))
                .query("labelSelector", PART_OF)
                .query("limit", PAGE)
                .query("continue", &next);
            let listed = self.cluster.http().json::<SecretList>(&call).await;
            let listed = listed.context("cannot list Secrets")?;
            for secret in listed.items.iter().flatten() {
                for (key, bytes) in secret.values()? {
                    found.insert(format!("{}:{key}", secret.metadata.name), text(&bytes));
                }
            }
            next = listed.metadata.next;
            if next.is_empty() {
                return Ok(found);
            }
        }
    }

    async fn find<T: serde::de::DeserializeOwned>(
        &self,
        plural: &str,
        name: &str,
    ) -> anyhow::Result<Option<T>> {
        let call = Call::get(format!("{}/{name}", self.path(plural)));
        match self.cluster.http().json(&call).await {
            Ok(found) => Ok(Some(found)),
            Err(e) if e.is_not_found() => Ok(None),
            Err(e) => Err(anyhow::Error::from(e).context(format!("cannot read {name}"))),
        }
    }

    /// Tells when a setting may have changed, until stopped.
    pub fn follow(&self, changed: &Arc<Notify>, stop: &CancellationToken) {
        let one = format!("metadata.name={CONFIG_MAP}");
        for (plural, field_selector) in [("configmaps", one), ("secrets", String::new())] {
            let target = Target {
                path: self.path(plural),
                field_selector,
                lists: Arc::new(Semaphore::new(1)),
                tap: None,
            };
            let told = Told {
                changed: Arc::clone(changed),
                plural,
            };
            tokio::spawn(watch::follow(
                self.cluster.clone(),
                target,
                told,
                stop.clone(),
            ));
        }
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Only tells that there is something to read.
struct Told {
    changed: Arc<Notify>,
    plural: &'static str,
}

impl Sink for Told {
    fn list_begin(&mut self) {}

    fn page(&mut self, _items: &[&RawValue]) {}

    fn list_done(&mut self, _resource_version: &str) {
        self.changed.notify_one();
    }

    fn event(&mut self, _kind: EventKind, _object: &RawValue) {
        self.changed.notify_one();
    }

    fn position(&mut self, _resource_version: &str) {}

    fn failed(&mut self, error: &Error) {
        tracing::warn!(%error, "{} cannot be followed; trying again", self.plural);
    }
}
