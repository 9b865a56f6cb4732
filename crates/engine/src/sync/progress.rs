//! What a sync operation has done so far, and how that survives a restart.
//!
//! Main type: [`Progress`]. The results are Argo CD's own
//! (`status.operationState.syncResult.resources`), so either program can resume what the other
//! started. [`Notes`] hold what those fields cannot; they are stored in one annotation that can be
//! lost without damage.

use super::step::{StepKey, SyncPhase};
use serde::{Deserialize, Deserializer, Serialize};
use std::{
    collections::{BTreeMap, BTreeSet},
    fmt,
};
use tiphys_apimachinery::ResourceKey;

/// The annotation of an Application that holds the [`Notes`].
pub const PROGRESS_ANNOTATION: &str = tiphys_api::constants::SYNC_PROGRESS;

/// Maximum number of recorded writes in the annotation. It must stay small, and losing an entry
/// only costs a read from the cluster.
const MAX_STORED_MARKS: usize = 200;

/// Phase of an operation or of the work on one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum OperationPhase {
    Running,
    Terminating,
    Failed,
    Error,
    Succeeded,
}

impl OperationPhase {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Terminating => "Terminating",
            Self::Failed => "Failed",
            Self::Error => "Error",
            Self::Succeeded => "Succeeded",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Running,
            Self::Terminating,
            Self::Failed,
            Self::Error,
            Self::Succeeded,
        ]
        .into_iter()
        .find(|p| p.as_str() == word)
    }

    pub const fn completed(self) -> bool {
        matches!(self, Self::Failed | Self::Error | Self::Succeeded)
    }
}

impl fmt::Display for OperationPhase {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The result of the write or deletion of one resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ResultCode {
    Synced,
    SyncFailed,
    Pruned,
    PruneSkipped,
}

impl ResultCode {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Synced => "Synced",
            Self::SyncFailed => "SyncFailed",
            Self::Pruned => "Pruned",
            Self::PruneSkipped => "PruneSkipped",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        [
            Self::Synced,
            Self::SyncFailed,
            Self::Pruned,
            Self::PruneSkipped,
        ]
        .into_iter()
        .find(|c| c.as_str() == word)
    }
}

/// One entry of `syncResult.resources`. Their order is the order in which they were first recorded.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ResourceResult {
    pub group: String,
    pub version: String,
    pub kind: String,
    pub namespace: String,
    pub name: String,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_code"
    )]
    pub status: Option<ResultCode>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub message: String,
    /// None for plain resources.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_sync_phase"
    )]
    pub hook_type: Option<SyncPhase>,
    /// Also set for plain resources.
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_phase"
    )]
    pub hook_phase: Option<OperationPhase>,
    #[serde(
        skip_serializing_if = "Option::is_none",
        deserialize_with = "known_sync_phase"
    )]
    pub sync_phase: Option<SyncPhase>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<String>,
}

impl ResourceResult {
    pub fn step_key(&self) -> StepKey {
        let key = ResourceKey::new(&self.group, &self.kind, &self.namespace, &self.name);
        StepKey {
            key,
            phase: self.sync_phase.unwrap_or_default(),
        }
    }
}

/// Whether the dry run before a sync has finished.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum DryRun {
    #[default]
    Pending,
    Done,
    Failed,
}

/// Our last write to one object, so that a stale state of it is not mistaken for the current one.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LastWrite {
    #[serde(rename = "u", skip_serializing_if = "String::is_empty")]
    pub uid: String,
    /// resourceVersion after our write; 0 when unknown.
    #[serde(rename = "r", skip_serializing_if = "is_zero")]
    pub version: u64,
    /// When, in milliseconds since 1970.
    #[serde(rename = "t")]
    pub at: i64,
    /// Our finalizer was removed.
    #[serde(rename = "f", skip_serializing_if = "is_false")]
    pub released: bool,
    /// Deletion was requested.
    #[serde(rename = "d", skip_serializing_if = "is_false")]
    pub deleted: bool,
    /// The API server said that it does not exist.
    #[serde(rename = "g", skip_serializing_if = "is_false")]
    pub gone: bool,
    /// Its field managers were migrated.
    #[serde(rename = "m", skip_serializing_if = "is_false")]
    pub migrated: bool,
    /// Its deletion, or the removal of our finalizer, failed.
    #[serde(rename = "e", skip_serializing_if = "is_false")]
    pub refused: bool,
}

