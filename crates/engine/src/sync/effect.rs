//! The writes that a sync requests, and their outcomes.
//!
//! Main types: [`Effect`] and [`Outcome`]. Effects are values; the cluster crate executes them.

use super::{options::Propagation, step::Step};
use serde::{Deserialize, Serialize};
use std::fmt;
use tiphys_apimachinery::Object;

/// How an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum ApplyMode {
    /// Like `kubectl apply`: a three-way patch with the last applied configuration.
    ClientSide,
    /// Server-side apply with the controller's field manager.
    ServerSide,
    /// Like `kubectl replace`; with force: delete and create.
    Replace,
    /// Like `kubectl create`.
    Create,
    /// A PUT with the live object's resourceVersion: for CRDs and namespaces, because a replace
    /// might delete them with everything in them.
    Update,
}

/// One object to write.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Write {
    pub step: Step,
    pub mode: ApplyMode,
    /// Delete and recreate the object if it cannot be changed in place.
    pub force: bool,
    /// Validate the object against the kind's schema.
    pub validate: bool,
}

/// An operation on the cluster. Each can safely be repeated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Effect {
    /// Check that the object is well-formed, of a known kind and (with `validate`) matches its
    /// schema, without reading the live object: a hook of an earlier sync may still exist, and the
    /// namespace may not.
    DryRun(Write),
    Apply(Write),
    /// Like `Apply`; the object carries the operation's id, by which it is recognized later.
    RunHook(Write),
    /// Delete, only if the live UID is this one (if given). "Not found" is an error with
    /// `not_found`.
    Prune {
        step: Step,
        uid: String,
        propagation: Propagation,
    },
    DeleteHook {
        step: Step,
        uid: String,
        propagation: Propagation,
    },
    /// Remove one finalizer; retry on conflict.
    RemoveFinalizer {
        step: Step,
        uid: String,
        finalizer: String,
    },
    /// Migrate the fields that `manager` owns with operation Update to the controller's server-side
    /// apply manager; retry on conflict.
    MigrateManagers {
        step: Step,
        uid: String,
        manager: String,
    },
    /// Read the object from the API server itself, because it should exist but the cache does not
    /// have it.
    Read {
        step: Step,
    },
}

impl Effect {
    pub fn step(&self) -> &Step {
        match self {
            Self::DryRun(w) | Self::Apply(w) | Self::RunHook(w) => &w.step,
            Self::Prune { step, .. }
            | Self::DeleteHook { step, .. }
            | Self::RemoveFinalizer { step, .. }
            | Self::MigrateManagers { step, .. }
            | Self::Read { step } => step,
        }
    }

    pub const fn verb(&self) -> &'static str {
        match self {
            Self::DryRun(_) => "dry-run",
            Self::Apply(_) => "apply",
            Self::RunHook(_) => "run hook",
            Self::Prune { .. } => "prune",
            Self::DeleteHook { .. } => "delete hook",
            Self::RemoveFinalizer { .. } => "remove finalizer of",
            Self::MigrateManagers { .. } => "migrate managers of",
            Self::Read { .. } => "read",
        }
    }
}

/// For logs: `apply apps/Deployment/default/web`.
impl fmt::Display for Effect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.verb(), self.step().key)
    }
}

/// The outcome of an effect.
#[derive(Clone, Debug, PartialEq)]
pub struct Outcome {
    /// Index in `Decision::effects`.
    pub effect: usize,
    pub result: Result<EffectOk, EffectErr>,
}

/// An effect succeeded.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct EffectOk {
    /// The object that the API server returned, if any.
    pub live: Option<Object>,
    /// Such as `deployment.apps/web created`.
    pub message: String,
}

/// An effect failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EffectErr {
    /// The API server's message.
    pub message: String,
    /// The object does not exist.
    pub not_found: bool,
}

impl Outcome {
    pub fn ok(effect: usize, live: Option<Object>, message: impl Into<String>) -> Self {
        Self {
            effect,
            result: Ok(EffectOk {
                live,
                message: message.into(),
            }),
        }
    }

    pub fn failed(effect: usize, message: impl Into<String>) -> Self {
        Self {
            effect,
            result: Err(EffectErr {
                message: message.into(),
                not_found: false,
            }),
        }
    }

    pub fn not_found(effect: usize, message: impl Into<String>) -> Self {
        Self {
            effect,
            result: Err(EffectErr {
                message: message.into(),
                not_found: true,
            }),
        }
    }
}
