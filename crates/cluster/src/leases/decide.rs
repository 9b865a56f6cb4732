//! Decides what a replica does about the leases of its group: a function of what it has observed
//! and of its own clock.
//!
//! Main type: [`View`]. Whether a lease has expired is judged by how long this replica has seen it
//! unchanged, never by the times written in it, because clocks differ.

use super::{
    LeaseOptions,
    record::{Record, Sign},
};
use std::{collections::BTreeMap, time::Duration};
use tokio::time::Instant;

/// What to do now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseAction {
    Renew(usize),
    Take(usize),
    Release(usize),
    /// Ask the holder, which has several, for this one.
    Ask(usize),
}

impl LeaseAction {
    pub fn shard(self) -> usize {
        match self {
            Self::Renew(shard) | Self::Take(shard) | Self::Release(shard) | Self::Ask(shard) => {
                shard
            }
        }
    }

    /// For the log.
    pub fn verb(self) -> &'static str {
        match self {
            Self::Renew(_) => "renew",
            Self::Take(_) => "acquire",
            Self::Release(_) => "release",
            Self::Ask(_) => "ask for",
        }
    }
}

struct Seen {
    record: Record,
    sign: Sign,
    since: Instant,
}

/// The leases of a group as last read, and since when each has been unchanged.
pub struct View {
    options: LeaseOptions,
    /// When the leases were first read, for those that do not exist.
    first: Option<Instant>,
    seen: BTreeMap<String, Seen>,
}

impl View {
    pub fn new(options: LeaseOptions) -> Self {
        Self {
            options,
            first: None,
            seen: BTreeMap::new(),
        }
    }

    /// Stores what was read; `now` is after the response arrived.
    pub fn read(&mut self, records: Vec<Record>, now: Instant) {
        self.first.get_or_insert(now);
        let mut before = std::mem::take(&mut self.seen);
        for record in records {
            let sign = record.sign();
            let since = before
                .remove(record.name())
                .filter(|b| b.sign == sign)
                .map_or(now, |b| b.since);
            self.seen.insert(
                record.name().to_owned(),
                Seen {
                    record,
                    sign,
                    since,
                },
            );
        }
    }

    /// The lease of a shard, if there is one.
    pub fn lease(&self, shard: usize) -> Option<&Record> {
        self.seen_of(shard).map(|s| &s.record)
    }

    fn seen_of(&self, shard: usize) -> Option<&Seen> {
        self.seen.get(&self.options.lease_name(shard))
    }

    /// Whether this replica is its holder, as far as others know.
    pub fn is_mine(&self, shard: usize) -> bool {
        self.lease(shard)
            .is_some_and(|lease| lease.holder() == self.options.identity)
    }

    /// Whether other replicas currently use another partition of the clusters, so that their shards
    /// overlap with ours.
    pub fn is_contested(&self, now: Instant) -> bool {
        let others = |s: &&Seen| {
            s.record.holder() != self.options.identity
                && s.record.partition() != self.options.partition
        };
        self.seen
            .values()
            .filter(others)
            .any(|s| self.unclaimed_for(s, now).is_none())
    }

    /// How long a lease has been free; `None` while it is held.
    fn unclaimed_for(&self, seen: &Seen, now: Instant) -> Option<Duration> {
        let age = now.saturating_duration_since(seen.since);
        if seen.sign.holder.is_empty() {
            return Some(age);
        }
        age.checked_sub(self.held_for(seen))
    }

    /// How long after it was seen a lease becomes free. It was seen up to one polling interval
    /// after it was written, which is when its duration began.
    fn held_for(&self, seen: &Seen) -> Duration {
        seen.record
            .duration()
            .unwrap_or(self.options.duration)
            .saturating_sub(self.options.pause())
    }

