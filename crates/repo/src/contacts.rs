//! What is told of contacts with Git servers, for metrics.
//!
//! Main type: [`ContactWatch`].

use std::{fmt, sync::Arc, time::Duration};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ContactKind {
    /// The refs were listed.
    LsRemote,
    Fetch,
    Push,
}

/// A contact that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Contact<'a> {
    /// The URL, without credentials.
    pub repository: &'a str,
    pub kind: ContactKind,
    /// What was fetched or sent; empty: more than one commit.
    pub revision: &'a str,
    pub took: Duration,
    pub is_failed: bool,
}

type Told = dyn Fn(&Contact<'_>) + Send + Sync;

/// Is told of each contact. It must not block.
#[derive(Clone, Default)]
pub struct ContactWatch(Option<Arc<Told>>);

impl ContactWatch {
    pub fn new(told: impl Fn(&Contact<'_>) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(told)))
    }

    pub(crate) fn tell(&self, contact: &Contact<'_>) {
        if let Some(told) = &self.0 {
            told(contact);
        }
    }
}

impl fmt::Debug for ContactWatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ContactWatch")
    }
}
