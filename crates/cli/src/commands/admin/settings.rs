//! `admin settings validate`: what a server would make of argocd-cm and argocd-secret. Main type:
//! [`Validate`].

use super::overrides::document;
use crate::{client::Failure, commands::apply::HintedError, kubectl::kube::KubeArgs, output};
use jiff::Timestamp;
use serde_json::Value;
use std::{
    collections::{BTreeMap, BTreeSet},
    path::PathBuf,
};
use tiphys_cluster::{apply, request::Call};
use tiphys_engine::customize;
use tiphys_gocompat::yaml::{self, Duplicates, Limits};

const CONFIG: &str = "argocd-cm";
const SECRET: &str = "argocd-secret";
const CUSTOMIZATIONS: &str = "resource.customizations";

/// Validate settings in argocd-cm and argocd-secret
#[derive(clap::Args)]
#[command(after_help = "Examples:
  tiphys admin settings validate --argocd-cm-path argocd-cm.yaml
  tiphys admin settings validate --group accounts --load-cluster-settings -n argocd")]
pub struct Validate {
    /// Group of settings to validate, one of accounts, general, kustomize, resource-overrides
    /// (can be repeated) [default: all]
    #[arg(long, value_name = "GROUP")]
    group: Vec<Group>,
    /// Path to local argocd-cm.yaml file
    #[arg(long, value_name = "FILE")]
    argocd_cm_path: Option<PathBuf>,
    /// Path to local argocd-secret.yaml file
    #[arg(long, value_name = "FILE")]
    argocd_secret_path: Option<PathBuf>,
    /// Read what is not in a file from the cluster
    #[arg(long)]
    load_cluster_settings: bool,
    #[command(flatten)]
    kube: KubeArgs,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Group {
    Accounts,
    General,
    Kustomize,
    ResourceOverrides,
}

impl Group {
    const ALL: [Self; 4] = [
        Self::Accounts,
        Self::General,
        Self::Kustomize,
        Self::ResourceOverrides,
    ];

    fn name(self) -> &'static str {
        match self {
            Self::Accounts => "accounts",
            Self::General => "general",
            Self::Kustomize => "kustomize",
            Self::ResourceOverrides => "resource-overrides",
        }
    }
}

type Texts = BTreeMap<String, String>;

/// What is validated. Without a Secret of the right name, `secret` says so.
struct Given {
    config: Texts,
    secret: Result<(), String>,
}

/// What is said of a group.
#[derive(Debug, Default, PartialEq)]
struct Verdict {
    /// What there is, or why it cannot be used.
    text: String,
    is_wrong: bool,
    warnings: Vec<String>,
}

impl Validate {
    pub async fn run(self) -> Result<(), Failure> {
        let given = self.given().await?;
        let groups = match self.group.as_slice() {
            [] => &Group::ALL,
            some => some,
        };
        for (number, group) in groups.iter().enumerate() {
            let verdict = validate(*group, &given);
            let mark = if verdict.is_wrong {
                "\u{274c}"
            } else {
                "\u{2705}"
            };
            output::print(&format!("{mark} {}\n{}\n", group.name(), verdict.text));
            for warning in &verdict.warnings {
                output::print(&output::log::warning(warning));
            }
            // Argo CD's command ends the log of a group so, which it has for these.
            let has_log = *group == Group::ResourceOverrides
                || !verdict.warnings.is_empty()
                || *group == Group::General && self.load_cluster_settings;
            if has_log {
                output::print("\n");
            }
            if number + 1 < groups.len() {
                output::print("\n");
            }
        }
        Ok(())
    }

    async fn given(&self) -> Result<Given, Failure> {
        if self.argocd_cm_path.is_none() && !self.load_cluster_settings {
            return Err(Failure::error(
                "either --argocd-cm-path must be provided or --load-cluster-settings must be set \
                 to true",
            ));
        }
        let config = match &self.argocd_cm_path {
            Some(path) => document(path)?,
            None => self.read("configmaps", CONFIG).await?,
        };
        let secret = match &self.argocd_secret_path {
            Some(path) => named(&document(path)?),
            None if self.load_cluster_settings => named(&self.read("secrets", SECRET).await?),
            None => Ok(()),
        };
        let data = config["data"].as_object().into_iter().flatten();
        let data = data.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
        Ok(Given {
            config: data.collect(),
            secret,
        })
    }

