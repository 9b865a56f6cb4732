//! Whether the cluster of a destination is gone, or is only not known at present.
//!
//! Main function: [`look_up`]. What is deployed to a cluster that is gone can never be deleted, so
//! an Application must not wait for it; in any other case it must, or its resources are left behind.

use super::{Destination, IN_CLUSTER, destination, names_no_cluster};
use tiphys_api::{application::ApplicationDestination, constants::IN_CLUSTER_NAME};

/// A cluster whose Secret cannot be parsed.
#[derive(Clone, Debug)]
pub struct BrokenCluster {
    pub secret_name: String,
    pub problem: String,
    /// As far as they can be parsed; empty: they cannot.
    pub server: String,
    pub name: String,
}

impl BrokenCluster {
    /// Whether it may be the cluster that a destination refers to.
    pub fn may_be(&self, server: &str, name: &str) -> bool {
        let server_matches = self.server.is_empty()
            || self.server.trim_end_matches('/') == server.trim_end_matches('/');
        let name_matches = self.name.is_empty() || self.name == name;
        (!server.is_empty() && server_matches) || (!name.is_empty() && name_matches)
    }
}

/// The clusters that a destination may refer to.
#[derive(Clone, Copy, Debug)]
pub struct Clusters<'a> {
    /// Those that may be used; the local one is among them unless it is disabled.
    pub known: &'a [Destination],
    /// The names of the local cluster, also while it is disabled.
    pub local_names: &'a [String],
    pub broken: &'a [BrokenCluster],
}

/// Whether a cluster exists.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Presence {
    Known,
    /// No cluster has this address or name any more: why.
    Gone(String),
}

/// Whether the cluster of a destination exists.
///
/// # Errors
/// If this is unknown: why, and what to do.
pub fn look_up(to: &ApplicationDestination, clusters: Clusters<'_>) -> Result<Presence, String> {
    let Err(text) = destination(to, clusters.known) else {
        return Ok(Presence::Known);
    };
    if !names_no_cluster(to, clusters.known) {
        return Err(text);
    }
    if is_local(to, clusters.local_names) {
        return Err(format!(
            "{text}; it is disabled by cluster.inClusterEnabled, and the deletion waits until it \
             is not"
        ));
    }
    let mut broken = clusters.broken.iter();
    match broken.find(|broken| broken.may_be(&to.server, &to.name)) {
        None => Ok(Presence::Gone(text)),
        Some(broken) => Err(format!(
            "{text}; the Secret {} cannot be read and may be that of the cluster: {}",
            broken.secret_name, broken.problem
        )),
    }
}

/// Whether a destination that no known cluster has is for the local one.
fn is_local(to: &ApplicationDestination, local_names: &[String]) -> bool {
    to.server.trim_end_matches('/') == IN_CLUSTER
        || to.name == IN_CLUSTER_NAME
        || (!to.name.is_empty() && local_names.contains(&to.name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cluster(server: &str, name: &str) -> Destination {
        Destination {
            server: server.to_owned(),
            name: name.to_owned(),
            ..Destination::default()
        }
    }

    #[test]
    fn only_a_cluster_that_is_no_more_is_gone() {
        const EAST: &str = "https://east.example";
        let all = [
            cluster(IN_CLUSTER, "local"),
            cluster(EAST, "east"),
            cluster("https://a.example", "twice"),
            cluster("https://b.example", "twice"),
        ];
        let (local, far) = (["local".to_owned()], &all[1..]);
        let broken = |server: &str, name: &str| BrokenCluster {
            secret_name: "cluster-x".to_owned(),
            problem: "no JSON".to_owned(),
            server: server.to_owned(),
            name: name.to_owned(),
        };
        let west = [broken("https://west.example", "west")];
        let unreadable = [broken("", "")];
        let nameless = [broken("https://west.example", "")];
        let none: &[BrokenCluster] = &[];
        let (known, gone) = ("known", "gone");
        for (server, name, clusters, broken, expected) in [
            ("https://east.example/", "", far, none, known),
            ("", "local", &all[..], none, known),
            ("", "west", far, none, gone),
            ("https://west.example", "", far, none, gone),
            // What another Secret is about does not matter.
            ("", "north", far, &west[..], gone),
            ("", "west", far, &west[..], "the Secret cluster-x cannot be"),
            ("https://west.example/", "", far, &west[..], "cluster-x"),
            ("https://north.example", "", far, &unreadable[..], "no JSON"),
            // Its name may be what is missing of it, its address is there.
            (
                "",
                "north",
                far,
                &nameless[..],
                "the Secret cluster-x cannot",
            ),
            ("https://north.example", "", far, &nameless[..], gone),
            ("", "twice", far, none, "2 clusters with the same name"),
            (EAST, "east", far, none, "both name and server"),
            (EAST, "other", far, none, "both name and server"),
            ("", "in-cluster", &all[..], none, known),
            ("", "in-cluster", far, none, "cluster.inClusterEnabled"),
            ("", "local", far, none, "cluster.inClusterEnabled"),
            (IN_CLUSTER, "", far, none, "cluster.inClusterEnabled"),
        ] {
            let to = ApplicationDestination {
                server: server.to_owned(),
                name: name.to_owned(),
                ..ApplicationDestination::default()
            };
            let clusters = Clusters {
                known: clusters,
                local_names: &local,
                broken,
            };
            let told = match look_up(&to, clusters) {
                Ok(Presence::Known) => known.to_owned(),
                Ok(Presence::Gone(_)) => gone.to_owned(),
                Err(text) => text,
            };
            assert!(told.contains(expected), "{server} {name}: {told}");
            assert_eq!(
                told.len() > 5,
                expected.len() > 5,
                "{server} {name}: {told}"
            );
        }
    }

    #[test]
    fn another_cluster_may_have_the_name_of_the_local_one() {
        let known = [cluster("https://a.example", "in-cluster")];
        let to = ApplicationDestination {
            name: "in-cluster".to_owned(),
            ..ApplicationDestination::default()
        };
        let clusters = Clusters {
            known: &known,
            local_names: &[],
            broken: &[],
        };
        assert_eq!(look_up(&to, clusters), Ok(Presence::Known));
    }
}
