//! `admin settings rbac`: tries a policy without a server. Main type: [`RbacCommand`].

use crate::{
    client::{Failure, exit},
    commands::apply::HintedError,
    kubectl::kube::KubeArgs,
    output,
};
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::PathBuf};
use tiphys_apimachinery::Object;
use tiphys_cluster::{apply, request::Call};
use tiphys_gocompat::yaml::{self, Duplicates, Limits};
use tiphys_rbac::{
    Finding, Problem, Rbac, Request, Settings, check, is_unbound_group, place, resolve,
};

const CONFIG_MAP: &str = "argocd-rbac-cm";

#[derive(clap::Subcommand)]
pub enum RbacCommand {
    Can(Can),
    Validate(Validate),
}

/// Check whether a given role or subject has appropriate RBAC permissions to do something
#[derive(clap::Args)]
#[command(after_help = "Examples:
  # Whether the role may sync the Application, by the policy of a file
  tiphys admin settings rbac can role:dev sync applications default/web --policy-file policy.csv

  # Whether a user may delete clusters, by the policy of the cluster
  tiphys admin settings rbac can alice delete clusters --namespace argocd

Exits with 0 for yes and 1 for no.")]
pub struct Can {
    /// A user, a group, or a role
    subject: String,
    /// Such as get, sync, or action/apps/Deployment/restart
    action: String,
    /// Such as applications, projects, or clusters
    resource: String,
    /// The object's name in policies, such as default/web
    #[arg(default_value = "*")]
    object: String,
    #[command(flatten)]
    policy: PolicyArgs,
    /// Name of the role that everybody has
    #[arg(long, value_name = "ROLE")]
    default_role: Option<String>,
    /// Whether to use the built-in roles
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    use_builtin_policy: bool,
    /// Whether to check that resource and action exist
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, num_args = 0..=1, default_missing_value = "true")]
    strict: bool,
    /// Print nothing; the exit code is the answer
    #[arg(long, short)]
    quiet: bool,
}

/// Validate RBAC policy
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tiphys admin settings rbac validate --policy-file policy.csv
  tiphys admin settings rbac validate --namespace argocd

Exits with 0 for a valid policy and 1 for an invalid one.")]
pub struct Validate {
    #[arg(hide = true)]
    words: Vec<String>,
    #[command(flatten)]
    policy: PolicyArgs,
}

#[derive(clap::Args)]
pub struct PolicyArgs {
    /// (no effect: policies are not in it)
    #[arg(long, value_name = "FILE", hide = true)]
    argocd_cm_path: Option<PathBuf>,
    /// (no effect: policies are not in it)
    #[arg(long, value_name = "FILE", hide = true)]
    argocd_secret_path: Option<PathBuf>,
    /// (no effect: without a file, the policy is always read from the cluster)
    #[arg(long, hide = true)]
    load_cluster_settings: bool,
    /// A policy, or a ConfigMap with one; with --namespace instead, that of the cluster is read
    #[arg(long, value_name = "FILE")]
    policy_file: Option<PathBuf>,
    #[command(flatten)]
    kube: KubeArgs,
}

impl RbacCommand {
    pub async fn run(self) -> Result<(), Failure> {
        match self {
            Self::Can(command) => command.run().await,
            Self::Validate(command) => command.run().await,
        }
    }
}

impl PolicyArgs {
    /// The data of the ConfigMap; of a plain policy, as if it were its only key.
    async fn data(self) -> Result<BTreeMap<String, String>, Failure> {
        if self.policy_file.is_some() == self.kube.namespace().is_some() {
            let why = "please provide exactly one of --policy-file or --namespace";
            return Err(Failure {
                is_misuse: true,
                ..Failure::fatal(why)
            });
        }
        let Some(file) = self.policy_file else {
            return from_cluster(self.kube).await;
        };
        let text = fs::read_to_string(&file).map_err(|e| {
            let why = Failure::file(&file, &e).message;
            Failure::fatal(format!("error opening policy file: {why}"))
        })?;
        let document = yaml::parse_document(&text, &Limits::default(), Duplicates::LastWins);
        Ok(match document {
            Ok(Value::Object(map)) => data_of(map.get("data")),
            _ => BTreeMap::from([("policy.csv".to_owned(), text)]),
        })
    }
}

