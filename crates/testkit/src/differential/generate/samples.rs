//! The kinds in scripts, with valid objects of each. Main type: [`Kind`]; the data is in
//! `samples/`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A kind, its path, and valid objects (without type and metadata).
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Kind {
    pub kind: String,
    pub api_version: String,
    pub plural: String,
    #[serde(default)]
    pub cluster: bool,
    #[serde(default)]
    pub subresources: Vec<String>,
    /// The only name that objects of this kind can have.
    #[serde(default)]
    pub name: Option<String>,
    /// Only written with `dryRun=All`, because the effects of a real write happen at an unknown
    /// time.
    #[serde(default)]
    pub dry_run: bool,
    pub samples: Vec<Map<String, Value>>,
    #[serde(skip)]
    pub area: &'static str,
}

const FILES: [(&str, &str); 4] = [
    ("pods", include_str!("../samples/pods.json")),
    ("kinds", include_str!("../samples/kinds.json")),
    ("crd", include_str!("../samples/custom.json")),
    ("crd", include_str!("../samples/definition.json")),
];

/// All kinds of all areas.
///
/// # Panics
/// If a committed file is invalid.
pub fn all() -> Vec<Kind> {
    let read = |(area, text): (&'static str, &str)| {
        let kinds: Vec<Kind> = serde_json::from_str(text).expect("the committed samples are JSON");
        kinds.into_iter().map(move |k| Kind { area, ..k })
    };
    FILES.into_iter().flat_map(read).collect()
}

/// The CRDs that must exist before a script with custom kinds runs.
///
/// # Panics
/// If the committed file is invalid.
pub fn definitions() -> Vec<Value> {
    serde_json::from_str(include_str!("../samples/definitions.json"))
        .expect("the committed definitions are JSON")
}

impl Kind {
    /// The collection in the script's namespace, or in the cluster.
    pub fn collection(&self) -> String {
        let root = if self.api_version.contains('/') {
            "/apis"
        } else {
            "/api"
        };
        let scope = if self.cluster {
            ""
        } else {
            "/namespaces/${ns}"
        };
        format!("{root}/{}{scope}/{}", self.api_version, self.plural)
    }

    /// The collection in all namespaces.
    pub fn everywhere(&self) -> String {
        self.collection().replace("/namespaces/${ns}", "")
    }
}
