//! The CronJob and the Jobs of an AppRepository.
//!
//! Main type: [`Wanted`].

use super::{
    Options, REPO_NAME, REPO_NAMESPACE, cleanup_prefix, cron_job_name,
    names::{label, secret_copy},
    schedule::schedule,
    source::DOCKER_CONFIG,
};
use crate::asset_syncer::CA_FILE;
use serde_json::{Map, Value, json};
use tiphys_api::AppRepository;

/// How late a Job of a CronJob may start, in seconds.
const STARTING_DEADLINE: i64 = 600;

/// The objects of a repository, in the namespace of the options.
#[derive(Clone, Debug, PartialEq)]
pub struct Wanted {
    pub cron_job: Value,
    /// One that reads the repository now.
    pub sync_job: Value,
    /// One that removes its rows.
    pub cleanup_job: Value,
    /// What users should know about the specification.
    pub warning: Option<String>,
}

impl Wanted {
    pub fn of(repository: &AppRepository, options: &Options) -> Self {
        let (namespace, name) = (&repository.metadata.namespace, &repository.metadata.name);
        let objects = Objects {
            repository,
            options,
        };
        let schedule = schedule(&repository.spec.interval, &options.crontab);
        let prefix = cron_job_name(namespace, name);
        let mut cron_metadata = objects.metadata(true);
        cron_metadata.insert("name".to_owned(), prefix.clone().into());
        let mut labels = objects.labels();
        labels.extend(texts(&options.labels));
        cron_metadata.insert("labels".to_owned(), labels.into());
        let mut sync_metadata = objects.metadata(true);
        sync_metadata.insert("generateName".to_owned(), format!("{prefix}-").into());
        let mut cleanup_metadata = objects.metadata(false);
        let cleanup = cleanup_prefix(namespace, name);
        cleanup_metadata.insert("generateName".to_owned(), cleanup.into());
        cleanup_metadata.insert("namespace".to_owned(), options.namespace.clone().into());
        let sync = objects.job(Task::Sync);
        Self {
            cron_job: json!({
                "apiVersion": "batch/v1",
                "kind": "CronJob",
                "metadata": cron_metadata,
                "spec": {
                    "schedule": schedule.crontab,
                    "concurrencyPolicy": options.concurrency_policy,
                    // Without one, a CronJob that missed a hundred ticks never starts again.
                    "startingDeadlineSeconds": STARTING_DEADLINE,
                    "successfulJobsHistoryLimit": options.successful_jobs,
                    "failedJobsHistoryLimit": options.failed_jobs,
                    "jobTemplate": {"spec": sync},
                },
            }),
            sync_job: json!({
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": sync_metadata,
                "spec": sync,
            }),
            cleanup_job: json!({
                "apiVersion": "batch/v1",
                "kind": "Job",
                "metadata": cleanup_metadata,
                "spec": objects.job(Task::Cleanup),
            }),
            warning: schedule.warning,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Task {
    Sync,
    Cleanup,
}

struct Objects<'a> {
    repository: &'a AppRepository,
    options: &'a Options,
}

fn texts(map: &std::collections::BTreeMap<String, String>) -> Map<String, Value> {
    map.iter()
        .map(|(key, value)| (key.clone(), value.clone().into()))
        .collect()
}

/// A list in an object, which is there afterwards.
fn list<'v>(object: &'v mut Map<String, Value>, key: &str) -> Option<&'v mut Vec<Value>> {
    let value = object.entry(key).or_insert_with(|| json!([]));
    if !value.is_array() {
        *value = json!([]);
    }
    value.as_array_mut()
}

fn append(object: &mut Map<String, Value>, key: &str, more: Vec<Value>) {
    if !more.is_empty()
        && let Some(list) = list(object, key)
    {
        list.extend(more);
    }
}

