//! Rate limits for failed logins. Main type: [`FailureLimits`].
//!
//! There are three counters. The first counts failures per account and source: it stops guessing
//! without letting anyone lock an account for everybody. The second counts failures per source over
//! all accounts: it stops guessing across many accounts. The third counts failures per account over
//! all sources: it stops guessing from many addresses, and makes attempts queue instead of refusing
//! them, except from places where the account has logged in before. A closed limit lets one attempt
//! through every [`Limits::retry_seconds`], so that users who share an address with an attacker,
//! for example behind a proxy, can still log in.

use jiff::Timestamp;
use std::{
    collections::HashMap,
    net::{IpAddr, Ipv6Addr},
    sync::{Mutex, PoisonError},
    time::Duration,
};

/// The limits. Number and window of failures are Argo CD's.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Failures of one account from one source.
    pub per_account: u32,
    /// Failures of one source with any account.
    pub per_source: u32,
    /// Failures of one account from all sources, after which attempts have to queue.
    pub everywhere: u32,
    pub window_seconds: i64,
    /// Interval at which one attempt is let through after too many failures.
    pub retry_seconds: i64,
    /// How many attempts may queue; each waits one second longer than the one before.
    pub waiting: u32,
    /// How many counters of each kind are kept.
    pub remembered: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            per_account: 5,
            per_source: 50,
            everywhere: 20,
            window_seconds: 300,
            retry_seconds: 30,
            waiting: 10,
            remembered: 10_000,
        }
    }
}

/// The decision about a login attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptDecision {
    Now,
    After(Duration),
    Refused,
}

/// A count of failures, or a place where an account has logged in.
#[derive(Clone, Copy, Default)]
struct Counter {
    count: u32,
    last: i64,
}

#[derive(Default)]
struct Counters {
    pairs: HashMap<(String, IpAddr), Counter>,
    sources: HashMap<IpAddr, Counter>,
    accounts: HashMap<String, Counter>,
    /// Addresses where an account has logged in.
    known: HashMap<(String, IpAddr), Counter>,
    /// The second at which the next attempt on an account is allowed, from any source.
    turns: HashMap<String, i64>,
}

/// The failures so far.
pub struct FailureLimits {
    limits: Limits,
    counters: Mutex<Counters>,
}

impl FailureLimits {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            counters: Mutex::default(),
        }
    }

    /// Decides whether a login may be attempted. `exists`: attempts on accounts that do not exist
    /// always fail, and are not recorded by name.
    pub fn verdict(
        &self,
        account: &str,
        exists: bool,
        source: IpAddr,
        now: Timestamp,
    ) -> AttemptDecision {
        let (source, limits, second) = (network(source), self.limits, now.as_second());
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        let pair = (account.to_owned(), source);
        let closed = |counter: Option<&mut Counter>, limit: u32| match counter {
            Some(c) if limits.recent(*c, second) && c.count >= limit => {
                if second - c.last < limits.retry_seconds {
                    return true;
                }
                // This attempt is let through; others have to wait from now on.
                c.last = second;
                false
            }
            _ => false,
        };
        if closed(all.sources.get_mut(&source), limits.per_source)
            || closed(all.pairs.get_mut(&pair), limits.per_account)
        {
            return AttemptDecision::Refused;
        }
        let guessed = all
            .accounts
            .get(account)
            .is_some_and(|c| limits.recent(*c, second) && c.count >= limits.everywhere);
        if !exists || !guessed || all.known.contains_key(&pair) {
            return AttemptDecision::Now;
        }
        let turn = all.turns.entry(account.to_owned()).or_default();
        let at = (*turn).max(second);
        if at - second >= i64::from(limits.waiting) {
            return AttemptDecision::Refused;
        }
        *turn = at + 1;
        AttemptDecision::After(Duration::from_secs((at - second).unsigned_abs()))
    }

    pub fn failed(&self, account: &str, exists: bool, source: IpAddr, now: Timestamp) {
        let (source, second) = (network(source), now.as_second());
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        self.count(&mut all.sources, source, second);
        if exists {
            self.count(&mut all.pairs, (account.to_owned(), source), second);
            self.count(&mut all.accounts, account.to_owned(), second);
        }
    }

    pub fn succeeded(&self, account: &str, source: IpAddr, now: Timestamp) {
        let pair = (account.to_owned(), network(source));
        let mut all = self.counters.lock().unwrap_or_else(PoisonError::into_inner);
        all.pairs.remove(&pair);
        self.count(&mut all.known, pair, now.as_second());
    }

    fn count<K: std::hash::Hash + Eq + Clone>(
        &self,
        counters: &mut HashMap<K, Counter>,
        key: K,
        second: i64,
    ) {
        if counters.len() >= self.limits.remembered && !counters.contains_key(&key) {
            let oldest = counters
                .iter()
                .min_by_key(|(_, c)| c.last)
                .map(|(k, _)| k.clone());
            oldest.and_then(|k| counters.remove(&k));
        }
        let counter = counters.entry(key).or_default();
        if !self.limits.recent(*counter, second) {
            counter.count = 0;
        }
        counter.count = counter.count.saturating_add(1);
        counter.last = second;
    }
}

impl Limits {
    fn recent(&self, counter: Counter, second: i64) -> bool {
        second - counter.last <= self.window_seconds
    }
}

