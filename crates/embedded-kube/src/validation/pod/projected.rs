//! Projected volumes, and downward API volumes.

use super::super::rules::{At, Check, Rule, label_selector};
use super::env::{field_selector, resource_selector};
use super::volume::{file_path, key_to_path, mode};
use crate::status::Cause;
use std::collections::HashSet;
use tiphys_kube_schema::formats::qualified_name;

const VOLUME_FIELDS: [&str; 5] = [
    "metadata.annotations",
    "metadata.labels",
    "metadata.name",
    "metadata.namespace",
    "metadata.uid",
];
const KEY_TYPES: [&str; 6] = [
    "RSA3072",
    "RSA4096",
    "ECDSAP256",
    "ECDSAP384",
    "ECDSAP521",
    "ED25519",
];
const CONFLICT: &str = "conflicting duplicate paths";

/// `downwardAPI` as a separate volume. Its causes do not include the item.
pub fn downward(v: &At<'_>, causes: &mut Vec<Cause>) {
    mode(&v.get("defaultMode"), causes);
    for item in v.get("items").items() {
        downward_file(&At::new(item.value, v.path.clone()), causes);
    }
}

fn downward_file(file: &At<'_>, causes: &mut Vec<Cause>) {
    file.get("path").check(&[Check::Required("")], causes);
    file_path(&file.get("path"), causes);
    let (field, resource) = (file.get("fieldRef"), file.get("resourceFieldRef"));
    if !field.is_null() {
        field_selector(&field, &VOLUME_FIELDS, causes);
        if !resource.is_null() {
            causes.push(file.invalid_as(
                "resource",
                "fieldRef and resourceFieldRef can not be specified simultaneously",
            ));
        }
    } else if !resource.is_null() {
        resource_selector(&resource, true, causes);
    } else {
        causes.push(file.required("one of fieldRef and resourceFieldRef is required"));
    }
    mode(&file.get("mode"), causes);
}

/// The paths in use in one projected volume.
struct Paths<'a> {
    volume: &'a At<'a>,
    seen: HashSet<String>,
}

impl Paths<'_> {
    /// Records a path; `shown` is the path in the cause if it is already in use.
    fn take(&mut self, path: &str, shown: &str, causes: &mut Vec<Cause>) {
        if !self.seen.insert(path.to_owned()) {
            causes.push(self.volume.invalid_as(shown, CONFLICT));
        }
    }
}

/// A projected volume.
pub fn check(v: &At<'_>, causes: &mut Vec<Cause>) {
    mode(&v.get("defaultMode"), causes);
    let mut paths = Paths {
        volume: v,
        seen: HashSet::new(),
    };
    for source in v.get("sources").items() {
        let kinds = [
            "secret",
            "configMap",
            "downwardAPI",
            "serviceAccountToken",
            "clusterTrustBundle",
            "podCertificate",
        ];
        let parts = kinds.map(|kind| (kind, source.get(kind)));
        let given: Vec<_> = parts
            .into_iter()
            .filter(|(_, part)| !part.is_null())
            .collect();
        for (kind, part) in &given {
            match *kind {
                "secret" | "configMap" => keys(part, &mut paths, causes),
                "downwardAPI" => files(part, &mut paths, causes),
                "serviceAccountToken" => token(part, v, causes),
                "clusterTrustBundle" => bundle(part, &mut paths, causes),
                _ => certificate(part, &mut paths, causes),
            }
        }
        if given.len() > 1 {
            causes.push(source.forbidden("may not specify more than 1 volume type per source"));
        }
    }
}

fn keys(part: &At<'_>, paths: &mut Paths<'_>, causes: &mut Vec<Cause>) {
    part.get("name").check(&[Check::Required("")], causes);
    for item in part.get("items").items() {
        key_to_path(&item, causes);
        if !item.get("path").is_empty() {
            paths.take(item.get("path").text(), part.get("name").text(), causes);
        }
    }
}

fn files(part: &At<'_>, paths: &mut Paths<'_>, causes: &mut Vec<Cause>) {
    for item in part.get("items").items() {
        downward_file(&At::new(item.value, part.path.clone()), causes);
        let path = item.get("path").text();
        if !path.is_empty() {
            paths.take(path, path, causes);
        }
    }
}

