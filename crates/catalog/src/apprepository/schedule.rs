//! When a repository is read again: `spec.interval` as a crontab.
//!
//! Main function: [`schedule`].

use jiff::{Timestamp, tz::TimeZone};
use std::time::Duration;
use tiphys_gocompat::{cron, duration};

const MINUTE: i64 = 60_000_000_000;

/// A crontab that the API server accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schedule {
    pub crontab: String,
    /// Why it is not what the interval says.
    pub warning: Option<String>,
}

/// The crontab of an interval: a crontab itself, or a duration of Go, which is rounded up to whole
/// minutes, hours, days or months. Anything else is replaced by the default.
pub fn schedule(interval: &str, default: &str) -> Schedule {
    let usual = |warning: Option<String>| Schedule {
        crontab: default.to_owned(),
        warning,
    };
    if interval.is_empty() {
        return usual(None);
    }
    if is_crontab(interval) {
        return Schedule {
            crontab: interval.to_owned(),
            warning: None,
        };
    }
    match duration::parse(interval).ok().and_then(every) {
        Some(crontab) => Schedule {
            crontab,
            warning: None,
        },
        None => usual(Some(format!(
            "interval {interval:?} is neither a crontab nor a duration from one minute to a year: \
             using {default:?}"
        ))),
    }
}

/// How long after `now` a repository is read again by whoever needs no crontab: durations are
/// taken as they are, but at least a minute. `None` if a crontab has no next time.
pub fn pause(interval: &str, default: &str, now: Timestamp) -> Option<Duration> {
    let schedule = schedule(interval, default);
    let plain = duration::parse(interval)
        .ok()
        .filter(|nanoseconds| *nanoseconds > 0);
    if let Some(nanoseconds) = plain.filter(|_| schedule.warning.is_none()) {
        return Some(Duration::from_nanos(nanoseconds.max(MINUTE).unsigned_abs()));
    }
    let crontab = cron::Schedule::parse(&schedule.crontab).ok()?;
    let next = crontab.next(now, &TimeZone::UTC)?;
    Duration::try_from(next.duration_since(now)).ok()
}

/// Whether the API server accepts it: five fields or a word, without a time zone.
pub(super) fn is_crontab(text: &str) -> bool {
    let plain = !text.starts_with("@every") && !text.contains("TZ=");
    plain && text.trim() == text && cron::Schedule::parse(text).is_ok()
}

fn every(nanoseconds: i64) -> Option<String> {
    if nanoseconds <= 0 {
        return None;
    }
    let up = |value: i64, unit: i64| value / unit + i64::from(value % unit != 0);
    let minutes = up(nanoseconds, MINUTE);
    let hours = up(nanoseconds, 60 * MINUTE);
    let days = up(hours, 24);
    let months = up(days, 31);
    Some(match () {
        () if minutes < 60 => format!("*/{minutes} * * * *"),
        () if hours < 24 => format!("0 */{hours} * * *"),
        () if days < 32 => format!("0 0 */{days} * *"),
        () if months < 13 => format!("0 0 1 */{months} *"),
        () => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses() {
        let now: Timestamp = "2026-01-01T00:07:00Z".parse().expect("a time");
        for (interval, seconds) in [
            ("90m", 5400),
            ("1s", 60),
            ("", 180),
            ("0 1 * * *", 3180),
            ("nonsense", 180),
            ("17532h", 180),
        ] {
            let found = pause(interval, "*/10 * * * *", now).map(|pause| pause.as_secs());
            assert_eq!(found, Some(seconds), "{interval}");
        }
    }

    #[test]
    fn intervals() {
        for (interval, crontab, warned) in [
            ("", "*/10 * * * *", false),
            ("2ns", "*/1 * * * *", false),
            ("2m", "*/2 * * * *", false),
            ("59m1s", "0 */1 * * *", false),
            ("2h", "0 */2 * * *", false),
            ("72h", "0 0 */3 * *", false),
            ("1460h", "0 0 1 */2 *", false),
            ("45 */2 * * *", "45 */2 * * *", false),
            ("@daily", "@daily", false),
            ("0 0 ? * *", "0 0 ? * *", false),
            ("0 0 * * MON-FRI", "0 0 * * MON-FRI", false),
            ("17532h", "*/10 * * * *", true),
            ("0s", "*/10 * * * *", true),
            ("-10m", "*/10 * * * *", true),
            ("1d", "*/10 * * * *", true),
            (" 10m", "*/10 * * * *", true),
            ("@every 5m", "*/10 * * * *", true),
            ("@always", "*/10 * * * *", true),
            ("TZ=UTC 0 0 * * *", "*/10 * * * *", true),
            ("0 0 * * 7", "*/10 * * * *", true),
            ("0 0 L * *", "*/10 * * * *", true),
            ("0 12 * * 1#2", "*/10 * * * *", true),
            ("*/5 * * * * *", "*/10 * * * *", true),
        ] {
            let found = schedule(interval, "*/10 * * * *");
            assert_eq!(
                (&*found.crontab, found.warning.is_some()),
                (crontab, warned),
                "{interval}"
            );
        }
    }
}
