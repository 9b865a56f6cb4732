//! `admin settings resource-overrides`: tries the resource customizations in argocd-cm on a file,
//! without a server. Main type: [`OverridesCommand`].

use crate::{
    client::Failure,
    commands::{app::difference, apply::HintedError},
    kubectl::kube::KubeArgs,
    output::{self, table},
};
use jiff::Timestamp;
use serde_json::Value;
use std::{collections::BTreeMap, fs, path::PathBuf};
use tiphys_apimachinery::Object;
use tiphys_cluster::{apply, records::Settings, request::Call};
use tiphys_engine::{
    actions::{self, Operation},
    customize::{self, Customizations},
    diff, health,
    types::{IgnoreRule, IgnoreStatus},
};
use tiphys_gocompat::yaml;

#[derive(clap::Subcommand)]
pub enum OverridesCommand {
    /// Assess resource health
    Health(Files),
    /// List available resource actions
    ListActions(Files),
    /// Executes resource action
    #[command(visible_alias = "action")]
    RunAction(RunAction),
    /// Renders fields excluded from diffing
    IgnoreDifferences(Files),
    /// Renders fields excluded from resource updates
    IgnoreResourceUpdates {
        #[command(flatten)]
        files: Files,
        /// (no effect: expressions are bounded by their work, not by time)
        #[arg(long, hide = true)]
        ignore_normalizer_jq_execution_timeout: Option<String>,
    },
}

#[derive(clap::Args)]
pub struct Files {
    /// YAML of the resource
    resource: PathBuf,
    #[command(flatten)]
    source: Source,
}

/// Where argocd-cm is.
#[derive(clap::Args)]
struct Source {
    /// Path to local argocd-cm.yaml file
    #[arg(long, value_name = "FILE")]
    argocd_cm_path: Option<PathBuf>,
    /// Path to local argocd-secret.yaml file (no effect: customizations are not in it)
    #[arg(long, value_name = "FILE", hide = true)]
    argocd_secret_path: Option<PathBuf>,
    /// Read argocd-cm from the cluster
    #[arg(long)]
    load_cluster_settings: bool,
    #[command(flatten)]
    kube: KubeArgs,
}

#[derive(clap::Args)]
pub struct RunAction {
    /// YAML of the resource
    resource: PathBuf,
    /// The action
    action: String,
    /// Action parameters (e.g. --param key1=value1)
    #[arg(long, value_name = "NAME=VALUE")]
    param: Vec<String>,
    #[command(flatten)]
    source: Source,
}

/// A resource, and the settings.
struct Trial {
    object: Object,
    settings: Settings,
    customizations: Customizations,
}

impl OverridesCommand {
    pub async fn run(self) -> Result<(), Failure> {
        let text = match self {
            Self::Health(files) => files.read().await?.health()?,
            Self::ListActions(files) => files.read().await?.list_actions()?,
            Self::IgnoreDifferences(files) => files.read().await?.ignore_differences()?,
            Self::IgnoreResourceUpdates { files, .. } => {
                files.read().await?.ignore_resource_updates()?
            }
            Self::RunAction(run) => {
                let parameters: Vec<_> = run
                    .param
                    .iter()
                    .map(|p| parameter(p))
                    .collect::<Result<_, _>>()?;
                let files = Files {
                    resource: run.resource,
                    source: run.source,
                };
                files.read().await?.run_action(&run.action, &parameters)?
            }
        };
        output::print(&text);
        Ok(())
    }
}

fn parameter(text: &str) -> Result<(String, String), Failure> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| Failure::error(format!("Invalid parameter format: {text}")))?;
    Ok((name.to_owned(), value.to_owned()))
}

/// The first document of a file.
pub fn document(path: &PathBuf) -> Result<Value, Failure> {
    let text = fs::read_to_string(path).map_err(|e| Failure::file(path, &e))?;
    let documents = yaml::parse_documents(&text, &yaml::Limits::default());
    let documents = documents.map_err(|e| Failure::error(e.json_text()))?;
    let first = documents.into_iter().next().map(|d| d.value);
    first.ok_or_else(|| Failure::error(format!("{}: it is empty", path.display())))
}

impl Source {
    async fn config(&self) -> Result<Value, Failure> {
        if let Some(path) = &self.argocd_cm_path {
            return document(path);
        }
        if !self.load_cluster_settings {
            return Err(Failure::error(
                "either --argocd-cm-path must be provided or --load-cluster-settings must be set \
                 to true",
            ));
        }
        let target = super::connect(&self.kube).await;
        let target = target.map_err(|e| super::failed(&e))?;
        let namespace = super::backup::namespace(&self.kube, &target);
        let path = format!("/api/v1/namespaces/{namespace}/configmaps/argocd-cm");
        let found: Result<Value, _> = target
            .discovery
            .cluster()
            .http()
            .json(&Call::get(path))
            .await;
        found.map_err(|e| super::failed(&HintedError::from(apply::Failure::from(e))))
    }
}

