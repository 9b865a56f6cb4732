//! Volumes of a pod: each has exactly one source, checked by a table of sources. Main function:
//! [`volumes`], which also returns the volumes that can be mounted.

use super::super::meta;
use super::super::rules::{At, Check, Rule};
use super::super::webhooks::one_of;
use super::{claim, projected};
use crate::status::Cause;
use regex::Regex;
use serde_json::Value;
use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;
use tiphys_apimachinery::quantity::Quantity;
use tiphys_kube_schema::formats::{dns_label, dns_subdomain};

const MORE_THAN_ONE: &str = "may not specify more than 1 volume type";
const TEXT: &[Check] = &[Check::Required("")];

/// A volume type: its field, the field's name in messages if it is the second type and for errors
/// in its parts, and its rules.
struct Source(&'static str, &'static str, &'static str, &'static [Rule]);

const fn source(field: &'static str, rules: &'static [Rule]) -> Source {
    Source(field, field, field, rules)
}

/// In the order in which the API server checks them. Some names in causes differ from the field's.
const SOURCES: &[Source] = &[
    source("emptyDir", &[Rule::By(size_limit)]),
    source("hostPath", &[Rule::By(host_path)]),
    source(
        "gitRepo",
        &[
            Rule::Field("repository", TEXT),
            Rule::By(|v, causes| relative(&v.get("directory"), causes)),
        ],
    ),
    Source(
        "gcePersistentDisk",
        "gcePersistentDisk",
        "persistentDisk",
        &[Rule::Field("pdName", TEXT), Rule::By(partition)],
    ),
    source(
        "awsElasticBlockStore",
        &[Rule::Field("volumeID", TEXT), Rule::By(partition)],
    ),
    source(
        "secret",
        &[Rule::Field("secretName", TEXT), Rule::By(keys_and_mode)],
    ),
    source("nfs", &[Rule::Field("server", TEXT), Rule::By(nfs_path)]),
    source("iscsi", &[Rule::By(iscsi)]),
    source(
        "glusterfs",
        &[Rule::Field("endpoints", TEXT), Rule::Field("path", TEXT)],
    ),
    source("flocker", &[Rule::By(flocker)]),
    source("persistentVolumeClaim", &[Rule::Field("claimName", TEXT)]),
    source(
        "rbd",
        &[Rule::Field("monitors", TEXT), Rule::Field("image", TEXT)],
    ),
    source(
        "cinder",
        &[
            Rule::Field("volumeID", TEXT),
            Rule::In("secretRef", &[Rule::Field("name", TEXT)]),
        ],
    ),
    Source(
        "cephfs",
        "cephFS",
        "cephfs",
        &[Rule::Field("monitors", TEXT)],
    ),
    source("quobyte", &[Rule::By(quobyte), Rule::Field("volume", TEXT)]),
    Source(
        "downwardAPI",
        "downwarAPI",
        "downwardAPI",
        &[Rule::By(projected::downward)],
    ),
    source("fc", &[Rule::By(fibre_channel)]),
    source(
        "flexVolume",
        &[Rule::Field("driver", TEXT), Rule::By(flex_options)],
    ),
    source(
        "configMap",
        &[Rule::Field("name", TEXT), Rule::By(keys_and_mode)],
    ),
    source(
        "azureFile",
        &[
            Rule::Field("secretName", TEXT),
            Rule::Field("shareName", TEXT),
        ],
    ),
    source("vsphereVolume", &[Rule::Field("volumePath", TEXT)]),
    source("photonPersistentDisk", &[Rule::Field("pdID", TEXT)]),
    source("portworxVolume", &[Rule::Field("volumeID", TEXT)]),
    source("azureDisk", AZURE_DISK),
    source(
        "storageos",
        &[
            Rule::Field("volumeName", &[Check::Required(""), Check::Form(dns_label)]),
            Rule::Field("volumeNamespace", &[Check::Form(dns_label)]),
            Rule::In("secretRef", &[Rule::Field("name", TEXT)]),
        ],
    ),
    source("projected", &[Rule::By(projected::check)]),
    source("scaleIO", SCALE_IO),
    source("csi", &[Rule::By(csi)]),
    source("ephemeral", &[Rule::By(ephemeral)]),
    source("image", &[]),
];

