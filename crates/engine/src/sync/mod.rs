//! A sync as values: [`plan`](plan::plan) computes the steps and their order, [`next`](next::next)
//! decides what to do now, [`record`](record::record) records the outcomes.
//!
//! The caller's loop: call `next`; store the progress if the decision requires it; execute its
//! effects, one group after another; `record`; store; and repeat until the phase is terminal:
//! immediately after effects, otherwise when something in the cluster changed or after
//! `wake_after`. It may stop at any point and resume from what was stored. Nothing here reads a
//! clock or talks to a cluster.

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
pub use step::{Refused, Step, SyncPhase};
pub use timeout::{OnTimeout, Timeouts};

#[cfg(test)]
mod tests;
