//! Small types shared by every layer of the server: the options of a request, the user who makes
//! it, and a stored object.
//!
//! It knows no resource and no rule about one.

pub mod options;
pub mod stored;
pub mod user;

pub use options::{
    DeleteOptions, Deleted, FieldValidation, Guard, Part, Patch, Propagation, Sender, Spelling,
    WriteOptions, Written,
};
pub use stored::{Meta, Stored};
pub use user::{TokenUser, UserInfo};

use jiff::Timestamp;
use rand::Rng;

/// As Kubernetes prints a time: whole seconds, UTC.
pub fn timestamp(now: Timestamp) -> String {
    now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A random suffix for `generateName`, from characters that form no words.
pub fn random_suffix() -> String {
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut rng = rand::rng();
    (0..5)
        .map(|_| char::from(LETTERS[rng.random_range(0..LETTERS.len())]))
        .collect()
}
