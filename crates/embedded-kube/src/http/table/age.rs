//! Durations as kubectl prints them: `5s`, `3m12s`, `2d4h`.

use jiff::Timestamp;
use serde_json::Value;

/// The time since an RFC 3339 time stamp; `<unknown>` when there is none.
pub fn since(time: Option<&Value>, now: Timestamp) -> String {
    let time = time
        .and_then(Value::as_str)
        .and_then(|t| t.parse::<Timestamp>().ok());
    time.map_or_else(
        || "<unknown>".to_owned(),
        |t| human(now.duration_since(t).as_secs()),
    )
}

/// The time between two time stamps, if both are there.
pub fn between(start: Option<&Value>, end: Option<&Value>) -> Option<String> {
    let parse = |v: Option<&Value>| v.and_then(Value::as_str)?.parse::<Timestamp>().ok();
    Some(human(parse(end)?.duration_since(parse(start)?).as_secs()))
}

/// The longer the duration, the less precise.
pub fn human(seconds: i64) -> String {
    if seconds < -1 {
        return "<invalid>".to_owned();
    }
    let seconds = seconds.max(0);
    let (minutes, hours, days) = (seconds / 60, seconds / 3600, seconds / 86400);
    let two = |big: i64, big_unit: &str, small: i64, small_unit: &str| {
        if small == 0 {
            format!("{big}{big_unit}")
        } else {
            format!("{big}{big_unit}{small}{small_unit}")
        }
    };
    match () {
        () if seconds < 120 => format!("{seconds}s"),
        () if minutes < 10 => two(minutes, "m", seconds % 60, "s"),
        () if minutes < 180 => format!("{minutes}m"),
        () if hours < 8 => two(hours, "h", minutes % 60, "m"),
        () if hours < 48 => format!("{hours}h"),
        () if hours < 192 => two(days, "d", hours % 24, "h"),
        () if days < 730 => format!("{days}d"),
        () if days < 2920 => two(days / 365, "y", days % 365, "d"),
        () => format!("{}y", days / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ages_lose_precision_as_they_grow() {
        let cases = [
            (5, "5s"),
            (119, "119s"),
            (120, "2m"),
            (150, "2m30s"),
            (700, "11m"),
            (3 * 3600, "3h"),
            (3 * 3600 + 60, "3h1m"),
            (40 * 3600, "40h"),
            (50 * 3600, "2d2h"),
            (10 * 86400, "10d"),
            (800 * 86400, "2y70d"),
        ];
        for (seconds, text) in cases {
            assert_eq!(human(seconds), text);
        }
    }
}