/// How an operation ended, kept until the last hooks are deleted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OperationOutcome {
    pub phase: OperationPhase,
    pub message: String,
}

/// Why an operation ends other than by its own steps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Ending {
    /// A wave exceeded its time limit; the text names the wave and what it waited for.
    TimedOut(String),
    /// A newer revision is to be synced instead.
    Superseded,
}

/// When the sync began to wait for a wave.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaveClock {
    #[serde(rename = "p")]
    pub phase: SyncPhase,
    #[serde(rename = "w")]
    pub wave: i64,
    /// In milliseconds since 1970.
    #[serde(rename = "t")]
    pub since: i64,
}

/// What Argo CD's fields cannot hold. Losing it costs a repeated check, never a repeated hook.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Notes {
    /// Format version.
    pub v: u32,
    /// The operation these notes are about.
    pub op: String,
    pub dry_run: DryRun,
    /// When the last wave was applied, in milliseconds since 1970.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave_at: Option<i64>,
    /// The wave that the sync waits for, if waves have a time limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wave: Option<WaveClock>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ending: Option<Ending>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<OperationOutcome>,
    /// By step, `<group>/<kind>/<namespace>/<name>:<phase>`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub marks: BTreeMap<String, LastWrite>,
}

const NOTES_VERSION: u32 = 1;

/// What an operation has done so far.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Progress {
    pub results: Vec<ResourceResult>,
    pub notes: Notes,
}

impl Progress {
    /// Progress of an operation that has done nothing yet.
    pub fn new(operation_id: &str) -> Self {
        Self {
            results: Vec::new(),
            notes: Notes {
                v: NOTES_VERSION,
                op: operation_id.to_owned(),
                ..Notes::default()
            },
        }
    }

    /// From stored results alone: Argo CD started the operation, or the annotation was lost.
    pub fn from_results(results: Vec<ResourceResult>, operation_id: &str) -> Self {
        Self {
            results,
            ..Self::new(operation_id)
        }
    }

    /// From stored results and annotation. An annotation that is invalid, of a later format or
    /// about another operation counts as lost.
    pub fn from_annotation(
        results: Vec<ResourceResult>,
        annotation: Option<&str>,
        operation_id: &str,
    ) -> Self {
        let stored = annotation.and_then(|text| serde_json::from_str::<Notes>(text).ok());
        match stored.filter(|n| n.v == NOTES_VERSION && n.op == operation_id) {
            Some(notes) => Self { results, notes },
            None => Self::from_results(results, operation_id),
        }
    }

    /// For `status.operationState.syncResult.resources`.
    pub fn to_results(&self) -> Vec<ResourceResult> {
        self.results.clone()
    }

    /// For [`PROGRESS_ANNOTATION`]: only the entries that may still matter, up to a maximum.
    pub fn to_annotation(&self) -> String {
        let mut notes = self.notes.clone();
        let matters: BTreeSet<String> = self
            .results
            .iter()
            .filter(|r| {
                r.hook_type.is_some()
                    || r.status == Some(ResultCode::Pruned)
                    || r.hook_phase == Some(OperationPhase::Running)
            })
            .map(|r| r.step_key().to_string())
            .collect();
        let recorded: BTreeSet<String> = self
            .results
            .iter()
            .map(|r| r.step_key().to_string())
            .collect();
        notes.marks = notes
            .marks
            .into_iter()
            .filter(|(key, _)| matters.contains(key) || !recorded.contains(key))
            .take(MAX_STORED_MARKS)
            .collect();
        serde_json::to_string(&notes).expect("notes are strings, numbers and maps of them")
    }
}

fn is_zero(n: &u64) -> bool {
    *n == 0
}

fn is_false(b: &bool) -> bool {
    !*b
}

fn known_code<'de, D: Deserializer<'de>>(d: D) -> Result<Option<ResultCode>, D::Error> {
    Ok(Option::<String>::deserialize(d)?.and_then(|w| ResultCode::parse(&w)))
}

fn known_phase<'de, D: Deserializer<'de>>(d: D) -> Result<Option<OperationPhase>, D::Error> {
    Ok(Option::<String>::deserialize(d)?.and_then(|w| OperationPhase::parse(&w)))
}

fn known_sync_phase<'de, D: Deserializer<'de>>(d: D) -> Result<Option<SyncPhase>, D::Error> {
    Ok(Option::<String>::deserialize(d)?.and_then(|w| SyncPhase::parse(&w)))
}
