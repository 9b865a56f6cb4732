//! `admin cluster stats` and `admin cluster shards`: what each cluster has, and which shard of the
//! controllers is responsible for it. Main types: [`Stats`] and [`Shards`].
//!
//! What a controller says of a cluster is in Redis. Where there is none, the cluster of the
//! kubeconfig is counted by its API server.

use super::clusters;
use crate::{
    client::Failure,
    kubectl::kube::{KubeArgs, Target},
    output::{self, log, table},
    roles::redis::RedisArgs,
};
use serde_json::Value;
use std::{
    collections::{BTreeSet, HashMap},
    time::Duration,
};
use tiphys_api::{cluster::ClusterInfo, constants::IN_CLUSTER};
use tiphys_cluster::request::{Call, Http};
use tiphys_controllers::{
    redis::{Format, Reader},
    sharding::{Distribution, Member, Method},
};
use tokio::time::timeout;

const PARAMETERS: &str = "argocd-cmd-params-cm";
/// The name of controllers, if none is given.
const CONTROLLER: &str = "argocd-application-controller";
/// How long Redis may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// Prints information cluster statistics and inferred shard number
#[derive(clap::Args)]
pub struct Stats {
    #[arg(hide = true)]
    ignored: Vec<String>,
    #[command(flatten)]
    options: Options,
}

/// Print information about each controller shard and the estimated portion of Kubernetes resources
/// it is responsible for
#[derive(clap::Args)]
pub struct Shards {
    #[arg(hide = true)]
    ignored: Vec<String>,
    #[command(flatten)]
    options: Options,
}

#[derive(clap::Args)]
struct Options {
    /// Only this shard [default: all]
    #[arg(long, default_value_t = -1, hide_default_value = true, allow_negative_numbers = true)]
    shard: i64,
    /// Number of controllers [default: the number of their pods]
    #[arg(
        long,
        default_value_t = 0,
        hide_default_value = true,
        allow_negative_numbers = true
    )]
    replicas: i64,
    /// Name of the controllers, as their pods' label app.kubernetes.io/name says
    #[arg(long, value_name = "NAME", env = "ARGOCD_APPLICATION_CONTROLLER_NAME")]
    controller_name: Option<String>,
    /// How clusters are distributed: legacy, round-robin or consistent-hashing [default:
    /// controller.sharding.algorithm of argocd-cmd-params-cm]
    #[arg(
        long,
        value_name = "METHOD",
        default_value = "",
        hide_default_value = true
    )]
    sharding_method: String,
    /// (no effect: Redis is read only where --redis says so)
    #[arg(long, hide = true)]
    port_forward_redis: Option<bool>,
    /// (no effect: nothing is written)
    #[arg(long, hide = true)]
    app_state_cache_expiration: Option<String>,
    /// (no effect: nothing is written)
    #[arg(long, hide = true)]
    default_cache_expiration: Option<String>,
    #[command(flatten)]
    redis: RedisArgs,
    #[command(flatten)]
    kube: KubeArgs,
}

/// The label of controllers' pods.
fn label(name: &str) -> Result<String, Failure> {
    let name = if name.is_empty() { CONTROLLER } else { name };
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    if name.chars().all(is_plain) {
        return Ok(format!("app.kubernetes.io/name={name}"));
    }
    Err(Failure::error(format!(
        "--controller-name: {name:?} is not the value of a label: only letters, digits, \"-\", \"_\" and \".\" are"
    )))
}

/// A cluster as it is shown.
#[derive(Debug, PartialEq)]
struct Row {
    server: String,
    shard: usize,
    connection: String,
    namespaces: usize,
    apps: i64,
    resources: i64,
}

impl Stats {
    pub async fn run(self) -> Result<(), Failure> {
        let target = self.options.connect().await?;
        let replicas = self.options.replicas(&target).await?;
        let rows = self.options.rows(&target, replicas).await?;
        let cells = rows.into_iter().map(|row| {
            vec![
                row.server,
                row.shard.to_string(),
                row.connection,
                row.namespaces.to_string(),
                row.apps.to_string(),
                row.resources.to_string(),
            ]
        });
        let header = [
            "SERVER",
            "SHARD",
            "CONNECTION",
            "NAMESPACES COUNT",
            "APPS COUNT",
            "RESOURCES COUNT",
        ];
        output::print(&table::table(&header, cells));
        Ok(())
    }
}

impl Shards {
    pub async fn run(self) -> Result<(), Failure> {
        let target = self.options.connect().await?;
        let replicas = self.options.replicas(&target).await?;
        if replicas == 0 {
            return Ok(());
        }
        let rows = self.options.rows(&target, replicas).await?;
        output::print(&summary(&rows, replicas));
        Ok(())
    }
}

impl Options {
    async fn connect(&self) -> Result<Target, Failure> {
        super::connect(&self.kube)
            .await
            .map_err(|e| super::failed(&e))
    }