/// In Argo CD's words. It means roles that the policy uses and does not define.
fn warn_of_unknown_roles(findings: &[Finding]) {
    let roles = findings
        .iter()
        .filter_map(|finding| match &finding.problem {
            Problem::NoPermissions { role, .. } => Some(role.as_str()),
            _ => None,
        });
    let roles: Vec<&str> = roles.collect();
    if !roles.is_empty() {
        let roles = roles.join(",");
        output::log::warn(&format!(
            "user defined roles not found in policies: {roles}"
        ));
    }
}

fn warn_of(findings: &[Finding], data: &BTreeMap<String, String>) {
    warn_of_unknown_roles(findings);
    for Finding { number, problem } in findings {
        // The line above has the others.
        if matches!(problem, Problem::NoPermissions { nearest: None, .. }) {
            continue;
        }
        let at = number.map(|number| format!("{}: ", at(data, number)));
        output::log::warn(&format!("{}{problem}", at.unwrap_or_default()));
    }
}

/// Where a line of the policy is; the key, if there are several.
fn at(data: &BTreeMap<String, String>, number: usize) -> String {
    let is_policy = |key: &&String| key.starts_with("policy.") && key.ends_with(".csv");
    let (key, line) = place(data, number);
    if data.keys().filter(is_policy).count() > 1 {
        format!("{key}, line {line}")
    } else {
        format!("line {line}")
    }
}

fn data_of(data: Option<&Value>) -> BTreeMap<String, String> {
    let entries = data.and_then(Value::as_object).into_iter().flatten();
    entries
        .filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())))
        .collect()
}

async fn from_cluster(kube: KubeArgs) -> Result<BTreeMap<String, String>, Failure> {
    let mut data = BTreeMap::new();
    let read = async {
        let target = super::connect(&kube).await?;
        let namespace = super::backup::namespace(&kube, &target);
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/{CONFIG_MAP}");
        let http = target.discovery.cluster().http();
        let record: Object = http
            .json(&Call::get(path))
            .await
            .map_err(apply::Failure::from)?;
        data = data_of(record.into_value().get("data"));
        Ok(())
    };
    let ended: Result<(), HintedError> = read.await;
    ended.map_err(|e| {
        let why = super::failed(&e).message;
        Failure::fatal(format!("could not get configmap: {why}"))
    })?;
    Ok(data)
}

impl Can {
    async fn run(self) -> Result<(), Failure> {
        let (resource, object) =
            resolve(&self.action, &self.resource, &self.object, self.strict)
                .map_err(|e| Failure::fatal(format!("error in RBAC request: {e}")))?;
        let request = Request {
            resource,
            action: &self.action,
            object,
        };
        let data = self.policy.data().await?;
        let mut settings = Settings::new(&data)
            .map_err(|e| Failure::fatal(format!("could not read the settings: {e}")))?;
        if let Ok(findings) = check(&settings) {
            warn_of_unknown_roles(&findings);
        }
        if let Some(role) = self.default_role {
            settings.default_role = role;
        }
        let rbac = Rbac::new(self.use_builtin_policy, settings).map_err(|e| {
            Failure::fatal(format!("invalid user policy: {}: {e}", at(&data, e.number)))
        })?;
        let yes = rbac.permits_subject(&self.subject, request);
        if yes && is_unbound_group(&self.subject, rbac.is_member(&self.subject)) {
            let subject = &self.subject;
            output::log::warn(&format!(
                "subject {subject:?} is a group with a direct 'p,' policy but no 'g, \
                 {subject}, role:...' binding; the API server ignores such grants at runtime, so \
                 this permission will NOT take effect. Bind the group to a role instead."
            ));
        }
        if !self.quiet {
            output::print(if yes { "Yes\n" } else { "No\n" });
        }
        if yes {
            Ok(())
        } else {
            Err(Failure::exit(exit::FAILED))
        }
    }
}

impl Validate {
    async fn run(self) -> Result<(), Failure> {
        if !self.words.is_empty() {
            return Err(Failure {
                is_misuse: true,
                ..Failure::fatal("too many arguments")
            });
        }
        let data = self.policy.data().await?;
        let settings = Settings::new(&data)
            .map_err(|e| Failure::fatal(format!("could not read the settings: {e}")))?;
        if settings.policy.trim().is_empty() {
            return Err(Failure::fatal("Policy is empty or could not be loaded."));
        }
        match check(&settings) {
            Ok(findings) => {
                warn_of(&findings, &data);
                output::print("Policy is valid.\n");
                Ok(())
            }
            Err(fault) => {
                let at = at(&data, fault.number);
                output::print(&format!("Policy is invalid: {at}: {fault}\n"));
                Err(Failure::exit(exit::FAILED))
            }
        }
    }
}
