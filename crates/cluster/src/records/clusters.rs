//! Clusters and destinations as their Secrets name them.
//!
//! Main functions: [`one_per_server`] and [`destinations`]. A Secret that cannot be parsed is kept as
//! a [`BrokenCluster`]: what may be its cluster must not be taken for none.

use super::settings::{Settings, secret_data};
use crate::{
    cache::CacheOptions,
    connect::{ClusterSecret, IN_CLUSTER_SERVER},
};
use std::sync::Arc;
use tiphys_apimachinery::Object;
use tiphys_engine::spec::{self, BrokenCluster, Destination};

/// What is known of the cluster of a Secret that cannot be parsed.
pub(super) fn broken_cluster(secret: &Object, problem: String) -> BrokenCluster {
    let data = secret_data(secret);
    let text = |field: &str| {
        data.get(field)
            .and_then(|v| String::from_utf8(v.clone()).ok())
            .unwrap_or_default()
    };
    BrokenCluster {
        secret_name: secret.name().to_owned(),
        problem,
        server: text("server"),
        name: text("name"),
    }
}

impl Settings {
    /// What a cluster's cache watches. An invalid exclusion list is an error, because watching too
    /// much is a bad response to a typo.
    pub fn cache_options(&self, cluster: Option<&ClusterSecret>) -> Result<CacheOptions, String> {
        Ok(CacheOptions {
            tracking: self.tracking(""),
            exclusions: self.config.exclusions()?,
            inclusions: self.config.inclusions()?,
            namespaces: cluster.map(|c| c.namespaces.clone()).unwrap_or_default(),
            cluster_resources: cluster.is_some_and(|c| c.cluster_resources),
            ..CacheOptions::default()
        })
    }

    /// The cluster Secret for a destination's server URL or name.
    pub fn cluster(&self, server: &str, name: &str) -> Option<&ClusterSecret> {
        let server = server.trim_end_matches('/');
        self.clusters.iter().find(|c| {
            if server.is_empty() {
                c.name == name
            } else {
                c.server == server
            }
        })
    }

    /// The clusters that a destination may refer to.
    pub fn destination_clusters(&self) -> spec::Clusters<'_> {
        spec::Clusters {
            known: &self.destinations,
            local_names: &self.local_names,
            broken: &self.broken_clusters,
        }
    }

    /// Whether the cluster the control plane runs in may be used (`cluster.inClusterEnabled`).
    pub fn in_cluster_enabled(&self) -> bool {
        self.get("cluster.inClusterEnabled") != "false"
    }
}

/// Cluster Secrets decide about permissions, so there is only one entry per server. Returns the names
/// of the others.
pub(super) fn one_per_server(clusters: &mut Vec<ClusterSecret>) -> Vec<Destination> {
    clusters.sort_by(|a, b| (&a.server, &a.secret_name).cmp(&(&b.server, &b.secret_name)));
    let mut aliases = Vec::new();
    clusters.dedup_by(|later, first| {
        let is_same = later.server == first.server;
        if is_same && later.name != first.name {
            aliases.push(alias(later, first));
        }
        is_same
    });
    aliases
}

/// Another Secret of the same server is another name for it. A project that one of them belongs to
/// limits both.
fn alias(later: &ClusterSecret, first: &ClusterSecret) -> Destination {
    let projects = [&first.project, &later.project];
    let project = projects.into_iter().find(|project| !project.is_empty());
    Destination {
        server: first.server.clone(),
        name: later.name.clone(),
        project: project.cloned().unwrap_or_default(),
    }
}

/// The clusters that an Application may use, the control plane's own first.
pub(super) fn destinations(settings: &Settings, aliases: Vec<Destination>) -> Arc<[Destination]> {
    let named = |c: &ClusterSecret| Destination {
        server: c.server.clone(),
        name: c.name.clone(),
        project: c.project.clone(),
    };
    let enabled = settings.in_cluster_enabled();
    let own = enabled.then(spec::in_cluster);
    let implicit = own.filter(|own| !settings.clusters.iter().any(|c| c.server == own.server));
    // A Secret for it does not enable it again.
    let stored = settings
        .clusters
        .iter()
        .filter(|c| enabled || c.server != IN_CLUSTER_SERVER);
    let aliases = aliases
        .into_iter()
        .filter(|a| enabled || a.server != IN_CLUSTER_SERVER);
    implicit
        .into_iter()
        .chain(stored.map(named))
        .chain(aliases)
        .collect()
}

/// What the cluster that the control plane runs in is called, also while it is disabled: by its own
/// name, or by those of its Secrets.
pub(super) fn local_names(settings: &Settings, aliases: &[Destination]) -> Arc<[String]> {
    let stored = settings.clusters.iter().map(|c| (&c.server, &c.name));
    let aliases = aliases.iter().map(|a| (&a.server, &a.name));
    let mut names: Vec<String> = stored
        .chain(aliases)
        .filter(|(server, name)| *server == IN_CLUSTER_SERVER && !name.is_empty())
        .map(|(_, name)| name.clone())
        .collect();
    if names.is_empty() {
        names.push(spec::in_cluster().name);
    }
    names.into()
}

