//! Applications as lists send them: what was encoded for one list is kept for those after it.
//!
//! Main type: [`Listed`].

use super::marks::Marks;
use bytes::Bytes;
use std::sync::{
    Arc, Mutex, PoisonError,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};
use tiphys_api::Application;
use tiphys_rpc::table::Encoding;

/// All that is kept: about that of 10,000 Applications in both encodings.
const MAX_BYTES: usize = 96 * 1024 * 1024;

/// An Application of the index, with the marks of its labels.
#[derive(Clone)]
pub struct Listed(Arc<Entry>, Marks);

struct Entry {
    app: Arc<Application>,
    forms: Forms,
}

impl AsRef<Application> for Listed {
    fn as_ref(&self) -> &Application {
        &self.0.app
    }
}

impl Listed {
    pub(super) fn new(app: Arc<Application>, marks: Marks, kept: &Arc<Kept>) -> Self {
        let forms = Forms {
            json: Mutex::default(),
            proto: Mutex::default(),
            kept: Arc::clone(kept),
        };
        Self(Arc::new(Entry { app, forms }), marks)
    }

    pub(super) fn marks(&self) -> Marks {
        self.1
    }

    pub fn app(&self) -> &Arc<Application> {
        &self.0.app
    }

    /// Whether it is known how this state of the Application is sent.
    pub fn is_encoded(&self, encoding: Encoding) -> bool {
        let form = self.0.forms.form(encoding);
        form.lock()
            .unwrap_or_else(PoisonError::into_inner)
            .is_some()
    }

    /// What `encode` made of this state of the Application, now or earlier. It must make the same
    /// for every caller.
    ///
    /// # Errors
    /// Those of `encode`.
    pub fn encoded<E>(
        &self,
        encoding: Encoding,
        encode: impl FnOnce(&Application) -> Result<Vec<u8>, E>,
    ) -> Result<Bytes, E> {
        let form = self.0.forms.form(encoding);
        let known = form.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some(known) = known {
            return Ok(known);
        }
        // Not while it is locked: of two lists at the same time, neither waits for the other.
        let bytes = Bytes::from(encode(self.app())?.into_boxed_slice());
        let mut form = form.lock().unwrap_or_else(PoisonError::into_inner);
        if form.is_none() && self.0.forms.kept.add(bytes.len()) {
            *form = Some(bytes.clone());
        }
        Ok(bytes)
    }

    pub(super) fn forget(&self) {
        self.0.forms.forget();
    }
}

/// An Application as it is sent, if that is known.
struct Forms {
    json: Mutex<Option<Bytes>>,
    proto: Mutex<Option<Bytes>>,
    kept: Arc<Kept>,
}

impl Forms {
    fn form(&self, encoding: Encoding) -> &Mutex<Option<Bytes>> {
        match encoding {
            Encoding::Json => &self.json,
            Encoding::Proto => &self.proto,
        }
    }

    fn forget(&self) {
        for form in [&self.json, &self.proto] {
            let bytes = form.lock().unwrap_or_else(PoisonError::into_inner).take();
            self.kept.remove(bytes.map_or(0, |bytes| bytes.len()));
        }
    }
}

impl Drop for Forms {
    fn drop(&mut self) {
        self.forget();
    }
}

/// How much is kept of all Applications.
pub(super) struct Kept {
    bytes: AtomicUsize,
    max_bytes: usize,
    is_used: AtomicBool,
}

impl Default for Kept {
    fn default() -> Self {
        Self::up_to(MAX_BYTES)
    }
}

impl Kept {
    fn up_to(max_bytes: usize) -> Self {
        Self {
            bytes: AtomicUsize::new(0),
            max_bytes,
            is_used: AtomicBool::new(false),
        }
    }

    /// Whether there is room for so many more.
    fn add(&self, bytes: usize) -> bool {
        let before = self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let fits = before.saturating_add(bytes) <= self.max_bytes;
        if !fits {
            self.remove(bytes);
        }
        fits
    }

    fn remove(&self, bytes: usize) {
        self.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn uses(&self) {
        self.is_used.store(true, Ordering::Relaxed);
    }

    /// Whether something is kept that nobody has used since this was last asked.
    pub(super) fn is_idle(&self) -> bool {
        !self.is_used.swap(false, Ordering::Relaxed) && self.bytes.load(Ordering::Relaxed) > 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::convert::Infallible;

    fn listed(kept: &Arc<Kept>) -> Listed {
        Listed::new(Arc::default(), Marks::default(), kept)
    }

    fn ask(one: &Listed, encoding: Encoding, text: &str) -> Bytes {
        let made = one.encoded(encoding, |_| Ok::<_, Infallible>(text.into()));
        match made {
            Ok(bytes) => bytes,
            Err(never) => match never {},
        }
    }

    #[test]
    fn a_state_is_encoded_once_for_each_encoding() {
        let kept = Arc::new(Kept::default());
        let one = listed(&kept);
        assert!(!one.is_encoded(Encoding::Json));
        assert_eq!(ask(&one, Encoding::Json, "{}"), "{}");
        assert!(one.is_encoded(Encoding::Json) && !one.is_encoded(Encoding::Proto));
        assert_eq!(ask(&one.clone(), Encoding::Json, "other"), "{}");
        assert_eq!(ask(&one, Encoding::Proto, "proto"), "proto");
        // Another state of it.
        assert_eq!(ask(&listed(&kept), Encoding::Json, "new"), "new");
        one.forget();
        assert_eq!(ask(&one, Encoding::Json, "again"), "again");
        assert_eq!(one.encoded(Encoding::Proto, |_| Err(7)), Err(7));
    }

    #[test]
    fn what_is_kept_has_a_limit() {
        let kept = Arc::new(Kept::up_to(5));
        let bytes = || kept.bytes.load(Ordering::Relaxed);
        let (one, other) = (listed(&kept), listed(&kept));
        assert_eq!(ask(&one, Encoding::Json, "four"), "four");
        assert_eq!(ask(&other, Encoding::Json, "more"), "more");
        assert_eq!(
            ask(&other, Encoding::Json, "else"),
            "else",
            "there was no room"
        );
        assert_eq!(bytes(), 4);
        drop(one);
        assert_eq!(bytes(), 0);
        assert_eq!(ask(&other, Encoding::Json, "more"), "more");
        assert_eq!(ask(&other, Encoding::Json, "else"), "more");
        assert_eq!(bytes(), 4);
    }

    #[test]
    fn what_nobody_uses_is_idle() {
        let kept = Arc::new(Kept::default());
        let one = listed(&kept);
        assert!(!kept.is_idle(), "nothing is kept");
        kept.uses();
        ask(&one, Encoding::Json, "{}");
        assert!(!kept.is_idle());
        assert!(kept.is_idle());
        one.forget();
        assert!(!kept.is_idle());
    }
}
