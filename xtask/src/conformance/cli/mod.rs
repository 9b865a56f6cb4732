//! Suite `cli`: scenarios of Argo CD's command line, replayed with ours against our server. The
//! program, its API server and its clusters are those of this build. Main function: [`runner`].

mod compare;
pub mod intended;
mod normalise;
mod steps;
mod world;

use super::{Difference, Runner};
use std::{cell::RefCell, path::Path};
use steps::Differs;
use world::World;

/// The differences of a scenario that are shown.
const SHOWN: usize = 3;

/// Whether all that differs in a scenario is intended.
fn judged(id: &str, found: &[Differs]) -> Result<(), Difference> {
    let mut intended = Ok(());
    let mut wrong = Vec::new();
    for differs in found {
        match intended::explains(id, differs.step, differs.kind) {
            Some(reason) => intended = Err(Difference::Intended(reason.to_owned())),
            None => wrong.push(differs.what.as_str()),
        }
    }
    if wrong.is_empty() {
        let outdated = intended::outdated(id, found);
        let outdated: Vec<String> = outdated
            .into_iter()
            .map(|(step, reason)| format!("step {step} is as recorded, excused by: {reason}"))
            .collect();
        return match outdated.is_empty() {
            true => intended,
            false => Err(Difference::Outdated(outdated.join("\n    "))),
        };
    }
    let shown = &wrong[..wrong.len().min(SHOWN)];
    Err(Difference::Wrong(format!(
        "{} ({} places)",
        shown.join("\n    "),
        wrong.len()
    )))
}

pub fn runner(dir: &Path) -> anyhow::Result<Runner> {
    let world = RefCell::new(World::start(dir)?);
    Ok(Box::new(move |case| {
        let mut world = world.borrow_mut();
        let ran = world.prepare(case).and_then(|()| steps::run(&world, case));
        // A scenario that could not be played is no difference that anybody decided.
        let found = ran.map_err(|e| format!("{e:#}"))?;
        judged(case["id"].as_str().unwrap_or_default(), &found)
    }))
}

#[cfg(test)]
mod tests {
    use super::{Difference, Differs, judged, steps::Kind};

    #[test]
    fn one_intended_difference_excuses_no_other() {
        let differs = |step, kind| Differs {
            step,
            kind,
            what: format!("step {step}"),
        };
        let (of_reason, other) = (differs(10, Kind::Code), differs(3, Kind::Words));
        assert!(judged("unknown", &[]).is_ok());
        let judged = |found: &[Differs]| judged("wait", found);
        assert!(matches!(judged(&[]), Err(Difference::Outdated(_))));
        assert!(matches!(
            judged(std::slice::from_ref(&of_reason)),
            Err(Difference::Intended(_))
        ));
        for found in [vec![other.clone()], vec![of_reason, other]] {
            assert!(matches!(judged(&found), Err(Difference::Wrong(_))));
        }
    }
}
