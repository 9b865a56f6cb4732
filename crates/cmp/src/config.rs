//! `plugin.yaml`, version 2.
//!
//! Main type: [`Config`].

use serde::{Deserialize, Deserializer};
use std::{
    io,
    path::{Path, PathBuf},
};
use tiphys_api::rpc::repository::ParameterAnnouncement;
use tiphys_gocompat::yaml;

const KIND: &str = "ConfigManagementPlugin";
const FILE: &str = "plugin.yaml";

/// Unknown fields are ignored, as Argo CD does.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Config {
    #[serde(deserialize_with = "or_default")]
    kind: String,
    #[serde(deserialize_with = "or_default")]
    metadata: Metadata,
    #[serde(deserialize_with = "or_default")]
    pub spec: Spec,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
struct Metadata {
    #[serde(deserialize_with = "or_default")]
    name: String,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Spec {
    #[serde(deserialize_with = "or_default")]
    pub version: String,
    /// Runs before `generate`.
    #[serde(deserialize_with = "or_default")]
    pub init: Command,
    /// Prints the manifests.
    #[serde(deserialize_with = "or_default")]
    pub generate: Command,
    #[serde(deserialize_with = "or_default")]
    pub discover: Discover,
    #[serde(deserialize_with = "or_default")]
    pub parameters: Parameters,
    /// Files keep who may read, write and run them.
    #[serde(deserialize_with = "or_default")]
    pub preserve_file_mode: bool,
    /// The commands may fetch from the source's repository.
    #[serde(deserialize_with = "or_default")]
    pub provide_git_creds: bool,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Command {
    #[serde(deserialize_with = "or_default")]
    pub command: Vec<String>,
    #[serde(deserialize_with = "or_default")]
    pub args: Vec<String>,
}

/// Which sources it is for. The first that is set counts.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Discover {
    /// A glob for files in the Application's folder.
    #[serde(deserialize_with = "or_default")]
    pub file_name: String,
    #[serde(deserialize_with = "or_default")]
    pub find: Find,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Find {
    /// A glob in which `**` is any number of folders.
    #[serde(deserialize_with = "or_default")]
    pub glob: String,
    /// It is for the source if the command prints something.
    #[serde(flatten)]
    pub command: Command,
}

#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct Parameters {
    #[serde(rename = "static", deserialize_with = "or_default")]
    pub fixed: Vec<ParameterAnnouncement>,
    /// Prints more of them, as JSON.
    #[serde(deserialize_with = "or_default")]
    pub dynamic: Command,
}

#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    #[error("open {path}: {reason}")]
    Unreadable { path: PathBuf, reason: io::Error },
    #[error("{path}: {reason}")]
    Syntax { path: PathBuf, reason: String },
    #[error("invalid plugin configuration file. {0}")]
    Invalid(String),
}