impl Files {
    async fn read(&self) -> Result<Trial, Failure> {
        let map = self.source.config().await?;
        let object = Object::from_value(document(&self.resource)?)
            .map_err(|e| Failure::error(format!("{}: {e}", self.resource.display())))?;
        let data = map["data"].as_object().into_iter().flatten();
        let config: BTreeMap<String, String> = data
            .filter_map(|(k, v)| Some((k.clone(), v.as_str()?.to_owned())))
            .collect();
        let (customizations, problems) = customize::read(&config, Timestamp::now);
        match problems.first() {
            Some(problem) => Err(Failure::error(problem.clone())),
            None => Ok(Trial {
                object,
                settings: Settings::of_config(config),
                customizations,
            }),
        }
    }
}

impl Trial {
    fn kind(&self) -> String {
        format!("'{}/{}'", self.object.group(), self.object.kind())
    }

    fn health(&self) -> Result<String, Failure> {
        match health::assess_with(&self.object, &self.customizations) {
            Err(error) => Err(Failure::error(error.to_string())),
            // A script ran, and returned no health.
            Ok(None) if self.customizations.judges_health(&self.object) => {
                Ok("STATUS: \nMESSAGE: \n".to_owned())
            }
            Ok(None) => Ok(format!(
                "Health script is not configured for {}\n",
                self.kind()
            )),
            Ok(Some(health)) => Ok(format!(
                "STATUS: {}\nMESSAGE: {}\n",
                health.status, health.message
            )),
        }
    }

    /// Argo CD's message for kinds for which argocd-cm has no actions, even if there are built-in
    /// ones.
    fn without_actions(&self) -> Option<String> {
        let configured = self
            .customizations
            .exact(&self.object)
            .is_some_and(|c| !c.actions.is_empty());
        (!configured).then(|| format!("Actions are not configured for {}\n", self.kind()))
    }

    fn list_actions(&self) -> Result<String, Failure> {
        if let Some(text) = self.without_actions() {
            return Ok(text);
        }
        let mut found = actions::discover(&self.object, &self.customizations)
            .map_err(|e| Failure::error(e.to_string()))?;
        found.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(table::table(
            &["NAME", "DISABLED"],
            found
                .into_iter()
                .map(|a| vec![a.name, a.disabled.to_string()]),
        ))
    }

    fn run_action(&self, action: &str, parameters: &[(String, String)]) -> Result<String, Failure> {
        if let Some(text) = self.without_actions() {
            return Ok(text);
        }
        let impacts = actions::run(
            &self.object,
            action,
            parameters,
            &self.customizations,
            Timestamp::now(),
        );
        let live = Value::Object(self.object.0.clone());
        let mut text = String::new();
        for impact in impacts.map_err(|e| Failure::error(e.to_string()))? {
            let new = Value::Object(impact.object.0);
            text += &match impact.operation {
                Operation::Patch => format!(
                    "Following fields have been changed:\n\n{}",
                    difference(&live, &new)?
                ),
                Operation::Create => {
                    format!("Following resource was created:\n{}\n", output::yaml(&new)?)
                }
            };
        }
        Ok(text)
    }

    fn ignore_differences(&self) -> Result<String, Failure> {
        let said = self.customizations.exact(&self.object);
        let rules = self.customizations.ignore_rules();
        self.without_ignored(&Ignored {
            setting: "ignoreDifferences",
            title: "Ignore differences",
            said: said.map(|c| &c.ignore_differences),
            rules: &rules,
            status: self.settings.config.ignore_status(),
        })
    }

    fn ignore_resource_updates(&self) -> Result<String, Failure> {
        let Some(said) = self.customizations.exact(&self.object) else {
            return Ok(format!("No overrides configured for {}\n", self.kind()));
        };
        let (rules, status) = self.customizations.updates().ignored();
        self.without_ignored(&Ignored {
            setting: "ignoreResourceUpdates",
            title: "Ignore resource updates",
            said: Some(&said.ignore_resource_updates),
            rules,
            status,
        })
    }

    fn without_ignored(&self, ignored: &Ignored<'_>) -> Result<String, Failure> {
        let none = Default::default();
        let said = ignored.said.unwrap_or(&none);
        if said.json_pointers.is_empty() && said.jq_path_expressions.is_empty() {
            return Ok(format!(
                "{} are not configured for {}\n",
                ignored.title,
                self.kind()
            ));
        }
        diff::check_rules(ignored.rules).map_err(Failure::error)?;
        let options = diff::Options {
            ignore: ignored.rules,
            ignore_status: ignored.status,
            ..Default::default()
        };
        let mut left = self.object.clone();
        diff::remove_ignored(&mut left, &options);
        if left == self.object {
            let list = |items: &[String]| format!("[{}]", items.join(" "));
            return Ok(format!(
                "No fields are ignored by {} settings: \n{{{} {} {}}}\n",
                ignored.setting,
                list(&said.json_pointers),
                list(&said.jq_path_expressions),
                list(&said.managed_fields_managers),
            ));
        }
        let text = difference(&Value::Object(self.object.0.clone()), &left.into_value())?;
        Ok(format!("Following fields are ignored:\n\n{text}"))
    }
}

