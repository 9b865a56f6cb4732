//! Events of a watch that are delayed, or merged. Main type: [`Held`].

use bytes::Bytes;
use serde_json::Value;
use std::{collections::VecDeque, time::Duration};
use tokio::time::Instant;

/// Maximum delay of events: shorter than what a script considers idle.
const LONGEST_LAG: Duration = Duration::from_secs(2);

/// Delayed events.
#[derive(Default)]
pub struct Held {
    lines: VecDeque<(Instant, Bytes)>,
    /// Until then nothing is forwarded, and the events of one object become one event.
    merging: Option<Instant>,
}

impl Held {
    pub fn due(&self) -> Option<Instant> {
        self.merging
            .or_else(|| self.lines.front().map(|(due, _)| *due))
    }

    pub fn put(&mut self, line: Bytes) {
        self.lines.push_back((Instant::now() + LONGEST_LAG, line));
    }

    pub fn merges(&mut self, line: Bytes) {
        self.put(line);
        self.merging = Some(Instant::now() + LONGEST_LAG);
    }

    pub fn released(&mut self, lag: usize) -> Vec<Bytes> {
        let now = Instant::now();
        match self.merging {
            Some(until) if until > now => return Vec::new(),
            Some(_) => {
                self.merging = None;
                return merged(self.lines.drain(..).map(|(_, line)| line));
            }
            None => {}
        }
        let mut released = Vec::new();
        while self.lines.len() > lag || self.lines.front().is_some_and(|(due, _)| *due <= now) {
            released.extend(self.lines.pop_front().map(|(_, line)| line));
        }
        released
    }
}

/// The same events, with only the last state of each object.
fn merged(lines: impl Iterator<Item = Bytes>) -> Vec<Bytes> {
    let mut events: Vec<Option<(String, Value)>> = Vec::new();
    for line in lines {
        let Ok(mut event) = serde_json::from_slice::<Value>(&line) else {
            continue;
        };
        let metadata = &event["object"]["metadata"];
        let key = format!("{}/{}", metadata["namespace"], metadata["name"]);
        let earlier = events
            .iter_mut()
            .find(|e| e.as_ref().is_some_and(|(k, _)| *k == key));
        if let Some((_, earlier)) = earlier.and_then(Option::take) {
            match (earlier["type"].as_str(), event["type"].as_str()) {
                // An API server never keeps a deletion to itself, even of an object whose creation
                // this watch has not shown: the answer to a write may have shown it.
                (_, Some("DELETED")) => {}
                (Some("ADDED"), _) => event["type"] = "ADDED".into(),
                (Some("DELETED"), _) => event["type"] = "MODIFIED".into(),
                _ => {}
            }
        }
        events.push(Some((key, event)));
    }
    events
        .into_iter()
        .flatten()
        .map(|(_, event)| Bytes::from(format!("{event}\n")))
        .collect()
}
