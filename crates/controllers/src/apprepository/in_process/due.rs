//! When an AppRepository is read. Pure.
//!
//! Main functions: [`is_due`], and [`next`] after an attempt.

use super::Memo;
use jiff::Timestamp;
use serde_json::Value;
use std::time::Duration;
use tiphys_api::AppRepository;

/// The first pause after a failure, and the longest.
const FIRST: Duration = Duration::from_secs(30);
const LONGEST: Duration = Duration::from_secs(3600);
/// The longest time that a server may ask for.
const LONGEST_WISH: Duration = Duration::from_secs(24 * 3600);

/// `None`: it is due now; else after this time.
pub(super) fn wait(
    repository: &AppRepository,
    spec: &Value,
    memo: &Memo,
    now: Timestamp,
) -> Option<Duration> {
    let status = &repository.status;
    let ours = memo.spec.as_ref().filter(|known| *known == spec);
    let ours = ours.and(memo.next_at);
    // Another process may have read it, before this one or beside it.
    let is_told = status.observed_generation == repository.metadata.generation
        && status.observed_resync_requests == repository.spec.resync_requests
        && status.status != "Syncing";
    let told = status.next_sync_time.as_ref().filter(|_| is_told);
    let next = ours.max(told.map(|at| at.timestamp()));
    let next = next.filter(|next| *next > now)?;
    Duration::try_from(next.duration_since(now)).ok()
}

/// The pause after an attempt: `interval` is the usual one, `share` from 0 to 1 how much later, and
/// `wish` what the server asked for.
pub(super) fn pause(
    interval: Duration,
    share: f64,
    failures: u32,
    wish: Option<Duration>,
) -> Duration {
    let usual = interval.saturating_add(interval.mul_f64(share.clamp(0.0, 1.0)));
    if failures == 0 {
        return usual;
    }
    let doubled = FIRST.saturating_mul(1 << (failures - 1).min(10));
    let later = doubled.mul_f64(1.0 + share.clamp(0.0, 1.0)).min(LONGEST);
    // A repository that is read rarely is tried again sooner, never later than usual.
    let own = later.min(usual);
    own.max(wish.unwrap_or_default().min(LONGEST_WISH))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn failures_wait_longer_and_servers_are_obeyed() {
        let minutes = |n: u64| Duration::from_secs(60 * n);
        for (interval, failures, wish, seconds) in [
            (10, 0, None, 600),
            (10, 0, Some(900), 600),
            (10, 1, None, 30),
            (10, 3, None, 120),
            (10, 9, None, 600),
            (1000, 20, None, 3600),
            (10, 1, Some(900), 900),
            (10, 1, Some(10_000_000), 24 * 3600),
        ] {
            let wish = wish.map(Duration::from_secs);
            let found = pause(minutes(interval), 0.0, failures, wish);
            assert_eq!(found.as_secs(), seconds, "{interval} {failures} {wish:?}");
        }
        assert_eq!(pause(minutes(10), 0.5, 0, None), minutes(15));
    }

    #[test]
    fn what_was_read_is_known_from_the_status() {
        let repository = |status: Value| -> AppRepository {
            let value = json!({
                "metadata": {"generation": 3},
                "spec": {"type": "helm", "url": "u", "resyncRequests": 1},
                "status": status,
            });
            serde_json::from_value(value).expect("an AppRepository")
        };
        let now: Timestamp = "2026-01-01T00:00:00Z".parse().expect("a time");
        let read = json!({
            "observedGeneration": 3, "observedResyncRequests": 1, "status": "Ready",
            "nextSyncTime": "2026-01-01T00:05:00Z",
        });
        let minutes = Some(Duration::from_secs(300));
        let new = Memo::default();
        let spec = json!({"url": "u"});
        assert_eq!(wait(&repository(json!({})), &spec, &new, now), None);
        assert_eq!(wait(&repository(read.clone()), &spec, &new, now), minutes);
        for (field, value) in [
            ("observedGeneration", json!(2)),
            ("observedResyncRequests", json!(0)),
            ("status", json!("Syncing")),
            ("nextSyncTime", json!("2025-12-31T00:00:00Z")),
        ] {
            let mut status = read.clone();
            status[field] = value;
            assert_eq!(wait(&repository(status), &spec, &new, now), None, "{field}");
        }
        let memo = Memo {
            spec: Some(json!({"url": "old"})),
            next_at: Some(now + Duration::from_secs(600)),
            ..Memo::default()
        };
        let silent = || repository(json!({}));
        assert_eq!(wait(&silent(), &spec, &memo, now), None);
        assert_eq!(wait(&repository(read.clone()), &spec, &memo, now), minutes);
        let memo = |seconds| Memo {
            spec: Some(spec.clone()),
            next_at: Some(now + Duration::from_secs(seconds)),
            ..Memo::default()
        };
        assert_eq!(wait(&silent(), &spec, &memo(300), now), minutes);
        // Another process has read it since.
        assert_eq!(wait(&repository(read), &spec, &memo(0), now), minutes);
    }
}
