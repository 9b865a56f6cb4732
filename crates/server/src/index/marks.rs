//! Which labels an Application may have, in one word beside it: a list that selects by a label does
//! not look at the others, which would take most of its time.
//!
//! Main type: [`Marks`].

use std::hash::{BuildHasher as _, RandomState};

/// Bits of labels. Others may have the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Marks(u64);

impl Marks {
    /// Those of labels and their values, by a hash that is the same for all that are compared.
    pub fn of<'a>(hash: &RandomState, labels: impl Iterator<Item = (&'a str, &'a str)>) -> Self {
        let mut marks = 0_u64;
        for label in labels {
            let hash = hash.hash_one(label);
            marks |= (1 << (hash % 64)) | (1 << (hash / 64 % 64));
        }
        Self(marks)
    }

    /// Whether what has these may have all labels with those.
    pub fn may_have(self, all: Self) -> bool {
        self.0 & all.0 == all.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_a_label_may_have_it_and_most_others_may_not() {
        let hash = RandomState::new();
        let of = |labels: &[(&str, &str)]| Marks::of(&hash, labels.iter().copied());
        let values: Vec<String> = (0..100).map(|n| n.to_string()).collect();
        let own = of(&[("page", "7"), ("team", "a"), ("tier", "web")]);
        let some: [&[(&str, &str)]; 3] = [&[], &[("page", "7")], &[("tier", "web"), ("page", "7")]];
        for wanted in some {
            assert!(own.may_have(of(wanted)), "{wanted:?}");
        }
        let may_have = |value: &&String| own.may_have(of(&[("page", value.as_str())]));
        assert!(values.iter().filter(may_have).count() < 50);
        assert!(!Marks::default().may_have(own));
    }
}