    async fn read(&self, kind: &str, name: &str) -> Result<Value, Failure> {
        let target = super::connect(&self.kube).await;
        let target = target.map_err(|e| super::failed(&e))?;
        let namespace = super::backup::namespace(&self.kube, &target);
        let path = format!("/api/v1/namespaces/{namespace}/{kind}/{name}");
        let http = target.discovery.cluster().http();
        let found: Result<Value, _> = http.json(&Call::get(path)).await;
        found.map_err(|e| super::failed(&HintedError::from(apply::Failure::from(e))))
    }
}

fn named(secret: &Value) -> Result<(), String> {
    match secret["metadata"]["name"].as_str() {
        Some(SECRET) => Ok(()),
        _ => Err(format!("secret {SECRET:?} not found")),
    }
}

fn validate(group: Group, given: &Given) -> Verdict {
    let judged = match group {
        Group::Accounts => given.secret.clone().and_then(|()| accounts(&given.config)),
        Group::General => match &given.secret {
            Err(e) => Err(format!("error retrieving {SECRET}: {e}")),
            Ok(()) => general(&given.config),
        },
        Group::Kustomize => Ok(kustomize(&given.config)),
        Group::ResourceOverrides => overrides(&given.config),
    };
    judged.unwrap_or_else(|text| Verdict {
        text,
        is_wrong: true,
        warnings: Vec::new(),
    })
}

fn said(text: impl Into<String>) -> Verdict {
    Verdict {
        text: text.into(),
        ..Verdict::default()
    }
}

fn accounts(config: &Texts) -> Result<Verdict, String> {
    let mut names = BTreeSet::from(["admin"]);
    let mut warnings = Vec::new();
    for (key, value) in config {
        let parts: Vec<&str> = key.split('.').collect();
        match parts.as_slice() {
            ["accounts", name] => {
                names.insert(name);
                let words = value.split(',').map(str::trim);
                let unknown = words.filter(|w| !["", "login", "apiKey"].contains(w));
                warnings.extend(unknown.map(|word| {
                    format!("not supported account capability '{word}' in config map key '{key}'")
                }));
            }
            ["accounts", name, "enabled"] => {
                names.insert(name);
                if !["true", "false"].contains(&value.as_str()) {
                    return Err(format!(
                        "strconv.ParseBool: parsing {value:?}: invalid syntax ({key})"
                    ));
                }
            }
            ["accounts", ..] => {
                warnings.push(format!("Unexpected key {key} in ConfigMap '{CONFIG}'"));
            }
            _ => {}
        }
    }
    Ok(Verdict {
        warnings,
        ..said(format!("{} accounts", names.len()))
    })
}

fn general(config: &Texts) -> Result<Verdict, String> {
    let set = |key: &str| {
        config
            .get(key)
            .map(String::as_str)
            .filter(|v| !v.is_empty())
    };
    let read = |key: &str, text: &str| {
        yaml::parse_document(text, &Limits::default(), Duplicates::LastWins)
            .map_err(|e| format!("invalid {key}: {e}"))
    };
    let provider = match (set("dex.config"), set("oidc.config")) {
        (Some(dex), _) => {
            read("dex.config", dex)?;
            Some("Dex")
        }
        (None, Some(oidc)) => {
            let oidc = read("oidc.config", oidc)?;
            for field in ["issuer", "clientID"] {
                if oidc[field].as_str().is_none_or(str::is_empty) {
                    return Err(format!("invalid oidc.config: {field} is missing"));
                }
            }
            Some("OIDC")
        }
        (None, None) => None,
    };
    let url = set("url");
    let text = match (provider, url) {
        (None, _) => "SSO is not configured".to_owned(),
        (Some(provider), Some(_)) => format!("{provider} is configured"),
        (Some(provider), None) => format!("{provider} is configured ('url' field is missing)"),
    };
    let warnings = url.and_then(url_fault).map(|why| {
        format!("Failed to validate URL in configmap: failed to parse URL: parse {why}")
    });
    Ok(Verdict {
        warnings: warnings.into_iter().collect(),
        ..said(text)
    })
}

/// What is wrong with a URL, in Go's words.
fn url_fault(url: &str) -> Option<String> {
    if url.starts_with(':') {
        return Some(format!("{url:?}: missing protocol scheme"));
    }
    let faulty = url.contains("://") && url.parse::<http::Uri>().is_err();
    faulty.then(|| format!("{url:?}: invalid URI for request"))
}