impl Config {
    /// Reads `plugin.yaml` in a folder.
    pub fn read(dir: &Path) -> Result<Self, ConfigError> {
        let path = dir.join(FILE);
        let text = std::fs::read(&path).map_err(|reason| ConfigError::Unreadable {
            path: path.clone(),
            reason,
        })?;
        let broken = |reason: String| ConfigError::Syntax {
            path: path.clone(),
            reason,
        };
        let limits = yaml::Limits::default();
        let value = yaml::parse_document(&text, &limits, yaml::Duplicates::LastWins)
            .map_err(|e| broken(e.to_string()))?;
        let config: Self = serde_json::from_value(value).map_err(|e| broken(e.to_string()))?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<(), ConfigError> {
        let wrong = if self.metadata.name.is_empty() {
            "metadata.name should be non-empty".to_owned()
        } else if self.kind != KIND {
            format!("kind should be {KIND}, found {}", self.kind)
        } else if self.spec.generate.command.is_empty() {
            "spec.generate command should be non-empty".to_owned()
        } else if self.name().contains(['/', '\0']) {
            "metadata.name and spec.version should be part of a file name".to_owned()
        } else {
            return Ok(());
        };
        Err(ConfigError::Invalid(wrong))
    }

    /// As an Application names it: with its version if it has one.
    pub fn name(&self) -> String {
        match self.spec.version.as_str() {
            "" => self.metadata.name.clone(),
            version => format!("{}-{version}", self.metadata.name),
        }
    }

    /// The socket in the folder of sockets.
    pub fn socket(&self, dir: &Path) -> PathBuf {
        dir.join(format!("{}.sock", self.name()))
    }

    /// Whether it finds out for which sources it is.
    pub fn discovers(&self) -> bool {
        let Discover { file_name, find } = &self.spec.discover;
        !(file_name.is_empty() && find.glob.is_empty() && find.command.command.is_empty())
    }
}

/// `null` is what is not there.
fn or_default<'de, D: Deserializer<'de>, T: Default + Deserialize<'de>>(
    deserializer: D,
) -> Result<T, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Result<Config, ConfigError> {
        let dir = tempfile::tempdir().expect("a folder");
        std::fs::write(dir.path().join(FILE), text).expect("written");
        Config::read(dir.path())
    }

    const HEAD: &str = "apiVersion: argoproj.io/v1alpha1\nkind: ConfigManagementPlugin\n";

    #[test]
    fn all_fields_are_read() {
        let config = of(&format!(
            "{HEAD}metadata: {{name: p, annotations: {{a: b}}}}\n{}",
            "spec:
  version: v1.0
  init: {command: [sh], args: [-c, 'true']}
  generate: {command: [sh, -c, echo]}
  discover:
    fileName: './subdir/s*.yaml'
    find: {glob: '**/x.yaml', command: [find], args: [., -name, x]}
  parameters:
    static: [{name: a, title: A, required: true, itemType: number, collectionType: map, map: {k: v}}]
    dynamic: {command: [cat, p.json]}
  preserveFileMode: true
  provideGitCreds: true
  discovery: [{glob: '**/*'}]
"
        ))
        .expect("valid");
        let spec = &config.spec;
        assert_eq!(config.name(), "p-v1.0");
        let socket = config.socket(Path::new("/plugins"));
        assert_eq!(socket, Path::new("/plugins/p-v1.0.sock"));
        assert_eq!(spec.init.args, ["-c", "true"]);
        assert_eq!(spec.discover.find.command.command, ["find"]);
        assert_eq!(spec.discover.find.command.args, [".", "-name", "x"]);
        assert_eq!(spec.discover.find.glob, "**/x.yaml");
        assert_eq!(spec.parameters.fixed[0].map["k"], "v");
        assert_eq!(spec.parameters.dynamic.command, ["cat", "p.json"]);
        assert!(config.discovers() && spec.preserve_file_mode && spec.provide_git_creds);
    }

    #[test]
    fn what_is_missing_is_named_as_argo_cd_does() {
        let generate = "spec: {generate: {command: [sh]}, discover: null}\n";
        let only = format!("{HEAD}metadata: {{name: p}}\n{generate}");
        let config = of(&only).expect("valid");
        assert_eq!((config.name().as_str(), config.discovers()), ("p", false));
        for (text, want) in [
            (
                format!("{HEAD}{generate}"),
                "metadata.name should be non-empty",
            ),
            (
                format!("metadata: {{name: p}}\nkind: Pod\n{generate}"),
                "kind should be ConfigManagementPlugin, found Pod",
            ),
            (
                format!("{HEAD}metadata: {{name: p}}\n"),
                "spec.generate command should be non-empty",
            ),
            (
                format!("{HEAD}metadata: {{name: ../p}}\n{generate}"),
                "metadata.name and spec.version should be part of a file name",
            ),
        ] {
            let e = of(&text).expect_err(want).to_string();
            assert_eq!(e, format!("invalid plugin configuration file. {want}"));
        }
        let e = of("a: [").expect_err("no YAML").to_string();
        assert!(e.contains("plugin.yaml: "), "{e}");
        let e = Config::read(Path::new("/nowhere")).expect_err("no file");
        assert!(
            e.to_string().starts_with("open /nowhere/plugin.yaml: "),
            "{e}"
        );
    }
}
