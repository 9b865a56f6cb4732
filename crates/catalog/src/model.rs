//! The documents of the tables `charts` and `files`, field by field as kubeapps writes them.
//!
//! Main types: [`Chart`] and [`ChartFiles`]. A list that Go would write as `null` is `None`.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The repository inside a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct RepoRef {
    pub namespace: String,
    pub name: String,
    pub url: String,
    /// Always empty for repositories with an index.
    #[serde(rename = "type")]
    pub form: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Maintainer {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub email: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
}

/// A chart with all its versions, the newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Chart {
    /// `<repository>/<name>`, a slash in the name as `%2F`.
    #[serde(rename = "ID")]
    pub id: String,
    pub name: String,
    pub repo: RepoRef,
    pub description: String,
    pub home: String,
    pub keywords: Option<Vec<String>>,
    pub maintainers: Option<Vec<Maintainer>>,
    pub sources: Option<Vec<String>>,
    /// Where the icon is, as the repository writes it.
    pub icon: String,
    /// The icon as a PNG of at most 160 by 160 pixels, in base64.
    pub raw_icon: Option<String>,
    pub icon_content_type: String,
    pub category: String,
    #[serde(rename = "chartVersions")]
    pub versions: Vec<ChartVersion>,
}

impl Chart {
    /// Where it is below its repository: its name, of a registry a path.
    pub fn path(&self) -> String {
        path_of(&self.id)
    }
}

/// The same of a chart's id.
pub(crate) fn path_of(id: &str) -> String {
    let path = id.split_once('/').map_or(id, |(_, path)| path);
    path.replace("%2F", "/")
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChartVersion {
    pub version: String,
    pub app_version: String,
    /// RFC 3339; Go's zero time if the repository does not say.
    pub created: String,
    pub digest: String,
    pub urls: Option<Vec<String>>,
    pub readme: String,
    pub values: String,
    pub additional_values: Option<BTreeMap<String, String>>,
    pub schema: String,
}

/// Go's zero time.
pub const NEVER: &str = "0001-01-01T00:00:00Z";

impl Default for ChartVersion {
    fn default() -> Self {
        Self {
            version: String::new(),
            app_version: String::new(),
            created: NEVER.to_owned(),
            digest: String::new(),
            urls: None,
            readme: String::new(),
            values: String::new(),
            additional_values: None,
            schema: String::new(),
        }
    }
}

/// What people read of one version.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct ChartFiles {
    /// `<chart id>-<version>`.
    #[serde(rename = "ID")]
    pub id: String,
    #[serde(rename = "Readme")]
    pub readme: String,
    #[serde(rename = "DefaultValues")]
    pub values: String,
    /// `values-<x>.yaml` by `values-<x>`.
    #[serde(rename = "AdditionalDefaultValues")]
    pub additional_values: BTreeMap<String, String>,
    #[serde(rename = "Schema")]
    pub schema: String,
    #[serde(rename = "Repo")]
    pub repo: RepoRef,
    /// As the index writes it.
    #[serde(rename = "Digest")]
    pub digest: String,
}

/// Text as PostgreSQL can store it.
pub(crate) fn storable(text: &str) -> String {
    text.replace('\0', "\u{fffd}")
}
