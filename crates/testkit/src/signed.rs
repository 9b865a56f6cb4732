//! A commit that the real git signed once with the real gpg, and a forged one with its signature.

/// The public key, armored. It never expires.
pub const KEY: &str = include_str!("../fixtures/signed/key.asc");
/// Its id.
pub const KEY_ID: &str = "BA69F7F544376921";
/// The raw commit.
pub const GOOD: &str = include_str!("../fixtures/signed/good.commit");
/// The same with another message.
pub const BAD: &str = include_str!("../fixtures/signed/bad.commit");
