//! Weights of shards, so that each has the same load: Applications differ, so their number is a
//! poor measure.
//!
//! Main type: [`Weights`]. Pure except for [`Loads`], which counts. The holder of a shard writes
//! the shard's load into its lease; the holder of the first shard writes the weights into that
//! lease. They are a few numbers, however many Applications there are.

use std::{
    collections::HashMap,
    fmt,
    sync::{Mutex, PoisonError},
    time::Duration,
};
use tokio::time::Instant;

/// Loads decay over this time.
const FADES: Duration = Duration::from_secs(600);
/// How far a shard's load may exceed the average.
const TOLERATED: f64 = 1.25;
/// Below this many milliseconds per minute rebalancing is not worth it.
const WORTH: f64 = 1000.0;
const BOUNDS: (f64, f64) = (0.1, 10.0);

/// The weight of each shard; the average is 1.
#[derive(Clone, Debug, PartialEq)]
pub struct Weights(Vec<f64>);

impl Weights {
    pub fn equal(shards: usize) -> Self {
        Self(vec![1.0; shards.max(1)])
    }

    /// Parses weights; `None` unless there is one for each shard.
    pub fn parse(text: &str, shards: usize) -> Option<Self> {
        let weights: Vec<f64> = text
            .split(' ')
            .map(str::parse)
            .collect::<Result<_, _>>()
            .ok()?;
        let valid = weights.len() == shards && weights.iter().all(|w| w.is_finite() && *w > 0.0);
        valid.then_some(Self(weights))
    }

    /// The shard for a key with these hashes, one per shard. If a weight grows, keys move only to
    /// that shard; if it shrinks, only away from it.
    pub fn pick(&self, hash: impl Fn(usize) -> u64) -> usize {
        let score = |shard: usize| {
            let share = (hash(shard) as f64 + 0.5) / (u64::MAX as f64 + 1.0);
            -self.0[shard] / share.ln()
        };
        (0..self.0.len())
            .max_by(|a, b| score(*a).total_cmp(&score(*b)))
            .unwrap_or(0)
    }

    /// Weights adjusted to the current load of each shard, in milliseconds per minute; `None` if
    /// the current ones are good enough.
    pub fn adjusted(&self, loads: &[u64]) -> Option<Self> {
        let average = loads.iter().sum::<u64>() as f64 / loads.len().max(1) as f64;
        let highest = loads.iter().max().copied().unwrap_or_default() as f64;
        if loads.len() != self.0.len() || average < WORTH || highest <= average * TOLERATED {
            return None;
        }
        // Half of the way each time, because what moves changes the load of other shards.
        let step = |(weight, load): (&f64, &u64)| {
            weight * (average / (*load as f64).max(average / 10.0)).sqrt()
        };
        let new: Vec<f64> = self.0.iter().zip(loads).map(step).collect();
        let mean = new.iter().sum::<f64>() / new.len() as f64;
        let rounded = |weight: f64| (weight / mean * 100.0).round() / 100.0;
        let new = Self(
            new.into_iter()
                .map(|w| rounded(w).clamp(BOUNDS.0, BOUNDS.1))
                .collect(),
        );
        (new != *self).then_some(new)
    }
}

impl fmt::Display for Weights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words: Vec<String> = self.0.iter().map(f64::to_string).collect();
        f.write_str(&words.join(" "))
    }
}

/// The load of shards on this replica.
#[derive(Default)]
pub struct Loads(Mutex<HashMap<usize, (f64, Instant)>>);

impl Loads {
    /// Adds the time spent on a shard.
    pub fn add(&self, shard: usize, busy: Duration) {
        let mut loads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let (cost, at) = loads.entry(shard).or_insert((0.0, now));
        *cost = faded(*cost, now - *at) + busy.as_secs_f64() * 1000.0;
        *at = now;
    }

    /// Milliseconds per minute.
    pub fn of(&self, shard: usize) -> u64 {
        let loads = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        loads.get(&shard).map_or(0, |(cost, at)| {
            (faded(*cost, at.elapsed()) * 60.0 / FADES.as_secs_f64()).round() as u64
        })
    }
}

fn faded(cost: f64, after: Duration) -> f64 {
    cost * (-after.as_secs_f64() / FADES.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sha2::{Digest, Sha256};

    fn shard(weights: &Weights, app: usize) -> usize {
        weights.pick(|shard| {
            let digest = Sha256::digest(format!("{shard}\n{app}"));
            u64::from_be_bytes(std::array::from_fn(|i| digest[i]))
        })
    }

    #[test]
    fn weights_even_out_what_shards_cost_and_then_stay() {
        // A few Applications cost as much as all others together.
        let cost = |app: usize| if app < 8 { 3000 } else { 20 };
        let loads = |weights: &Weights| {
            let mut loads = vec![0; 4];
            (0..1200).for_each(|app| loads[shard(weights, app)] += cost(app));
            loads
        };
        let worst = |loads: &[u64]| {
            *loads.iter().max().expect("four") as f64 * 4.0 / loads.iter().sum::<u64>() as f64
        };
        let mut weights = Weights::equal(4);
        let before = worst(&loads(&weights));
        let mut rounds = 0;
        while let Some(new) = weights.adjusted(&loads(&weights)) {
            weights = Weights::parse(&new.to_string(), 4).expect("as it was written");
            rounds += 1;
            assert!(rounds < 12, "{weights} never rests");
        }
        let after = worst(&loads(&weights));
        assert!(before > 1.4 && after <= TOLERATED, "{before} {after}");
    }

    #[test]
    fn only_the_shard_whose_weight_changed_gains_or_loses() {
        let (before, after) = (Weights::equal(3), Weights(vec![1.0, 0.5, 1.0]));
        let moved = (0..2000)
            .map(|app| (shard(&before, app), shard(&after, app)))
            .filter(|(a, b)| a != b)
            .collect::<Vec<_>>();
        assert!(!moved.is_empty() && moved.iter().all(|(from, _)| *from == 1));
    }

    #[test]
    fn little_work_moves_nothing_and_what_is_not_understood_is_no_weight() {
        let equal = Weights::equal(2);
        assert_eq!(
            (
                equal.adjusted(&[900, 0]),
                equal.adjusted(&[9000]),
                equal.adjusted(&[5000, 4000])
            ),
            (None, None, None)
        );
        for wrong in ["", "1", "1 0", "1 -1", "1 NaN", "1 x", "1 1 1"] {
            assert_eq!(Weights::parse(wrong, 2), None, "{wrong}");
        }
        // A shard that has all of the load keeps a minimum weight.
        let extreme = (0..20).fold(equal, |w, _| w.adjusted(&[100_000, 0]).unwrap_or(w));
        assert!(extreme.0[0] >= 0.1 && extreme.0[1] <= 10.0, "{extreme}");
    }

    #[tokio::test(start_paused = true)]
    async fn costs_fade() {
        let loads = Loads::default();
        for _ in 0..120 {
            loads.add(1, Duration::from_secs(6));
            tokio::time::advance(Duration::from_secs(60)).await;
        }
        let busy = loads.of(1);
        assert!((5500..6100).contains(&busy), "{busy}");
        tokio::time::advance(2 * FADES).await;
        assert!(loads.of(1) < 900 && loads.of(0) == 0);
    }
}
