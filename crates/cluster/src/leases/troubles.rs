//! What keeps the leases from being read or written. Each reason is logged once, and not again
//! before it was away. Main type: [`Troubles`].

use crate::error::Error;
use std::{collections::BTreeSet, mem, time::Duration};

/// The wait after the first failure is twice as long.
const FIRST: Duration = Duration::from_millis(20);

#[derive(Default)]
pub struct Troubles {
    /// The reasons of the previous reading of the leases.
    told: BTreeSet<String>,
    /// Those since then.
    met: BTreeSet<String>,
    /// How many readings in a row had some.
    failures: u32,
}

impl Troubles {
    /// Adds a reason; true if it is new.
    pub fn meet(&mut self, reason: String) -> bool {
        let is_known = self.told.contains(&reason);
        self.met.insert(reason) && !is_known
    }

    /// What was due after a reading is done. True if the troubles are over.
    pub fn end(&mut self) -> bool {
        let before = mem::replace(&mut self.told, mem::take(&mut self.met));
        let is_well = self.told.is_empty();
        self.failures = if is_well {
            0
        } else {
            self.failures.saturating_add(1)
        };
        is_well && !before.is_empty()
    }

    /// How long to wait before the next try: longer with each failure in a row.
    pub fn pause(&self, most: Duration) -> Duration {
        let factor = 2_u32.saturating_pow(self.failures);
        FIRST.saturating_mul(factor).min(most)
    }
}

/// What to do if it is the namespace that is missing, which the API server says of any object that
/// is to be created in it.
pub fn missing_namespace(error: &Error, namespace: &str) -> Option<String> {
    error.is_absent_namespace(namespace).then(|| {
        format!(
            "namespace {namespace} does not exist, and nothing is synced without the leases in it: \
             create it (kubectl create namespace {namespace}), or start `tiphys control-plane` \
             with --bootstrap"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{About, ApiError};

    #[test]
    fn a_reason_is_new_once_until_it_was_away() {
        let mut troubles = Troubles::default();
        assert!(!troubles.end(), "there were none");
        assert!(troubles.meet("a".to_owned()));
        assert!(!troubles.meet("a".to_owned()), "of another shard");
        assert!(!troubles.end());
        assert!(!troubles.meet("a".to_owned()));
        assert!(troubles.meet("b".to_owned()));
        assert!(!troubles.end());
        assert!(!troubles.meet("b".to_owned()));
        assert!(!troubles.end());
        assert!(troubles.meet("a".to_owned()), "it was away");
        assert!(!troubles.end());
        assert!(troubles.end(), "they are over");
        assert!(!troubles.end());
        assert!(troubles.meet("a".to_owned()));
    }

    #[test]
    fn the_wait_grows_with_each_failure_in_a_row() {
        let mut troubles = Troubles::default();
        let most = Duration::from_secs(15);
        let mut waits = Vec::new();
        for _ in 0..40 {
            troubles.meet("a".to_owned());
            troubles.end();
            waits.push(troubles.pause(most));
        }
        assert_eq!(waits[0], 2 * FIRST);
        assert!(waits.is_sorted(), "{waits:?}");
        assert_eq!(waits[39], most);
        troubles.end();
        troubles.meet("a".to_owned());
        troubles.end();
        assert_eq!(troubles.pause(most), waits[0]);
    }

    #[test]
    fn only_a_namespace_that_is_missing_is_called_so() {
        let refused = |code: u16, kind: &str, name: &str| {
            let about = About {
                kind: kind.to_owned(),
                name: name.to_owned(),
            };
            Error::Api(ApiError {
                code,
                reason: "NotFound".to_owned(),
                about: Some(Box::new(about)),
                ..ApiError::default()
            })
        };
        let text = missing_namespace(&refused(404, "namespaces", "web"), "web");
        let text = text.expect("it is missing");
        assert!(text.contains("namespace web does not exist"), "{text}");
        assert!(text.contains("--bootstrap"), "{text}");
        for other in [
            refused(404, "leases", "web"),
            refused(404, "namespaces", "other"),
            refused(403, "namespaces", "web"),
            Error::Api(ApiError {
                code: 404,
                ..ApiError::default()
            }),
        ] {
            assert_eq!(missing_namespace(&other, "web"), None, "{other:?}");
        }
    }
}
