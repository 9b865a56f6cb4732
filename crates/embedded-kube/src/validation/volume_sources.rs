//! The source of a PersistentVolume: exactly one, checked by a table of sources. Main function:
//! [`one`].

use super::pod::volume as of_pods;
use super::rules::{At, Check, Rule};
use super::volumes::driver_name;
use crate::status::Cause;
use tiphys_kube_schema::formats::{dns_label, dns_subdomain};

const TEXT: &[Check] = &[Check::Required("")];
const OWNED_SECRET: Rule = Rule::In(
    "secretRef",
    &[Rule::Field("name", TEXT), Rule::Field("namespace", TEXT)],
);

/// A volume type: its field, the field's name in messages if it is the second type and for errors
/// in its parts, and its rules.
pub struct Source {
    pub field: &'static str,
    second: &'static str,
    path: &'static str,
    rules: &'static [Rule],
}

const fn source(field: &'static str, rules: &'static [Rule]) -> Source {
    Source {
        field,
        second: field,
        path: field,
        rules,
    }
}

/// In the order in which the API server checks them.
pub const SOURCES: &[Source] = &[
    source("hostPath", &[Rule::By(of_pods::host_path)]),
    Source {
        path: "persistentDisk",
        ..source(
            "gcePersistentDisk",
            &[Rule::Field("pdName", TEXT), Rule::By(of_pods::partition)],
        )
    },
    source(
        "awsElasticBlockStore",
        &[Rule::Field("volumeID", TEXT), Rule::By(of_pods::partition)],
    ),
    source(
        "glusterfs",
        &[
            Rule::Field("endpoints", TEXT),
            Rule::Field("path", TEXT),
            Rule::By(endpoints_namespace),
        ],
    ),
    source("flocker", &[Rule::By(of_pods::flocker)]),
    source(
        "nfs",
        &[Rule::Field("server", TEXT), Rule::By(of_pods::nfs_path)],
    ),
    source(
        "rbd",
        &[Rule::Field("monitors", TEXT), Rule::Field("image", TEXT)],
    ),
    source(
        "quobyte",
        &[Rule::By(of_pods::quobyte), Rule::Field("volume", TEXT)],
    ),
    Source {
        second: "cephFS",
        ..source("cephfs", &[Rule::Field("monitors", TEXT)])
    },
    source("iscsi", &[Rule::By(iscsi)]),
    source("cinder", &[Rule::Field("volumeID", TEXT), OWNED_SECRET]),
    source("fc", &[Rule::By(of_pods::fibre_channel)]),
    source(
        "flexVolume",
        &[Rule::Field("driver", TEXT), Rule::By(of_pods::flex_options)],
    ),
    source(
        "azureFile",
        &[
            Rule::Field("secretName", TEXT),
            Rule::Field("shareName", TEXT),
            Rule::By(secret_namespace),
        ],
    ),
    source("vsphereVolume", &[Rule::Field("volumePath", TEXT)]),
    source("photonPersistentDisk", &[Rule::Field("pdID", TEXT)]),
    source("portworxVolume", &[Rule::Field("volumeID", TEXT)]),
    source("azureDisk", of_pods::AZURE_DISK),
    source("scaleIO", of_pods::SCALE_IO),
    source("local", &[Rule::By(local)]),
    source(
        "storageos",
        &[
            Rule::Field("volumeName", &[Check::Required(""), Check::Form(dns_label)]),
            Rule::Field("volumeNamespace", &[Check::Form(dns_label)]),
            OWNED_SECRET,
        ],
    ),
    source("csi", &[Rule::By(csi)]),
];

