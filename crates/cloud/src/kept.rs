//! What a provider gave, as long as it may be used. Main type: [`Kept`].

use crate::CloudError;
use jiff::{SignedDuration, Timestamp};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// How long before its end another one is asked for.
const MARGIN: SignedDuration = SignedDuration::from_mins(1);
/// How long a failure is told again in place of another question.
const PAUSE: SignedDuration = SignedDuration::from_secs(5);

/// Things by what they were asked for with, and why there are none.
pub(crate) struct Kept<T>(Mutex<BTreeMap<Vec<String>, Until<T>>>);

type Until<T> = (Timestamp, Result<Arc<T>, CloudError>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Kept<T> {
    pub fn get(&self, key: &[&str], now: Timestamp) -> Option<Result<Arc<T>, CloudError>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, kept) = known.get(&owned(key))?;
        (now < *until).then(|| kept.clone())
    }

    /// Keeps one until shortly before its end, and an error for a moment.
    pub fn put(
        &self,
        key: &[&str],
        now: Timestamp,
        asked: Result<(T, Timestamp), CloudError>,
    ) -> Result<Arc<T>, CloudError> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Another question may have been answered meanwhile: a failure takes nothing away.
        if let (Err(_), Some((until, Ok(kept)))) = (&asked, known.get(&owned(key)))
            && now < *until
        {
            return Ok(Arc::clone(kept));
        }
        let (until, kept) = match asked {
            Ok((value, end)) => (end - MARGIN, Ok(Arc::new(value))),
            Err(error) => (now + PAUSE, Err(error)),
        };
        known.retain(|_, (until, _)| now < *until);
        known.insert(owned(key), (until, kept.clone()));
        kept
    }
}

fn owned(key: &[&str]) -> Vec<String> {
    key.iter().map(|part| (*part).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ends_is_asked_for_again() {
        let kept = Kept::default();
        let at = |seconds| Timestamp::from_second(seconds).expect("a time");
        assert!(kept.get(&["a", "b"], at(0)).is_none());
        let _ = kept.put(&["a", "b"], at(0), Ok((1, at(600))));
        let _ = kept.put(&["none"], at(0), Err(CloudError::settings("no")));
        let late = kept.put(&["a", "b"], at(1), Err(CloudError::settings("no")));
        assert_eq!(
            late.map(|value| *value),
            Ok(1),
            "another question was answered"
        );
        for (key, now, expected) in [
            (vec!["a", "b"], 539, Some(Ok(1))),
            (vec!["a", "b"], 540, None),
            (vec!["a", "c"], 0, None),
            (vec!["none"], 4, Some(Err(CloudError::settings("no")))),
            (vec!["none"], 5, None),
        ] {
            let found = kept.get(&key, at(now));
            let found = found.map(|found| found.map(|value| *value));
            assert_eq!(found, expected, "{key:?} {now}");
        }
        let _ = kept.put(&["c"], at(700), Ok((2, at(900))));
        assert!(kept.get(&["a", "b"], at(0)).is_none(), "it has ended");
    }
}
