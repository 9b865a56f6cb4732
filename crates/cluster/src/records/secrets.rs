//! Repositories, credential templates and clusters as their Secrets describe them.
//!
//! Main function: [`read_secret`]. A Secret with a fault is not left out: what it is about is found,
//! with the fault and without credentials, so that nobody asks with those of another one.

use super::{
    clusters::broken_cluster,
    settings::{FaultyTemplate, RepoSecret, Settings, secret_data},
};
use crate::connect::ClusterSecret;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use tiphys_api::{constants, repository::Repository};
use tiphys_apimachinery::Object;

/// Adds a Secret of this kind to the settings.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read_secret(
    settings: &mut Settings,
    kind: &str,
    object: &Object,
) -> Result<(), String> {
    let secret_name = object.name().to_owned();
    let managed = object.annotation(constants::MANAGED_BY) == Some(constants::MANAGED_BY_VALUE);
    match kind {
        "cluster" => match ClusterSecret::from_secret(object) {
            Ok(cluster) => settings.clusters.push(cluster),
            Err(e) => {
                let broken = broken_cluster(object, e.to_string());
                let problem = broken.problem.clone();
                settings.broken_clusters.push(broken);
                return Err(problem);
            }
        },
        "repository" | "repository-write" => {
            let read = typed(object, &[&[("url", "repo")], &AZURE[..]].concat());
            let (value, fault) = match read {
                Ok(value) => (value, Ok(())),
                // To leave it out would be to ask the repository without its credentials, or with
                // those of a template.
                Err(fault) => (faulty(object, fault.clone()), Err(fault)),
            };
            let all = match kind {
                "repository" => &mut settings.repositories,
                _ => &mut settings.write_repositories,
            };
            all.push(RepoSecret {
                value,
                secret_name,
                managed,
            });
            return fault;
        }
        "repo-creds" | "repo-write-creds" => {
            let value = match typed(object, &AZURE) {
                Ok(value) => value,
                Err(fault) => {
                    let all = match kind {
                        "repo-creds" => &mut settings.faulty_creds,
                        _ => &mut settings.faulty_write_creds,
                    };
                    let data = secret_data(object);
                    all.push(FaultyTemplate {
                        url: found_by(&data, "url"),
                        type_: readable_type(&data),
                        fault: fault.clone(),
                    });
                    return Err(fault);
                }
            };
            let all = match kind {
                "repo-creds" => &mut settings.repo_creds,
                _ => &mut settings.write_creds,
            };
            all.push(RepoSecret {
                value,
                secret_name,
                managed,
            });
        }
        _ => {}
    }
    Ok(())
}

/// A repository whose Secret has a fault: what it is found by, and nothing to log in with.
fn faulty(object: &Object, fault: String) -> Repository {
    let data = secret_data(object);
    let type_ = readable_type(&data);
    // What may be a registry is looked for among the registries.
    let enable_oci = match data.get("enableOCI") {
        Some(bytes) => !std::str::from_utf8(bytes).is_ok_and(|text| flag(text) == Some(false)),
        None => type_.is_none(),
    };
    let repository = Repository {
        repo: found_by(&data, "url"),
        name: found_by(&data, "name"),
        project: found_by(&data, "project"),
        type_: type_.unwrap_or_default(),
        enable_oci,
        ..Repository::default()
    };
    repository.with_fault(fault)
}

/// A field of a Secret with a fault, which may be in this very field: without what is no text, so
/// that stray bytes do not keep the Secret from being found.
fn found_by(data: &BTreeMap<String, Vec<u8>>, key: &str) -> String {
    let bytes = data.get(key).map(Vec::as_slice).unwrap_or_default();
    let text = String::from_utf8_lossy(bytes);
    let is_text = |c: &char| !c.is_control() && *c != char::REPLACEMENT_CHARACTER;
    text.chars().filter(is_text).collect()
}

/// The type in a Secret with a fault; `None`: it cannot be read.
fn readable_type(data: &BTreeMap<String, Vec<u8>>) -> Option<String> {
    let bytes = data.get("type").cloned().unwrap_or_default();
    String::from_utf8(bytes).ok()
}

/// A boolean as Secrets have it; empty is false.
fn flag(text: &str) -> Option<bool> {
    match text.trim() {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => Some(true),
        "" | "false" | "False" | "FALSE" | "f" | "F" | "0" => Some(false),
        _ => None,
    }
}