    async fn replicas(&self, target: &Target) -> Result<usize, Failure> {
        if let Ok(given) = usize::try_from(self.replicas)
            && given > 0
        {
            return Ok(given);
        }
        let namespace = super::backup::namespace(&self.kube, target);
        let label = label(self.controller_name.as_deref().unwrap_or_default())?;
        let path = format!("/api/v1/namespaces/{namespace}/pods?labelSelector={label}");
        Ok(clusters::list(target.discovery.cluster().http(), path)
            .await?
            .len())
    }

    async fn rows(&self, target: &Target, replicas: usize) -> Result<Vec<Row>, Failure> {
        let http = target.discovery.cluster().http();
        let namespace = super::backup::namespace(&self.kube, target);
        let secrets = clusters::secrets(http, &namespace).await?;
        let apps = clusters::applications(http, &namespace).await?;
        let method = self.method(http, &namespace).await;
        let found = Found::new(&secrets, &apps);
        let distribution = Distribution::new(
            method,
            replicas.max(1),
            &found.members,
            &found.applications(),
        );
        let mut rows = Vec::new();
        for (at, member) in found.members.iter().enumerate() {
            let shard = match replicas {
                0 => 0,
                _ => distribution.shard(&member.server, "").unwrap_or_default(),
            };
            if self.shard >= 0 && i64::try_from(shard) != Ok(self.shard) {
                continue;
            }
            let apps = &found.apps[at];
            let info = self
                .info(target, &member.server, i64::try_from(apps.0).unwrap_or(0))
                .await?;
            rows.push(Row {
                server: member.server.clone(),
                shard,
                connection: info.connection_state.status,
                namespaces: apps.1.len(),
                apps: info.applications_count,
                resources: info.cache_info.resources_count,
            });
        }
        Ok(rows)
    }

    async fn method(&self, http: &Http, namespace: &str) -> Method {
        let mut name = self.sharding_method.clone();
        if name.is_empty() {
            let path = format!("/api/v1/namespaces/{namespace}/configmaps/{PARAMETERS}");
            let read: Result<Value, _> = http.json(&Call::get(path)).await;
            match read {
                Ok(map) => {
                    let set = map["data"]["controller.sharding.algorithm"].as_str();
                    set.unwrap_or(Method::default().as_str())
                        .clone_into(&mut name);
                }
                Err(_) => {
                    log::warn(&format!(
                        "{PARAMETERS} was not found in namespace {namespace}, using default \
                         sharding algorithm of legacy"
                    ));
                    return Method::default();
                }
            }
        }
        Method::parse(&name).unwrap_or_else(|| {
            log::warn(&format!(
                "distribution type {name} is not supported, defaulting to legacy"
            ));
            Method::default()
        })
    }

    /// What is known of a cluster; nothing, if nobody says anything.
    async fn info(&self, target: &Target, server: &str, apps: i64) -> Result<ClusterInfo, Failure> {
        let place = self.redis.place(Format::default().keep);
        let place = place.map_err(|e| Failure::error(format!("{e:#}")))?;
        if let Some(place) = place {
            let read = timeout(PATIENCE, Reader::start(place).cluster(server)).await;
            if let Ok(Ok(Some(info))) = read {
                return Ok(info);
            }
        }
        let mut info = ClusterInfo {
            applications_count: apps,
            ..ClusterInfo::default()
        };
        if server == IN_CLUSTER {
            info.cache_info.resources_count = counted(target).await;
            "Successful".clone_into(&mut info.connection_state.status);
        }
        Ok(info)
    }
}

/// The number of objects in the cluster. Kinds that cannot be listed are none.
async fn counted(target: &Target) -> i64 {
    let (mut count, http) = (0, target.discovery.cluster().http());
    for kind in target
        .discovery
        .kinds()
        .preferred_kinds()
        .filter(|kind| kind.can("list"))
    {
        let call = Call::get(kind.collection_path("")).query("limit", "1");
        let listed: Result<Value, _> = http.json(&call).await;
        let Ok(list) = listed else { continue };
        let first = list["items"].as_array().map_or(0, Vec::len);
        let more = list["metadata"]["remainingItemCount"]
            .as_i64()
            .unwrap_or_default();
        count += i64::try_from(first).unwrap_or_default() + more;
    }
    count
}

/// The clusters in the order of their addresses, and the number and namespaces of the Applications
/// in each. The own cluster is always there.
#[derive(Default)]
struct Found {
    members: Vec<Member>,
    apps: Vec<(u64, BTreeSet<String>)>,
}

impl Found {
    fn new(secrets: &[Value], apps: &[Value]) -> Self {
        let mut named: Vec<(String, Member)> = secrets.iter().map(member).collect();
        if named.iter().all(|(_, member)| member.server != IN_CLUSTER) {
            let own = Member {
                server: IN_CLUSTER.to_owned(),
                ..Member::default()
            };
            named.push(("in-cluster".to_owned(), own));
        }
        named.sort_by(|(_, a), (_, b)| a.server.cmp(&b.server));
        let mut of_apps = vec![(0, BTreeSet::new()); named.len()];
        for app in apps {
            let destination = &app["spec"]["destination"];
            let (server, name) = (destination["server"].as_str(), destination["name"].as_str());
            let is_meant = |(known, member): &(String, Member)| match server {
                Some(server) if !server.is_empty() => member.server == server.trim_end_matches('/'),
                _ => Some(known.as_str()) == name,
            };
            let Some(at) = named.iter().position(is_meant) else {
                continue;
            };
            of_apps[at].0 += 1;
            let namespace = destination["namespace"].as_str().unwrap_or_default();
            of_apps[at].1.insert(namespace.to_owned());
        }
        Self {
            members: named.into_iter().map(|(_, member)| member).collect(),
            apps: of_apps,
        }
    }

