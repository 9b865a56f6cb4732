//! When a failed operation is retried. Pure.

use jiff::{SignedDuration, Timestamp};
use tiphys_api::operation::{OperationState, RetryStrategy};
use tiphys_gocompat::duration;

const DEFAULT_PAUSE: SignedDuration = SignedDuration::from_secs(5);
const DEFAULT_CAP: SignedDuration = SignedDuration::from_secs(180);
const DEFAULT_FACTOR: i64 = 2;

/// The time of the next attempt, after `retries` attempts of which the last ended at `finished`.
///
/// # Errors
/// If a duration in the strategy is invalid; the message names it.
pub fn next_at(
    strategy: &RetryStrategy,
    finished: Timestamp,
    retries: i64,
) -> Result<Timestamp, String> {
    let read = |text: &str, default: SignedDuration| -> Result<SignedDuration, String> {
        if text.is_empty() {
            return Ok(default);
        }
        duration::parse(text)
            .map(SignedDuration::from_nanos)
            .map_err(|e| e.to_string())
    };
    let backoff = strategy.backoff.as_ref();
    let pause = backoff.map_or(Ok(DEFAULT_PAUSE), |b| read(&b.duration, DEFAULT_PAUSE))?;
    let cap = backoff.map_or(Ok(DEFAULT_CAP), |b| read(&b.max_duration, DEFAULT_CAP))?;
    let factor = backoff
        .and_then(|b| b.factor)
        .filter(|f| *f > 0)
        .unwrap_or(DEFAULT_FACTOR);
    let steps = u32::try_from(retries).unwrap_or(0).min(32);
    let wait = pause
        .as_millis()
        .saturating_mul(i128::from(factor.saturating_pow(steps)));
    let wait = SignedDuration::from_millis(i64::try_from(wait).unwrap_or(i64::MAX)).min(cap);
    Ok(finished.checked_add(wait).unwrap_or(Timestamp::MAX))
}

/// Begins another attempt: clears the result of the last one.
pub fn begin(state: &mut OperationState) {
    let refresh = state.operation.retry.refresh;
    let latest = if refresh {
        " with latest revisions"
    } else {
        ""
    };
    if let Some(sync) = state.operation.sync.as_mut().filter(|_| refresh) {
        sync.revision.clear();
        sync.revisions.clear();
    }
    state.message = format!("Retrying operation{latest}. Attempt #{}", state.retry_count);
    state.finished_at = None;
    state.sync_result = None;
}

/// The clock time as Argo CD's messages show it: `3:04PM`.
pub fn kitchen(time: Timestamp) -> String {
    time.strftime("%-I:%M%p").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tiphys_api::operation::Backoff;

    #[test]
    fn c59_pauses_grow_to_the_cap() {
        let finished: Timestamp = "2026-01-01T15:04:05Z".parse().expect("a time");
        let after = |s: &RetryStrategy, n| {
            next_at(s, finished, n).map(|t| t.duration_since(finished).as_secs())
        };
        let default = RetryStrategy::default();
        assert_eq!(
            [0, 1, 2, 10].map(|n| after(&default, n)),
            [Ok(5), Ok(10), Ok(20), Ok(180)]
        );
        let own = RetryStrategy {
            backoff: Some(Backoff {
                duration: "1m".into(),
                factor: Some(3),
                max_duration: "5m".into(),
            }),
            ..default
        };
        assert_eq!(
            [0, 1, 2].map(|n| after(&own, n)),
            [Ok(60), Ok(180), Ok(300)]
        );
        let broken = RetryStrategy {
            backoff: Some(Backoff {
                duration: "soon".into(),
                ..Backoff::default()
            }),
            ..RetryStrategy::default()
        };
        assert!(after(&broken, 0).is_err_and(|e| e.contains("soon")));
        assert_eq!(kitchen(finished), "3:04PM");
    }

    #[test]
    fn c59_an_attempt_begins_without_the_results_of_the_last_one() {
        let begun = |refresh: bool| {
            let state = json!({"phase": "Running", "message": "failed", "retryCount": 2, "finishedAt": "2026-01-01T00:00:00Z",
                "operation": {"retry": {"refresh": refresh}, "sync": {"revision": "a", "revisions": ["a", "b"]}}, "syncResult": {"revision": "a"}});
            let mut state: OperationState = serde_json::from_value(state).expect("a state");
            begin(&mut state);
            assert_eq!(
                (
                    state.phase.as_str(),
                    state.retry_count,
                    state.finished_at,
                    &state.sync_result
                ),
                ("Running", 2, None, &None)
            );
            let sync = state.operation.sync.expect("a sync");
            (state.message, sync.revision, sync.revisions.len())
        };
        assert_eq!(
            begun(false),
            (
                "Retrying operation. Attempt #2".to_owned(),
                "a".to_owned(),
                2
            )
        );
        assert_eq!(
            begun(true),
            (
                "Retrying operation with latest revisions. Attempt #2".to_owned(),
                String::new(),
                0
            )
        );
    }
}