/// Both spellings are in use.
const AZURE: [(&str, &str); 2] = [
    (
        "azureServicePrincipalClientID",
        "azureServicePrincipalClientId",
    ),
    (
        "azureServicePrincipalTenantID",
        "azureServicePrincipalTenantId",
    ),
];

/// Parses a Secret's fields, all of them text, into a type with booleans and numbers.
fn typed<T: serde::de::DeserializeOwned>(
    object: &Object,
    renamed: &[(&str, &str)],
) -> Result<T, String> {
    const FLAGS: [&str; 9] = [
        "insecure",
        "insecureIgnoreHostKey",
        "enableLfs",
        "enableOCI",
        "forceHttpBasicAuth",
        "useAzureWorkloadIdentity",
        "insecureOCIForceHttp",
        "inheritedCreds",
        "webhookManifestCacheWarmDisabled",
    ];
    const NUMBERS: [&str; 3] = ["githubAppID", "githubAppInstallationID", "depth"];
    let name = object.name();
    let mut fields = Map::new();
    for (key, bytes) in secret_data(object) {
        let text = String::from_utf8(bytes)
            .map_err(|_| format!("Secret {name}: data.{key} is not UTF-8"))?;
        let value = if FLAGS.contains(&key.as_str()) {
            let flag = flag(&text).ok_or_else(|| {
                let text = text.trim();
                format!("Secret {name}: data.{key} is {text:?}; use true or false")
            })?;
            flag.into()
        } else if NUMBERS.contains(&key.as_str()) {
            match text.trim() {
                "" => continue,
                number => number
                    .parse::<i64>()
                    .map_err(|_| format!("Secret {name}: data.{key} is {number:?}, not a number"))?
                    .into(),
            }
        } else {
            Value::from(text)
        };
        let key = renamed
            .iter()
            .find(|(from, _)| *from == key)
            .map_or(key.clone(), |(_, to)| (*to).to_owned());
        fields.insert(key, value);
    }
    serde_json::from_value(Value::Object(fields)).map_err(|e| format!("Secret {name}: {e}"))
}

#[cfg(test)]
mod tests {
    use super::super::testing::secret;
    use super::*;
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    use serde_json::json;

    #[test]
    fn the_keys_of_identities_have_two_spellings() {
        for kind in ["repository", "repo-creds"] {
            for (client, tenant) in [
                (
                    "azureServicePrincipalClientID",
                    "azureServicePrincipalTenantID",
                ),
                (
                    "azureServicePrincipalClientId",
                    "azureServicePrincipalTenantId",
                ),
            ] {
                let data = [
                    ("url", "https://h/a"),
                    (client, "c"),
                    (tenant, "t"),
                    ("githubAppID", "7"),
                    ("useAzureWorkloadIdentity", "true"),
                    ("noProxy", "h"),
                ];
                let mut s = Settings::default();
                read_secret(&mut s, kind, &secret(kind, &data)).expect("valid");
                let repositories = s.repositories.iter().map(|r| {
                    let r = &r.value;
                    let ids = (
                        &r.azure_service_principal_client_id,
                        &r.azure_service_principal_tenant_id,
                    );
                    (
                        ids,
                        r.github_app_id,
                        r.use_azure_workload_identity,
                        &r.no_proxy,
                    )
                });
                let templates = s.repo_creds.iter().map(|r| {
                    let r = &r.value;
                    let ids = (
                        &r.azure_service_principal_client_id,
                        &r.azure_service_principal_tenant_id,
                    );
                    (
                        ids,
                        r.github_app_id,
                        r.use_azure_workload_identity,
                        &r.no_proxy,
                    )
                });
                let found: Vec<_> = repositories.chain(templates).collect();
                let (c, t, h) = ("c".to_owned(), "t".to_owned(), "h".to_owned());
                assert_eq!(found, [((&c, &t), 7, true, &h)], "{kind} {client}");
            }
        }
    }

    /// R126.
    #[test]
    fn a_repository_with_a_fault_is_found_and_has_no_credentials() {
        let mut s = Settings::default();
        let broken = secret(
            "repository",
            &[
                ("url", "https://git.example/a.git"),
                ("project", "team"),
                ("username", "u"),
                ("insecure", "yes"),
            ],
        );
        let fault = "Secret s: data.insecure is \"yes\"; use true or false";
        for kind in ["repository", "repository-write"] {
            let read = read_secret(&mut s, kind, &broken);
            assert_eq!(read.expect_err("it has a fault"), fault);
        }
        let found = s.known_repository("https://git.example/a", "team");
        assert_eq!(found.fault(), Some(fault));
        assert_eq!(found.username, "");
        let of_others = s.known_repository("https://git.example/a", "others");
        assert_eq!(of_others.fault(), None);
        // Nor is it pushed to with the credentials of a template.
        let template = secret(
            "repo-write-creds",
            &[("url", "https://git.example"), ("username", "w")],
        );
        read_secret(&mut s, "repo-write-creds", &template).expect("valid");
        let found = s.write_repository("https://git.example/a", "team");
        assert_eq!(found.fault(), Some(fault));
        let of_others = s.write_repository("https://git.example/a", "others");
        assert_eq!(
            (of_others.username.as_str(), of_others.fault()),
            ("w", None)
        );
    }

