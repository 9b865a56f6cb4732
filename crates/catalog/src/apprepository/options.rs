//! The flags of kubeapps' controller. Pure.
//!
//! Main type: [`Options`].

use super::schedule::is_crontab;
use std::collections::BTreeMap;

/// Flags that need no value.
const SWITCHES: [&str; 6] = [
    "repos-per-namespace",
    "v1-beta1-cron-jobs",
    "logtostderr",
    "alsologtostderr",
    "skip_headers",
    "skip_log_headers",
];
/// Flags for logging, which have no effect.
const OF_LOGS: [&str; 12] = [
    "v",
    "vmodule",
    "logtostderr",
    "alsologtostderr",
    "stderrthreshold",
    "skip_headers",
    "skip_log_headers",
    "log_dir",
    "log_file",
    "log_file_max_size",
    "log_backtrace_at",
    "add_dir_header",
];

pub const USAGE: &str = "Makes CronJobs and Jobs for AppRepositories

Usage:
  apprepository-controller [flags]

Flags:
      --active-deadline-seconds string          activeDeadlineSeconds of Jobs
      --apiserver string                        Address of the API server
      --concurrency-policy string               concurrencyPolicy of CronJobs (default \"Replace\")
      --crontab string                          Schedule where there is no interval (default \"*/10 * * * *\")
      --custom-annotations strings              Annotations of CronJobs, Jobs and pods: k=v
      --custom-labels strings                   Labels of CronJobs, Jobs and pods: k=v
      --database-name string                    Name of the database (default \"charts\")
      --database-secret-key string              Key of the password (default \"postgresql-root-password\")
      --database-secret-name string             Secret with the password (default \"kubeapps-db\")
      --database-url string                     Database: host:port (default \"localhost\")
      --database-user string                    User of the database (default \"root\")
      --failed-jobs-history-limit int           Failed Jobs that are kept (default 1)
      --global-repos-namespace string           Namespace of global repositories (default \"kubeapps\")
      --kubeconfig string                       Kubeconfig [default: the service account of the pod]
      --namespace string                        Namespace of CronJobs and Jobs (default \"kubeapps\")
      --oci-catalog-url string                  Catalogue service [default: OCI_CATALOG_URL]
      --repo-sync-cmd string                    Command of Jobs (default \"/chart-repo\")
      --repo-sync-image string                  Image of Jobs (default \"docker.io/kubeapps/asset-syncer:latest\")
      --repo-sync-image-pullsecrets strings     Secrets to pull it with
      --repos-per-namespace                     AppRepositories of all namespaces (default true)
      --successful-jobs-history-limit int       Successful Jobs that are kept (default 3)
      --ttl-lifetime-afterfinished-job string   Seconds that Jobs stay (default \"3600\")
      --user-agent-comment string               Comment in the User-Agent
";

/// A flag that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OptionsError(String);

/// What the objects are made of, besides the AppRepository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    pub image: String,
    pub pull_secrets: Vec<String>,
    pub command: String,
    /// Where the objects are.
    pub namespace: String,
    pub global_namespace: String,
    /// AppRepositories of all namespaces, not only those of `namespace`.
    pub all_namespaces: bool,
    pub database_url: String,
    pub database_user: String,
    pub database_name: String,
    pub database_secret: String,
    pub database_secret_key: String,
    pub user_agent_comment: String,
    /// For repositories without an interval.
    pub crontab: String,
    pub seconds_after_finished: Option<i64>,
    pub deadline_seconds: Option<i64>,
    pub successful_jobs: i64,
    pub failed_jobs: i64,
    pub concurrency_policy: String,
    pub annotations: BTreeMap<String, String>,
    pub labels: BTreeMap<String, String>,
    pub oci_catalog_url: String,
    /// How the cluster is reached; both empty: as the pod that this is.
    pub kubeconfig: String,
    pub api_server: String,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            image: "docker.io/kubeapps/asset-syncer:latest".to_owned(),
            pull_secrets: Vec::new(),
            command: "/chart-repo".to_owned(),
            namespace: "kubeapps".to_owned(),
            global_namespace: "kubeapps".to_owned(),
            all_namespaces: true,
            database_url: "localhost".to_owned(),
            database_user: "root".to_owned(),
            database_name: "charts".to_owned(),
            database_secret: "kubeapps-db".to_owned(),
            database_secret_key: "postgresql-root-password".to_owned(),
            user_agent_comment: String::new(),
            crontab: "*/10 * * * *".to_owned(),
            seconds_after_finished: Some(3600),
            deadline_seconds: None,
            successful_jobs: 3,
            failed_jobs: 1,
            concurrency_policy: "Replace".to_owned(),
            annotations: BTreeMap::new(),
            labels: BTreeMap::new(),
            oci_catalog_url: String::new(),
            kubeconfig: String::new(),
            api_server: String::new(),
        }
    }
}

impl Options {
    /// From flags in the form `--name=value`; `catalog_url` is `OCI_CATALOG_URL`, which counts
    /// where no flag says otherwise.
    ///
    /// # Errors
    /// A flag is unknown or has a value that it cannot have.
    pub fn parse(flags: &[String], catalog_url: &str) -> Result<Self, OptionsError> {
        let mut options = Self {
            oci_catalog_url: catalog_url.to_owned(),
            ..Self::default()
        };
        let mut words = flags.iter();
        while let Some(word) = words.next() {
            let name = word.trim_start_matches('-');
            if name.len() == word.len() {
                return Err(OptionsError(format!("unknown command {word:?}")));
            }
            match name.split_once('=') {
                Some((name, value)) => options.set(name, value)?,
                None if SWITCHES.contains(&name) => options.set(name, "true")?,
                None => {
                    let missing = || OptionsError(format!("flag needs an argument: {word}"));
                    options.set(name, words.next().ok_or_else(missing)?)?;
                }
            }
        }
        if !is_crontab(&options.crontab) {
            let why = format!("--crontab={:?} is no crontab", options.crontab);
            return Err(OptionsError(why));
        }
        Ok(options)
    }

    fn set(&mut self, name: &str, value: &str) -> Result<(), OptionsError> {
        let invalid = || OptionsError(format!("invalid argument {value:?} for \"--{name}\" flag"));
        let number = || value.parse::<i64>().map_err(|_| invalid());
        let text = match name {
            "repo-sync-image" => &mut self.image,
            "repo-sync-cmd" => &mut self.command,
            "namespace" => &mut self.namespace,
            "global-repos-namespace" => &mut self.global_namespace,
            "database-url" => &mut self.database_url,
            "database-user" => &mut self.database_user,
            "database-name" => &mut self.database_name,
            "database-secret-name" => &mut self.database_secret,
            "database-secret-key" => &mut self.database_secret_key,
            "user-agent-comment" => &mut self.user_agent_comment,
            "crontab" => &mut self.crontab,
            "kubeconfig" => &mut self.kubeconfig,
            "apiserver" => &mut self.api_server,
            "oci-catalog-url" if value.is_empty() => return Ok(()),
            "oci-catalog-url" => &mut self.oci_catalog_url,
            _ => {
                match name {
                    "repo-sync-image-pullsecrets" => {
                        self.pull_secrets
                            .extend(value.split(',').map(str::to_owned));
                    }
                    "repos-per-namespace" => {
                        self.all_namespaces = value.parse().map_err(|_| invalid())?;
                    }
                    // As unset as text that is no number; the API server refuses a negative one.
                    "ttl-lifetime-afterfinished-job" => {
                        self.seconds_after_finished = value.parse().ok().filter(|ttl| *ttl >= 0);
                    }
                    "active-deadline-seconds" => self.deadline_seconds = value.parse().ok(),
                    "successful-jobs-history-limit" => self.successful_jobs = number()?,
                    "failed-jobs-history-limit" => self.failed_jobs = number()?,
                    "concurrency-policy" => {
                        let known = ["Allow", "Forbid", "Replace"];
                        let known = known.iter().find(|word| word.eq_ignore_ascii_case(value));
                        self.concurrency_policy = (*known.unwrap_or(&"Replace")).to_owned();
                    }
                    "custom-annotations" => self.annotations.extend(pairs(value)?),
                    "custom-labels" => self.labels.extend(pairs(value)?),
                    "v1-beta1-cron-jobs" if value.parse().map_err(|_| invalid())? => {
                        let why = "no API server since 1.25 has CronJobs of batch/v1beta1";
                        return Err(OptionsError(format!("--{name}: {why}")));
                    }
                    "v1-beta1-cron-jobs" => {}
                    name if OF_LOGS.contains(&name) => {}
                    _ => return Err(OptionsError(format!("unknown flag: --{name}"))),
                }
                return Ok(());
            }
        };
        value.clone_into(text);
        Ok(())
    }
}

/// `k=v,k=v`; what follows a second `=` is dropped, as in kubeapps.
fn pairs(text: &str) -> Result<BTreeMap<String, String>, OptionsError> {
    let words = text.split(',').filter(|word| !word.trim().is_empty());
    let pair = |word: &str| {
        let mut parts = word.trim().split('=');
        match (parts.next(), parts.next()) {
            (Some(key), Some(value)) => Ok((key.to_owned(), value.to_owned())),
            _ => Err(OptionsError(format!("{word:?} is not key=value"))),
        }
    };
    words.map(pair).collect()
}