pub const SCALE_IO: &[Rule] = &[
    Rule::Field("gateway", TEXT),
    Rule::Field("system", TEXT),
    Rule::Field("volumeName", TEXT),
];

pub const AZURE_DISK: &[Rule] = &[
    Rule::Field("diskName", TEXT),
    Rule::Field("diskURI", TEXT),
    Rule::By(azure_disk),
];

/// Checks all volumes; returns the valid ones by name. `pod` is the pod's name, empty in templates.
pub fn volumes<'v>(
    all: &At<'v>,
    pod: &str,
    is_pod: bool,
    causes: &mut Vec<Cause>,
) -> BTreeMap<&'v str, &'v Value> {
    let mut known = BTreeMap::new();
    let is_ephemeral = |v: &&At<'_>| !pod.is_empty() && !v.get("ephemeral").is_null();
    let items = all.items();
    let made: HashSet<String> = items
        .iter()
        .filter(is_ephemeral)
        .map(|v| format!("{pod}-{}", v.get("name").text()))
        .collect();
    for volume in &items {
        let before = causes.len();
        one(volume, pod, is_pod, causes);
        let name = volume.get("name");
        name.check(&[Check::Required(""), Check::Form(dns_label)], causes);
        if known.contains_key(name.text()) {
            causes.push(name.duplicate());
        }
        if causes.len() == before {
            known.insert(name.text(), volume.value);
        }
        let claim = volume.get("persistentVolumeClaim.claimName");
        if made.contains(claim.text()) {
            causes.push(
                claim.invalid("must not reference a PVC that gets created for an ephemeral volume"),
            );
        }
    }
    known
}

fn one(volume: &At<'_>, pod: &str, is_pod: bool, causes: &mut Vec<Cause>) {
    let mut found = false;
    for Source(field, second, path, rules) in SOURCES {
        let part = volume.get(field);
        if part.is_null() {
            continue;
        }
        if found {
            causes.push(
                At::new(part.value, format!("{}.{second}", volume.path)).forbidden(MORE_THAN_ONE),
            );
        } else {
            let part = At::new(part.value, format!("{}.{path}", volume.path));
            part.walk(rules, causes);
            by_name(field, volume, pod, causes);
            if *field == "image" {
                if is_pod {
                    part.get("reference").check(TEXT, causes);
                }
                super::container::pull_policy(&part.get("pullPolicy"), causes);
            }
        }
        if *field == "iscsi" {
            let name = volume.get("name");
            let long = name.len() + 1 + part.get("targetPortal").len() > 64;
            if long && !part.get("initiatorName").is_null() {
                let detail = "Total length of <volume name>:<iscsi.targetPortal> must be under 64 characters if iscsi.initiatorName is \
                              specified.";
                causes.push(name.invalid(detail));
            }
        }
        found = true;
    }
    if !found {
        causes.push(volume.required("must specify a volume type"));
    }
}

/// The claim of an ephemeral volume is named after pod and volume.
fn by_name(field: &str, volume: &At<'_>, pod: &str, causes: &mut Vec<Cause>) {
    let name = volume.get("name");
    if field == "ephemeral" && !pod.is_empty() && !name.is_empty() {
        let claim = format!("{pod}-{}", name.text());
        causes.extend(
            dns_subdomain(&claim)
                .iter()
                .map(|p| name.invalid(&format!("PVC name \"{claim}\": {p}"))),
        );
    }
}

fn size_limit(v: &At<'_>, causes: &mut Vec<Cause>) {
    let limit = v.get("sizeLimit");
    let negative = limit
        .text()
        .parse::<Quantity>()
        .is_ok_and(|q| q < Quantity::ZERO);
    causes.extend(
        negative.then(|| limit.forbidden("SizeLimit field must be a valid resource quantity")),
    );
}

pub fn host_path(v: &At<'_>, causes: &mut Vec<Cause>) {
    const TYPES: [&str; 8] = [
        "",
        "BlockDevice",
        "CharDevice",
        "Directory",
        "DirectoryOrCreate",
        "File",
        "FileOrCreate",
        "Socket",
    ];
    let path = v.get("path");
    if path.is_empty() {
        causes.push(path.required(""));
        return;
    }
    no_backsteps(&path, causes);
    let kind = v.get("type");
    causes.extend((!TYPES.contains(&kind.text())).then(|| kind.not_supported(&TYPES)));
}

