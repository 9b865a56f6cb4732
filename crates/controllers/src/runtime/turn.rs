//! Whether this replica works, where several share one lease.
//!
//! Main types: [`Turn`], and [`Held`] for the work that a held lease permits.

use tiphys_cluster::leases::{Fence, Leases};

/// The lease of a loop without shards.
const ONLY: usize = 0;

/// Whose turn it is.
pub enum Turn {
    Ours(Held),
    /// Another replica works.
    Others,
}

impl Turn {
    /// Without leases there is no other replica.
    pub fn now(leases: Option<&Leases>) -> Self {
        match leases.map(|leases| leases.fence(ONLY)) {
            None => Self::Ours(Held(None)),
            Some(Some(fence)) => Self::Ours(Held(Some(fence))),
            Some(None) => Self::Others,
        }
    }

    pub fn is_ours(&self) -> bool {
        matches!(self, Self::Ours(_))
    }
}

/// A lease that was held when work began, or the certainty that nobody else works.
#[derive(Clone)]
pub struct Held(Option<Fence>);

impl Held {
    /// Runs work whose writes fail once the lease is lost.
    pub async fn scope<T>(&self, work: impl Future<Output = T>) -> T {
        match &self.0 {
            Some(fence) => fence.clone().scope(work).await,
            None => work.await,
        }
    }

    /// Whether another replica may work now, so that the results of ours may be wrong.
    pub fn is_lost(&self) -> bool {
        self.0.as_ref().is_some_and(|fence| !fence.is_open())
    }
}
