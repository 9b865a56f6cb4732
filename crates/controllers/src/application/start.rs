//! The start time of an operation. Main type: [`Start`].

use jiff::{SignedDuration, Timestamp};

/// An operation's id is derived from its start, which is stored in whole seconds. One that begins
/// in the same second as the previous one therefore records the next second.
#[derive(Clone, Copy)]
pub struct Start {
    /// The start time in the operation's state.
    pub told: Timestamp,
    truly: Timestamp,
}

impl Start {
    pub fn after(last: Option<Self>, now: Timestamp) -> Self {
        let earliest = last.map_or(now, |last| last.told + SignedDuration::from_secs(1));
        Self {
            told: now.max(earliest),
            truly: now,
        }
    }

    /// The real start time of an operation with the recorded start `told`; an approval given after
    /// it applies to the operation.
    pub fn truly(self, told: Timestamp) -> Timestamp {
        if self.told.as_second() == told.as_second() {
            self.truly
        } else {
            told
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn starts_of_one_second_are_told_apart_and_each_has_its_true_time() {
        let at = |text: &str| {
            format!("2030-01-01T00:00:{text}Z")
                .parse::<Timestamp>()
                .expect("valid")
        };
        let first = Start::after(None, at("05.2"));
        assert_eq!(first.told, at("05.2"));
        let second = Start::after(Some(first), at("05.9"));
        assert_eq!(
            (second.told, second.truly(at("06"))),
            (at("06.2"), at("05.9"))
        );
        assert_eq!(
            second.truly(at("05")),
            at("05"),
            "of another operation nothing is known"
        );
        let later = Start::after(Some(second), at("09"));
        assert_eq!((later.told, later.truly(at("09"))), (at("09"), at("09")));
    }
}
