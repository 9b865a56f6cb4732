//! What a sync does, step by step, as values: [`plan`](plan::plan) says what is to be done and in
//! which order, [`next`](next::next) what is to be done now, [`record`](record::record) takes in
//! what came of it.
//!
//! The caller's loop: `next`; store the progress when the decision says so; carry out its effects,
//! one group after another; `record`; store; and again until the phase is terminal, at once after
//! effects, else when something in the cluster changed or after `wake_after`. It may stop anywhere
//! and go on from what was stored. Nothing here reads a clock or talks to a cluster.

pub mod effect;
pub mod hook;
pub mod large_prune;
mod ledger;
mod listing;
pub mod missing;
pub mod next;
pub mod options;
pub mod order;
mod overdue;
pub mod plan;
pub mod progress;
pub mod record;
pub mod request;
pub mod step;
mod supersede;
mod terminate;
pub mod timeout;
mod waiting;
pub mod wave;
pub mod window;
mod work;

pub use effect::{ApplyMode, Effect, EffectErr, EffectOk, Outcome, Write};
pub use next::{Decision, Observed, next};
pub use options::{Propagation, SyncOptions};
pub use plan::{SyncPlan, plan, plan_with};
pub use progress::{
    Ending, OperationPhase, PROGRESS_ANNOTATION, Progress, ResourceResult, ResultCode,
};
pub use record::record;
pub use request::{NamespaceMetadata, ResourceSelector, SyncRequest};
pub use step::{Step, SyncPhase};
pub use timeout::{OnTimeout, Timeouts};

#[cfg(test)]
mod tests;
