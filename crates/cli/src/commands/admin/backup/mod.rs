//! `admin export` and `admin import`: everything that an installation consists of, as one file in
//! the format of Argo CD's commands. Main type: [`Backup`], which decides what belongs to it.

mod export;
mod import;

pub use export::Export;
pub use import::Import;

use crate::kubectl::kube::{KubeArgs, Target};
use serde_json::Value;
use tiphys_api::constants;
use tiphys_apimachinery::Object;
use tiphys_cluster::{Error, request::Call};
use tiphys_engine::permit;
use tiphys_gocompat::patterns;

const CONFIG_MAPS: [&str; 4] = [
    "argocd-cm",
    "argocd-rbac-cm",
    "argocd-ssh-known-hosts-cm",
    "argocd-tls-certs-cm",
];
const PARAMETERS: &str = "argocd-cmd-params-cm";

/// One kind of the objects in a backup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    ConfigMap,
    Secret,
    AppProject,
    Application,
    ApplicationSet,
}

impl Part {
    /// In the order in which they are written.
    const ALL: [Self; 5] = [
        Self::ConfigMap,
        Self::Secret,
        Self::AppProject,
        Self::Application,
        Self::ApplicationSet,
    ];

    fn of(object: &Object) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|part| part.kind() == object.kind() && part.api_version() == object.api_version())
    }

    pub fn kind(self) -> &'static str {
        match self {
            Self::ConfigMap => "ConfigMap",
            Self::Secret => "Secret",
            Self::AppProject => "AppProject",
            Self::Application => "Application",
            Self::ApplicationSet => "ApplicationSet",
        }
    }

    pub fn group(self) -> &'static str {
        if matches!(self, Self::ConfigMap | Self::Secret) {
            ""
        } else {
            "argoproj.io"
        }
    }

    fn api_version(self) -> &'static str {
        if self.group().is_empty() {
            "v1"
        } else {
            "argoproj.io/v1alpha1"
        }
    }

    /// The path of the collection in a namespace, or in all namespaces.
    fn path(self, namespace: &str) -> String {
        let base = if self.group().is_empty() {
            "/api/v1"
        } else {
            "/apis/argoproj.io/v1alpha1"
        };
        let place = if namespace.is_empty() {
            String::new()
        } else {
            format!("/namespaces/{namespace}")
        };
        format!("{base}{place}/{}s", self.kind().to_lowercase())
    }

    pub fn object_path(self, namespace: &str, name: &str) -> String {
        format!("{}/{name}", self.path(namespace))
    }
}

/// Where an installation is.
#[derive(clap::Args)]
struct Place {
    /// Namespaces (names, globs, /expressions/) whose Applications belong to it, too [default:
    /// application.namespaces of argocd-cmd-params-cm]
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    application_namespaces: Vec<String>,
    /// Namespaces (names, globs, /expressions/) whose ApplicationSets belong to it, too [default:
    /// applicationsetcontroller.namespaces]
    #[arg(long, value_name = "GLOB", value_delimiter = ',')]
    applicationset_namespaces: Vec<String>,
    #[command(flatten)]
    kube: KubeArgs,
}

/// The namespace of the installation: from `-n`, else from the kubeconfig; `argocd` instead of
/// `default`, where nothing is installed.
pub fn namespace(kube: &KubeArgs, target: &Target) -> String {
    match kube.namespace() {
        None if target.namespace == "default" => "argocd".to_owned(),
        _ => target.namespace.clone(),
    }
}

/// An installation, and the other namespaces that belong to it.
struct Backup<'a> {
    target: &'a Target,
    namespace: String,
    applications: Vec<String>,
    application_sets: Vec<String>,
}

impl<'a> Backup<'a> {
    /// Values that are not given come from the parameters of the installation.
    async fn new(target: &'a Target, place: &Place) -> Result<Self, Error> {
        let namespace = namespace(&place.kube, target);
        let path = Part::ConfigMap.object_path(&namespace, PARAMETERS);
        let parameters = match target
            .discovery
            .cluster()
            .http()
            .json::<Object>(&Call::get(path))
            .await
        {
            Ok(map) => map,
            Err(e) if e.is_not_found() => Object::default(),
            Err(e) => return Err(e),
        };
        let list = |given: &[String], key: &str| match given {
            [] => {
                let text = parameters
                    .pointer("/data")
                    .and_then(|data| data[key].as_str())
                    .unwrap_or_default();
                text.split(',')
                    .map(str::trim)
                    .filter(|n| !n.is_empty())
                    .map(str::to_owned)
                    .collect()
            }
            given => given.to_vec(),
        };
        let applications = list(&place.application_namespaces, "application.namespaces");
        let application_sets = list(
            &place.applicationset_namespaces,
            "applicationsetcontroller.namespaces",
        );
        Ok(Self {
            target,
            namespace,
            applications,
            application_sets,
        })
    }

    fn others(&self, part: Part) -> &[String] {
        match part {
            Part::Application => &self.applications,
            Part::ApplicationSet => &self.application_sets,
            _ => &[],
        }
    }

    /// Whether objects of this kind may be in a namespace.
    fn takes(&self, part: Part, namespace: &str) -> bool {
        namespace == self.namespace
            || permit::listed(self.others(part), |pattern| {
                patterns::fits(pattern, namespace)
            })
    }

    /// The objects in the cluster, ordered by namespace and name. `None`: the cluster does not have
    /// this kind, or forbids access.
    async fn live(&self, part: Part) -> Result<Option<Vec<Object>>, Error> {
        let place = if self.others(part).is_empty() {
            self.namespace.as_str()
        } else {
            ""
        };
        let list = match self
            .target
            .discovery
            .cluster()
            .http()
            .json::<Value>(&Call::get(part.path(place)))
            .await
        {
            Ok(mut list) => list["items"].take(),
            Err(e)
                if part == Part::ApplicationSet && (e.is_not_found() || e.code() == Some(403)) =>
            {
                return Ok(None);
            }
            Err(e) => return Err(e),
        };
        let Value::Array(items) = list else {
            return Ok(Some(Vec::new()));
        };
        let read = |mut item: Value| {
            (item["apiVersion"], item["kind"]) = (part.api_version().into(), part.kind().into());
            Object::from_value(item).ok()
        };
        let belongs = |object: &Object| match part {
            Part::ConfigMap => CONFIG_MAPS.contains(&object.name()),
            Part::Secret => is_setting(object),
            _ => self.takes(part, object.namespace()),
        };
        Ok(Some(
            items.into_iter().filter_map(read).filter(belongs).collect(),
        ))
    }
}

/// Whether a Secret belongs to the settings: the installation's own, repositories, clusters, and
/// those created by the API.
fn is_setting(secret: &Object) -> bool {
    secret.name() == "argocd-secret"
        || secret.label(constants::SECRET_TYPE_LABEL).is_some()
        || secret.annotation(constants::MANAGED_BY) == Some(constants::MANAGED_BY_VALUE)
}
