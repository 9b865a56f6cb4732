//! Warnings about the volumes of pods: removed volume types, and files that hide each other.

use super::pod::of_claim;
use crate::validation::rules::At;

/// Volume types, and since when they are deprecated or have no effect.
const OLD: &[(&str, &str, &str)] = &[
    (
        "photonPersistentDisk",
        "photonPersistentDisk",
        "deprecated in v1.11, non-functional in v1.16+",
    ),
    (
        "gitRepo",
        "gitRepo",
        "deprecated in v1.11, and disabled by default in v1.33+",
    ),
    (
        "scaleIO",
        "scaleIO",
        "deprecated in v1.16, non-functional in v1.22+",
    ),
    (
        "flocker",
        "flocker",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "storageos",
        "storageOS",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "quobyte",
        "quobyte",
        "deprecated in v1.22, non-functional in v1.25+",
    ),
    (
        "glusterfs",
        "glusterfs",
        "deprecated in v1.25, non-functional in v1.26+",
    ),
    ("ephemeral", "", ""),
    (
        "cephfs",
        "cephfs",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
    (
        "rbd",
        "rbd",
        "deprecated in v1.28, non-functional in v1.31+",
    ),
];

/// A file in a volume, and its source.
#[derive(Clone, PartialEq)]
struct File {
    path: String,
    source: String,
}

impl File {
    fn shown(&self) -> String {
        if self.source.is_empty() {
            format!("\"{}\"", self.path)
        } else {
            format!("\"{}\" ({})", self.path, self.source)
        }
    }

    /// Whether the paths are equal, or one is a parent folder of the other.
    fn overlaps(&self, other: &Self) -> bool {
        let (own, its) = (format!("{}/", self.path), format!("{}/", other.path));
        !self.path.is_empty()
            && !other.path.is_empty()
            && (own.starts_with(&its) || its.starts_with(&own))
    }
}

pub fn of_volumes(spec: &At<'_>, out: &mut Vec<String>) {
    let volumes = spec.get("volumes").items();
    for volume in &volumes {
        for (field, shown, says) in OLD {
            let part = volume.get(field);
            if *field == "ephemeral" {
                let template = part.get("volumeClaimTemplate");
                if !template.is_null() {
                    of_claim(&template.get("spec"), out);
                }
            } else if !part.is_null() {
                out.push(format!("{}.{shown}: {says}", volume.path));
            }
        }
    }
    volumes.iter().for_each(|volume| overlaps(volume, out));
}

fn items(at: &At<'_>, source: &str) -> Vec<File> {
    at.get("items")
        .items()
        .iter()
        .map(|item| File {
            path: item.get("path").text().to_owned(),
            source: source.to_owned(),
        })
        .collect()
}

fn overlaps(volume: &At<'_>, out: &mut Vec<String>) {
    let name = volume.get("name").text();
    let [map, secret, downward, projected] =
        ["configMap", "secret", "downwardAPI", "projected"].map(|kind| volume.get(kind));
    let plain = [
        (&map, format!("ConfigMap \"{}\"", map.get("name").text())),
        (
            &secret,
            format!("Secret \"{}\"", secret.get("secretName").text()),
        ),
        (&downward, "DownwardAPI".to_owned()),
    ];
    for (part, what) in plain {
        found(name, &what, items(part, ""), out);
    }
    if projected.is_null() {
        return;
    }
    let mut files = Vec::new();
    let mut said = Vec::new();
    for source in projected.get("sources").items() {
        if source.is_empty() {
            said.push(format!(
                "volume \"{name}\" (Projected) has no sources provided"
            ));
            continue;
        }
        let before = files.len();
        files.extend(of_source(&source));
        said.extend(collisions(name, "Projected", &files, before));
    }
    out.extend(said);
}

fn of_source(source: &At<'_>) -> Vec<File> {
    let [map, secret, downward, token, bundle, certificate] = [
        "configMap",
        "secret",
        "downwardAPI",
        "serviceAccountToken",
        "clusterTrustBundle",
        "podCertificate",
    ]
    .map(|kind| source.get(kind));
    let named = |part: &At<'_>, word: &str| format!("{word} \"{}\"", part.get("name").text());
    let one = |path: &At<'_>, source: &str| {
        vec![File {
            path: path.text().to_owned(),
            source: source.to_owned(),
        }]
    };
    match () {
        () if !map.get("items").is_null() => items(&map, &named(&map, "ConfigMap")),
        () if !secret.get("items").is_null() => items(&secret, &named(&secret, "Secret")),
        () if !downward.get("items").is_null() => items(&downward, "DownwardAPI"),
        () if !token.is_null() => one(&token.get("path"), "ServiceAccountToken"),
        () if !bundle.is_null() => {
            let name = if bundle.get("name").is_null() {
                bundle.get("signerName")
            } else {
                bundle.get("name")
            };
            one(
                &bundle.get("path"),
                &format!("ClusterTrustBundle \"{}\"", name.text()),
            )
        }
        () => {
            let parts = [
                ("certificateChainPath", "chain"),
                ("keyPath", "key"),
                ("credentialBundlePath", "credential bundle"),
            ];
            let given = parts
                .iter()
                .map(|(field, word)| (certificate.get(field), word))
                .filter(|(path, _)| !path.is_empty());
            given
                .flat_map(|(path, word)| one(&path, &format!("PodCertificate {word}")))
                .collect()
        }
    }
}

fn found(name: &str, what: &str, files: Vec<File>, out: &mut Vec<String>) {
    out.extend(collisions(name, what, &files, 0));
}

/// The files from a position on that collide with an earlier one.
fn collisions(name: &str, what: &str, files: &[File], from: usize) -> Vec<String> {
    let trimmed = |f: &File| File {
        path: f.path.trim_end_matches('/').to_owned(),
        source: f.source.clone(),
    };
    let files: Vec<File> = files.iter().map(trimmed).collect();
    let mut out = Vec::new();
    for (i, file) in files.iter().enumerate().skip(from) {
        for other in files[..i].iter().filter(|other| file.overlaps(other)) {
            out.push(format!(
                "volume \"{name}\" ({what}): overlapping paths: {} with {}",
                file.shown(),
                other.shown()
            ));
        }
    }
    out
}