/// An IPv6 client controls its whole /64, so the /64 is counted as one source.
fn network(source: IpAddr) -> IpAddr {
    match source.to_canonical() {
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(
            address.to_bits() & !u128::from(u64::MAX),
        )),
        v4 => v4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a valid second")
    }

    fn source(last: u8) -> IpAddr {
        IpAddr::V4(Ipv4Addr::new(10, 0, 0, last))
    }

    fn tries(limits: &FailureLimits, account: &str, from: u8, second: i64) -> AttemptDecision {
        limits.verdict(account, true, source(from), at(second))
    }

    #[test]
    fn five_failures_close_the_account_for_that_source() {
        let limits = FailureLimits::new(Limits::default());
        for second in 0..5 {
            assert_eq!(tries(&limits, "admin", 1, second), AttemptDecision::Now);
            limits.failed("admin", true, source(1), at(second));
        }
        assert_eq!(tries(&limits, "admin", 1, 10), AttemptDecision::Refused);
        assert_eq!(
            tries(&limits, "admin", 2, 10),
            AttemptDecision::Now,
            "another source is not affected"
        );
        assert_eq!(tries(&limits, "other", 1, 10), AttemptDecision::Now);
        assert_eq!(
            tries(&limits, "admin", 1, 305),
            AttemptDecision::Now,
            "the window has passed"
        );
    }

    #[test]
    fn one_who_shares_an_address_with_a_guesser_gets_in() {
        let limits = FailureLimits::new(Limits::default());
        (0..6).for_each(|_| limits.failed("admin", true, source(1), at(0)));
        assert_eq!(tries(&limits, "admin", 1, 29), AttemptDecision::Refused);
        assert_eq!(tries(&limits, "admin", 1, 30), AttemptDecision::Now);
        assert_eq!(
            tries(&limits, "admin", 1, 31),
            AttemptDecision::Refused,
            "one at a time"
        );
        assert_eq!(tries(&limits, "admin", 1, 60), AttemptDecision::Now);
        limits.succeeded("admin", source(1), at(60));
        assert_eq!(tries(&limits, "admin", 1, 61), AttemptDecision::Now);
    }

    #[test]
    fn guesses_from_many_sources_wait_for_each_other() {
        let limits = FailureLimits::new(Limits::default());
        limits.succeeded("admin", source(200), at(0));
        let (mut checked, mut waited) = (0, Duration::ZERO);
        for n in 0..300 {
            let from = u8::try_from(n % 60).expect("few");
            match tries(&limits, "admin", from, 1) {
                AttemptDecision::Refused => continue,
                AttemptDecision::Now => {}
                AttemptDecision::After(time) => waited = waited.max(time),
            }
            checked += 1;
            limits.failed("admin", true, source(from), at(1));
        }
        assert_eq!(
            (checked, waited),
            (30, Duration::from_secs(9)),
            "20 at once, and 10 that wait"
        );
        assert_eq!(
            tries(&limits, "admin", 200, 1),
            AttemptDecision::Now,
            "who has been there before does not wait"
        );
        assert_eq!(tries(&limits, "admin", 201, 1), AttemptDecision::Refused);
        assert!(
            matches!(tries(&limits, "admin", 201, 5), AttemptDecision::After(_)),
            "a new place gets in as well"
        );
        assert_eq!(tries(&limits, "other", 201, 1), AttemptDecision::Now);
    }

    #[test]
    fn success_forgets_the_account_but_not_the_source() {
        let limits = FailureLimits::new(Limits {
            per_source: 6,
            ..Limits::default()
        });
        (0..4).for_each(|_| limits.failed("admin", true, source(1), at(0)));
        limits.succeeded("admin", source(1), at(0));
        (0..2).for_each(|n| limits.failed(&format!("user{n}"), false, source(1), at(1)));
        assert_eq!(tries(&limits, "anybody", 1, 2), AttemptDecision::Refused);
    }

    #[test]
    fn memory_is_bounded() {
        let limits = FailureLimits::new(Limits {
            remembered: 10,
            ..Limits::default()
        });
        for n in 0..100 {
            let from = source(u8::try_from(n).expect("few"));
            limits.failed(&format!("user{n}"), true, from, at(n));
            limits.failed(&format!("nobody{n}"), false, from, at(n));
            limits.succeeded(&format!("user{n}"), from, at(n));
        }
        let all = limits.counters.lock().expect("not poisoned");
        assert!(
            [
                all.pairs.len(),
                all.sources.len(),
                all.accounts.len(),
                all.known.len()
            ]
            .iter()
            .all(|count| *count <= 10)
        );
        assert!(all.turns.is_empty());
    }

    #[test]
    fn a_network_of_ipv6_is_one_source() {
        let limits = FailureLimits::new(Limits::default());
        for n in 0..5 {
            limits.failed(
                "admin",
                true,
                format!("2001:db8::{n}").parse().expect("an address"),
                at(0),
            );
        }
        let verdict = |source: &str| {
            limits.verdict("admin", true, source.parse().expect("an address"), at(1))
        };
        assert_eq!(verdict("2001:db8::ffff"), AttemptDecision::Refused);
        assert_eq!(verdict("2001:db8:0:1::1"), AttemptDecision::Now);
    }
}
