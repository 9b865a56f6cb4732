//! Which generated Applications cannot be written. Main function: [`invalid`].

use super::Existing;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSet;
use tiphys_engine::spec::{self, Clusters, Presence};

/// Why Applications are invalid, by name. A name that occurs twice makes both invalid.
pub fn invalid(
    set: &ApplicationSet,
    desired: &[Application],
    existing: &Existing<'_>,
) -> BTreeMap<String, String> {
    let mut invalid = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let of = &set.metadata.name;
    for app in desired {
        let name = &app.metadata.name;
        let why = if name.is_empty() {
            Some(format!(
                "ApplicationSet {of} contains an application with no name; a name must be set in \
                 the template's metadata.name or via a templatePatch (generateName is not \
                 supported)"
            ))
        } else if !seen.insert(name) {
            Some(format!(
                "ApplicationSet {of} contains applications with duplicate name: {name}"
            ))
        } else if !existing.projects.contains(&app.spec.project) {
            Some(format!(
                "application references project {} which does not exist",
                app.spec.project
            ))
        } else {
            spec::destination(&app.spec.destination, existing.clusters)
                .err()
                .map(|why| format!("application destination spec is invalid: {why}"))
        };
        if let Some(why) = why {
            invalid.insert(name.clone(), why);
        }
    }
    invalid
}

/// The message of the last one by name, and how many more there are.
pub fn message(invalid: &BTreeMap<String, String>) -> Option<String> {
    let last = invalid.values().next_back()?;
    Some(match invalid.len() {
        1 => last.clone(),
        count => format!("{last} (and {} more)", count - 1),
    })
}

/// Whether an Application's resources cannot be deleted, because its cluster does not exist any
/// more. Unless that is certain, they would be left behind.
pub fn has_no_cluster(app: &Application, existing: &Existing<'_>) -> bool {
    let to = &app.spec.destination;
    // As of one whose spec cannot be read.
    if to.server.is_empty() && to.name.is_empty() {
        return false;
    }
    let clusters = Clusters {
        known: existing.clusters,
        local_names: existing.local_names,
        broken: existing.broken_clusters,
    };
    let found = spec::look_up(to, clusters);
    matches!(found, Ok(Presence::Gone(_)))
}

#[cfg(test)]
mod tests {
    use super::{Existing, has_no_cluster, invalid, spec};
    use serde_json::json;
    use std::collections::{BTreeMap, BTreeSet};
    use tiphys_api::{Application, application_set::ApplicationSet};

    #[test]
    fn an_application_for_an_unknown_server_is_invalid() {
        let mut east = spec::in_cluster();
        east.name = "east".to_owned();
        east.server = "https://east.example".to_owned();
        let local = spec::in_cluster().server;
        let servers = [
            "https://east.example/",
            local.as_str(),
            "https://none.example",
        ];
        let desired = servers.map(|server| {
            serde_json::from_value::<Application>(json!({
                "metadata": {"name": server},
                "spec": {"project": "default", "destination": {"server": server}},
            }))
            .expect("an Application")
        });
        let existing = Existing {
            applications: &[],
            projects: &BTreeSet::from(["default".to_owned()]),
            clusters: &[spec::in_cluster(), east],
            local_names: &[],
            broken_clusters: &[],
        };
        let invalid = invalid(&ApplicationSet::default(), &desired, &existing);
        let why = "application destination spec is invalid: error getting cluster by server \
                   \"https://none.example\": rpc error: code = NotFound desc = cluster \
                   \"https://none.example\" not found";
        let wanted = [("https://none.example".to_owned(), why.to_owned())];
        assert_eq!(invalid, BTreeMap::from(wanted));
    }

    #[test]
    fn the_local_cluster_may_be_disabled() {
        let desired = [
            ("a", json!({"server": "https://kubernetes.default.svc"})),
            ("b", json!({"name": "in-cluster"})),
            ("c", json!({"server": "https://kubernetes.default.svc/"})),
            ("d", json!({"name": "local"})),
        ]
        .map(|(name, destination)| {
            serde_json::from_value::<Application>(json!({
                "metadata": {"name": name},
                "spec": {"project": "default", "destination": destination},
            }))
            .expect("an Application")
        });
        let existing = Existing {
            applications: &[],
            projects: &BTreeSet::from(["default".to_owned()]),
            clusters: &[],
            // As its Secret calls it.
            local_names: &["local".to_owned()],
            broken_clusters: &[],
        };
        let invalid = invalid(&ApplicationSet::default(), &desired, &existing);
        let why = |name: &str| invalid.get(name).map_or("", String::as_str);
        assert!(why("a").ends_with("is disabled"), "{invalid:?}");
        assert!(
            why("b").ends_with("with this name: in-cluster"),
            "{invalid:?}"
        );
        // Nothing that runs there is left behind by a deletion.
        assert!(desired.iter().all(|app| !has_no_cluster(app, &existing)));
        // One whose spec cannot be read is for an unknown cluster.
        assert!(!has_no_cluster(&Application::default(), &existing));
        // What another cluster's Secret has said before it went is no name of the local one.
        let renamed = Existing {
            local_names: &[],
            ..existing
        };
        assert!(has_no_cluster(&desired[3], &renamed));
        // A Secret that cannot be read may be that of its cluster.
        let broken = [spec::BrokenCluster {
            secret_name: "s".to_owned(),
            problem: "no JSON".to_owned(),
            server: String::new(),
            name: "local".to_owned(),
        }];
        let unreadable = Existing {
            broken_clusters: &broken,
            ..renamed
        };
        assert!(!has_no_cluster(&desired[3], &unreadable));
    }
}
