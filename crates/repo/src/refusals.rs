//! Which repositories refused the credentials when they were asked last: until one accepts them
//! again, nothing that was read with them before is served.
//!
//! Main type: [`Refusals`].

use crate::RepoError;
use moka::policy::EvictionPolicy;

/// Repositories that are remembered; users who can name repositories cannot fill the memory.
const MAX: u64 = 100_000;

/// The fingerprint of an access, and which of the repositories that it reads; empty where that is
/// only one.
type Key = ([u8; 32], String);

pub(crate) struct Refusals(moka::sync::Cache<Key, ()>);

impl Default for Refusals {
    fn default() -> Self {
        let refusals = moka::sync::Cache::builder()
            .max_capacity(MAX)
            // The newest must not be the one that is not kept.
            .eviction_policy(EvictionPolicy::lru())
            .build();
        Self(refusals)
    }
}

impl Refusals {
    /// Remembers what an answer says about the credentials. That the repository could not be asked
    /// says nothing.
    pub fn hear<T>(&self, key: &Key, answer: &Result<T, RepoError>) {
        match answer {
            Ok(_) => self.0.invalidate(key),
            Err(e) if e.is_refusal() => self.0.insert(key.clone(), ()),
            Err(_) => {}
        }
    }

    /// Whether it refused the credentials when it was asked last.
    pub fn has(&self, key: &Key) -> bool {
        self.0.contains_key(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_repository_itself_ends_a_refusal() {
        let refusals = Refusals::default();
        let key = ([1; 32], "team/app".to_owned());
        let other = ([1; 32], "team/other".to_owned());
        let url = || "https://example.com".to_owned();
        let late = || RepoError::Timeout {
            url: url(),
            seconds: 1,
        };
        refusals.hear::<()>(&key, &Err(late()));
        assert!(!refusals.has(&key), "an outage is no refusal");
        let refused = RepoError::AuthFailed {
            url: url(),
            hint: "",
        };
        refusals.hear::<()>(&key, &Err(refused));
        refusals.hear::<()>(&key, &Err(late()));
        refusals.hear(&other, &Ok(()));
        assert!(refusals.has(&key) && !refusals.has(&other));
        refusals.hear(&key, &Ok(()));
        assert!(!refusals.has(&key));
    }
}
