//! Random choices for inputs that are made up. Main type: [`Dice`].

use tiphys_testkit::Rng;

/// The same seed always chooses the same.
pub struct Dice(Rng);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(Rng::new(seed))
    }

    /// A number below `bound`, or 0.
    pub fn below(&mut self, bound: usize) -> usize {
        let bound = u64::try_from(bound).unwrap_or(u64::MAX);
        usize::try_from(self.0.below(bound)).unwrap_or_default()
    }

    /// Whether something happens that happens so often of a hundred times.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.0.below(100) < chance
    }

    /// One of them; an empty text if there is none.
    pub fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.below(from.len());
        from.get(at).copied().unwrap_or_default()
    }

    /// From 1 to `most` of them, each once, in any order.
    pub fn some<'a>(&mut self, from: &[&'a str], most: usize) -> Vec<&'a str> {
        let mut left = from.to_vec();
        let count = 1 + self.below(most.min(from.len()));
        let mut chosen = Vec::new();
        for _ in 0..count {
            if left.is_empty() {
                break;
            }
            let at = self.below(left.len());
            chosen.push(left.swap_remove(at));
        }
        chosen
    }
}
