//! Consistent hashing with bounded loads: shards have many positions on a hash ring, and a cluster
//! belongs to the next one whose shard is not full. Main type: [`Ring`].

use blake2::{Blake2b512, Digest};
use std::{
    collections::BTreeMap,
    ops::Bound::{Excluded, Unbounded},
};

/// Positions per shard.
const PLACES: usize = 1000;

pub struct Ring {
    places: BTreeMap<u64, usize>,
    loads: Vec<u64>,
}

impl Ring {
    pub fn new(shards: usize) -> Self {
        let place = |shard: usize, number: usize| (hash(&format!("{shard}{number}")), shard);
        // "1" and "10" form the same name as "11" and "0": the later shard gets the position.
        let places = (0..shards)
            .flat_map(|shard| (0..PLACES).map(move |number| place(shard, number)))
            .collect();
        Self {
            places,
            loads: vec![0; shards],
        }
    }

    /// The shard for a cluster with this many Applications.
    pub fn take(&mut self, id: &str, load: u64) -> usize {
        let hash = hash(id);
        let after = self
            .places
            .range((Excluded(hash), Unbounded))
            .chain(self.places.range(..=hash));
        // They are never all full, because the bound is above the average.
        let shard = after
            .map(|(_, shard)| *shard)
            .find(|shard| !self.is_full(*shard))
            .unwrap_or(0);
        self.loads[shard] += load;
        shard
    }

    /// Whether it has 25 % more than the average, rounded as Argo CD does.
    fn is_full(&self, shard: usize) -> bool {
        let average = ((self.loads.iter().sum::<u64>() + 1) / self.loads.len() as u64).max(1);
        self.loads[shard] >= (average * 5).div_ceil(4)
    }
}

fn hash(key: &str) -> u64 {
    let digest = Blake2b512::digest(key);
    u64::from_le_bytes(std::array::from_fn(|i| digest[i]))
}
