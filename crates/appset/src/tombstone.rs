//! Deleted Applications, kept in an annotation of their set for a time, so that they can be
//! restored.
//!
//! Main type: [`Tombstone`]; main functions: [`read`] and [`Tombstone::restored`]. The annotation is
//! base64 of gzip of JSON. It is on the set because whoever may write sets may write it, and whoever
//! may see the set may see its Applications.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize, de::DeserializeOwned};
use std::collections::BTreeSet;
use std::io::{Read as _, Write as _};
use std::time::Duration;
use thiserror::Error;
use tiphys_api::Application;
use tiphys_api::application_set::ApplicationSet;
use tiphys_api::constants::{API_VERSION, DELETED_APPLICATIONS, HYDRATE, REFRESH};
use tiphys_api::meta::Time;

/// How long, by default: a weekend.
pub const KEEP: Duration = Duration::from_secs(72 * 3600);
/// The most bytes of the annotation: Kubernetes accepts 256 KiB for all annotations together.
const MOST: usize = 128 << 10;
/// The most bytes of its JSON.
const MOST_PLAIN: u64 = 32 << 20;

/// One deleted Application.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Tombstone {
    pub uid: String,
    /// When its set deleted it.
    pub deleted_at: Time,
    /// Without status, owner and what the API server adds.
    pub application: Application,
}

/// What is kept cannot be read or written.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("what is kept of deleted Applications: {0}")]
pub struct TombstoneError(String);

impl TombstoneError {
    pub(crate) fn new(why: impl ToString) -> Self {
        Self(why.to_string())
    }
}

/// A new value of the annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// `None`: it is removed.
    pub value: Option<String>,
    /// How many of the Applications that are deleted now it does not hold, for lack of room.
    pub missing: usize,
}

impl Tombstone {
    pub fn name(&self) -> &str {
        &self.application.metadata.name
    }

    /// The Application to create. It belongs to no set, or that would delete it again; a set that
    /// generates it adopts it.
    pub fn restored(&self) -> Application {
        Application {
            api_version: API_VERSION.to_owned(),
            kind: "Application".to_owned(),
            ..self.application.clone()
        }
    }
}

/// The deleted Applications of a set, the last one first.
///
/// # Errors
/// If the annotation is none of ours.
pub fn read(set: &ApplicationSet) -> Result<Vec<Tombstone>, TombstoneError> {
    let Some(text) = set.metadata.annotations.get(DELETED_APPLICATIONS) else {
        return Ok(Vec::new());
    };
    unpack(text)
}

/// The annotation after the Applications of these names are deleted, and without what is too old;
/// `None`: as it is. One that cannot be read is written anew.
pub(crate) fn written(
    set: &ApplicationSet,
    names: &BTreeSet<&str>,
    owned: &[&Application],
    keep: Duration,
    now: Time,
) -> Option<Written> {
    let keep = i64::try_from(keep.as_secs()).unwrap_or(i64::MAX);
    let before = read(set);
    let is_annotated = set.metadata.annotations.contains_key(DELETED_APPLICATIONS);
    let known = before.clone().unwrap_or_default();
    let uids: BTreeSet<&str> = known.iter().map(|stone| stone.uid.as_str()).collect();
    let deleted = |app: &&&Application| keep > 0 && names.contains(app.metadata.name.as_str());
    // What is being deleted for some time was kept when that began.
    let is_new = |app: &&&Application| !uids.contains(app.metadata.uid.as_str());
    let new = owned.iter().filter(deleted).filter(is_new);
    let new: Vec<Tombstone> = new.map(|app| of(app, now)).collect();
    let count = new.len();
    let mut all = new;
    let fresh = |stone: &Tombstone| now.seconds.saturating_sub(stone.deleted_at.seconds) < keep;
    all.extend(known.iter().filter(|stone| fresh(stone)).cloned());
    if count == 0 && all.len() == known.len() && (before.is_ok() || !is_annotated) {
        return None;
    }
    loop {
        let value = (!all.is_empty()).then(|| pack(&all));
        if value.as_ref().is_none_or(|value| value.len() <= MOST) {
            let held: BTreeSet<&str> = all.iter().map(|stone| stone.uid.as_str()).collect();
            let is_held = |app: &&&Application| held.contains(app.metadata.uid.as_str());
            let deleted = owned.iter().filter(deleted);
            return Some(Written {
                value,
                missing: deleted.filter(|app| !is_held(app)).count(),
            });
        }
        // The oldest ones go first.
        all.truncate(all.len() * 3 / 4);
    }
}

fn of(app: &Application, now: Time) -> Tombstone {
    let mut kept = Application::default();
    let (from, to) = (&app.metadata, &mut kept.metadata);
    to.name.clone_from(&from.name);
    to.namespace.clone_from(&from.namespace);
    to.labels.clone_from(&from.labels);
    to.annotations.clone_from(&from.annotations);
    to.annotations
        .retain(|key, _| ![REFRESH, HYDRATE].contains(&key.as_str()));
    to.finalizers.clone_from(&from.finalizers);
    kept.spec = app.spec.clone();
    Tombstone {
        uid: app.metadata.uid.clone(),
        deleted_at: now,
        application: kept,
    }
}

/// Base64 of gzip of JSON.
pub(crate) fn pack<T: Serialize>(value: &T) -> String {
    let json = serde_json::to_vec(value).unwrap_or_default();
    let mut packer = GzEncoder::new(Vec::new(), Compression::best());
    let packed = packer.write_all(&json).and_then(|()| packer.finish());
    STANDARD.encode(packed.expect("a Vec takes all that is written to it"))
}

/// What [`pack`] made.
pub(crate) fn unpack<T: DeserializeOwned>(text: &str) -> Result<T, TombstoneError> {
    let packed = STANDARD.decode(text).map_err(TombstoneError::new)?;
    let mut json = Vec::new();
    GzDecoder::new(packed.as_slice())
        .take(MOST_PLAIN)
        .read_to_end(&mut json)
        .map_err(TombstoneError::new)?;
    serde_json::from_slice(&json).map_err(TombstoneError::new)
}
