//! `admin cluster`, and its command `namespaces`: which namespaces of which cluster the Applications use, and clusters
//! limited to them. Main type: [`ClustersCommand`].

use crate::{
    client::Failure,
    commands::apply::HintedError,
    kubectl::kube::KubeArgs,
    output::{self, table},
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use http::Method;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use tiphys_cluster::{
    apply,
    request::{Call, Http},
};
use tiphys_gocompat::glob;

const IN_CLUSTER: &str = "https://kubernetes.default.svc";
const SELECTOR: &str = "argocd.argoproj.io/secret-type=cluster";
const MERGE_PATCH: &str = "application/merge-patch+json";
/// Namespaces of one cluster that are shown.
const SHOWN: usize = 4;

#[derive(clap::Subcommand)]
pub enum ClustersCommand {
    GenerateSpec(Box<super::declared::ClusterSpec>),
    Kubeconfig(Box<super::kubeconfig::Kubeconfig>),
    Stats(Box<super::shards::Stats>),
    Shards(Box<super::shards::Shards>),
    /// List the namespaces that are managed in each cluster
    #[command(args_conflicts_with_subcommands = true)]
    Namespaces {
        #[command(subcommand)]
        change: Option<Change>,
        #[arg(hide = true)]
        ignored: Vec<String>,
        #[command(flatten)]
        kube: Box<KubeArgs>,
    },
}

#[derive(clap::Subcommand)]
pub enum Change {
    /// Limit the clusters whose names match a pattern to the namespaces that they have
    EnableNamespacedMode {
        /// Glob for the addresses of clusters
        pattern: String,
        /// Print what will be performed
        #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
        dry_run: bool,
        /// Indicates if cluster level resources should be managed
        #[arg(long)]
        cluster_resources: bool,
        /// Max number of namespaces that cluster should managed managed namespaces is less or
        /// equal to specified count
        #[arg(long, default_value_t = 0)]
        max_namespace_count: usize,
    },
    /// Let the clusters whose names match a pattern have all namespaces again
    DisableNamespacedMode {
        /// Glob for the addresses of clusters
        pattern: String,
        /// Print what will be performed
        #[arg(long, default_value_t = true, num_args = 0..=1, require_equals = true, default_missing_value = "true", action = clap::ArgAction::Set)]
        dry_run: bool,
    },
}

/// A cluster of the installation.
#[derive(Debug, Default, PartialEq)]
struct Known {
    server: String,
    name: String,
    /// The Secret; empty for the own cluster if it has none.
    secret: String,
    is_namespaced: bool,
    /// In use by Applications.
    namespaces: BTreeSet<String>,
}

/// What becomes of a cluster.
#[derive(Debug, PartialEq)]
struct Planned<'a> {
    cluster: &'a Known,
    namespaces: Vec<String>,
    cluster_resources: bool,
}

impl ClustersCommand {
    pub async fn run(self) -> Result<(), Failure> {
        let (change, kube) = match self {
            Self::GenerateSpec(command) => return command.run().await,
            Self::Kubeconfig(command) => return command.run().await,
            Self::Stats(command) => return command.run().await,
            Self::Shards(command) => return command.run().await,
            Self::Namespaces { change, kube, .. } => (change, kube),
        };
        let target = super::connect(&kube).await.map_err(|e| super::failed(&e))?;
        let namespace = super::backup::namespace(&kube, &target);
        let http = target.discovery.cluster().http();
        let known = read(http, &namespace).await?;
        let Some(change) = change else {
            let rows = known
                .iter()
                .map(|k| vec![k.server.clone(), shown(&k.namespaces)]);
            output::print(&table::table(&["CLUSTER", "NAMESPACES"], rows));
            return Ok(());
        };
        for planned in plan(&change, &known) {
            let list = planned.namespaces.join(" ");
            let server = &planned.cluster.server;
            output::print(&format!(
                "Setting cluster {server} namespaces to [{list}]..."
            ));
            if change.is_dry_run() {
                output::print("done (dry run)\n");
                continue;
            }
            store(http, &namespace, &planned).await?;
            output::print("done\n");
        }
        Ok(())
    }
}

