//! `proj list` and `proj get`: projects in tables, lines and documents.

use crate::{
    client::Failure,
    commands::list_document,
    output::{
        self,
        sort::{self, Field},
        table,
    },
};
use tiphys_api::{project::AppProject, rpc::project::DetailedProjectsResponse};

/// What `proj list` can be sorted by: the columns, of lists by their number of items.
pub(super) const FIELDS: &[Field<AppProject>] = &[
    ("name", |p| p.metadata.name.as_str().into()),
    ("description", |p| p.spec.description.as_str().into()),
    ("destinations", |p| p.spec.destinations.len().into()),
    ("sources", |p| p.spec.source_repos.len().into()),
    ("cluster-resource-whitelist", |p| {
        p.spec.cluster_resource_whitelist.len().into()
    }),
    ("namespace-resource-blacklist", |p| {
        p.spec.namespace_resource_blacklist.len().into()
    }),
    ("signature-keys", |p| p.spec.signature_keys.len().into()),
    ("orphaned-resources", |p| orphaned(p).into()),
    ("destination-service-accounts", |p| {
        p.spec.destination_service_accounts.len().into()
    }),
    ("created", |p| {
        sort::created(p.metadata.creation_timestamp.as_ref())
    }),
    ("age", |p| sort::age(p.metadata.creation_timestamp.as_ref())),
];

/// What `proj list -o FORMAT` prints.
pub(super) fn list(projects: &[AppProject], format: &str) -> Result<String, Failure> {
    match format {
        "yaml" | "json" => list_document(projects, format),
        "name" => Ok(projects
            .iter()
            .map(|p| p.metadata.name.clone() + "\n")
            .collect()),
        "wide" | "" => Ok(rows(projects)),
        other => Err(output::unknown_format(other)),
    }
}

/// What `proj get -o FORMAT` prints.
pub(super) fn one(all: DetailedProjectsResponse, format: &str) -> Result<String, Failure> {
    match format {
        "yaml" | "json" => output::document(&all.project.unwrap_or_default(), format),
        "wide" | "" => Ok(details(&all)),
        other => Err(output::unknown_format(other)),
    }
}

const HEADER: [&str; 9] = [
    "NAME",
    "DESCRIPTION",
    "DESTINATIONS",
    "SOURCES",
    "CLUSTER-RESOURCE-WHITELIST",
    "NAMESPACE-RESOURCE-BLACKLIST",
    "SIGNATURE-KEYS",
    "ORPHANED-RESOURCES",
    "DESTINATION-SERVICE-ACCOUNTS",
];

/// The only item, or the number of items.
fn one_or_count(items: Vec<String>, what: &str) -> String {
    match items.as_slice() {
        [] => "<none>".into(),
        [one] => one.clone(),
        many => format!("{} {what}", many.len()),
    }
}

fn count(n: usize, what: &str) -> String {
    if n == 0 {
        "<none>".into()
    } else {
        format!("{n} {what}")
    }
}

fn destinations(p: &AppProject) -> Vec<String> {
    p.spec
        .destinations
        .iter()
        .map(|d| format!("{},{}", d.server, d.namespace))
        .collect()
}

fn cluster_kinds(p: &AppProject) -> Vec<String> {
    p.spec
        .cluster_resource_whitelist
        .iter()
        .map(|k| format!("{}/{}", k.group, k.kind))
        .collect()
}

fn orphaned(p: &AppProject) -> String {
    let Some(settings) = &p.spec.orphaned_resources else {
        return "disabled".into();
    };
    let warn = settings.warn.unwrap_or(false);
    match settings.ignore.len() {
        0 => format!("enabled (warn={warn})"),
        n => format!("enabled (warn={warn}, ignored {n})"),
    }
}

fn rows(projects: &[AppProject]) -> String {
    let rows = projects.iter().map(|p| {
        let accounts = &p.spec.destination_service_accounts;
        let accounts = accounts
            .iter()
            .map(|a| format!("{},{},{}", a.server, a.namespace, a.default_service_account))
            .collect();
        vec![
            p.metadata.name.clone(),
            p.spec.description.clone(),
            one_or_count(destinations(p), "destinations"),
            one_or_count(p.spec.source_repos.clone(), "repos"),
            one_or_count(cluster_kinds(p), "resources"),
            count(p.spec.namespace_resource_blacklist.len(), "resources"),
            count(p.spec.signature_keys.len(), "key(s)"),
            orphaned(p),
            one_or_count(accounts, "destinationServiceAccounts"),
        ]
    });
    table::table(&HEADER, rows)
}

fn details(all: &DetailedProjectsResponse) -> String {
    let empty = AppProject::default();
    let p = all.project.as_ref().unwrap_or(&empty);
    let mut out = String::new();
    let mut list = |label: &str, items: &[String]| {
        let none = ["<none>".to_owned()];
        for (n, item) in if items.is_empty() { &none[..] } else { items }
            .iter()
            .enumerate()
        {
            out += &format!("{:<29}{item}\n", if n == 0 { label } else { "" });
        }
    };
    let one = |text: &str| vec![text.to_owned()];
    let denied: Vec<String> = p
        .spec
        .namespace_resource_blacklist
        .iter()
        .map(|k| format!("{}/{}", k.group, k.kind))
        .collect();
    let keys: Vec<String> = p
        .spec
        .signature_keys
        .iter()
        .filter_map(|k| k.key_id.clone())
        .collect();
    list("Name:", &one(&p.metadata.name));
    list("Description:", &one(&p.spec.description));
    list("Destinations:", &destinations(p));
    list("Repositories:", &p.spec.source_repos);
    list("Source Namespaces:", &p.spec.source_namespaces);
    list(
        "Scoped Repositories:",
        &all.repositories
            .iter()
            .map(|r| r.repo.clone())
            .collect::<Vec<_>>(),
    );
    list("Allowed Cluster Resources:", &cluster_kinds(p));
    list(
        "Scoped Clusters:",
        &all.clusters
            .iter()
            .map(|c| c.server.clone())
            .collect::<Vec<_>>(),
    );
    list("Denied Namespaced Resources:", &denied);
    list(
        "Signature keys:",
        &one(&if keys.is_empty() {
            "<none>".into()
        } else {
            keys.join(", ")
        }),
    );
    list("Orphaned Resources:", &one(&orphaned(p)));
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_project_in_a_row_and_in_lines() {
        let p: AppProject = serde_json::from_value(json!({
            "metadata": {"name": "default"},
            "spec": {
                "sourceRepos": ["*"], "destinations": [{"server": "*", "namespace": "*"}, {"server": "a", "namespace": "b"}],
                "clusterResourceWhitelist": [{"group": "*", "kind": "*"}], "orphanedResources": {"warn": true},
            },
        }))
        .expect("a project");
        let table = rows(std::slice::from_ref(&p));
        let row: Vec<&str> = table
            .lines()
            .nth(1)
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        assert_eq!(
            row,
            [
                "default",
                "2",
                "destinations",
                "*",
                "*/*",
                "<none>",
                "<none>",
                "enabled",
                "(warn=true)",
                "<none>"
            ]
        );
        let text = details(&DetailedProjectsResponse {
            project: Some(p),
            ..Default::default()
        });
        assert!(
            text.contains("Destinations:                *,*\n                             a,b\n"),
            "{text}"
        );
        assert!(
            text.contains("Scoped Clusters:             <none>\n"),
            "{text}"
        );
    }
}
