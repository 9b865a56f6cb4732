//! `argocd-app-controller-shard-cm`: which controller claims which shard, as Argo CD's controllers
//! coordinate.
//!
//! Main function: [`claim`]. Pure. These claims rely on wall clocks; only the leases keep two of
//! our replicas from writing at once.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// One shard and its claimant.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub struct Entry {
    pub shard_number: i64,
    /// Empty: unclaimed.
    pub controller_name: String,
    pub heartbeat_time: Option<Timestamp>,
}

/// The claimant.
pub struct Claimant<'a> {
    pub name: &'a str,
    /// The only shard that it may take.
    pub configured: Option<usize>,
    /// An entry older than this is free.
    pub timeout: SignedDuration,
    pub now: Timestamp,
}

/// The entries for this many replicas without any claims.
fn unclaimed(replicas: usize) -> Vec<Entry> {
    (0..replicas)
        .map(|n| Entry {
            shard_number: n as i64,
            ..Entry::default()
        })
        .collect()
}

/// The claimant's shard (`None` if all are taken), and the updated entries.
pub fn claim(entries: Vec<Entry>, replicas: usize, by: &Claimant) -> (Option<usize>, Vec<Entry>) {
    let mut entries = if entries.len() > replicas {
        Vec::new()
    } else {
        entries
    };
    let missing = entries.len();
    entries.extend(unclaimed(replicas).into_iter().skip(missing));
    // Truncated to the second, as Kubernetes does.
    let now = Timestamp::from_second(by.now.as_second()).unwrap_or(by.now);
    let configured = by.configured.filter(|shard| *shard < replicas);
    let is_free = |e: &Entry| {
        e.controller_name.is_empty()
            || e.heartbeat_time
                .is_none_or(|beat| by.now > beat + by.timeout)
    };
    let mine = match configured {
        Some(shard) => entries
            .iter()
            .position(|e| usize::try_from(e.shard_number) == Ok(shard)),
        None => entries.iter().position(|e| e.controller_name == by.name),
    };
    // A controller configured for a shard that does not exist takes none.
    let taken = mine.or_else(|| {
        if by.configured.is_none() {
            entries.iter().position(is_free)
        } else {
            None
        }
    });
    let Some(entry) = taken.map(|at| &mut entries[at]) else {
        return (by.configured, entries);
    };
    entry.controller_name = by.name.to_owned();
    entry.heartbeat_time = Some(now);
    (usize::try_from(entry.shard_number).ok(), entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: &str = "2026-01-01T00:10:00Z";

    /// `name@seconds ago` for each shard, `-` if unclaimed.
    fn entries(text: &str) -> Vec<Entry> {
        let now: Timestamp = NOW.parse().expect("a time");
        let entry = |(n, text): (usize, &str)| {
            let (number, text) = text.split_once(':').map_or((n as i64, text), |(n, text)| {
                (n.parse().expect("a number"), text)
            });
            let (name, ago) = text.split_once('@').unwrap_or(("", ""));
            let beat = ago
                .parse()
                .ok()
                .map(|secs| now - SignedDuration::from_secs(secs));
            Entry {
                shard_number: number,
                controller_name: name.to_owned(),
                heartbeat_time: beat,
            }
        };
        text.split(' ')
            .filter(|t| !t.is_empty())
            .enumerate()
            .map(entry)
            .collect()
    }

    /// Argo CD's own cases (`Test_getOrUpdateShardNumberForController`), then others by the same
    /// rules.
    #[test]
    fn c99_shards_are_claimed_as_argo_cds_controllers_claim_them() {
        let ages = "99999";
        for (before, name, replicas, configured, shard, after) in [
            (format!("a@{ages}"), "a", 2, None, Some(0), "a@0 -"),
            ("a@0".into(), "b", 2, None, Some(1), "a@0 b@0"),
            ("a@0 b@0".into(), "a", 1, None, Some(0), "a@0"),
            (
                format!("1:b@{ages} 0:a@0"),
                "b",
                2,
                Some(1),
                Some(1),
                "1:b@0 0:a@0",
            ),
            ("a@0".into(), "b", 2, Some(1), Some(1), "a@0 b@0"),
            ("a@0 b@0 c@0".into(), "a", 2, Some(1), Some(1), "- a@0"),
            (format!("a@0 b@{ages}"), "b", 2, None, Some(1), "a@0 b@0"),
            (format!("a@0 b@{ages}"), "b", 2, Some(1), Some(1), "a@0 b@0"),
            // One that has been silent for more than three heartbeats is replaced.
            ("a@31 b@30".into(), "c", 2, None, Some(0), "c@0 b@30"),
            ("a@30 b@30".into(), "c", 2, None, None, "a@30 b@30"),
            (String::new(), "a", 3, None, Some(0), "a@0 - -"),
            ("a@5 b@5".into(), "c", 2, Some(7), Some(7), "a@5 b@5"),
        ] {
            let by = Claimant {
                name,
                configured,
                timeout: SignedDuration::from_secs(30),
                now: NOW.parse().expect("a time"),
            };
            assert_eq!(
                claim(entries(&before), replicas, &by),
                (shard, entries(after)),
                "{name} of {before}"
            );
        }
    }

    #[test]
    fn entries_are_read_and_written_as_go_does() {
        let text = r#"[{"ShardNumber":0,"ControllerName":"a","HeartbeatTime":"2026-01-01T00:10:00Z"},{"ShardNumber":1,"ControllerName":"","HeartbeatTime":null}]"#;
        let read: Vec<Entry> = serde_json::from_str(text).expect("valid");
        assert_eq!(read, entries("a@0 -"));
        assert_eq!(serde_json::to_string(&read).expect("valid"), text);
    }
}
