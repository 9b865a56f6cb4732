//! Which files are there, and which of them goes first when there are too many. Main type:
//! [`Index`].

use super::Name;
use std::collections::{BTreeMap, HashMap};

/// What a file takes of a disk is a multiple of this.
pub(super) const BLOCK: u64 = 4096;

/// The files of a folder, by when they were used last.
pub(super) struct Index {
    limit: u64,
    total: u64,
    /// Counts uses.
    turn: u64,
    /// When each file was used last, and the bytes it takes.
    files: HashMap<Name, (u64, u64)>,
    by_use: BTreeMap<u64, Name>,
}

impl Index {
    pub fn new(limit: u64) -> Self {
        Self {
            limit,
            total: 0,
            turn: 0,
            files: HashMap::new(),
            by_use: BTreeMap::new(),
        }
    }

    #[cfg(test)]
    pub fn has(&self, name: &Name) -> bool {
        self.files.contains_key(name)
    }

    /// Whether a file of this size may be there at all.
    pub fn fits(&self, size: u64) -> bool {
        on_disk(size) <= self.limit
    }

    /// Whether the file is there; it counts as used now.
    pub fn uses(&mut self, name: &Name) -> bool {
        let Some((used, _)) = self.files.get_mut(name) else {
            return false;
        };
        self.turn += 1;
        self.by_use.remove(used);
        self.by_use.insert(self.turn, *name);
        *used = self.turn;
        true
    }

    /// Counts a file in place of the one with its name. Returns those that have to go.
    #[must_use]
    pub fn add(&mut self, name: Name, size: u64) -> Vec<Name> {
        self.remove(&name);
        let bytes = on_disk(size);
        self.turn += 1;
        self.files.insert(name, (self.turn, bytes));
        self.by_use.insert(self.turn, name);
        self.total += bytes;
        let mut removed = Vec::new();
        while self.total > self.limit {
            let Some(oldest) = self.by_use.values().next().copied() else {
                break;
            };
            self.remove(&oldest);
            removed.push(oldest);
        }
        removed
    }

    /// False: it is not there.
    pub fn remove(&mut self, name: &Name) -> bool {
        let Some((used, bytes)) = self.files.remove(name) else {
            return false;
        };
        self.by_use.remove(&used);
        self.total -= bytes;
        true
    }
}

fn on_disk(size: u64) -> u64 {
    size.div_ceil(BLOCK).max(1).saturating_mul(BLOCK)
}