impl Objects<'_> {
    fn is_ours(&self) -> bool {
        self.repository.metadata.namespace == self.options.namespace
    }

    /// Labels, annotations and, if it is in the same namespace, the owner.
    fn metadata(&self, owned: bool) -> Map<String, Value> {
        let mut metadata = Map::new();
        for (key, map) in [
            ("labels", &self.options.labels),
            ("annotations", &self.options.annotations),
        ] {
            if owned && !map.is_empty() {
                metadata.insert(key.to_owned(), texts(map).into());
            }
        }
        if owned && self.is_ours() {
            let owner = json!([{
                "apiVersion": "kubeapps.com/v1alpha1",
                "kind": "AppRepository",
                "name": self.repository.metadata.name,
                "uid": self.repository.metadata.uid,
                "controller": true,
                "blockOwnerDeletion": true,
            }]);
            metadata.insert("ownerReferences".to_owned(), owner);
        }
        metadata
    }

    fn labels(&self) -> Map<String, Value> {
        let metadata = &self.repository.metadata;
        Map::from_iter([
            (REPO_NAME.to_owned(), label(&metadata.name).into()),
            (REPO_NAMESPACE.to_owned(), label(&metadata.namespace).into()),
        ])
    }

    fn job(&self, task: Task) -> Value {
        let mut job = json!({"template": self.pod(task)});
        for (key, value) in [
            (
                "ttlSecondsAfterFinished",
                self.options.seconds_after_finished,
            ),
            ("activeDeadlineSeconds", self.options.deadline_seconds),
        ] {
            if let Some(value) = value {
                job[key] = value.into();
            }
        }
        job
    }

    /// The pod that the repository's template describes, with what the task needs.
    fn pod(&self, task: Task) -> Value {
        let template = &self.repository.spec.sync_job_pod_template;
        let object = |key: &str| match template.get(key) {
            Some(Value::Object(object)) => object.clone(),
            _ => Map::new(),
        };
        let (mut metadata, mut spec) = (object("metadata"), object("spec"));
        let mut labels = match metadata.remove("labels") {
            Some(Value::Object(labels)) => labels,
            _ => Map::new(),
        };
        labels.extend(self.labels());
        labels.extend(texts(&self.options.labels));
        metadata.insert("labels".to_owned(), labels.into());
        metadata.remove("creationTimestamp");
        metadata.remove("annotations");
        if !self.options.annotations.is_empty() {
            let annotations = texts(&self.options.annotations);
            metadata.insert("annotations".to_owned(), annotations.into());
        }
        let restart = match task {
            Task::Sync => "OnFailure",
            Task::Cleanup => "Never",
        };
        spec.insert("restartPolicy".to_owned(), restart.into());
        let secrets = self.options.pull_secrets.iter();
        let secrets = secrets.map(|name| json!({"name": name})).collect();
        append(&mut spec, "imagePullSecrets", secrets);
        let authority = self.authority().filter(|_| task == Task::Sync);
        let (volumes, mounts) = authority.unzip();
        append(&mut spec, "volumes", volumes.into_iter().collect());
        if let Some(containers) = list(&mut spec, "containers") {
            if containers.is_empty() {
                containers.push(json!({}));
            }
            if let Some(Value::Object(container)) = containers.first_mut() {
                self.container(container, task, mounts);
            }
        }
        json!({"metadata": metadata, "spec": spec})
    }

    fn container(&self, container: &mut Map<String, Value>, task: Task, mounts: Option<Value>) {
        let (name, arguments) = match task {
            Task::Sync => ("sync", self.sync_arguments()),
            Task::Cleanup => ("delete", self.cleanup_arguments()),
        };
        for (key, value) in [
            ("name", Value::from(name)),
            ("image", self.options.image.clone().into()),
            ("imagePullPolicy", "IfNotPresent".into()),
            ("command", json!([self.options.command])),
            ("args", arguments.into()),
        ] {
            container.insert(key.to_owned(), value);
        }
        append(container, "env", self.environment(task));
        append(container, "volumeMounts", mounts.into_iter().collect());
    }

    fn database_arguments(&self) -> [String; 3] {
        [
            format!("--database-url={}", self.options.database_url),
            format!("--database-user={}", self.options.database_user),
            format!("--database-name={}", self.options.database_name),
        ]
    }

    fn sync_arguments(&self) -> Vec<String> {
        let (metadata, spec) = (&self.repository.metadata, &self.repository.spec);
        let mut arguments = vec!["sync".to_owned()];
        arguments.extend(self.database_arguments());
        let comment = &self.options.user_agent_comment;
        if !comment.is_empty() {
            arguments.push(format!("--user-agent-comment={comment}"));
        }
        arguments.push(format!(
            "--global-repos-namespace={}",
            self.options.global_namespace
        ));
        arguments.push(format!("--namespace={}", metadata.namespace));
        arguments.extend([metadata.name.clone(), spec.url.clone(), spec.form.clone()]);
        if !spec.oci_repositories.is_empty() {
            arguments.extend([
                "--oci-repositories".to_owned(),
                spec.oci_repositories.join(","),
            ]);
        }
        if spec.tls_insecure_skip_verify {
            arguments.push("--tls-insecure-skip-verify".to_owned());
        }
        if spec.pass_credentials {
            arguments.push("--pass-credentials".to_owned());
        }
        if !spec.filter_rule.jq.is_empty() {
            let rule = serde_json::to_string(&spec.filter_rule).unwrap_or_default();
            arguments.extend(["--filter-rules".to_owned(), as_go_writes(&rule)]);
        }
        arguments
    }

    fn cleanup_arguments(&self) -> Vec<String> {
        let metadata = &self.repository.metadata;
        let mut arguments = vec![
            "delete".to_owned(),
            metadata.name.clone(),
            format!("--namespace={}", metadata.namespace),
        ];
        arguments.extend(self.database_arguments());
        arguments
    }

    /// Only a sync needs credentials: those of a repository that goes may be gone already.
    fn environment(&self, task: Task) -> Vec<Value> {
        let from = |name: &str, secret: &str, key: &str| {
            let reference = json!({"secretKeyRef": {"name": secret, "key": key}});
            json!({"name": name, "valueFrom": reference})
        };
        let options = self.options;
        let (secret, key) = (&options.database_secret, &options.database_secret_key);
        let mut environment = vec![from("DB_PASSWORD", secret, key)];
        if !options.oci_catalog_url.is_empty() && task == Task::Sync {
            let url = &options.oci_catalog_url;
            environment.push(json!({"name": "OCI_CATALOG_URL", "value": url}));
        }
        if let Some(header) = self
            .repository
            .spec
            .auth
            .header
            .as_ref()
            .filter(|_| task == Task::Sync)
        {
            let key = &header.secret_key_ref.key;
            let name = if key == DOCKER_CONFIG {
                "DOCKER_CONFIG_JSON"
            } else {
                "AUTHORIZATION_HEADER"
            };
            environment.push(from(name, &self.secret(&header.secret_key_ref.name), key));
        }
        environment
    }

    /// The volume with the repository's authorities, and where it is mounted.
    fn authority(&self) -> Option<(Value, Value)> {
        let reference = &self.repository.spec.auth.custom_ca.as_ref()?.secret_key_ref;
        let secret = self.secret(&reference.name);
        let (folder, file) = CA_FILE.rsplit_once('/')?;
        let items = json!([{"key": reference.key, "path": file}]);
        let volume = json!({"name": secret, "secret": {"secretName": secret, "items": items}});
        let mount = json!({"name": secret, "readOnly": true, "mountPath": folder});
        Some((volume, mount))
    }

    /// A Secret of another namespace has a copy here.
    fn secret(&self, name: &str) -> String {
        let metadata = &self.repository.metadata;
        if self.is_ours() {
            name.to_owned()
        } else {
            secret_copy(&metadata.namespace, &metadata.name)
        }
    }
}

/// JSON in which three characters are escaped.
fn as_go_writes(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
}