    /// Without it repositories would be asked as anybody, or with a template meant for others.
    #[test]
    fn a_template_with_a_fault_is_not_passed_over() {
        let mut s = Settings::default();
        let good = secret(
            "repo-creds",
            &[("url", "https://git.example"), ("username", "short")],
        );
        read_secret(&mut s, "repo-creds", &good).expect("valid");
        let broken = secret(
            "repo-creds",
            &[("url", "https://git.example/team"), ("enableOCI", "maybe")],
        );
        let fault = read_secret(&mut s, "repo-creds", &broken).expect_err("it has a fault");
        let own = secret(
            "repository",
            &[
                ("url", "https://git.example/team/own"),
                ("username", "u"),
                ("password", "p"),
            ],
        );
        read_secret(&mut s, "repository", &own).expect("valid");
        for (url, username, want) in [
            ("https://git.example/team/a", "", Some(fault.as_str())),
            ("https://git.example/team/own", "u", None),
            ("https://git.example/b", "short", None),
        ] {
            let found = s.known_repository(url, "");
            assert_eq!(
                (found.username.as_str(), found.fault()),
                (username, want),
                "{url}"
            );
        }
    }

    /// Without it charts would be asked for as anybody, or with a template meant for others.
    #[test]
    fn a_registry_with_a_fault_is_not_passed_over() {
        let mut s = Settings::default();
        let good = secret("repo-creds", &[("url", "wide"), ("username", "w")]);
        read_secret(&mut s, "repo-creds", &good).expect("valid");
        for (kind, fields) in [
            // The fault is elsewhere, or in what tells that it is a registry.
            (
                "repository",
                [("url", "a/charts"), ("enableOCI", "true"), ("depth", "x")],
            ),
            (
                "repository",
                [("url", "wide/charts"), ("type", "helm"), ("enableOCI", "x")],
            ),
            (
                "repository",
                [("url", "no/charts"), ("enableOCI", "false"), ("depth", "x")],
            ),
            (
                "repo-creds",
                [("url", "c/team"), ("type", "helm"), ("enableOCI", "x")],
            ),
        ] {
            let read = read_secret(&mut s, kind, &secret(kind, &fields));
            read.expect_err("it has a fault");
        }
        for (url, is_faulty) in [
            ("oci://a/charts", true),
            ("oci://a/charts/deep", true),
            ("oci://wide/charts/deep", true),
            ("oci://c/team/lib", true),
            ("oci://a/other", false),
            ("oci://no/charts/deep", false),
        ] {
            let known = s.known_registry(url, "p");
            assert_eq!(known.fault().is_some(), is_faulty, "{url}");
            assert_eq!(known.username, "", "{url}");
        }
    }

    #[test]
    fn a_url_with_stray_bytes_is_found() {
        let mut s = Settings::default();
        for (kind, url) in [
            ("repository", b"https://git.example/a\xff\n".as_slice()),
            ("repo-creds", b"\xff\xfehttps://git.example/team".as_slice()),
        ] {
            let mut broken = secret(kind, &[]);
            broken
                .0
                .insert("data".to_owned(), json!({"url": STANDARD.encode(url)}));
            read_secret(&mut s, kind, &broken).expect_err("it is not UTF-8");
        }
        for (url, is_faulty) in [
            ("https://git.example/a", true),
            ("https://git.example/team/b", true),
            ("https://git.example/b", false),
        ] {
            let found = s.known_repository(url, "");
            assert_eq!(found.fault().is_some(), is_faulty, "{url}");
        }
    }

    #[test]
    fn a_broken_secret_names_its_field() {
        let e = read_secret(
            &mut Settings::default(),
            "repository",
            &secret("repository", &[("url", "x"), ("insecure", "maybe")]),
        );
        assert_eq!(
            e,
            Err("Secret s: data.insecure is \"maybe\"; use true or false".to_owned())
        );
    }
}
