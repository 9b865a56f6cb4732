//! What is kept of one object.
//!
//! Main types: [`Entry`], about 120 bytes and a name for every object, and [`Body`], the compressed
//! payload of managed objects.

use crate::scripts::run_blocking;
use serde_json::Value;
use std::{fmt, hash::Hasher, sync::Arc};
use tiphys_apimachinery::{Kept, Object};
use tiphys_engine::{
    customize::Customizations,
    health,
    tree::info::{self, Info},
    types::{Health, Tracking},
};

/// A uid as a number: the UUID itself, or for any other text its digest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct Uid(pub u128);

impl Uid {
    pub const NONE: Self = Self(0);

    pub fn parse(text: &str) -> Self {
        Self::from_uuid(text).unwrap_or_else(|| Self(digest(text)))
    }

    fn from_uuid(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        if bytes.len() != 36 {
            return None;
        }
        let mut value = 0u128;
        for (i, b) in bytes.iter().enumerate() {
            match (i, b) {
                (8 | 13 | 18 | 23, b'-') => {}
                (8 | 13 | 18 | 23, _) => return None,
                (_, b'0'..=b'9') => value = value << 4 | u128::from(b - b'0'),
                (_, b'a'..=b'f') => value = value << 4 | u128::from(b - b'a' + 10),
                _ => return None,
            }
        }
        Some(Self(value))
    }

    /// Whether the number identifies the uid exactly.
    pub fn is_exact(text: &str) -> bool {
        Self::from_uuid(text).is_some()
    }
}

impl fmt::Display for Uid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.0;
        write!(
            f,
            "{:08x}-{:04x}-{:04x}-{:04x}-{:012x}",
            v >> 96,
            (v >> 80) & 0xffff,
            (v >> 64) & 0xffff,
            (v >> 48) & 0xffff,
            v & 0xffff_ffff_ffff
        )
    }
}

/// FNV-1a: uids are not secret, and a collision gains an attacker nothing.
fn digest(text: &str) -> u128 {
    text.bytes()
        .fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |h, b| {
            (h ^ u128::from(b)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
        })
}

/// Index into a table of interned names; 0 is the empty string.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, PartialOrd, Ord)]
pub(super) struct NameId(pub u32);

impl NameId {
    pub const EMPTY: Self = Self(0);
}

/// Index into the table of kinds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct KindId(pub u16);

/// The summary of one object.
pub(super) struct Entry {
    pub kind: KindId,
    pub deleting: bool,
    pub namespace: NameId,
    /// Instance name of the Application that tracks it.
    pub app: NameId,
    /// Seconds since 1970.
    pub created: u32,
    pub name: Box<str>,
    pub uid: Uid,
    /// 0 if the server's version is not a number; then the latest received state wins.
    pub version: u64,
    pub owners: Box<[Uid]>,
    pub details: Option<Arc<Details>>,
    pub body: Option<Arc<Body>>,
}

/// What the resource tree shows of an object, for those that are in one.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    pub health: Option<Health>,
    /// Kind-specific information for the tree.
    pub info: Option<Info>,
    /// Fingerprint of the fields that matter; `None`: every update matters.
    fingerprint: Option<u64>,
}

impl Details {
    pub(super) fn of(
        object: &Object,
        tracking: &Tracking,
        customizations: &Customizations,
    ) -> Self {
        let details = || Self {
            health: health::of_with(object, customizations),
            info: info::of(object),
            fingerprint: customizations.updates().fingerprint(object, tracking),
        };
        if customizations.run_on(object) {
            run_blocking(details)
        } else {
            details()
        }
    }

    /// Whether an update from `before` changed nothing that matters. The health message counts too:
    /// otherwise the tree would show the beginning of a rollout until it is finished, as Argo CD's
    /// does.
    pub(super) fn is_same_update(&self, before: &Self) -> bool {
        self.fingerprint.is_some()
            && self.fingerprint == before.fingerprint
            && self.health == before.health
    }
}

/// The payload of an object.
pub(super) struct Body {
    pub kept: Arc<Kept>,
    /// Digest of everything but status and bookkeeping.
    pub digest: u64,
}

impl Body {
    pub fn new(object: Object) -> Self {
        let digest = spec_digest(&object);
        let kept = Kept::from(object);
        kept.rest();
        Self {
            kept: Arc::new(kept),
            digest,
        }
    }

    pub fn len(&self) -> usize {
        self.kept.bytes_held()
    }
}

/// A digest of what users can change: everything except status, resourceVersion, generation and
/// managedFields.
fn spec_digest(object: &Object) -> u64 {
    struct Sink(std::hash::DefaultHasher);
    impl std::io::Write for Sink {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.write(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut sink = Sink(std::hash::DefaultHasher::new());
    let mut put = |field: &str, value: &Value| {
        serde_json::to_writer(&mut sink, &(field, value)).expect("hashing does not fail")
    };
    for (field, value) in &object.0 {
        match (field.as_str(), value) {
            ("status", _) => {}
            ("metadata", Value::Object(metadata)) => {
                let wanted = metadata.iter().filter(|(f, _)| {
                    !matches!(
                        f.as_str(),
                        "resourceVersion" | "generation" | "managedFields"
                    )
                });
                wanted.for_each(|(f, v)| put(f, v));
            }
            (field, value) => put(field, value),
        }
    }
    sink.0.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_uuid_is_kept_exactly_and_anything_else_by_digest() {
        let text = "0a1b2c3d-4e5f-6071-8293-a4b5c6d7e8f9";
        assert_eq!(Uid::parse(text).to_string(), text);
        assert!(
            Uid::is_exact(text)
                && !Uid::is_exact("0A1B2C3D-4e5f-6071-8293-a4b5c6d7e8f9")
                && !Uid::is_exact("x")
        );
        assert_ne!(Uid::parse("x"), Uid::parse("y"));
    }

    #[test]
    fn status_and_bookkeeping_do_not_change_the_digest() {
        let make = |v: &str, spec: i64| {
            Object::from_value(
                json!({"kind": "A", "metadata": {"name": "a", "resourceVersion": v, "managedFields": [v]}, "spec": spec, "status": v}),
            )
            .expect("a map")
        };
        assert_eq!(spec_digest(&make("1", 1)), spec_digest(&make("2", 1)));
        assert_ne!(spec_digest(&make("1", 1)), spec_digest(&make("1", 2)));
    }
}