/// What argocd-cm says to ignore of a kind.
struct Ignored<'a> {
    setting: &'static str,
    /// As messages begin.
    title: &'static str,
    /// Of exactly this kind.
    said: Option<&'a tiphys_api::resource::OverrideIgnoreDiff>,
    /// Of all kinds.
    rules: &'a [IgnoreRule],
    status: IgnoreStatus,
}

#[cfg(test)]
mod tests {
    use super::*;

    const SETTINGS: &str = "\
apiVersion: v1
kind: ConfigMap
data:
  resource.customizations.health.x.io_X: return {status = 'Degraded', message = obj.spec.why}
  resource.customizations.health.x.io_Silent: return {}
  resource.customizations.health.x.io_Failing: error('why', 0)
  resource.customizations.ignoreDifferences.x.io_X: 'jsonPointers: [/spec/why]'
  resource.customizations.ignoreResourceUpdates.x.io_X: 'jqPathExpressions: [.spec.when]'
  resource.customizations.actions.x.io_X: |
    discovery.lua: return {b = {disabled = true}, a = {}}
    definitions:
    - name: a
      action.lua: obj.spec.why = actionParams['w'] return obj
    - name: b
      action.lua: return {{operation = 'create', resource = {kind = 'Yak'}}}
";

    fn good<T>(result: Result<T, Failure>) -> T {
        result.unwrap_or_else(|_| panic!("it must work"))
    }

    async fn trial(resource: &str) -> Trial {
        let folder = tempfile::tempdir().expect("a folder");
        let (resource_path, settings_path) =
            (folder.path().join("r.yaml"), folder.path().join("cm.yaml"));
        fs::write(&resource_path, resource).expect("it can be written");
        fs::write(&settings_path, SETTINGS).expect("it can be written");
        good(
            Files {
                resource: resource_path,
                source: Source {
                    argocd_cm_path: Some(settings_path),
                    argocd_secret_path: None,
                    load_cluster_settings: false,
                    kube: KubeArgs::default(),
                },
            }
            .read()
            .await,
        )
    }

    #[tokio::test]
    async fn answers_are_argo_cd_s() {
        let configured = trial(
            "apiVersion: x.io/v1\nkind: X\nmetadata: {name: x}\nspec: {why: tired, when: now}\n",
        )
        .await;
        let other = trial("apiVersion: v1\nkind: ConfigMap\n").await;
        let w = [good(parameter("w=new"))];
        let created = "Following resource was created:\nkind: Yak\n\n";
        for (got, expected) in [
            (configured.health(), "STATUS: Degraded\nMESSAGE: tired\n"),
            (
                configured.list_actions(),
                "NAME  DISABLED\na     false\nb     true\n",
            ),
            (configured.run_action("b", &[]), created),
            (
                other.health(),
                "Health script is not configured for '/ConfigMap'\n",
            ),
            (
                other.list_actions(),
                "Actions are not configured for '/ConfigMap'\n",
            ),
            (
                other.run_action("a", &[]),
                "Actions are not configured for '/ConfigMap'\n",
            ),
            (
                other.ignore_differences(),
                "Ignore differences are not configured for '/ConfigMap'\n",
            ),
        ] {
            assert_eq!(got.ok().as_deref(), Some(expected));
        }
        let silent = trial("apiVersion: x.io/v1\nkind: Silent\nmetadata: {name: s}\n").await;
        assert_eq!(good(silent.health()), "STATUS: \nMESSAGE: \n");
        assert_eq!(
            good(silent.ignore_resource_updates()),
            "Ignore resource updates are not configured for 'x.io/Silent'\n"
        );
        let failing = "apiVersion: x.io/v1\nkind: Failing\nmetadata: {name: f, namespace: ns}\n";
        let failed = trial(failing).await.health().expect_err("its script fails");
        assert_eq!(
            failed.message,
            "failed to get resource health for ns/f: why"
        );
        let changed = good(configured.run_action("a", &w));
        assert!(
            changed.starts_with("Following fields have been changed:\n\n")
                && changed.contains("> ")
                && changed.contains("why: new"),
            "{changed}"
        );
        let ignored = good(configured.ignore_differences());
        assert!(
            ignored.starts_with("Following fields are ignored:\n\n")
                && ignored.contains("<   why: tired"),
            "{ignored}"
        );
        let updates = good(configured.ignore_resource_updates());
        assert!(
            updates.starts_with("Following fields are ignored:\n\n")
                && updates.contains("<   when: now"),
            "{updates}"
        );
        assert_eq!(
            good(other.ignore_resource_updates()),
            "No overrides configured for '/ConfigMap'\n"
        );
        assert!(configured.run_action("c", &[]).is_err() && parameter("w").is_err());
    }
}