    fn applications(&self) -> HashMap<String, u64> {
        let counts = self.members.iter().zip(&self.apps);
        counts
            .map(|(member, (count, _))| (member.server.clone(), *count))
            .collect()
    }
}

/// The name of a cluster, and what decides its shard.
fn member(secret: &Value) -> (String, Member) {
    let member = Member {
        id: secret["metadata"]["uid"]
            .as_str()
            .unwrap_or_default()
            .to_owned(),
        server: clusters::text(secret, "server")
            .trim_end_matches('/')
            .to_owned(),
        shard: clusters::text(secret, "shard").parse().ok(),
    };
    (clusters::text(secret, "name"), member)
}

fn summary(rows: &[Row], replicas: usize) -> String {
    let of_shard = |shard: usize| -> i64 {
        let of_it = rows.iter().filter(|row| row.shard == shard);
        of_it.map(|row| row.resources).sum()
    };
    let total: i64 = rows.iter().map(|row| row.resources).sum();
    let average = total / i64::try_from(replicas.max(1)).unwrap_or(i64::MAX);
    let average_header = format!("% OF AVG PER SHARD ({average})");
    let header = ["SHARD", "RESOURCES COUNT", "% OF TOTAL", &average_header];
    let cells = (0..replicas).map(|shard| {
        let count = of_shard(shard);
        vec![
            shard.to_string(),
            count.to_string(),
            percent(count, total),
            percent(count, average),
        ]
    });
    table::table(&header, cells)
}

/// As Go prints it, which divides by zero.
fn percent(part: i64, whole: i64) -> String {
    match (part, whole) {
        (0, 0) => "NaN%".to_owned(),
        (_, 0) => "+Inf%".to_owned(),
        #[allow(clippy::cast_precision_loss)]
        _ => format!("{:.0}%", part as f64 / whole as f64 * 100.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_of_controllers_is_a_label() {
        let told = |name: &str| label(name).map_err(|e| e.message);
        assert_eq!(
            told("").as_deref(),
            Ok("app.kubernetes.io/name=argocd-application-controller")
        );
        assert_eq!(
            told("mine.controller").as_deref(),
            Ok("app.kubernetes.io/name=mine.controller")
        );
        assert!(told("a,b&limit=1").is_err_and(|e| e.contains("\"a,b&limit=1\"")));
    }
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde_json::json;

    fn row(shard: usize, resources: i64) -> Row {
        Row {
            server: String::new(),
            shard,
            connection: String::new(),
            namespaces: 0,
            apps: 0,
            resources,
        }
    }

    #[test]
    fn shares_are_of_the_whole_and_of_the_average() {
        let text = summary(&[row(0, 30), row(2, 60)], 3);
        let expected = "SHARD  RESOURCES COUNT  % OF TOTAL  % OF AVG PER SHARD (30)\n\
                        0      30               33%         100%\n\
                        1      0                0%          0%\n\
                        2      60               67%         200%\n";
        assert_eq!(text, expected);
        let nothing = summary(&[], 1);
        assert!(
            nothing.ends_with("0      0                NaN%        NaN%\n"),
            "{nothing}"
        );
        assert!(summary(&[row(0, 1)], 2).contains("100%        +Inf%"));
    }

    #[test]
    fn applications_are_counted_by_address_or_name() {
        let secret = |server: &str, name: &str| {
            json!({"metadata": {"uid": name}, "data": {"server": STANDARD.encode(server),
                "name": STANDARD.encode(name), "shard": STANDARD.encode("1")}})
        };
        let app = |server: &str, name: &str, namespace: &str| {
            json!({"spec": {"destination":
                {"server": server, "name": name, "namespace": namespace}}})
        };
        let apps = [
            app("https://a:1/", "", "x"),
            app("", "a", "y"),
            app("", "a", "y"),
            app("", "in-cluster", "z"),
            app("https://gone:1", "", "z"),
        ];
        let found = Found::new(&[secret("https://a:1", "a")], &apps);
        let members: Vec<_> = found
            .members
            .iter()
            .map(|m| (m.server.as_str(), m.shard))
            .collect();
        assert_eq!(members, [("https://a:1", Some(1)), (IN_CLUSTER, None)]);
        let counts: Vec<_> = found
            .apps
            .iter()
            .map(|(apps, names)| (*apps, names.len()))
            .collect();
        assert_eq!(counts, [(3, 2), (1, 1)]);
    }
}