fn kustomize(config: &Texts) -> Verdict {
    let options = config.get("kustomize.buildOptions");
    let options = options.filter(|text| !text.is_empty());
    let text = options.map_or("default options", String::as_str);
    let is_version =
        |key: &&String| key.starts_with("kustomize.version.") || key.starts_with("kustomize.path.");
    match config.keys().filter(is_version).count() {
        0 => said(text),
        count => said(format!("{text} ({count} versions)")),
    }
}

fn overrides(config: &Texts) -> Result<Verdict, String> {
    let (_, problems) = customize::read(config, Timestamp::now);
    if let Some(problem) = problems.into_iter().next() {
        return Err(problem);
    }
    let mut kinds = BTreeSet::new();
    if let Some(text) = config.get(CUSTOMIZATIONS) {
        let whole = yaml::parse_document(text, &Limits::default(), Duplicates::LastWins)
            .map_err(|e| e.to_string())?;
        kinds.extend(
            whole
                .as_object()
                .into_iter()
                .flatten()
                .map(|(k, _)| k.clone()),
        );
    }
    for key in config.keys() {
        let rest = key.strip_prefix(CUSTOMIZATIONS);
        let kind = rest.and_then(|rest| rest.strip_prefix('.')?.split_once('.'));
        kinds.extend(kind.map(|(_, kind)| match kind {
            "all" => "*/*".to_owned(),
            kind => kind.replacen('_', "/", 1),
        }));
    }
    let options = config.get("resource.compareoptions");
    let options = options
        .and_then(|text| yaml::parse_document(text, &Limits::default(), Duplicates::LastWins).ok());
    let ignored = options.as_ref().map(|o| &o["ignoreResourceStatusField"]);
    match ignored.and_then(Value::as_str) {
        Some("none" | "off" | "false") => {}
        Some("crd") => {
            kinds.insert("apiextensions.k8s.io/CustomResourceDefinition".to_owned());
        }
        _ => {
            kinds.insert("*/*".to_owned());
        }
    }
    Ok(said(format!("{} resource overrides", kinds.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn given(config: &[(&str, &str)]) -> Given {
        let config = config
            .iter()
            .map(|(k, v)| ((*k).to_owned(), (*v).to_owned()));
        Given {
            config: config.collect(),
            secret: Ok(()),
        }
    }

    #[test]
    fn verdicts() {
        let health = "resource.customizations.health.example.com_Thing";
        let actions = "resource.customizations.ignoreDifferences.example.com_Thing";
        for (group, config, text, is_wrong) in [
            (
                Group::Accounts,
                &[("accounts.alice", "apiKey")][..],
                "2 accounts",
                false,
            ),
            (Group::General, &[], "SSO is not configured", false),
            (
                Group::General,
                &[("oidc.config", "issuer: https://a\nclientID: b")],
                "OIDC is configured ('url' field is missing)",
                false,
            ),
            (
                Group::General,
                &[("oidc.config", "issuer: https://a")],
                "invalid oidc.config: clientID is missing",
                true,
            ),
            (Group::Kustomize, &[], "default options", false),
            (
                Group::Kustomize,
                &[
                    ("kustomize.buildOptions", "--x"),
                    ("kustomize.path.v1", "/k"),
                ],
                "--x (1 versions)",
                false,
            ),
            (
                Group::ResourceOverrides,
                &[(health, "return {}"), (actions, "jsonPointers: [/a]")],
                "2 resource overrides",
                false,
            ),
            (
                Group::ResourceOverrides,
                &[("resource.compareoptions", "ignoreResourceStatusField: none")],
                "0 resource overrides",
                false,
            ),
        ] {
            let verdict = validate(group, &given(config));
            assert_eq!((verdict.text.as_str(), verdict.is_wrong), (text, is_wrong));
        }
    }

    #[test]
    fn what_is_not_supported_is_warned_of() {
        let accounts = validate(Group::Accounts, &given(&[("accounts.alice", "fly, login")]));
        assert_eq!(
            accounts.warnings,
            ["not supported account capability 'fly' in config map key 'accounts.alice'"]
        );
        let general = validate(Group::General, &given(&[("url", ":bad")]));
        assert_eq!(
            general.warnings,
            [
                "Failed to validate URL in configmap: failed to parse URL: parse \":bad\": missing \
              protocol scheme"
            ]
        );
        let lacking = Given {
            secret: named(&Value::Null),
            ..given(&[])
        };
        assert_eq!(
            validate(Group::General, &lacking).text,
            "error retrieving argocd-secret: secret \"argocd-secret\" not found"
        );
    }
}