#[cfg(test)]
mod tests {
    use super::{super::config::Config, super::secrets::read_secret, super::testing::secret, *};

    #[test]
    fn the_secret_of_a_cluster_that_cannot_be_read_is_not_forgotten() {
        let mut settings = Settings::default();
        let far = "https://far.example";
        read_secret(
            &mut settings,
            "cluster",
            &secret(
                "cluster",
                &[("server", far), ("name", "far"), ("config", "{")],
            ),
        )
        .expect_err("broken");
        read_secret(
            &mut settings,
            "cluster",
            &secret(
                "cluster",
                &[("server", "https://a.example"), ("config", "{}")],
            ),
        )
        .expect("valid");
        let [broken] = settings.broken_clusters.as_slice() else {
            panic!("{:?}", settings.broken_clusters)
        };
        assert!(broken.may_be("https://far.example/", "") && broken.may_be("", "far"));
        assert!(
            !broken.may_be("https://a.example", "")
                && !broken.may_be("", "near")
                && !broken.may_be("", "")
        );
    }

    #[test]
    fn secrets_of_the_same_server_are_names_of_one_cluster() {
        let of = |secret: &str, name: &str, project: &str| ClusterSecret {
            secret_name: secret.to_owned(),
            server: "https://a.example".to_owned(),
            name: name.to_owned(),
            project: project.to_owned(),
            ..ClusterSecret::default()
        };
        let all = [
            of("c", "three", "other"),
            of("a", "one", ""),
            of("b", "two", "team"),
            of("d", "one", ""),
        ];
        let mut settings = Settings {
            clusters: all.to_vec(),
            ..Settings::default()
        };
        let aliases = one_per_server(&mut settings.clusters);
        assert_eq!(settings.clusters.len(), 1);
        let known = destinations(&settings, aliases);
        let shown: Vec<(&str, &str)> = known
            .iter()
            .filter(|d| d.server == "https://a.example")
            .map(|d| (d.name.as_str(), d.project.as_str()))
            .collect();
        assert_eq!(shown, [("one", ""), ("two", "team"), ("three", "other")]);
        // What belongs to a project does so by each of its names.
        let aliases = one_per_server(&mut vec![of("a", "one", "team"), of("b", "two", "")]);
        assert_eq!(aliases[0].project, "team");
    }

    #[test]
    fn a_cluster_that_is_switched_off_stays_so_with_a_secret() {
        let mut s = Settings::of_config(
            [("cluster.inClusterEnabled".to_owned(), "false".to_owned())].into(),
        );
        read_secret(
            &mut s,
            "cluster",
            &secret(
                "cluster",
                &[("name", "local"), ("server", IN_CLUSTER_SERVER)],
            ),
        )
        .expect("valid");
        assert_eq!(destinations(&s, Vec::new()).len(), 0);
        let alias = Destination {
            name: "home".to_owned(),
            ..spec::in_cluster()
        };
        assert_eq!(*local_names(&s, &[alias]), ["local", "home"]);
        assert_eq!(*local_names(&Settings::default(), &[]), ["in-cluster"]);
        let to = tiphys_api::application::ApplicationDestination {
            server: IN_CLUSTER_SERVER.into(),
            ..Default::default()
        };
        let overrides =
            spec::destination(&to, &destinations(&s, Vec::new())).expect_err("switched off");
        assert!(
            overrides.ends_with("cluster \"https://kubernetes.default.svc\" is disabled"),
            "{overrides}"
        );
        s.config = Config::default();
        assert_eq!(destinations(&s, Vec::new())[0].name, "local");
    }

    #[test]
    fn a_secret_does_not_take_the_name_of_the_local_cluster() {
        let far = "https://far.example";
        let mut s = Settings::default();
        let data = [
            ("name", "in-cluster"),
            ("server", far),
            ("config", "{}"),
            ("project", "team"),
        ];
        read_secret(&mut s, "cluster", &secret("cluster", &data)).expect("valid");
        let known = destinations(&s, Vec::new());
        let find = |server: &str, name: &str| {
            let to = tiphys_api::application::ApplicationDestination {
                server: server.into(),
                name: name.into(),
                ..Default::default()
            };
            spec::destination(&to, &known).map(|found| found.server)
        };
        let refusal = find("", "in-cluster").expect_err("two clusters have the name");
        assert!(refusal.starts_with("there are 2 clusters"), "{refusal}");
        for server in [IN_CLUSTER_SERVER, far] {
            assert_eq!(find(server, "").as_deref(), Ok(server));
        }
    }
}
