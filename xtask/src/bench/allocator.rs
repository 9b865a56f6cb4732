//! The allocator of this program: the product's, so that what runs in process takes as long as it
//! does there. With the feature `count-allocations` it counts, which costs a sixth of a render.
//! Main type: [`Counted`].

#[cfg(feature = "count-allocations")]
use stats_alloc::{INSTRUMENTED_SYSTEM, StatsAlloc};

#[cfg(feature = "count-allocations")]
#[global_allocator]
static ALLOCATOR: &StatsAlloc<std::alloc::System> = &INSTRUMENTED_SYSTEM;

#[cfg(not(feature = "count-allocations"))]
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

/// How often, and how much, was allocated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Counted {
    pub allocations: usize,
    pub bytes: usize,
}

/// Runs something; `None`: nothing is counted in this build.
#[cfg(feature = "count-allocations")]
pub fn counting<T>(work: impl FnOnce() -> T) -> (T, Option<Counted>) {
    let region = stats_alloc::Region::new(ALLOCATOR);
    let done = work();
    let stats = region.change();
    let counted = Counted {
        allocations: stats.allocations + stats.reallocations,
        bytes: stats.bytes_allocated,
    };
    (done, Some(counted))
}

/// Runs something; `None`: nothing is counted in this build.
#[cfg(not(feature = "count-allocations"))]
pub fn counting<T>(work: impl FnOnce() -> T) -> (T, Option<Counted>) {
    (work(), None)
}
