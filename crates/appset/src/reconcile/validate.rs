//! Which generated Applications cannot be written. Main function: [`invalid`].

use super::Existing;
use std::collections::{BTreeMap, BTreeSet};
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSet;
use tiphys_engine::spec::{self, Destination};

/// Why Applications are invalid, by name. A name that occurs twice makes both invalid.
pub fn invalid(
    set: &ApplicationSet,
    desired: &[Application],
    existing: &Existing<'_>,
) -> BTreeMap<String, String> {
    let mut invalid = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let clusters = clusters(existing);
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
            spec::destination(&app.spec.destination, &clusters)
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

/// The known clusters, the local one among them.
fn clusters(existing: &Existing<'_>) -> Vec<Destination> {
    let local = spec::in_cluster();
    let mut clusters: Vec<Destination> = existing.clusters.to_vec();
    if clusters
        .iter()
        .all(|cluster| cluster.server != local.server)
    {
        clusters.push(local);
    }
    clusters
}

/// Whether an Application's resources cannot be deleted, because its cluster does not exist.
pub fn has_no_cluster(app: &Application, existing: &Existing<'_>) -> bool {
    let local = spec::in_cluster();
    let destination = &app.spec.destination;
    if destination.name.is_empty() && destination.server == local.server {
        return false;
    }
    spec::destination(destination, &clusters(existing)).is_err()
}

#[cfg(test)]
mod tests {
    use super::{Existing, invalid, spec};
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
            clusters: &[east],
        };
        let invalid = invalid(&ApplicationSet::default(), &desired, &existing);
        let why = "application destination spec is invalid: error getting cluster by server \
                   \"https://none.example\": rpc error: code = NotFound desc = cluster \
                   \"https://none.example\" not found";
        let wanted = [("https://none.example".to_owned(), why.to_owned())];
        assert_eq!(invalid, BTreeMap::from(wanted));
    }
}