/// Rejects `..` as a path element.
pub fn no_backsteps(path: &At<'_>, causes: &mut Vec<Cause>) {
    if path.text().split('/').any(|part| part == "..") {
        causes.push(path.invalid("must not contain '..'"));
    }
}

/// A relative path.
pub fn relative(path: &At<'_>, causes: &mut Vec<Cause>) {
    if path.text().starts_with('/') {
        causes.push(path.invalid("must be a relative path"));
    }
    no_backsteps(path, causes);
}

/// A path of a file in a volume. Names that start with two dots belong to the kubelet.
pub fn file_path(path: &At<'_>, causes: &mut Vec<Cause>) {
    relative(path, causes);
    if path.text().starts_with("..") && !path.text().starts_with("../") {
        causes.push(path.invalid("must not start with '..'"));
    }
}

/// Permissions of a file.
pub fn mode(mode: &At<'_>, causes: &mut Vec<Cause>) {
    if mode.int().is_some_and(|m| !(0..=0o777).contains(&m)) {
        causes.push(mode.invalid("must be a number between 0 and 0777 (octal), both inclusive"));
    }
}

fn keys_and_mode(v: &At<'_>, causes: &mut Vec<Cause>) {
    mode(&v.get("defaultMode"), causes);
    v.get("items")
        .items()
        .iter()
        .for_each(|item| key_to_path(item, causes));
}

/// The mapping of a key of a ConfigMap or Secret to a file.
pub fn key_to_path(item: &At<'_>, causes: &mut Vec<Cause>) {
    item.get("key").check(TEXT, causes);
    item.get("path").check(TEXT, causes);
    file_path(&item.get("path"), causes);
    mode(&item.get("mode"), causes);
}

pub fn partition(v: &At<'_>, causes: &mut Vec<Cause>) {
    let partition = v.get("partition");
    if partition.int().is_some_and(|n| !(0..=255).contains(&n)) {
        causes.push(partition.invalid("must be between 1 and 255, inclusive"));
    }
}

pub fn nfs_path(v: &At<'_>, causes: &mut Vec<Cause>) {
    let path = v.get("path");
    path.check(TEXT, causes);
    if !path.text().starts_with('/') {
        causes.push(path.invalid("must be an absolute path"));
    }
}

/// The forms of iSCSI names.
pub fn iscsi_name(name: &str) -> Option<&'static str> {
    static FORMS: LazyLock<[Regex; 3]> = LazyLock::new(|| {
        [
            r"iqn\.\d{4}-\d{2}\.([[:alnum:]\-.]+)(:[^,;*&$|\s]+)$",
            "^eui.[[:alnum:]]{16}$",
            "^naa.[[:alnum:]]{32}$",
        ]
        .map(|form| Regex::new(form).expect("the form is a regular expression"))
    });
    match ["iqn", "eui", "naa"]
        .iter()
        .position(|start| name.starts_with(start))
    {
        None => Some("must be valid format starting with iqn, eui, or naa"),
        Some(i) if !FORMS[i].is_match(name) => Some("must be valid format"),
        Some(_) => None,
    }
}

fn iscsi(v: &At<'_>, causes: &mut Vec<Cause>) {
    v.get("targetPortal").check(TEXT, causes);
    let name = v.get("iqn");
    if name.is_empty() {
        causes.push(name.required(""));
    } else {
        causes.extend(iscsi_name(name.text()).map(|p| name.invalid(p)));
    }
    v.get("lun").check(&[Check::Between(0, 255)], causes);
    let authenticates = v.get("chapAuthDiscovery").is_true() || v.get("chapAuthSession").is_true();
    if authenticates && v.get("secretRef").is_null() {
        causes.push(v.get("secretRef").required(""));
    }
    let initiator = v.get("initiatorName");
    if !initiator.is_null() {
        let at = At::new(initiator.value, format!("{}.initiatorname", v.path));
        causes.extend(iscsi_name(initiator.text()).map(|p| at.invalid(p)));
    }
}

