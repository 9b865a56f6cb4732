//! Suite `cli`: scenarios of Argo CD's command line, replayed with ours against our server. The
//! program, its API server and its clusters are those of this build. Main function: [`runner`].

mod compare;
pub mod intended;
mod normalise;
mod steps;
mod world;

use super::{Difference, Runner};
use std::{cell::RefCell, path::Path};
use world::World;

/// The differences of a scenario that are shown.
const SHOWN: usize = 3;

pub fn runner(dir: &Path) -> anyhow::Result<Runner> {
    let world = RefCell::new(World::start(dir)?);
    Ok(Box::new(move |case| {
        let mut world = world.borrow_mut();
        let ran = world.prepare(case).and_then(|()| steps::run(&world, case));
        let found = ran.unwrap_or_else(|e| vec![format!("{e:#}")]);
        if found.is_empty() {
            return Ok(());
        }
        if let Some(reason) = intended::reason(case["id"].as_str().unwrap_or_default()) {
            return Err(Difference::Intended(reason.to_owned()));
        }
        let shown: Vec<String> = found.iter().take(SHOWN).cloned().collect();
        let count = found.len();
        Err(Difference::Wrong(format!(
            "{} ({count} places)",
            shown.join("\n    ")
        )))
    }))
}
