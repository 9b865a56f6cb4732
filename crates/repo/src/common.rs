//! What all repositories of a process share. Main type: [`Common`].

use crate::{ContactWatch, RepoError, revision::Reference, shares::Shares};
use std::{sync::Arc, time::Instant};

/// The result of the last look-up of refs, with the time it started.
pub(crate) struct Looked {
    pub started: Instant,
    pub outcome: Result<Arc<Vec<Reference>>, RepoError>,
}

/// The results for all repositories, by fingerprint. Their total memory is limited.
pub(crate) type LookUps = moka::sync::Cache<[u8; 32], Arc<Looked>>;

/// Bytes of refs to cache (estimated).
const REFS_BYTES: u64 = 128 << 20;

pub(crate) fn no_look_ups() -> LookUps {
    let of = |r: &Reference| {
        size_of::<Reference>()
            + r.name.len()
            + r.sha.len()
            + r.target.as_ref().map_or(0, String::len)
            + r.tag.as_ref().map_or(0, String::len)
    };
    let bytes = move |looked: &Looked| {
        500 + looked
            .outcome
            .as_ref()
            .map_or(0, |refs| refs.iter().map(of).sum::<usize>())
    };
    let weigher =
        move |_: &[u8; 32], looked: &Arc<Looked>| u32::try_from(bytes(looked)).unwrap_or(u32::MAX);
    moka::sync::Cache::builder()
        .weigher(weigher)
        .max_capacity(REFS_BYTES)
        .build()
}

/// What all repositories share.
pub(crate) struct Common {
    pub shares: Shares,
    pub look_ups: LookUps,
    pub contacts: ContactWatch,
}
