//! One process at a time reads or removes a repository. Main functions: [`leased`] and [`renew`].

use crate::{CatalogError, RepoId, Repository, Store, blocking};
use std::{
    sync::{Arc, Weak},
    time::Duration,
};

/// How long a lease lasts without its holder, and how often it is renewed.
pub const LASTS: Duration = Duration::from_secs(60);
const RENEWAL: Duration = Duration::from_secs(20);
/// How often a lease that someone else has is asked for, and how long.
const LOOK: Duration = Duration::from_millis(500);
const PATIENCE: Duration = Duration::from_secs(900);

/// Takes the lease of a repository, if it is free. Returns whether `holder` has it.
///
/// # Errors
/// The database fails.
pub async fn claim(store: &Arc<Store>, id: &RepoId, holder: &str) -> Result<bool, CatalogError> {
    let (store, id, holder) = (Arc::clone(store), id.clone(), holder.to_owned());
    blocking(move || store.claim(&id, &holder, LASTS)).await
}

/// Gives it back.
///
/// # Errors
/// The database fails.
pub async fn release(store: &Arc<Store>, id: &RepoId, holder: &str) -> Result<(), CatalogError> {
    let (store, id, holder) = (Arc::clone(store), id.clone(), holder.to_owned());
    blocking(move || store.release(&id, &holder)).await
}

/// Renews a lease; ends when it is lost.
pub async fn renew(store: &Arc<Store>, id: &RepoId, holder: &str) {
    loop {
        tokio::time::sleep(RENEWAL).await;
        match claim(store, id, holder).await {
            Ok(true) => {}
            Ok(false) => return,
            // The work meets the same error, or the next renewal is in time.
            Err(error) => tracing::warn!(%error, "a lease could not be renewed"),
        }
    }
}

/// A lease that is given back when it is dropped and nothing is written any more.
struct Held {
    store: Arc<Store>,
    id: RepoId,
    holder: String,
    at_work: Weak<Repository>,
    is_given_back: bool,
}

impl Drop for Held {
    fn drop(&mut self) {
        if self.is_given_back {
            return;
        }
        // Without a runtime the process ends, and so does the lease some time later.
        let Ok(runtime) = tokio::runtime::Handle::try_current() else {
            return;
        };
        let (store, id) = (Arc::clone(&self.store), std::mem::take(&mut self.id));
        let (holder, at_work) = (std::mem::take(&mut self.holder), self.at_work.clone());
        runtime.spawn(async move {
            idle(&at_work).await;
            if let Err(error) = release(&store, &id, &holder).await {
                tracing::warn!(%error, "a lease could not be given back");
            }
        });
    }
}

/// Waits until no thread of a sync that was dropped writes any more.
pub async fn idle(at_work: &Weak<Repository>) {
    while at_work.upgrade().is_some() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Waits for the lease, and works as long as it is held. `at_work`: what the work keeps alive while
/// it writes.
///
/// # Errors
/// Those of the work; another process has the lease for too long, or takes it.
pub async fn leased<T>(
    store: &Arc<Store>,
    (id, holder): (&RepoId, &str),
    at_work: Weak<Repository>,
    work: impl Future<Output = Result<T, CatalogError>> + Send,
) -> Result<T, CatalogError> {
    let elsewhere = || CatalogError::Internal("another process reads the repository".to_owned());
    let waiting = async {
        while !claim(store, id, holder).await? {
            tokio::time::sleep(LOOK).await;
        }
        Ok::<(), CatalogError>(())
    };
    let claimed = tokio::time::timeout(PATIENCE, waiting).await;
    claimed.unwrap_or_else(|_| Err(elsewhere()))?;
    let mut held = Held {
        store: Arc::clone(store),
        id: id.clone(),
        holder: holder.to_owned(),
        at_work,
        is_given_back: false,
    };
    let done = tokio::select! {
        done = work => done,
        () = renew(store, id, holder) => Err(elsewhere()),
    };
    release(store, id, holder).await?;
    held.is_given_back = true;
    done
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn one_holder_at_a_time() {
        let store = Arc::new(Store::in_memory().expect("a store"));
        let (one, other) = (RepoId::new("n", "one"), RepoId::new("n", "other"));
        assert!(claim(&store, &one, "a").await.expect("a database"));
        assert!(claim(&store, &one, "a").await.expect("it renews"));
        assert!(!claim(&store, &one, "b").await.expect("it is a's"));
        assert!(claim(&store, &other, "b").await.expect("another one"));
        release(&store, &one, "b").await.expect("nothing happens");
        assert!(!claim(&store, &one, "b").await.expect("it is a's"));
        release(&store, &one, "a").await.expect("a database");
        assert!(claim(&store, &one, "b").await.expect("it is free"));
        let gone = Duration::ZERO;
        assert!(store.claim(&one, "b", gone).expect("a database"));
        assert!(claim(&store, &one, "a").await.expect("it is over"));
    }

    #[tokio::test]
    async fn work_waits_for_the_lease() {
        let store = Arc::new(Store::in_memory().expect("a store"));
        let id = RepoId::new("n", "one");
        assert!(claim(&store, &id, "a").await.expect("a database"));
        let work = leased(&store, (&id, "b"), Weak::new(), async { Ok(7) });
        let mut work = std::pin::pin!(work);
        let early = tokio::time::timeout(Duration::from_millis(20), work.as_mut()).await;
        assert!(early.is_err());
        release(&store, &id, "a").await.expect("a database");
        assert_eq!(work.await.expect("it is done"), 7);
        assert!(claim(&store, &id, "a").await.expect("it is given back"));
        release(&store, &id, "a").await.expect("a database");
        // Only once: what the same holder does next has its own lease.
        let work = leased(&store, (&id, "b"), Weak::new(), async { Ok(8) });
        assert_eq!(work.await.expect("it is done"), 8);
        assert!(claim(&store, &id, "b").await.expect("it is free"));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!claim(&store, &id, "a").await.expect("it is b's"));
        release(&store, &id, "b").await.expect("a database");
        // Also by work that is dropped.
        let work = leased(
            &store,
            (&id, "b"),
            Weak::new(),
            std::future::pending::<Result<(), _>>(),
        );
        let dropped = tokio::time::timeout(Duration::from_millis(20), work).await;
        assert!(dropped.is_err());
        while !claim(&store, &id, "a").await.expect("a database") {
            tokio::task::yield_now().await;
        }
    }
}