fn token(part: &At<'_>, volume: &At<'_>, causes: &mut Vec<Cause>) {
    let seconds = part.get("expirationSeconds");
    match seconds.int().unwrap_or(0) {
        n if n < 600 => {
            causes.push(seconds.invalid("may not specify a duration less than 10 minutes"))
        }
        n if n > 1 << 32 => {
            causes.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"))
        }
        _ => {}
    }
    let path = At::new(part.get("path").value, format!("{}.path", volume.path));
    if path.is_empty() {
        causes.push(path.required(""));
    } else {
        file_path(&path, causes);
    }
}

/// The name of a signer: a domain and a path.
fn signer(at: &At<'_>, causes: &mut Vec<Cause>) {
    if at.is_empty() {
        causes.push(at.required(""));
    } else if at.text().split('/').count() != 2 {
        causes.push(at.invalid(
            "must be a fully qualified domain and path of the form 'example.com/signer-name'",
        ));
    }
}

fn bundle(part: &At<'_>, paths: &mut Paths<'_>, causes: &mut Vec<Cause>) {
    let (name, signer_name, selector) = (
        part.get("name"),
        part.get("signerName"),
        part.get("labelSelector"),
    );
    match (name.is_null(), signer_name.is_null()) {
        (false, false) => causes.push(part.invalid_struct(
            "core/v1.ClusterTrustBundleProjection",
            "only one of name and signerName may be used",
        )),
        (false, true) => {
            name.check(&[Check::Required("must be a valid object name")], causes);
            if !selector.is_null() {
                causes.push(selector.invalid_struct(
                    "meta/v1.LabelSelector",
                    "labelSelector must be unset if name is specified",
                ));
            }
        }
        (true, false) => {
            signer_name.check(&[Check::Required("must be a valid signer name")], causes);
            signer(&signer_name, causes);
            label_selector(&selector, causes);
        }
        (true, true) => causes.push(part.required("either name or signerName must be specified")),
    }
    let path = part.get("path");
    path.check(&[Check::Required("")], causes);
    file_path(&path, causes);
    paths.take(path.text(), path.text(), causes);
}

fn certificate(part: &At<'_>, paths: &mut Paths<'_>, causes: &mut Vec<Cause>) {
    signer(&part.get("signerName"), causes);
    let annotations = part.get("userAnnotations");
    for (key, _) in annotations.entries() {
        let problems = qualified_name(&key.to_lowercase());
        if problems.is_empty() && key.matches('/').count() != 1 {
            causes.push(annotations.invalid_as(
                key.to_lowercase(),
                "must be a domain-prefixed key (such as \"acme.io/foo\")",
            ));
        }
        causes.extend(
            problems
                .iter()
                .map(|p| annotations.invalid_as(key.to_lowercase(), p)),
        );
    }
    let key_type = part.get("keyType");
    causes.extend(
        (!KEY_TYPES.contains(&key_type.text())).then(|| key_type.not_supported(&KEY_TYPES)),
    );
    let seconds = part.get("maxExpirationSeconds");
    let most = if part.get("signerName").text().contains("kubernetes.io/") {
        86_400
    } else {
        7_862_400
    };
    match seconds.int() {
        Some(n) if n < 3600 => {
            causes.push(seconds.invalid("if provided, maxExpirationSeconds must be >= 3600"))
        }
        Some(n) if n > most => causes.push(seconds.invalid(&format!(
            "if provided, maxExpirationSeconds must be <= {most}"
        ))),
        _ => {}
    }
    let mut any = false;
    for field in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = part.get(field);
        if !path.is_empty() {
            any = true;
            file_path(&path, causes);
            paths.take(path.text(), path.text(), causes);
        }
    }
    if !any {
        causes.push(part.required(
            "specify at least one of credentialBundlePath, keyPath, and certificateChainPath",
        ));
    }
}

/// Tokens need an account.
pub const TOKENS_NEED_AN_ACCOUNT: &[Rule] = &[Rule::By(|spec, causes| {
    if !spec.get("serviceAccountName").is_empty() {
        return;
    }
    for volume in spec.get("volumes").items() {
        for source in volume.get("projected.sources").items() {
            let token = source.get("serviceAccountToken");
            if !token.is_null() {
                causes.push(
                    token.forbidden("must not be specified when serviceAccountName is not set"),
                );
            }
        }
    }
})];
