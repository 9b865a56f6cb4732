//! How many failed logins are tolerated. Counted for an account as tried from one source, so that nobody can lock an
//! account for everybody, and for a source over all accounts, so that guessing many accounts does not help.

use jiff::Timestamp;
use std::{collections::HashMap, net::IpAddr, sync::Mutex};

/// The limits; the defaults are Argo CD's.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Failures of one account from one source.
    pub per_account: u32,
    /// Failures of one source with any account.
    pub per_source: u32,
    pub window_seconds: i64,
    /// How many (account, source) pairs are remembered.
    pub remembered: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { per_account: 5, per_source: 50, window_seconds: 300, remembered: 10_000 }
    }
}

#[derive(Clone, Copy)]
struct Failures {
    count: u32,
    last: i64,
}

type Key = (Option<String>, IpAddr);

/// The failures so far.
pub struct FailureLimits {
    limits: Limits,
    failures: Mutex<HashMap<Key, Failures>>,
}

impl FailureLimits {
    pub fn new(limits: Limits) -> Self {
        Self { limits, failures: Mutex::default() }
    }

    /// Whether a login may be tried.
    pub fn allowed(&self, account: &str, source: IpAddr, now: Timestamp) -> bool {
        let Ok(failures) = self.failures.lock() else { return false };
        let below = |key: Key, limit: u32| failures.get(&key).is_none_or(|f| !self.recent(f, now) || f.count < limit);
        below((Some(account.to_owned()), source), self.limits.per_account) && below((None, source), self.limits.per_source)
    }

    pub fn failed(&self, account: &str, source: IpAddr, now: Timestamp) {
        let Ok(mut failures) = self.failures.lock() else { return };
        failures.retain(|_, f| self.recent(f, now));
        for key in [(Some(account.to_owned()), source), (None, source)] {
            if failures.len() >= self.limits.remembered && !failures.contains_key(&key) {
                let oldest = failures.iter().min_by_key(|(_, f)| f.last).map(|(k, _)| k.clone());
                oldest.and_then(|k| failures.remove(&k));
            }
            let entry = failures.entry(key).or_insert(Failures { count: 0, last: 0 });
            entry.count += 1;
            entry.last = now.as_second();
        }
    }

    pub fn succeeded(&self, account: &str, source: IpAddr) {
        if let Ok(mut failures) = self.failures.lock() {
            failures.remove(&(Some(account.to_owned()), source));
        }
    }

    fn recent(&self, failures: &Failures, now: Timestamp) -> bool {
        now.as_second() - failures.last <= self.limits.window_seconds
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid second")
    }

    #[test]
    fn five_failures_close_the_account_for_that_source_until_the_window_passes() {
        let limits = FailureLimits::new(Limits::default());
        let (a, b) = (IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)));
        for second in 0..5 {
            assert!(limits.allowed("admin", a, at(second)));
            limits.failed("admin", a, at(second));
        }
        assert!(!limits.allowed("admin", a, at(10)));
        assert!(limits.allowed("admin", b, at(10)), "another source is not affected");
        assert!(limits.allowed("other", a, at(10)));
        assert!(limits.allowed("admin", a, at(305)));
    }

    #[test]
    fn success_forgets_the_account_but_not_the_source() {
        let limits = FailureLimits::new(Limits { per_source: 6, ..Limits::default() });
        let a = IpAddr::V4(Ipv4Addr::LOCALHOST);
        (0..4).for_each(|_| limits.failed("admin", a, at(0)));
        limits.succeeded("admin", a);
        (0..2).for_each(|n| limits.failed(&format!("user{n}"), a, at(1)));
        assert!(!limits.allowed("anybody", a, at(2)));
    }

    #[test]
    fn memory_is_bounded() {
        let limits = FailureLimits::new(Limits { remembered: 10, ..Limits::default() });
        (0..100).for_each(|n| limits.failed(&format!("user{n}"), IpAddr::V4(Ipv4Addr::LOCALHOST), at(n)));
        assert!(limits.failures.lock().expect("not poisoned").len() <= 10);
    }
}
