//! The configuration and the Application that a command is about, of files or of the cluster.
//!
//! Main type: [`SourceArgs`].

use crate::{client::Failure, commands::apply::HintedError, kubectl::kube::KubeArgs};
use jiff::tz::TimeZone;
use serde_json::Value;
use std::{collections::BTreeMap, fs, io::Read as _, path::Path, rc::Rc};
use tiphys_apimachinery::Object;
use tiphys_cluster::{apply, request::Call};
use tiphys_controllers::notifications::{CONFIG_MAP, SECRET};
use tiphys_gocompat::{expr::Clock, yaml};
use tiphys_notify::{CommitMetadata, Config, ConfigSource, Lookup, Subject, Unavailable};
use tiphys_repo::net::reason;

/// Means a Secret without values.
const EMPTY: &str = ":empty";

/// Where the configuration is.
#[derive(clap::Args)]
pub struct SourceArgs {
    /// File with argocd-notifications-cm; `-` is the standard input; without it, that of the
    /// cluster is read
    #[arg(long, value_name = "FILE")]
    config_map: Option<String>,
    /// File with argocd-notifications-secret, or `:empty`; without it, that of the cluster is read
    #[arg(long, value_name = "FILE")]
    secret: Option<String>,
    /// (no effect: revisions are described by this process)
    #[arg(long, hide = true)]
    argocd_repo_server: Option<String>,
    /// (no effect)
    #[arg(long, hide = true)]
    argocd_repo_server_plaintext: bool,
    #[command(flatten)]
    kube: KubeArgs,
}

/// A configuration with the texts that it was read from.
pub struct Loaded {
    pub config: Config,
    pub texts: BTreeMap<String, String>,
}

impl SourceArgs {
    /// Reads the configuration. Broken entries are told; the others work.
    pub async fn load(&self) -> Result<Loaded, Failure> {
        let config_map = match &self.config_map {
            Some(file) => from_file(file, CONFIG_MAP)?,
            None => self.fetch("configmaps", CONFIG_MAP).await?,
        };
        let secret = match self.secret.as_deref() {
            Some(EMPTY) => Value::Null,
            Some(file) => from_file(file, SECRET)?,
            None => self.fetch("secrets", SECRET).await?,
        };
        let texts = texts(&config_map["data"]);
        let secret = values(&secret);
        let config = Config::load(ConfigSource {
            namespace: "argocd",
            config_map: &texts,
            secret: &secret,
            self_service: false,
        });
        for problem in &config.problems {
            eprintln!("warning: {}: {}", problem.key, problem.message);
        }
        Ok(Loaded { config, texts })
    }

    /// The Application, of a file with this name or of the cluster.
    pub async fn application(&self, name: &str) -> Result<Value, Failure> {
        if Path::new(name).is_file() {
            let documents = read(name)?;
            return documents
                .into_iter()
                .next()
                .ok_or_else(|| Failure::fatal(format!("file '{name}' is empty")));
        }
        self.get("apis/argoproj.io/v1alpha1", "applications", name)
            .await
    }

    async fn fetch(&self, resource: &str, name: &str) -> Result<Value, Failure> {
        self.get("api/v1", resource, name).await
    }

    async fn get(&self, group: &str, resource: &str, name: &str) -> Result<Value, Failure> {
        let mut object = Value::Null;
        let read = async {
            let target = super::super::connect(&self.kube).await?;
            let namespace = super::super::backup::namespace(&self.kube, &target);
            let path = format!("/{group}/namespaces/{namespace}/{resource}/{name}");
            let http = target.discovery.cluster().http();
            let record: Object = http
                .json(&Call::get(path))
                .await
                .map_err(apply::Failure::from)?;
            object = record.into_value();
            Ok(())
        };
        let ended: Result<(), HintedError> = read.await;
        ended.map_err(|e| super::super::failed(&e))?;
        Ok(object)
    }
}

fn read(file: &str) -> Result<Vec<Value>, Failure> {
    let failed = |error: String| Failure::fatal(format!("file '{file}': {error}"));
    let text = if file == "-" {
        let mut text = String::new();
        std::io::stdin()
            .read_to_string(&mut text)
            .map(|_| text)
            .map_err(|error| failed(reason(&error)))?
    } else {
        fs::read_to_string(file).map_err(|error| failed(reason(&error)))?
    };
    let documents = yaml::parse_documents(&text, &yaml::Limits::default());
    let documents = documents.map_err(|error| failed(error.to_string()))?;
    let values = documents.into_iter().map(|document| document.value);
    Ok(values.filter(|value| !value.is_null()).collect())
}

fn from_file(file: &str, name: &str) -> Result<Value, Failure> {
    let found = read(file)?
        .into_iter()
        .find(|object| object["metadata"]["name"] == name);
    found.ok_or_else(|| Failure::fatal(format!("file '{file}' does not have '{name}'")))
}

fn texts(data: &Value) -> BTreeMap<String, String> {
    let entries = data.as_object().into_iter().flatten();
    entries
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

fn values(secret: &Value) -> BTreeMap<String, Vec<u8>> {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let decoded = texts(&secret["data"])
        .into_iter()
        .filter_map(|(key, value)| Some((key, STANDARD.decode(value).ok()?)));
    let plain = texts(&secret["stringData"])
        .into_iter()
        .map(|(key, value)| (key, value.into_bytes()));
    decoded.chain(plain).collect()
}

/// The subject of a trigger or template. The functions of `repo` that need a repository fail.
pub fn subject<'s>(config: &'s Config, app: &'s Value) -> Subject<'s> {
    Subject {
        config,
        app,
        project: None,
        lookup: Rc::new(Nowhere),
        clock: Clock {
            now: jiff::Timestamp::now(),
            zone: TimeZone::try_system().unwrap_or(TimeZone::UTC),
        },
    }
}

struct Nowhere;

impl Lookup for Nowhere {
    fn commit(&self, _: &str, _: &str, _: &str) -> Result<CommitMetadata, Unavailable> {
        Err(Unavailable("repositories can not be asked here".into()))
    }

    fn details(&self, _: &Value) -> Result<Value, Unavailable> {
        Err(Unavailable("repositories can not be asked here".into()))
    }
}
