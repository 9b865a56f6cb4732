//! The API server of a scenario, and the controller that runs on it. Main type: [`World`].

use super::wire::{Wire, Write};
use http::Method;
use serde_json::{Value, json};
use std::{collections::BTreeSet, time::Duration};
use tiphys_catalog::apprepository::Options;
use tiphys_cluster::{
    Cluster, Error,
    request::{Call, JSON, MERGE_PATCH},
};
use tiphys_controllers::apprepository::jobs::{self, JobsOptions};
use tiphys_embedded_kube::{EmbeddedKube, Options as KubeOptions};
use tiphys_gocompat::yaml;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;

const CRD: &str = include_str!("../../../../../deploy/crds/apprepository-crd.yaml");
const SERVER: &str = "https://kubernetes.default.svc";
const REPOSITORIES: &str = "/apis/kubeapps.com/v1alpha1";
/// In the Secrets that scenarios only name.
pub const SECRET: &str = "dmFsdWU=";

pub struct World {
    kube: EmbeddedKube,
    wire: Wire,
    /// Whoever acts in the scenario.
    user: Cluster,
    pub options: Options,
    running: Option<(JoinHandle<()>, CancellationToken)>,
}

fn failed(e: impl std::fmt::Display) -> String {
    e.to_string()
}

impl World {
    pub async fn start(case: &Value, options: Options) -> Result<Self, String> {
        let kube = EmbeddedKube::start(KubeOptions {
            controllers: false,
            ..KubeOptions::default()
        });
        let kube = kube.await.map_err(failed)?;
        let user = Cluster::connect_in_process(kube.router(), SERVER)
            .await
            .map_err(failed)?;
        let wire = Wire::new(kube.router());
        let mut world = Self {
            kube,
            wire,
            user,
            options,
            running: None,
        };
        world.prepare(case).await?;
        world.begin().await?;
        Ok(world)
    }

    async fn create(&self, path: &str, object: &Value) -> Result<(), Error> {
        let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
        match self.user.http().send(&call).await {
            Err(e) if e.is_already_exists() => Ok(()),
            ended => ended.map(drop),
        }
    }

