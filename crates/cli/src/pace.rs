//! How often a worker checks for events during a continuous stream.
//!
//! Main function: [`keep_pace`]. The work for one event of a cluster is small, but since the last
//! one the API server or other processes have filled the CPU caches, so waking up costs more than
//! the work. Above some dozens of wake-ups per second a worker therefore wakes up only every few
//! milliseconds, and handles all events that arrived. A single event is handled immediately.

use std::{
    cell::Cell,
    thread,
    time::{Duration, Instant},
};
use tokio::runtime::Builder;

/// The interval between wake-ups in a stream.
const SPACING: Duration = Duration::from_millis(10);
/// This many wake-ups are a stream; their count decays over this time. The sync of one Application
/// needs fewer.
const STREAM: f64 = 40.0;
const FADES: Duration = Duration::from_millis(500);

thread_local! {
    static PACE: Cell<Pace> = const { Cell::new(Pace::NEW) };
}

#[derive(Clone, Copy)]
struct Pace {
    woken: Option<Instant>,
    looks: f64,
}

impl Pace {
    const NEW: Self = Self {
        woken: None,
        looks: 0.0,
    };

    /// The worker has work.
    fn wake(&mut self, now: Instant) {
        let since = self.woken.map_or(Duration::ZERO, |woken| now - woken);
        self.looks = self.looks * (-since.div_duration_f64(FADES)).exp() + 1.0;
        self.woken = Some(now);
    }

    /// The worker is idle: how long to let events accumulate before it checks again.
    fn rest(&self, now: Instant) -> Duration {
        let worked = self.woken.map_or(SPACING, |woken| now - woken);
        if self.looks < STREAM {
            Duration::ZERO
        } else {
            SPACING.saturating_sub(worked)
        }
    }
}

/// Makes the workers of this runtime batch the events of a stream. Not for a runtime whose own
/// tasks wait for each other across threads, such as those of an API server in the process: each of
/// its responses would be delayed by that time.
pub fn keep_pace(threads: &mut Builder) {
    threads.on_thread_unpark(|| {
        let mut pace = PACE.get();
        pace.wake(Instant::now());
        PACE.set(pace);
    });
    threads.on_thread_park(|| {
        let rest = PACE.get().rest(Instant::now());
        if !rest.is_zero() {
            thread::sleep(rest);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Events at this interval, each a millisecond of work: how long the worker rests after the
    /// last one.
    fn after(events: u32, apart: Duration) -> Duration {
        let (mut pace, mut now) = (Pace::NEW, Instant::now());
        let mut rest = Duration::ZERO;
        for _ in 0..events {
            now += apart.max(rest);
            pace.wake(now);
            now += Duration::from_millis(1);
            rest = pace.rest(now);
        }
        rest
    }

    #[test]
    fn what_comes_alone_is_taken_at_once() {
        assert_eq!(after(1, Duration::ZERO), Duration::ZERO);
        assert_eq!(
            after(30, Duration::from_millis(1)),
            Duration::ZERO,
            "a sync of one Application"
        );
        assert_eq!(
            after(10_000, Duration::from_millis(20)),
            Duration::ZERO,
            "fifty events a second"
        );
    }

    #[test]
    fn a_stream_is_looked_at_every_ten_milliseconds_as_long_as_it_lasts() {
        assert_eq!(
            after(50, Duration::from_millis(1)),
            Duration::from_millis(9)
        );
        assert_eq!(
            after(10_000, Duration::from_millis(4)),
            Duration::from_millis(9),
            "its own rests do not end it"
        );
    }

    #[test]
    fn who_works_for_long_does_not_rest() {
        let mut pace = Pace::NEW;
        let mut now = Instant::now();
        for _ in 0..100 {
            pace.wake(now);
            now += Duration::from_millis(2);
        }
        assert_eq!(pace.rest(now), Duration::from_millis(8));
        assert_eq!(pace.rest(now + SPACING), Duration::ZERO);
    }
}
