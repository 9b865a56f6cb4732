//! The lifecycle of a pod on a node that has no containers: a pure state machine.
//!
//! Main function: [`reconcile`]. The command of a pod decides how it ends: `true` and `sleep N`
//! succeed, `false` and `exit N` fail, no command (a server image) keeps running, and an image name
//! that cannot be parsed keeps the pod waiting. The annotation [`BEHAVIOUR`] gives more control. A
//! command of [`SimOptions::programs`] runs elsewhere: [`ENDED`] and [`SAID`] say what came of it.

mod evict;
mod life;
mod logs;
mod schedule;
mod status;

pub use evict::{collect, due as leaves_at, evict};
pub use life::{BEHAVIOUR, Behaviour, ENDED, SAID, Stage, behaviour, entered, stage};
pub use logs::{Log, container, log};
pub use schedule::{NodeLoad, Placement, refusal, schedule};
pub use status::qos_class;

use super::{
    SimOptions,
    plan::{Note, Plan},
    store::Propagation,
};
use jiff::Timestamp;
use tiphys_apimachinery::Object;

/// The state of the claims that a pod mounts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Storage {
    Ready,
    /// They will be bound for this pod.
    Coming,
    /// The pod cannot be scheduled, for this reason.
    Lacking(String),
}

/// The input of a pod's next step besides the pod.
pub struct PodWorld<'a> {
    pub options: &'a SimOptions,
    pub nodes: &'a [NodeLoad<'a>],
    pub storage: &'a Storage,
    /// When the pod's current stage was first seen.
    pub since: Timestamp,
    /// An unused address.
    pub free_ip: &'a str,
    pub now: Timestamp,
}

/// The next step of one pod.
pub fn reconcile(pod: &Object, world: &PodWorld<'_>) -> Plan {
    let mut plan = Plan::default();
    let (stage, delay) = stage(pod, world.options);
    let due = world.since.saturating_add(delay).unwrap_or(Timestamp::MAX);
    if due > world.now {
        plan.wake_at(due);
        return plan;
    }
    match stage {
        Stage::Rest => {}
        Stage::Bind => bind(&mut plan, pod, world),
        Stage::Init { done } => status::initialize(&mut plan, pod, done, world),
        Stage::Start => status::start(&mut plan, pod, world),
        Stage::BadImage => status::bad_image(&mut plan, pod, world),
        Stage::Finish { exit_code } => status::finish(&mut plan, pod, exit_code, world),
        Stage::Crash { exit_code } => status::crash(&mut plan, pod, exit_code, world),
        Stage::Restart => status::restart(&mut plan, pod, world),
        Stage::ReleaseFinalizers => {
            let mut freed = pod.clone();
            freed.set_finalizers(Vec::new());
            plan.update(freed, None);
        }
        Stage::Stop => {
            plan.delete_with(pod, Some(0), Propagation::Background, status::stopped(pod))
        }
    }
    plan
}

fn bind(plan: &mut Plan, pod: &Object, world: &PodWorld<'_>) {
    match schedule(pod, world.nodes, world.storage) {
        Placement::Wait => {}
        Placement::Node(name) => {
            let message = format!(
                "Successfully assigned {}/{} to {name}",
                pod.namespace(),
                pod.name()
            );
            let mut bound = pod.clone();
            super::fields::set_spec(&mut bound, "nodeName", name.into());
            plan.update(bound, Some(Note::normal("Scheduled", message)));
        }
        Placement::Refused { reason, message } => {
            status::unschedulable(plan, pod, reason, &message, world.now)
        }
    }
}