    /// The definition, and the namespaces and Secrets that the scenario names.
    async fn prepare(&self, case: &Value) -> Result<(), String> {
        let crd = yaml::parse_document(CRD, &yaml::Limits::default(), yaml::Duplicates::LastWins)
            .map_err(failed)?;
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        self.create(path, &crd).await.map_err(failed)?;
        let list = Call::get(format!("{REPOSITORIES}/apprepositories"));
        for attempt in 0.. {
            match self.user.http().send(&list).await {
                Ok(_) => break,
                Err(e) if attempt > 500 => return Err(failed(e)),
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
        let mut namespaces = BTreeSet::from([self.options.namespace.as_str()]);
        let repositories: Vec<&Value> = created(case).collect();
        let of = |repository: &Value| repository["metadata"]["namespace"].as_str().map(str::len);
        namespaces.extend(
            repositories
                .iter()
                .filter(|repository| of(repository).is_some())
                .filter_map(|repository| repository["metadata"]["namespace"].as_str()),
        );
        for name in namespaces {
            let namespace =
                json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
            self.create("/api/v1/namespaces", &namespace)
                .await
                .map_err(failed)?;
        }
        for repository in repositories {
            self.secrets(repository).await.map_err(failed)?;
        }
        Ok(())
    }

    async fn secrets(&self, repository: &Value) -> Result<(), Error> {
        let namespace = repository["metadata"]["namespace"].as_str();
        let namespace = namespace.unwrap_or_default();
        for field in ["header", "customCA"] {
            let reference = &repository["spec"]["auth"][field]["secretKeyRef"];
            let (Some(name), Some(key)) = (reference["name"].as_str(), reference["key"].as_str())
            else {
                continue;
            };
            let collection = format!("/api/v1/namespaces/{namespace}/secrets");
            let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}});
            self.create(&collection, &secret).await?;
            let data = json!({"data": {key: SECRET}});
            let path = format!("{collection}/{name}");
            let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, data.to_string());
            self.user.http().send(&call).await?;
        }
        Ok(())
    }

    async fn begin(&mut self) -> Result<(), String> {
        let cluster = Cluster::connect_in_process(self.wire.router(), SERVER)
            .await
            .map_err(failed)?;
        let stop = CancellationToken::new();
        let options = JobsOptions::new(self.options.clone());
        let running = tokio::spawn(jobs::run(cluster, options, None, stop.clone()));
        self.running = Some((running, stop));
        Ok(())
    }

    async fn stop(&mut self) {
        if let Some((running, stop)) = self.running.take() {
            stop.cancel();
            let _ = running.await;
        }
    }

    pub async fn end(mut self) {
        self.stop().await;
        self.kube.shutdown().await;
    }

    pub fn writes(&self) -> Vec<Write> {
        self.wire.writes()
    }

    pub fn take_writes(&self) -> Vec<Write> {
        self.wire.take()
    }

    /// Does what the scenario says; returns what the API server refused.
    pub async fn act(&mut self, action: &Value) -> Result<Value, String> {
        let words = action.as_array().ok_or("no action")?;
        let text = |at: usize| words.get(at).and_then(Value::as_str).unwrap_or_default();
        let object = |plural: &str| {
            let group = if plural == "cronjobs" {
                "/apis/batch/v1"
            } else {
                REPOSITORIES
            };
            format!("{group}/namespaces/{}/{plural}/{}", text(1), text(2))
        };
        let none = json!({});
        let last = words.get(3).unwrap_or(&none);
        let call = match text(0) {
            "create" => return self.create_all(&words[1..]).await,
            "stop" => {
                self.stop().await;
                return Ok(Value::Null);
            }
            "start" => {
                self.begin().await?;
                return Ok(Value::Null);
            }
            "faults" => {
                self.wire.faults(&words[1]);
                return Ok(Value::Null);
            }
            "patch" => Call::new(Method::PATCH, object("apprepositories"))
                .with_body(MERGE_PATCH, last.to_string()),
            "patch-cronjob" => Call::new(Method::PATCH, object("cronjobs"))
                .with_body(MERGE_PATCH, last.to_string()),
            "delete" => Call::new(Method::DELETE, object("apprepositories"))
                .query("propagationPolicy", text(3)),
            "delete-cronjob" => Call::new(Method::DELETE, object("cronjobs"))
                .query("propagationPolicy", "Background"),
            other => return Err(format!("unknown action {other:?}")),
        };
        match self.user.http().send(&call).await {
            Ok(_) => Ok(Value::Null),
            Err(e) => refusal(&e).map(|e| json!([e])),
        }
    }

    async fn create_all(&self, objects: &[Value]) -> Result<Value, String> {
        let mut refused = Vec::new();
        for object in objects {
            let namespace = object["metadata"]["namespace"].as_str().unwrap_or_default();
            let path = match object["kind"].as_str() {
                Some("AppRepository") => {
                    format!("{REPOSITORIES}/namespaces/{namespace}/apprepositories")
                }
                Some("CronJob") => format!("/apis/batch/v1/namespaces/{namespace}/cronjobs"),
                Some("Secret") => format!("/api/v1/namespaces/{namespace}/secrets"),
                kind => return Err(format!("nobody knows how to create a {kind:?}")),
            };
            let call = Call::new(Method::POST, path).with_body(JSON, object.to_string());
            if let Err(e) = self.user.http().send(&call).await {
                refused.push(refusal(&e)?);
            }
        }
        Ok(if refused.is_empty() {
            Value::Null
        } else {
            refused.into()
        })
    }

    /// CronJobs, Jobs, AppRepositories and Secrets as they are stored.
    pub async fn stored(&self) -> Result<Value, String> {
        let mut stored = json!({});
        for (kind, path) in [
            ("cronjobs", "/apis/batch/v1/cronjobs".to_owned()),
            ("jobs", "/apis/batch/v1/jobs".to_owned()),
            ("secrets", "/api/v1/secrets".to_owned()),
            ("apprepositories", format!("{REPOSITORIES}/apprepositories")),
        ] {
            let mut list: Value = self
                .user
                .http()
                .json(&Call::get(path))
                .await
                .map_err(failed)?;
            stored[kind] = list["items"].take();
        }
        Ok(stored)
    }
}

fn refusal(e: &Error) -> Result<Value, String> {
    match e {
        Error::Api(e) => Ok(json!({"status": e.code, "message": e.message})),
        e => Err(e.to_string()),
    }
}

/// The AppRepositories that a scenario makes.
fn created(case: &Value) -> impl Iterator<Item = &Value> {
    let steps = case["steps"].as_array().into_iter().flatten();
    let words = steps.flat_map(|step| step["action"].as_array().into_iter().flatten());
    words.filter(|word| word["kind"] == "AppRepository")
}
