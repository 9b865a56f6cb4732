//! Checks of passwords, of which few run at a time and failures are counted. Main type:
//! [`PasswordChecks`].
//!
//! A check that has begun goes on where its client does not wait for it: it keeps its place, and
//! counts. Otherwise clients that go away at once could guess, and use the processors, without
//! limits.

use super::{
    limits::{AttemptDecision, FailureLimits, Limits},
    password,
};
use jiff::Timestamp;
use std::{net::IpAddr, sync::Arc};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Checks use a lot of CPU by design; running more at once would starve everything else.
const CONCURRENT_CHECKS: usize = 4;

/// Who tries a password.
#[derive(Clone, Debug)]
pub struct Attempt {
    pub account: String,
    /// Whether there is such an account.
    pub exists: bool,
    pub source: IpAddr,
    pub now: Timestamp,
}

/// Checks passwords.
pub struct PasswordChecks {
    limits: Arc<FailureLimits>,
    places: Arc<Semaphore>,
}

impl PasswordChecks {
    pub fn new(limits: Limits) -> Self {
        Self {
            limits: Arc::new(FailureLimits::new(limits)),
            places: Arc::new(Semaphore::new(CONCURRENT_CHECKS)),
        }
    }

    /// Whether the attempt is allowed and its password that of the hash: whoever guesses learns
    /// nothing of the limits.
    pub async fn is_right(&self, attempt: &Attempt, password: &str, hash: String) -> bool {
        let Some(place) = self.turn(attempt).await else {
            return false;
        };
        let (limits, attempt, password) =
            (self.limits.clone(), attempt.clone(), password.to_owned());
        let check = move || {
            let _place = place;
            let is_right = password::matches(&password, &hash);
            if !is_right {
                let Attempt {
                    account,
                    exists,
                    source,
                    now,
                } = &attempt;
                limits.failed(account, *exists, *source, *now);
            }
            is_right
        };
        tokio::task::spawn_blocking(check).await.unwrap_or(false)
    }

    /// To be called when the account may log in.
    pub fn succeeded(&self, attempt: &Attempt) {
        let Attempt {
            account,
            source,
            now,
            ..
        } = attempt;
        self.limits.succeeded(account, *source, *now);
    }

    /// Waits until the attempt may be checked; `None` if it may not.
    async fn turn(&self, attempt: &Attempt) -> Option<OwnedSemaphorePermit> {
        let Attempt {
            account,
            exists,
            source,
            now,
        } = attempt;
        // The place comes first: then no more failures than there are places are not counted yet.
        let place = self.place().await?;
        match self.limits.verdict(account, *exists, *source, *now) {
            AttemptDecision::Now => Some(place),
            AttemptDecision::After(time) => {
                drop(place);
                tokio::time::sleep(time).await;
                self.place().await
            }
            AttemptDecision::Refused => {
                tracing::warn!(username = account, %source, "too many failed logins");
                None
            }
        }
    }

    /// It is never closed.
    async fn place(&self) -> Option<OwnedSemaphorePermit> {
        self.places.clone().acquire_owned().await.ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    #[tokio::test]
    async fn a_check_that_nobody_waits_for_keeps_its_place_and_counts() {
        let checks = PasswordChecks::new(Limits {
            per_account: 1,
            ..Limits::default()
        });
        let attempt = |last: u8| Attempt {
            account: "admin".to_owned(),
            exists: true,
            source: IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)),
            now: Timestamp::UNIX_EPOCH,
        };
        let hash = password::hash_password("right").expect("it hashes");
        let (from_one, from_other) = (attempt(1), attempt(2));
        tokio::select! {
            biased;
            _ = checks.is_right(&from_one, "wrong", hash.clone()) => {}
            // The check has begun, and its client goes away.
            () = std::future::ready(()) => {}
        }
        let all = u32::try_from(CONCURRENT_CHECKS).expect("few");
        drop(checks.places.acquire_many(all).await);
        assert!(!checks.is_right(&from_one, "right", hash.clone()).await);
        assert!(checks.is_right(&from_other, "right", hash).await);
    }
}
