//! Password hashing with bcrypt, and generating random passwords.

use rand::Rng as _;

/// The cost that Argo CD uses.
const COST: u32 = 10;
/// bcrypt ignores bytes beyond this; Argo CD's own limit is lower.
const MAX_BYTES: usize = 72;

/// The hash to store under `admin.password`. Slow by design: call it off the async threads.
pub fn hash_password(password: &str) -> Result<String, crate::ApiError> {
    if password.len() > MAX_BYTES {
        return Err(crate::ApiError::invalid(format!(
            "the password is longer than {MAX_BYTES} bytes"
        )));
    }
    bcrypt::hash(password, COST)
        .map_err(|e| crate::ApiError::internal(format!("cannot hash the password: {e}")))
}

/// A random password of letters, digits and `-`. It does not start with `-`, so that it is never
/// taken for a command-line flag.
pub fn new_password() -> String {
    const ALPHABET: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-";
    let mut rng = rand::rng();
    let most = |place: usize| {
        if place == 0 {
            ALPHABET.len() - 1
        } else {
            ALPHABET.len()
        }
    };
    (0..16)
        .map(|place| char::from(ALPHABET[rng.random_range(0..most(place))]))
        .collect()
}

/// Whether the password matches the hash. An empty hash matches nothing, but takes the same time.
/// Slow by design, too.
pub(super) fn matches(password: &str, hash: &str) -> bool {
    if hash.is_empty() || password.len() > MAX_BYTES {
        // Hash only to take as long as a real check.
        drop(bcrypt::hash("for the time it takes", COST));
        return false;
    }
    bcrypt::verify(password, hash).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_password_cannot_be_taken_for_a_flag() {
        let all: Vec<String> = (0..5_000).map(|_| new_password()).collect();
        assert!(all.iter().all(|p| p.len() == 16 && !p.starts_with('-')));
        assert!(all.iter().any(|p| p.contains('-')));
    }

    #[test]
    fn a_hash_matches_only_its_password() {
        let password = new_password();
        let hash = hash_password(&password).expect("it hashes");
        assert!(hash.starts_with("$2"));
        assert!(matches(&password, &hash));
        assert!(!matches(&format!("{password}x"), &hash));
        assert!(!matches(&password, ""));
    }
}
