//! The kinds that scripts are about, with valid objects of each. Main type: [`Kind`]; the data lies
//! in `samples/`.

use serde::Deserialize;
use serde_json::{Map, Value};

/// A kind, where it is served, and valid objects of it (without type and metadata).
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
    /// Only ever written with `dryRun=All`: what follows from a real write happens at no known
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
/// When a committed file is broken.
pub fn all() -> Vec<Kind> {
    let read = |(area, text): (&'static str, &str)| {
        let kinds: Vec<Kind> = serde_json::from_str(text).expect("the committed samples are JSON");
        kinds.into_iter().map(move |k| Kind { area, ..k })
    };
    FILES.into_iter().flat_map(read).collect()
}

/// The CustomResourceDefinitions that must be there before a script with custom kinds runs.
///
/// # Panics
/// When the committed file is broken.
pub fn definitions() -> Vec<Value> {
    serde_json::from_str(include_str!("../samples/definitions.json"))
        .expect("the committed definitions are JSON")
}

impl Kind {
    /// The collection in the script's namespace, or of the cluster.
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

    /// The collection of all namespaces.
    pub fn everywhere(&self) -> String {
        self.collection().replace("/namespaces/${ns}", "")
    }
}