/// Exactly one source; `name` is the volume's.
pub fn one(spec: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    let mut found = false;
    for Source {
        field,
        second,
        path,
        rules,
    } in SOURCES
    {
        let part = spec.get(field);
        if part.is_null() {
            continue;
        }
        // The real server does not reject a flex volume as the second source.
        if found && *field != "flexVolume" {
            causes.push(
                At {
                    path: format!("{}.{second}", spec.path),
                    ..part
                }
                .forbidden("may not specify more than 1 volume type"),
            );
            continue;
        }
        found = true;
        let part = At {
            path: format!("{}.{path}", spec.path),
            ..part
        };
        if *field == "iscsi" {
            iscsi_portal(&part, name, causes);
        }
        part.walk(rules, causes);
        if *field == "local" && spec.get("nodeAffinity").is_null() {
            causes.push(
                spec.get("nodeAffinity")
                    .required("Local volume requires node affinity"),
            );
        }
    }
    if !found {
        causes.push(spec.required("must specify a volume type"));
    }
}

fn endpoints_namespace(source: &At<'_>, causes: &mut Vec<Cause>) {
    let namespace = source.get("endpointsNamespace");
    match namespace.is_null() {
        true => {}
        false if namespace.is_empty() => {
            causes.push(
                namespace
                    .invalid("if the endpointnamespace is set, it must be a valid namespace name"),
            );
        }
        false => namespace.form(dns_label, causes),
    }
}

fn secret_namespace(source: &At<'_>, causes: &mut Vec<Cause>) {
    let namespace = source.get("secretNamespace");
    causes.extend((!namespace.is_null() && namespace.is_empty()).then(|| namespace.required("")));
}

fn iscsi_portal(source: &At<'_>, name: &str, causes: &mut Vec<Cause>) {
    const TOO_LONG: &str = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is specified.";
    let portal = source.get("targetPortal");
    causes.extend(portal.is_empty().then(|| portal.required("")));
    if !source.get("initiatorName").is_null() && name.len() + 1 + portal.len() > 64 {
        causes.push(
            At {
                path: format!("{}.targetportal", source.path),
                ..portal
            }
            .invalid(TOO_LONG),
        );
    }
}

/// What is said of the target besides its portal.
fn iscsi(source: &At<'_>, causes: &mut Vec<Cause>) {
    let (name, secret, initiator) = (
        source.get("iqn"),
        source.get("secretRef"),
        source.get("initiatorName"),
    );
    match name.is_empty() {
        true => causes.push(name.required("")),
        false => iscsi_name(&name, causes),
    }
    source.get("lun").check(&[Check::Between(0, 255)], causes);
    let authenticates = ["chapAuthDiscovery", "chapAuthSession"]
        .iter()
        .any(|field| source.get(field).is_true());
    match secret.is_null() {
        true => causes.extend(authenticates.then(|| secret.required(""))),
        false => secret.get("name").check(TEXT, causes),
    }
    if !initiator.is_null() {
        iscsi_name(
            &At {
                path: format!("{}.initiatorname", source.path),
                ..initiator
            },
            causes,
        );
    }
}

fn iscsi_name(name: &At<'_>, causes: &mut Vec<Cause>) {
    causes.extend(of_pods::iscsi_name(name.text()).map(|_| name.invalid("must be valid format")));
}

fn local(source: &At<'_>, causes: &mut Vec<Cause>) {
    let path = source.get("path");
    match path.is_empty() {
        true => causes.push(path.required("")),
        false => of_pods::no_backsteps(&path, causes),
    }
}

fn csi(source: &At<'_>, causes: &mut Vec<Cause>) {
    driver_name(&source.get("driver"), causes);
    source.get("volumeHandle").check(TEXT, causes);
    for secret in [
        "controllerPublishSecretRef",
        "controllerExpandSecretRef",
        "nodePublishSecretRef",
        "nodeExpandSecretRef",
    ] {
        let secret = source.get(secret);
        if !secret.is_null() {
            secret
                .get("name")
                .check(&[Check::Required(""), Check::Form(dns_subdomain)], causes);
            secret
                .get("namespace")
                .check(&[Check::Required(""), Check::Form(dns_label)], causes);
        }
    }
}
