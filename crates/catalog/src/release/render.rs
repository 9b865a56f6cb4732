//! Manifests of a version with the values of a source, as the control plane would render them, and
//! what differs between two of them.
//!
//! Main types: [`Manifests`] and [`Facts`].

use crate::CatalogError;
use serde_json::Value;
use similar::TextDiff;
use std::{
    collections::{BTreeMap, BTreeSet},
    hash::{BuildHasher as _, RandomState},
    sync::{Arc, LazyLock},
};
use tiphys_api::source::ApplicationSource;
use tiphys_gocompat::yaml;
use tiphys_render::{
    AppFacts, Budget, Charts, RenderParams, SourceSet,
    helm::{Limits, Sources, chart::archive_files},
    prepare, render,
};

/// Nobody else has its numbers, so they do not say what a value is.
static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// Whose manifests they are.
#[derive(Clone, Debug, Default)]
pub struct Facts {
    /// The Application's name.
    pub name: String,
    /// The destination's namespace.
    pub namespace: String,
    pub project: String,
    /// What templates think the time is.
    pub now: jiff::Timestamp,
}

/// Objects as YAML, by kind, namespace and name. Values of Secrets are hidden.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Manifests(pub BTreeMap<String, String>);

impl Manifests {
    /// Blocks: a chart may render for seconds. Also returns what its schema refers to elsewhere,
    /// which is not fetched and so not checked.
    ///
    /// # Errors
    /// It cannot be installed with these values, or they are in files of another source.
    pub fn render(
        archive: &[u8],
        source: &ApplicationSource,
        facts: &Facts,
    ) -> Result<(Self, Vec<String>), CatalogError> {
        let (objects, unknown) = objects(archive, source, facts)?;
        Ok((Self::of(objects), unknown))
    }

    /// Objects as they are shown.
    pub fn of(objects: Vec<Value>) -> Self {
        let shown = objects.into_iter().map(|mut object| {
            let text = |pointer: &str| {
                let found = object.pointer(pointer).and_then(Value::as_str);
                found.unwrap_or_default()
            };
            let kind = text("/kind");
            let namespace = match text("/metadata/namespace") {
                "" => String::new(),
                namespace => format!("{namespace}/"),
            };
            let key = format!("{kind} {namespace}{}", text("/metadata/name"));
            // Only the core group has no name.
            if kind == "Secret" && !text("/apiVersion").contains('/') {
                hide(&mut object);
            }
            (key, yaml::to_string(&object))
        });
        Self(shown.collect())
    }

    /// One text for all of them.
    pub fn text(&self) -> String {
        let parts = self.0.values().map(|text| format!("---\n{text}"));
        parts.collect()
    }
}

/// The objects of a version with the values of a source, Secrets included, and what its schema
/// refers to elsewhere. Blocks.
///
/// # Errors
/// It cannot be installed with these values, or they are in files of another source.
pub(super) fn objects(
    archive: &[u8],
    source: &ApplicationSource,
    facts: &Facts,
) -> Result<(Vec<Value>, Vec<String>), CatalogError> {
    let refused = |reason: String| {
        let (name, version) = (&source.chart, &source.target_revision);
        CatalogError::Invalid(format!("{name} {version} cannot be installed: {reason}"))
    };
    let files = archive_files(archive, &Limits::default());
    let mut files = files.map_err(|e| refused(e.to_string()))?;
    let mut source = source.clone();
    // Without it, plugins would be asked.
    let helm = source.helm.get_or_insert_default();
    let unknown = match helm.skip_schema_validation {
        true => Vec::new(),
        false => super::schema::cut_files(&mut files),
    };
    let params = RenderParams {
        app: AppFacts {
            name: facts.name.clone(),
            namespace: facts.namespace.clone(),
            project: facts.project.clone(),
            revision: source.target_revision.clone(),
        },
        source: source.clone(),
        ..RenderParams::default()
    };
    let sources = SourceSet::new(&files);
    let charts = Steady(facts.now);
    let rendered = prepare(&sources, &params)
        .and_then(|prepared| render(&sources, &prepared, &charts, &Budget::default()))
        .map_err(|e| refused(e.to_string()))?;
    if let Some(error) = rendered.errors.first() {
        return Err(refused(error.to_string()));
    }
    let objects = rendered.objects.into_iter();
    let objects = objects.map(|object| object.into_value()).collect();
    Ok((objects, unknown))
}

/// Replaces values by what tells them apart in this process, but not what they are.
fn hide(secret: &mut Value) {
    for field in ["data", "stringData"] {
        let values = secret.get_mut(field).and_then(|data| data.as_object_mut());
        for value in values.into_iter().flat_map(|data| data.values_mut()) {
            *value = format!("hidden ({:08x})", KEY.hash_one(value.to_string()) >> 32).into();
        }
    }
}

/// A unified difference of each object that is not the same; empty if all are.
pub fn difference(before: &Manifests, after: &Manifests) -> String {
    let mut out = String::new();
    let keys = before.0.keys().chain(after.0.keys());
    let keys: BTreeSet<&String> = keys.collect();
    for key in keys {
        let of = |side: &Manifests| side.0.get(key).cloned().unwrap_or_default();
        let (old, new) = (of(before), of(after));
        if old == new {
            continue;
        }
        let word = match (old.is_empty(), new.is_empty()) {
            (true, _) => "added",
            (_, true) => "removed",
            _ => "changed",
        };
        out.push_str(&format!("=== {key} ({word})\n"));
        let lines = TextDiff::from_lines(&old, &new);
        out.push_str(&lines.unified_diff().context_radius(3).to_string());
    }
    out
}

/// Randomness and time that are the same in both renders, so that what a chart makes anew each time
/// is no difference.
struct Steady(jiff::Timestamp);

impl Charts for Steady {
    fn sources(&self) -> Arc<dyn Fn() -> Sources + Send + Sync> {
        let now = self.0;
        Arc::new(move || {
            let mut state = 0_u64;
            // SplitMix64: even, and of no use as a secret.
            let random = move |bytes: &mut [u8]| {
                for chunk in bytes.chunks_mut(8) {
                    state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                    let mut mixed = state;
                    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                    let mixed = (mixed ^ (mixed >> 31)).to_le_bytes();
                    chunk.copy_from_slice(&mixed[..chunk.len()]);
                }
            };
            Sources {
                random: Box::new(random),
                now,
                zone: || jiff::tz::TimeZone::UTC,
            }
        })
    }
}
