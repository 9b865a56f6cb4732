//! Waves that take longer than they may: what they wait for counts as failed, and running hooks of
//! theirs are ended.
//!
//! The clock of a wave starts when it is first waited for, and is kept with the progress: a restart
//! does not turn it back.

use super::{
    next::Run,
    progress::{Ending, OperationPhase, WaveClock},
    step::{Step, SyncPhase},
};
use jiff::SignedDuration;
use std::time::Duration;
use tiphys_gocompat::duration;

/// How the message of what was not done in time begins.
const OVERDUE: &str = "timed out: ";

impl<'a> Run<'a> {
    /// Fails these steps, all that a wave waits for, if that takes too long; else sees to it that
    /// its time is taken.
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
        // When SyncFail hooks run, the sync has failed for another reason.
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
                &format!("{OVERDUE}not done within {within}"),
            );
        }
        true
    }

    /// How long the wave in hand may still be waited for; `None` when that is over, or nobody asks.
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

    /// A hook that was ended because it took too long.
    pub fn is_overdue_hook(&self, step: &Step) -> bool {
        step.is_hook()
            && self.ledger.unsuccessful(step)
            && self.ledger.message(step).starts_with(OVERDUE)
    }

    /// Why the sync failed, if that was for its time.
    pub fn timed_out(&self) -> Option<&str> {
        match self.ledger.progress.notes.ending.as_ref()? {
            Ending::TimedOut(why) => Some(why),
            Ending::Superseded => None,
        }
    }
}
