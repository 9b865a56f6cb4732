//! What is told of contacts with servers, and of waiting, for metrics.
//!
//! Main type: [`ContactWatch`].

use std::{
    fmt,
    sync::Arc,
    time::{Duration, Instant},
};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContactKind {
    /// The refs were listed.
    LsRemote,
    Fetch,
    Push,
    /// A registry was asked about an OCI source.
    Registry(RegistryRequest),
}

/// What a registry is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RegistryRequest {
    /// The files of an artifact.
    Extract,
    /// The digest that a revision stands for.
    ResolveRevision,
    /// What the author of an artifact says about it.
    DigestMetadata,
    GetTags,
    /// Whether it is there.
    TestRepo,
}

/// A contact that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Contact<'a> {
    /// The URL, without credentials; of a registry, host and path.
    pub repository: &'a str,
    pub kind: ContactKind,
    /// What was fetched, sent or asked for; empty: more than one commit, or nothing of the kind.
    pub revision: &'a str,
    pub took: Duration,
    pub is_failed: bool,
}

type Told = dyn Fn(&Contact<'_>) + Send + Sync;
type Waits = dyn Fn(Duration) + Send + Sync;

/// Is told of each contact, and of each wait for a render to begin. It must not block.
#[derive(Clone, Default)]
pub struct ContactWatch {
    contacts: Option<Arc<Told>>,
    waits: Option<Arc<Waits>>,
}

impl ContactWatch {
    pub fn new(told: impl Fn(&Contact<'_>) + Send + Sync + 'static) -> Self {
        Self {
            contacts: Some(Arc::new(told)),
            waits: None,
        }
    }

    /// The same, which is also told how long a render waited for its turn.
    #[must_use]
    pub fn with_waits(self, told: impl Fn(Duration) + Send + Sync + 'static) -> Self {
        Self {
            waits: Some(Arc::new(told)),
            ..self
        }
    }

    pub(crate) fn tell(&self, contact: &Contact<'_>) {
        if let Some(told) = &self.contacts {
            told(contact);
        }
    }

    /// A wait begins; it ends when the value goes, also because nobody waits any longer.
    pub(crate) fn waiting(&self) -> Waiting<'_> {
        Waiting {
            watch: self,
            begun: Instant::now(),
        }
    }
}

/// Somebody waits.
pub(crate) struct Waiting<'a> {
    watch: &'a ContactWatch,
    begun: Instant,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(told) = &self.watch.waits {
            told(self.begun.elapsed());
        }
    }
}

impl fmt::Debug for ContactWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContactWatch")
    }
}
