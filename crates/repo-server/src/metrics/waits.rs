//! How long renders waited for their turn. Main type: [`Waits`].

use std::{fmt::Write as _, time::Duration};

/// Seconds.
const BUCKETS: [f64; 10] = [0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 10.0, 20.0, 60.0, 120.0];
const NAME: &str = "argocd_repo_parallelism_wait_duration_seconds";
const HELP: &str = "Time spent waiting for the repo-server manifest generation parallelism \
    semaphore. Observed on every acquire attempt, including those that fail (e.g. context canceled).";

#[derive(Default)]
pub(super) struct Waits {
    /// Those of each bucket alone.
    within: [u64; BUCKETS.len()],
    count: u64,
    seconds: f64,
}

impl Waits {
    pub fn add(&mut self, took: Duration) {
        let seconds = took.as_secs_f64();
        self.count += 1;
        self.seconds += seconds;
        if let Some(at) = BUCKETS.iter().position(|bucket| seconds <= *bucket) {
            self.within[at] += 1;
        }
    }

    pub fn write(&self, out: &mut String) {
        let _ = writeln!(out, "# HELP {NAME} {HELP}\n# TYPE {NAME} histogram");
        let mut sum = 0;
        for (bucket, within) in BUCKETS.iter().zip(self.within) {
            sum += within;
            let _ = writeln!(out, "{NAME}_bucket{{le=\"{bucket}\"}} {sum}");
        }
        let Self { count, seconds, .. } = self;
        let _ = writeln!(out, "{NAME}_bucket{{le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{NAME}_sum {seconds}\n{NAME}_count {count}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_are_counted_from_the_beginning() {
        let text = |waits: &Waits| {
            let mut text = String::new();
            waits.write(&mut text);
            text
        };
        let mut waits = Waits::default();
        assert!(text(&waits).contains(&format!("{NAME}_count 0\n")));
        for millis in [125, 3_000, 75_000, 200_000] {
            waits.add(Duration::from_millis(millis));
        }
        let text = text(&waits);
        for line in [
            "_bucket{le=\"0.1\"} 0",
            "_bucket{le=\"2\"} 1",
            "_bucket{le=\"4\"} 2",
            "_bucket{le=\"60\"} 2",
            "_bucket{le=\"120\"} 3",
            "_bucket{le=\"+Inf\"} 4",
            "_sum 278.125",
            "_count 4",
        ] {
            let line = format!("{NAME}{line}");
            assert!(text.lines().any(|found| found == line), "{line}\n{text}");
        }
    }
}
