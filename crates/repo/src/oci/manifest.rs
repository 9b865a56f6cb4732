//! The manifest of an artifact: which of its layers has the content.
//!
//! Main type: [`Manifest`]. The error texts are Argo CD's and Helm's. Pure.

use serde::Deserialize;
use std::collections::BTreeMap;

/// More layers than this are a mistake or an attack.
const MAX_LAYERS: usize = 10;
const HELM_CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const HELM_LAYER: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// What Helm 3 wrote before version 3.7.
const OLD_HELM_LAYER: &str = "application/tar+gzip";
/// What the types of layers with content end with: those that are archives.
const ARCHIVES: [&str; 3] = ["tar+gzip", "tar.gzip", "tar"];

/// A document of a registry by its digest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Descriptor {
    pub media_type: String,
    pub digest: String,
    pub size: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub(crate) struct Manifest {
    config: Option<Descriptor>,
    layers: Option<Vec<Descriptor>>,
    annotations: Option<BTreeMap<String, String>>,
}

/// How the content of a layer is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Content<'a> {
    pub layer: &'a Descriptor,
    pub is_packed: bool,
    /// It is a chart, which is in a folder of its name.
    pub is_chart: bool,
}

impl Manifest {
    /// # Errors
    /// The text is no manifest.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(text).map_err(|e| e.to_string())
    }

    fn layers(&self) -> &[Descriptor] {
        self.layers.as_deref().unwrap_or_default()
    }

    fn config_type(&self) -> &str {
        let config = self.config.as_ref();
        config.map_or("", |config| config.media_type.as_str())
    }

    pub fn annotation(&self, name: &str) -> String {
        let all = self.annotations.as_ref();
        all.and_then(|all| all.get(name))
            .cloned()
            .unwrap_or_default()
    }

    /// The one layer that an OCI source is read from; others, such as attestations, are ignored.
    /// `allowed`: the types that it may have.
    pub fn content(&self, allowed: &[String]) -> Result<Content<'_>, String> {
        let layers = self.layers();
        if layers.len() > MAX_LAYERS {
            return Err(format!(
                "expected no more than {MAX_LAYERS} oci layers, got {}",
                layers.len()
            ));
        }
        let is_chart = self.config_type() == HELM_CONFIG;
        let counts = |layer: &&Descriptor| match is_chart {
            true => layer.media_type == HELM_LAYER,
            false => ARCHIVES.iter().any(|end| layer.media_type.ends_with(end)),
        };
        let content: Vec<&Descriptor> = layers.iter().filter(counts).collect();
        let other = content
            .iter()
            .find(|layer| !allowed.contains(&layer.media_type));
        if let Some(other) = other {
            return Err(format!(
                "oci layer media type {} is not in the list of allowed media types",
                other.media_type
            ));
        }
        match content.as_slice() {
            [layer] => Ok(Content {
                layer,
                is_packed: layer.media_type.ends_with("gzip"),
                is_chart: layer.media_type == HELM_LAYER,
            }),
            _ => Err(format!(
                "expected only a single oci content layer, got {}",
                content.len()
            )),
        }
    }

    /// The one layer of an artifact, if it is of a kind.
    pub fn only_layer(&self, kind: &str) -> Result<&Descriptor, String> {
        match self.layers() {
            [layer] if layer.media_type == kind => Ok(layer),
            _ => Err(format!("the artifact is not one layer of the type {kind}")),
        }
    }

    /// The layer with a chart's archive.
    pub fn chart(&self) -> Result<&Descriptor, String> {
        let layers = self.layers();
        if layers.len() > MAX_LAYERS {
            return Err(format!(
                "expected no more than {MAX_LAYERS} oci layers, got {}",
                layers.len()
            ));
        }
        if self.config_type() != HELM_CONFIG {
            return Err(format!(
                "could not load config with mediatype {HELM_CONFIG}"
            ));
        }
        let of = |kind: &str| layers.iter().find(|layer| layer.media_type == kind);
        of(HELM_LAYER)
            .or_else(|| of(OLD_HELM_LAYER))
            .ok_or_else(|| format!("manifest does not contain a layer with mediatype {HELM_LAYER}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SourceLimits;
    use serde_json::json;

    const TAR_LAYER: &str = "application/vnd.oci.image.layer.v1.tar";
    const TAR_GZIP_LAYER: &str = "application/vnd.oci.image.layer.v1.tar+gzip";
    const FLUX_LAYER: &str = "application/vnd.cncf.flux.content.v1.tar+gzip";

    fn usual() -> Vec<String> {
        SourceLimits::default().layer_types
    }

    fn manifest(config: &str, layers: &[&str]) -> Manifest {
        let layers: Vec<_> = layers
            .iter()
            .map(|kind| json!({"mediaType": kind, "digest": "sha256:0", "size": 1}))
            .collect();
        let text = json!({"schemaVersion": 2, "config": {"mediaType": config}, "layers": layers});
        Manifest::parse(text.to_string().as_bytes()).expect("a manifest")
    }

    #[test]
    fn one_layer_has_the_content() {
        let (plain, image) = (
            "application/vnd.oci.empty.v1+json",
            "application/vnd.docker.image.rootfs.diff.tar.gzip",
        );
        let notes = "application/vnd.example.notes";
        for (config, layers, found) in [
            (plain, vec![TAR_LAYER], Ok((false, false))),
            (plain, vec![notes, TAR_GZIP_LAYER, notes], Ok((true, false))),
            (
                HELM_CONFIG,
                vec![
                    HELM_LAYER,
                    "application/vnd.cncf.helm.chart.provenance.v1.prov",
                ],
                Ok((true, true)),
            ),
            // For a chart, other layers do not count, whatever they are.
            (HELM_CONFIG, vec![TAR_LAYER, HELM_LAYER], Ok((true, true))),
            (plain, vec![HELM_LAYER], Ok((true, true))),
            (
                plain,
                vec![TAR_LAYER, TAR_GZIP_LAYER],
                Err("expected only a single oci content layer, got 2"),
            ),
            (
                plain,
                vec![],
                Err("expected only a single oci content layer, got 0"),
            ),
            (
                HELM_CONFIG,
                vec![TAR_LAYER],
                Err("expected only a single oci content layer, got 0"),
            ),
            (
                plain,
                vec![image],
                Err(
                    "oci layer media type application/vnd.docker.image.rootfs.diff.tar.gzip is not in the list of allowed media types",
                ),
            ),
            (
                plain,
                vec![TAR_LAYER; 11],
                Err("expected no more than 10 oci layers, got 11"),
            ),
        ] {
            let manifest = manifest(config, &layers);
            let content = manifest.content(&usual());
            let content = content
                .as_ref()
                .map(|c| (c.is_packed, c.is_chart))
                .map_err(String::as_str);
            assert_eq!(content, found, "{config} {layers:?}");
        }
    }

    #[test]
    fn the_types_of_layers_are_those_that_are_allowed() {
        let flux = "application/vnd.cncf.flux.config.v1+json";
        let image = "application/vnd.docker.image.rootfs.diff.tar.gzip";
        let of = |config: &str, layer: &str, allowed: &[&str]| {
            let allowed: Vec<String> = allowed.iter().map(|kind| (*kind).to_owned()).collect();
            let manifest = manifest(config, &[layer]);
            let content = manifest.content(&allowed);
            content.map(|content| (content.is_packed, content.is_chart))
        };
        let refused =
            |kind| format!("oci layer media type {kind} is not in the list of allowed media types");
        assert_eq!(of(flux, FLUX_LAYER, &[FLUX_LAYER]), Ok((true, false)));
        assert_eq!(of(flux, image, &[image]), Ok((true, false)));
        let own = "application/vnd.example.manifests.tar";
        assert_eq!(of(flux, own, &[own]), Ok((false, false)));
        assert_eq!(of(flux, FLUX_LAYER, &[]), Err(refused(FLUX_LAYER)));
        // The list says what there may be, so it can leave out what is usual.
        for (config, usual) in [(flux, TAR_LAYER), (HELM_CONFIG, HELM_LAYER)] {
            let found = of(config, usual, &[FLUX_LAYER]);
            assert_eq!(found, Err(refused(usual)));
        }
        // What is no archive is never content, whatever the list says.
        let notes = "application/vnd.example.notes";
        let none = "expected only a single oci content layer, got 0".to_owned();
        assert_eq!(of(flux, notes, &[notes]), Err(none));
    }

    #[test]
    fn a_chart_has_a_config_and_an_archive() {
        for (config, layers, found) in [
            (HELM_CONFIG, vec![HELM_LAYER], Ok(HELM_LAYER)),
            (HELM_CONFIG, vec![OLD_HELM_LAYER], Ok(OLD_HELM_LAYER)),
            (
                HELM_CONFIG,
                vec![TAR_LAYER],
                Err(
                    "manifest does not contain a layer with mediatype application/vnd.cncf.helm.chart.content.v1.tar+gzip",
                ),
            ),
            (
                "application/vnd.oci.image.config.v1+json",
                vec![HELM_LAYER],
                Err(
                    "could not load config with mediatype application/vnd.cncf.helm.config.v1+json",
                ),
            ),
            (
                HELM_CONFIG,
                vec![HELM_LAYER; 11],
                Err("expected no more than 10 oci layers, got 11"),
            ),
        ] {
            let manifest = manifest(config, &layers);
            let chart = manifest.chart();
            let chart = chart
                .as_ref()
                .map(|l| l.media_type.as_str())
                .map_err(String::as_str);
            assert_eq!(chart, found, "{config} {layers:?}");
        }
    }

    #[test]
    fn what_is_missing_is_empty() {
        for text in [
            "{}",
            r#"{"layers":null,"config":null,"annotations":null}"#,
            r#"{"manifests":[{"mediaType":"x"}]}"#,
        ] {
            let manifest = Manifest::parse(text.as_bytes()).expect(text);
            manifest.content(&usual()).expect_err("it has no layers");
            assert_eq!(manifest.annotation("org.opencontainers.image.version"), "");
        }
        for text in ["", "[]x", r#"{"layers":[{"size":-1}]}"#, r#"{"layers":{}}"#] {
            Manifest::parse(text.as_bytes()).expect_err(text);
        }
    }
}