impl Change {
    fn is_dry_run(&self) -> bool {
        match self {
            Self::EnableNamespacedMode { dry_run, .. }
            | Self::DisableNamespacedMode { dry_run, .. } => *dry_run,
        }
    }
}

/// The clusters that a change is about.
fn plan<'a>(change: &Change, known: &'a [Known]) -> Vec<Planned<'a>> {
    let matches = |pattern: &str, k: &Known| glob::matches(pattern, &k.server, &[]);
    let planned = known.iter().filter_map(|cluster| match change {
        Change::EnableNamespacedMode {
            pattern,
            cluster_resources,
            max_namespace_count,
            ..
        } => {
            let count = cluster.namespaces.len();
            let is_meant = count > 0 && count <= *max_namespace_count && matches(pattern, cluster);
            is_meant.then(|| Planned {
                cluster,
                namespaces: cluster.namespaces.iter().cloned().collect(),
                cluster_resources: *cluster_resources,
            })
        }
        Change::DisableNamespacedMode { pattern, .. } => {
            let is_meant = cluster.is_namespaced && matches(pattern, cluster);
            is_meant.then(|| Planned {
                cluster,
                namespaces: Vec::new(),
                cluster_resources: false,
            })
        }
    });
    planned.collect()
}

fn shown(namespaces: &BTreeSet<String>) -> String {
    let mut names: Vec<&str> = namespaces.iter().map(String::as_str).collect();
    names.sort_by_key(|name| name.len());
    let some = names[..names.len().min(SHOWN)].join(",");
    match names.len() {
        n if n > SHOWN => format!("{some} (total {n})"),
        _ => some,
    }
}

/// A value of a Secret as text; empty when absent.
pub(super) fn text(secret: &Value, key: &str) -> String {
    let bytes = STANDARD.decode(secret["data"][key].as_str().unwrap_or_default());
    let text = bytes.ok().and_then(|bytes| String::from_utf8(bytes).ok());
    text.unwrap_or_default().trim().to_owned()
}

/// The Secrets of the clusters.
pub(super) async fn secrets(http: &Http, namespace: &str) -> Result<Vec<Value>, Failure> {
    let path = format!("/api/v1/namespaces/{namespace}/secrets?labelSelector={SELECTOR}");
    list(http, path).await
}

/// The Applications of the control plane's namespace.
pub(super) async fn applications(http: &Http, namespace: &str) -> Result<Vec<Value>, Failure> {
    let path = format!("/apis/argoproj.io/v1alpha1/namespaces/{namespace}/applications");
    list(http, path).await
}

pub(super) async fn list(http: &Http, path: String) -> Result<Vec<Value>, Failure> {
    let found: Result<Value, _> = http.json(&Call::get(path)).await;
    let found = found.map_err(|e| super::failed(&HintedError::from(apply::Failure::from(e))))?;
    Ok(found["items"].as_array().cloned().unwrap_or_default())
}

async fn read(http: &Http, namespace: &str) -> Result<Vec<Known>, Failure> {
    Ok(clusters(
        &secrets(http, namespace).await?,
        &applications(http, namespace).await?,
    ))
}

