//! What a provider gave, until shortly before it ends. Main type: [`Kept`].

use jiff::{SignedDuration, Timestamp};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

/// How long before its end another one is asked for.
const MARGIN: SignedDuration = SignedDuration::from_mins(1);

/// Things by what they were asked for with. An error is not kept.
pub(crate) struct Kept<T>(Mutex<BTreeMap<Vec<String>, Until<T>>>);

type Until<T> = (Timestamp, Arc<T>);

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T> Kept<T> {
    pub fn get(&self, key: &[&str], now: Timestamp) -> Option<Arc<T>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (until, kept) = known.get(&owned(key))?;
        (now < *until - MARGIN).then(|| Arc::clone(kept))
    }

    /// Keeps one, and drops those that have ended.
    pub fn put(&self, key: &[&str], until: Timestamp, now: Timestamp, value: T) -> Arc<T> {
        let value = Arc::new(value);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (until, _)| now < *until);
        known.insert(owned(key), (until, Arc::clone(&value)));
        value
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
        kept.put(&["a", "b"], at(600), at(0), 1);
        for (key, now, expected) in [
            (["a", "b"], 539, Some(1)),
            (["a", "b"], 540, None),
            (["a", "c"], 0, None),
        ] {
            assert_eq!(
                kept.get(&key, at(now)).map(|v| *v),
                expected,
                "{key:?} {now}"
            );
        }
        kept.put(&["c"], at(900), at(700), 2);
        assert!(kept.get(&["a", "b"], at(0)).is_none(), "it has ended");
    }
}
