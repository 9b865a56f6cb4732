//! Times and durations as Go prints them.

use jiff::{Timestamp, tz::TimeZone};
use tiphys_api::meta::Time;

fn zone() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// `2006-01-02 15:04:05 +0000 UTC` in the local time zone; `<nil>` for none.
pub fn text(time: Option<&Time>) -> String {
    let Some(time) = time else {
        return "<nil>".into();
    };
    time.timestamp()
        .to_zoned(zone())
        .strftime("%Y-%m-%d %H:%M:%S %z %Z")
        .to_string()
}

/// The time at the beginning of a row while waiting.
pub fn stamp(now: Timestamp) -> String {
    now.to_zoned(zone())
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string()
}

/// Go's RFC 3339: `Z` for UTC.
pub fn rfc3339(now: Timestamp) -> String {
    let text = stamp(now);
    text.strip_suffix("+00:00")
        .map_or(text.clone(), |t| format!("{t}Z"))
}

/// Seconds between two times as a Go duration.
pub fn duration(start: Option<&Time>, end: Option<&Time>, now: Timestamp) -> String {
    let seconds = |t: Option<&Time>| t.map_or(0, |t| t.seconds);
    let end = end.map_or(now.as_second(), |t| t.seconds);
    tiphys_gocompat::duration::to_string((end - seconds(start)).saturating_mul(1_000_000_000))
}

/// An age, as kubectl prints it.
pub fn age(seconds: i64) -> String {
    let pair = |a: i64, unit: char, b: i64, small: char| {
        if b == 0 {
            format!("{a}{unit}")
        } else {
            format!("{a}{unit}{b}{small}")
        }
    };
    let (minutes, hours) = (seconds / 60, seconds / 3600);
    let days = hours / 24;
    match seconds {
        ..-1 => "<invalid>".into(),
        -1 => "0s".into(),
        0..120 => format!("{seconds}s"),
        _ if minutes < 10 => pair(minutes, 'm', seconds % 60, 's'),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => pair(hours, 'h', minutes % 60, 'm'),
        _ if hours < 48 => format!("{hours}h"),
        _ if days < 8 => pair(days, 'd', hours % 24, 'h'),
        _ if days < 365 * 2 => format!("{days}d"),
        _ if days < 365 * 8 => pair(days / 365, 'y', days % 365, 'd'),
        _ => format!("{}y", days / 365),
    }
}

/// A distance in time as people say it: `3 hours ago`, `1 day from now`.
pub fn distance(second: i64, now: Timestamp) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    const WEEK: i64 = 7 * DAY;
    const MONTH: i64 = 30 * DAY;
    const YEAR: i64 = 12 * MONTH;
    let ahead = second.saturating_sub(now.as_second());
    let side = if ahead > 0 { "from now" } else { "ago" };
    let far = ahead.saturating_abs();
    let many = |unit: i64, name: &str| format!("{} {name} {side}", far / unit);
    match far {
        0 => "now".to_owned(),
        1 => format!("1 second {side}"),
        _ if far < MINUTE => many(1, "seconds"),
        _ if far < 2 * MINUTE => format!("1 minute {side}"),
        _ if far < HOUR => many(MINUTE, "minutes"),
        _ if far < 2 * HOUR => format!("1 hour {side}"),
        _ if far < DAY => many(HOUR, "hours"),
        _ if far < 2 * DAY => format!("1 day {side}"),
        _ if far < WEEK => many(DAY, "days"),
        _ if far < 2 * WEEK => format!("1 week {side}"),
        _ if far < MONTH => many(WEEK, "weeks"),
        _ if far < 2 * MONTH => format!("1 month {side}"),
        _ if far < YEAR => many(MONTH, "months"),
        _ if far < 18 * MONTH => format!("1 year {side}"),
        _ if far < 2 * YEAR => format!("2 years {side}"),
        _ if far < 37 * YEAR => many(YEAR, "years"),
        _ => format!("a long while {side}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages() {
        let cases = [
            (-5, "<invalid>"),
            (-1, "0s"),
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (130, "2m10s"),
            (600, "10m"),
            (10_799, "179m"),
            (10_800, "3h"),
            (10_860, "3h1m"),
            (28_800, "8h"),
            (172_800, "2d"),
            (176_400, "2d1h"),
            (691_200, "8d"),
            (63_072_000, "2y"),
            (63_158_400, "2y1d"),
            (252_288_000, "8y"),
        ];
        for (seconds, text) in cases {
            assert_eq!(age(seconds), text, "{seconds}");
        }
    }

    #[test]
    fn durations_and_nothing() {
        let at = |seconds| Time { seconds, nanos: 0 };
        assert_eq!(
            duration(Some(&at(100)), Some(&at(165)), Timestamp::UNIX_EPOCH),
            "1m5s"
        );
        assert_eq!(text(None), "<nil>");
    }

    #[test]
    fn distances() {
        let now = Timestamp::from_second(2_000_000_000).expect("a time");
        for (seconds, text) in [
            (0, "now"),
            (-1, "1 second ago"),
            (2, "2 seconds from now"),
            (-60, "1 minute ago"),
            (-119, "1 minute ago"),
            (120, "2 minutes from now"),
            (-3_600, "1 hour ago"),
            (-7_200, "2 hours ago"),
            (86_400, "1 day from now"),
            (-172_800, "2 days ago"),
            (604_800, "1 week from now"),
            (-1_209_600, "2 weeks ago"),
            (-2_592_000, "1 month ago"),
            (-5_184_000, "2 months ago"),
            (31_104_000, "1 year from now"),
            (46_656_000, "2 years from now"),
            (-62_208_000, "2 years ago"),
            (-1_244_160_000, "a long while ago"),
        ] {
            assert_eq!(distance(2_000_000_000 + seconds, now), text, "{seconds}");
        }
    }
}