/// The clusters in the order of their addresses; the own one is always there.
fn clusters(secrets: &[Value], apps: &[Value]) -> Vec<Known> {
    let mut known = BTreeMap::new();
    for secret in secrets {
        let text = |key: &str| text(secret, key);
        let cluster = Known {
            server: text("server"),
            name: text("name"),
            secret: secret["metadata"]["name"]
                .as_str()
                .unwrap_or_default()
                .to_owned(),
            is_namespaced: !text("namespaces").is_empty(),
            namespaces: BTreeSet::new(),
        };
        known.insert(cluster.server.clone(), cluster);
    }
    let own = || Known {
        server: IN_CLUSTER.to_owned(),
        name: "in-cluster".to_owned(),
        ..Known::default()
    };
    known.entry(IN_CLUSTER.to_owned()).or_insert_with(own);
    for app in apps {
        let destination = &app["spec"]["destination"];
        let (server, name) = (destination["server"].as_str(), destination["name"].as_str());
        let cluster = known
            .values_mut()
            .find(|k| Some(k.server.as_str()) == server || Some(k.name.as_str()) == name);
        let Some(cluster) = cluster else { continue };
        let resources = app["status"]["resources"].as_array().into_iter().flatten();
        let mut used: BTreeSet<String> = resources
            .filter_map(|r| r["namespace"].as_str())
            .filter(|namespace| !namespace.is_empty())
            .map(str::to_owned)
            .collect();
        if app["status"]["resources"]
            .as_array()
            .is_none_or(Vec::is_empty)
        {
            used.extend(destination["namespace"].as_str().map(str::to_owned));
        }
        cluster.namespaces.extend(used);
    }
    known.into_values().collect()
}

async fn store(http: &Http, namespace: &str, planned: &Planned<'_>) -> Result<(), Failure> {
    let Known { server, secret, .. } = planned.cluster;
    if secret.is_empty() {
        return Err(
            Failure::error(format!("error updating cluster: {server} has no Secret"))
                .with_hint("`tiphys cluster add` makes one"),
        );
    }
    let encoded = |text: String| match text.as_str() {
        "" => Value::Null,
        text => STANDARD.encode(text).into(),
    };
    let resources = if planned.cluster_resources {
        "true"
    } else {
        ""
    };
    let patch = json!({"data": {
        "namespaces": encoded(planned.namespaces.join(",")),
        "clusterResources": encoded(resources.to_owned()),
    }});
    let path = format!("/api/v1/namespaces/{namespace}/secrets/{secret}");
    let call = Call::new(Method::PATCH, path).with_body(MERGE_PATCH, patch.to_string());
    let done: Result<Value, _> = http.json(&call).await;
    done.map(drop).map_err(|e| {
        let why = super::failed(&HintedError::from(apply::Failure::from(e))).message;
        Failure::error(format!("error updating cluster: {why}"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_and_what_becomes_of_them() {
        let data = |server: &str, name: &str, namespaces: &str| {
            json!({"metadata": {"name": format!("cluster-{name}")}, "data": {
                "server": STANDARD.encode(server), "name": STANDARD.encode(name),
                "namespaces": STANDARD.encode(namespaces),
            }})
        };
        let secrets = [
            data("https://a:1", "a", ""),
            data("https://b:1", "b", "one,two"),
        ];
        let apps = [
            json!({"spec": {"destination": {"name": "a", "namespace": "aimed-at"}}}),
            json!({"spec": {"destination": {"server": "https://a:1", "namespace": "dummy"}},
                "status": {"resources": [{"namespace": "used"}, {"kind": "Namespace"}]}}),
            json!({"spec": {"destination": {"server": "https://gone:1", "namespace": "x"}}}),
        ];
        let known = clusters(&secrets, &apps);
        let servers: Vec<&str> = known.iter().map(|k| k.server.as_str()).collect();
        assert_eq!(servers, ["https://a:1", "https://b:1", IN_CLUSTER]);
        assert_eq!(shown(&known[0].namespaces), "used,aimed-at");

        let enable = |pattern: &str, max_namespace_count| Change::EnableNamespacedMode {
            pattern: pattern.to_owned(),
            dry_run: true,
            cluster_resources: true,
            max_namespace_count,
        };
        assert!(plan(&enable("https://*", 1), &known).is_empty(), "too many");
        let planned = plan(&enable("https://*", 2), &known);
        assert_eq!(planned.len(), 1, "of those that are used");
        assert_eq!(planned[0].namespaces, ["aimed-at", "used"]);
        let disable = Change::DisableNamespacedMode {
            pattern: "https://*".to_owned(),
            dry_run: false,
        };
        let planned = plan(&disable, &known);
        assert_eq!(planned[0].cluster.name, "b");
        assert!(planned.len() == 1 && planned[0].namespaces.is_empty() && !disable.is_dry_run());
    }
}