pub fn flocker(v: &At<'_>, causes: &mut Vec<Cause>) {
    let (name, id) = (v.get("datasetName"), v.get("datasetUUID"));
    if name.is_empty() && id.is_empty() {
        causes.push(v.required("one of datasetName and datasetUUID is required"));
    }
    if !name.is_empty() && !id.is_empty() {
        causes.push(v.invalid_as(
            "resource",
            "datasetName and datasetUUID can not be specified simultaneously",
        ));
    }
    if name.text().contains('/') {
        causes.push(name.invalid("must not contain '/'"));
    }
}

pub fn quobyte(v: &At<'_>, causes: &mut Vec<Cause>) {
    const PAIRS: &str = "must be a host:port pair or multiple pairs separated by commas";
    let registry = v.get("registry");
    if registry.is_empty() {
        causes.push(registry.required(PAIRS));
    } else if v.get("tenant").len() >= 65 {
        causes.push(
            v.get("tenant")
                .required("must be a UUID and may not exceed a length of 64 characters"),
        );
    } else {
        let bad = registry
            .text()
            .split(',')
            .filter(|pair| pair.matches(':').count() != 1 && !pair.contains("]:"));
        causes.extend(bad.map(|_| registry.invalid(PAIRS)));
    }
}

pub fn fibre_channel(v: &At<'_>, causes: &mut Vec<Cause>) {
    let (targets, ids, lun) = (v.get("targetWWNs"), v.get("wwids"), v.get("lun"));
    if targets.is_empty() && ids.is_empty() {
        causes.push(targets.required("must specify either targetWWNs or wwids, but not both"));
    }
    if !targets.is_empty() && !ids.is_empty() {
        causes.push(targets.invalid("targetWWNs and wwids can not be specified simultaneously"));
    }
    if !targets.is_empty() {
        if lun.is_null() {
            causes.push(lun.required("lun is required if targetWWNs is specified"));
        }
        lun.check(&[Check::Between(0, 255)], causes);
    }
}

pub fn flex_options(v: &At<'_>, causes: &mut Vec<Cause>) {
    for (key, option) in v.get("options").entries() {
        let namespace = format!(
            ".{}",
            key.split('/')
                .next()
                .filter(|_| key.contains('/'))
                .unwrap_or(key)
                .to_lowercase()
        );
        if namespace.ends_with(".kubernetes.io") || namespace.ends_with(".k8s.io") {
            causes.push(option.invalid_as(key, "kubernetes.io and k8s.io namespaces are reserved"));
        }
    }
}

fn azure_disk(v: &At<'_>, causes: &mut Vec<Cause>) {
    const MANAGED: &str = "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
    const BLOB: &str =
        "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";
    let (kind, uri) = (v.get("kind"), v.get("diskURI"));
    one_of(
        &v.get("cachingMode"),
        &["None", "ReadOnly", "ReadWrite"],
        causes,
    );
    one_of(&kind, &["Dedicated", "Managed", "Shared"], causes);
    if kind.text() == "Managed" && !uri.text().starts_with("/subscriptions/") {
        causes.push(uri.not_supported(&[MANAGED]));
    }
    if !kind.is_null() && kind.text() != "Managed" && !uri.text().starts_with("https://") {
        causes.push(uri.not_supported(&[BLOB]));
    }
}

fn csi(v: &At<'_>, causes: &mut Vec<Cause>) {
    let driver = v.get("driver");
    if driver.is_empty() {
        causes.push(driver.required(""));
    } else {
        driver.check(&[Check::MaxBytes(63)], causes);
        causes.extend(
            dns_subdomain(&driver.text().to_lowercase())
                .iter()
                .map(|p| driver.invalid(p)),
        );
    }
    let secret = v.get("nodePublishSecretRef");
    if secret.is_null() {
        return;
    }
    let name = secret.get("name");
    if name.is_empty() {
        causes.push(name.required(""));
    } else {
        At::new(name.value, format!("{}.name", v.path)).form(dns_subdomain, causes);
    }
}

/// The claim template of an ephemeral volume.
fn ephemeral(v: &At<'_>, causes: &mut Vec<Cause>) {
    let template = v.get("volumeClaimTemplate");
    if template.is_null() {
        causes.push(template.required(""));
        return;
    }
    meta::template(&template.get("metadata"), causes);
    claim::spec(&template.get("spec"), causes);
}
