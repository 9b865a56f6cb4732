//! Reproducible random numbers. Main type: [`Rng`]; [`first_seed`] is the seed with which random
//! tests begin.

use std::process::Command;

/// Seeds stay short enough to type.
const SEEDS: u64 = 1_000_000;

/// The first seed of a random test: `TIPHYS_SEED`, or one derived from the checked-out commit, so
/// that each commit tries other cases and a second run the same. Outside of a repository it is 1.
///
/// # Panics
/// If `TIPHYS_SEED` is not a number.
pub fn first_seed() -> u64 {
    if let Ok(seed) = std::env::var("TIPHYS_SEED") {
        return seed
            .parse()
            .unwrap_or_else(|_| panic!("TIPHYS_SEED={seed} is not a number"));
    }
    let git = Command::new("git")
        .args(["rev-parse", "HEAD"])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output();
    git.ok()
        .filter(|g| g.status.success())
        .map_or(1, |git| seed_of(&String::from_utf8_lossy(&git.stdout)))
}

/// Derived from a commit's hash.
fn seed_of(hash: &str) -> u64 {
    hash.get(..16)
        .and_then(|digits| u64::from_str_radix(digits, 16).ok())
        .map_or(1, |number| number % SEEDS)
}

/// SplitMix64: small, and good enough to spread kill points.
#[derive(Clone, Debug)]
pub struct Rng(u64);

impl Rng {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next_u64() % bound.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::seed_of;

    #[test]
    fn each_commit_has_a_seed_of_its_own() {
        assert_eq!(
            seed_of("877efdd000000000aaaaaaaaaaaaaaaaaaaaaaaa\n"),
            0x877e_fdd0_0000_0000 % 1_000_000
        );
        assert_ne!(
            seed_of("877efdd000000001aaaaaaaaaaaaaaaaaaaaaaaa"),
            seed_of("877efdd000000000aaaaaaaaaaaaaaaaaaaaaaaa")
        );
        assert_eq!(seed_of("no commit"), 1);
    }
}
