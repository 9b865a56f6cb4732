//! Waves that exceed their time limit: what they wait for counts as failed, and their running hooks
//! are terminated.
//!
//! The clock of a wave starts when the sync first waits for it, and is stored with the progress, so
//! a restart does not reset it.

use super::{
    next::Run,
    progress::{Ending, OperationPhase, WaveClock},
    step::{Step, SyncPhase},
    waiting::hook_phase,
};
use jiff::SignedDuration;
use std::time::Duration;
use tiphys_gocompat::duration;

impl<'a> Run<'a> {
    /// Fails these steps, which are all that a wave waits for, if the wave exceeded its time limit;
    /// otherwise makes sure that its clock is running.
    pub fn overdue(&mut self, steps: &[&Step], waiting: &str) -> bool {
        let Some((phase, wave)) = steps.iter().map(|s| s.group()).max() else {
            return false;
        };
        let limit = self.request.wave_timeout_secs;
        if limit == 0 {
            return false;
        }
        let now = self.now.as_millisecond();
        let clock = &mut self.ledger.progress.notes.wave;
        if clock
            .as_ref()
            .is_none_or(|c| (c.phase, c.wave) != (phase, wave))
        {
            *clock = Some(WaveClock {
                phase,
                wave,
                since: now,
            });
        }
        if self.time_left().is_some() {
            return false;
        }
        let within = duration::to_string(i64::from(limit) * 1_000_000_000);
        let why = format!("wave {wave} of {phase} took longer than {within}, {waiting}");
        // If SyncFail hooks run, the sync has already failed for another reason.
        if phase != SyncPhase::SyncFail {
            self.ledger
                .progress
                .notes
                .ending
                .get_or_insert(Ending::TimedOut(why));
        }
        for step in steps {
            self.ledger.set_phase(
                step,
                OperationPhase::Failed,
                &format!("timed out: not done within {within}"),
            );
        }
        true
    }

    /// The time left to wait for the current wave; `None` if the time is up, or there is no limit.
    pub fn time_left(&self) -> Option<Duration> {
        let clock = self
            .ledger
            .progress
            .notes
            .wave
            .as_ref()
            .filter(|_| self.request.wave_timeout_secs > 0)?;
        let end = clock.since
            + SignedDuration::from_secs(self.request.wave_timeout_secs.into()).as_millis() as i64;
        u64::try_from(end - self.now.as_millisecond())
            .ok()
            .filter(|ms| *ms > 0)
            .map(Duration::from_millis)
    }

    /// A hook that counts as failed because it timed out: it is still running.
    pub fn is_overdue_hook(&self, step: &Step) -> bool {
        step.is_hook()
            && self.ledger.unsuccessful(step)
            && self.own_live(step).is_some_and(|live| {
                hook_phase(step, &live, self.observed).is_ok_and(|(phase, _)| !phase.completed())
            })
    }

    /// Why the sync failed, if a wave timed out.
    pub fn timed_out(&self) -> Option<&str> {
        match self.ledger.progress.notes.ending.as_ref()? {
            Ending::TimedOut(why) => Some(why),
            Ending::Superseded => None,
        }
    }
}
