//! When a failed operation is tried again. Pure.

use jiff::{SignedDuration, Timestamp};
use tiphys_api::operation::RetryStrategy;
use tiphys_gocompat::duration;

const DEFAULT_PAUSE: SignedDuration = SignedDuration::from_secs(5);
const DEFAULT_CAP: SignedDuration = SignedDuration::from_secs(180);
const DEFAULT_FACTOR: i64 = 2;

/// The moment of the next attempt, after `retries` attempts of which the last ended at `finished`.
///
/// # Errors
/// When a duration in the strategy cannot be read; the text names it.
pub fn next_at(strategy: &RetryStrategy, finished: Timestamp, retries: i64) -> Result<Timestamp, String> {
    let read = |text: &str, default: SignedDuration| -> Result<SignedDuration, String> {
        if text.is_empty() {
            return Ok(default);
        }
        duration::parse(text).map(SignedDuration::from_nanos).map_err(|e| e.to_string())
    };
    let backoff = strategy.backoff.as_ref();
    let pause = backoff.map_or(Ok(DEFAULT_PAUSE), |b| read(&b.duration, DEFAULT_PAUSE))?;
    let cap = backoff.map_or(Ok(DEFAULT_CAP), |b| read(&b.max_duration, DEFAULT_CAP))?;
    let factor = backoff.and_then(|b| b.factor).filter(|f| *f > 0).unwrap_or(DEFAULT_FACTOR);
    let steps = u32::try_from(retries).unwrap_or(0).min(32);
    let wait = pause.as_millis().saturating_mul(i128::from(factor.saturating_pow(steps)));
    let wait = SignedDuration::from_millis(i64::try_from(wait).unwrap_or(i64::MAX)).min(cap);
    Ok(finished.checked_add(wait).unwrap_or(Timestamp::MAX))
}

/// The clock time as Argo CD's messages show it: `3:04PM`.
pub fn kitchen(time: Timestamp) -> String {
    time.strftime("%-I:%M%p").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use tiphys_api::operation::Backoff;

    #[test]
    fn fact_59_pauses_grow_to_the_cap() {
        let finished: Timestamp = "2026-01-01T15:04:05Z".parse().expect("a time");
        let after = |s: &RetryStrategy, n| next_at(s, finished, n).map(|t| t.duration_since(finished).as_secs());
        let default = RetryStrategy::default();
        assert_eq!([0, 1, 2, 10].map(|n| after(&default, n)), [Ok(5), Ok(10), Ok(20), Ok(180)]);
        let own = RetryStrategy { backoff: Some(Backoff { duration: "1m".into(), factor: Some(3), max_duration: "5m".into() }), ..default };
        assert_eq!([0, 1, 2].map(|n| after(&own, n)), [Ok(60), Ok(180), Ok(300)]);
        let broken = RetryStrategy { backoff: Some(Backoff { duration: "soon".into(), ..Backoff::default() }), ..RetryStrategy::default() };
        assert!(after(&broken, 0).is_err_and(|e| e.contains("soon")));
        assert_eq!(kitchen(finished), "3:04PM");
    }
}