    /// When the next lease of another replica becomes free, unless it is renewed.
    pub fn next_free(&self, now: Instant) -> Option<Duration> {
        let held = self
            .seen
            .values()
            .filter(|s| !s.sign.holder.is_empty() && s.record.holder() != self.options.identity);
        held.filter_map(|s| {
            self.held_for(s)
                .checked_sub(now.saturating_duration_since(s.since))
        })
        .min()
    }

    /// The same for a shard, which may have no lease yet.
    fn free_for(&self, shard: usize, now: Instant) -> Option<Duration> {
        match self.seen_of(shard) {
            Some(seen) => self.unclaimed_for(seen, now),
            None => self.first.map(|first| now.saturating_duration_since(first)),
        }
    }

    /// The actions to take. `open`: whether this replica already relies on the lease of a shard.
    pub fn decide(&self, open: &dyn Fn(usize) -> bool, now: Instant) -> Vec<LeaseAction> {
        let mine: Vec<usize> = (0..self.options.count)
            .filter(|shard| self.is_mine(*shard))
            .collect();
        let contested = self.is_contested(now);
        let mut left = mine.len();
        let mut deeds = Vec::new();
        for shard in &mine {
            let asked = self
                .lease(*shard)
                .is_some_and(|lease| lease.wanted_by().is_some());
            // Two replicas with different partitions may each have taken one at the same moment.
            let give = (asked && left > 1) || (contested && !open(*shard));
            left -= usize::from(give);
            if give {
                deeds.push(LeaseAction::Release(*shard));
            } else if !open(*shard) || self.is_due(*shard, now) {
                deeds.push(LeaseAction::Renew(*shard));
            }
        }
        if !contested {
            deeds.extend(if mine.is_empty() {
                self.first_one(now)
            } else {
                self.one_more(now)
            });
        }
        deeds
    }

    /// A lease is renewed at every other reading.
    fn is_due(&self, shard: usize, now: Instant) -> bool {
        self.seen_of(shard).is_some_and(|seen| {
            now.saturating_duration_since(seen.since) >= self.options.pause() / 2
        })
    }

    /// For a replica without a lease: one that is free, else one of a replica that has several.
    fn first_one(&self, now: Instant) -> Option<LeaseAction> {
        let shards = || self.options.wished();
        let free = shards().find(|shard| self.free_for(*shard, now).is_some());
        free.map(LeaseAction::Take).or_else(|| {
            let me = Some(self.options.identity.as_str());
            let asked = |shard: usize| {
                self.lease(shard)
                    .is_some_and(|l| l.wanted_by() == me && self.others_of(l).next().is_some())
            };
            let free = |shard: &usize| self.lease(*shard).is_some_and(|l| self.can_be_asked_for(l));
            if shards().any(asked) {
                None
            } else {
                shards().find(free).map(LeaseAction::Ask)
            }
        })
    }

    /// The other leases of the lease's holder.
    fn others_of<'a>(&'a self, lease: &'a Record) -> impl Iterator<Item = &'a Record> {
        let leases = (0..self.options.count).filter_map(|shard| self.lease(shard));
        leases.filter(|other| other.name() != lease.name() && other.holder() == lease.holder())
    }

    /// No one has asked for it, and its holder has another one that no one has asked for.
    fn can_be_asked_for(&self, lease: &Record) -> bool {
        lease.wanted_by().is_none()
            && self
                .others_of(lease)
                .any(|other| other.wanted_by().is_none())
    }

    /// For a replica that has leases: one that no replica without any has taken in the time that
    /// they need for it.
    fn one_more(&self, now: Instant) -> Option<LeaseAction> {
        let left = |shard: &usize| {
            let patience = match self
                .seen_of(*shard)
                .is_some_and(|s| !s.sign.holder.is_empty())
            {
                true => 2 * self.options.pause(),
                false => self.options.duration,
            };
            self.free_for(*shard, now)
                .is_some_and(|age| age >= patience)
        };
        self.options
            .wished()
            .filter(|shard| !self.is_mine(*shard))
            .find(left)
            .map(LeaseAction::Take)
    }
}
