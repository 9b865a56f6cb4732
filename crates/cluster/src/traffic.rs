//! Counters and timings of the requests to one API server.
//!
//! Main types: [`Traffic`], which all connections of a cluster share, and [`Histogram`]. They do
//! not know the names of metrics.

use crate::call::Call;
use http::Method;
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

/// Seconds per request.
const SECONDS: &[f64] = &[0.005, 0.1, 0.5, 2.0, 8.0, 30.0];
/// Bytes, from 64 to 16 MiB.
const BYTES: &[f64] = &[64.0, 512.0, 4096.0, 65_536.0, 1_048_576.0, 16_777_216.0];

/// The number of values up to each bound.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    bounds: &'static [f64],
    /// One more than there are bounds.
    counts: Vec<u64>,
    pub sum: f64,
}

impl Histogram {
    pub fn new(bounds: &'static [f64]) -> Self {
        Self {
            bounds,
            counts: vec![0; bounds.len() + 1],
            sum: 0.0,
        }
    }

    pub fn observe(&mut self, value: f64) {
        self.counts[self.bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }

    /// Adds another histogram with the same bounds.
    pub fn add(&mut self, other: &Self) {
        for (count, more) in self.counts.iter_mut().zip(&other.counts) {
            *count += more;
        }
        self.sum += other.sum;
    }

    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Upper bounds, the last one infinite, each with the number of values since the previous
    /// bound.
    pub fn buckets(&self) -> Vec<(f64, u64)> {
        self.bounds
            .iter()
            .copied()
            .chain([f64::MAX])
            .zip(self.counts.iter().copied())
            .collect()
    }
}

/// A writing kubectl command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Command {
    pub begun: u64,
    pub running: u64,
}

/// All counters. Verbs are Kubernetes' (`List`), methods HTTP's; codes are those of responses, or
/// `<error>` if there was none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Counts {
    pub answers: BTreeMap<(&'static str, String), u64>,
    pub retries: BTreeMap<(&'static str, String), u64>,
    /// By verb: until the response, for a watch until its start.
    pub seconds: BTreeMap<&'static str, Histogram>,
    /// By verb: until the request could be sent.
    pub waits: BTreeMap<&'static str, Histogram>,
    /// By method.
    pub sent: BTreeMap<&'static str, Histogram>,
    pub received: BTreeMap<&'static str, Histogram>,
    pub commands: BTreeMap<&'static str, Command>,
    /// Connections opened, and requests on existing ones.
    pub made: u64,
    pub reused: u64,
}

impl Counts {
    /// Adds counters of the same server from elsewhere.
    pub fn add(&mut self, other: &Self) {
        fn sum<K: Ord + Clone>(into: &mut BTreeMap<K, u64>, from: &BTreeMap<K, u64>) {
            from.iter()
                .for_each(|(key, count)| *into.entry(key.clone()).or_default() += count);
        }
        fn merge(
            into: &mut BTreeMap<&'static str, Histogram>,
            from: &BTreeMap<&'static str, Histogram>,
        ) {
            from.iter().for_each(|(key, h)| {
                into.entry(key)
                    .or_insert_with(|| Histogram::new(h.bounds))
                    .add(h)
            });
        }
        sum(&mut self.answers, &other.answers);
        sum(&mut self.retries, &other.retries);
        merge(&mut self.seconds, &other.seconds);
        merge(&mut self.waits, &other.waits);
        merge(&mut self.sent, &other.sent);
        merge(&mut self.received, &other.received);
        for (name, more) in &other.commands {
            let command = self.commands.entry(name).or_default();
            *command = Command {
                begun: command.begun + more.begun,
                running: command.running + more.running,
            };
        }
        self.made += other.made;
        self.reused += other.reused;
    }
}

/// The counters of one API server. Cheap to clone.
#[derive(Clone, Debug, Default)]
pub struct Traffic {
    /// Name and port.
    host: Arc<str>,
    counts: Arc<Mutex<Counts>>,
}

impl Traffic {
    /// The counters for the server with this URL.
    pub fn of(server: &str) -> Self {
        let (_, rest) = server.split_once("://").unwrap_or(("", server));
        let authority = rest.split('/').next().unwrap_or_default();
        Self {
            host: authority.rsplit('@').next().unwrap_or_default().into(),
            counts: Arc::default(),
        }
    }

    pub fn host(&self) -> &str {
        &self.host
    }

    /// Whether both share the same counters.
    pub fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.counts, &other.counts)
    }

    pub fn counts(&self) -> Counts {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn waited(&self, call: &Call, time: Duration) {
        observe(
            &mut self.lock().waits,
            call.verb(),
            SECONDS,
            time.as_secs_f64(),
        );
    }

    /// Records a response with this code, or none.
    pub(crate) fn answered(&self, call: &Call, code: Option<u16>, time: Duration) {
        let mut counts = self.lock();
        let method = method(&call.method);
        *counts.answers.entry((method, text(code))).or_default() += 1;
        observe(
            &mut counts.seconds,
            call.verb(),
            SECONDS,
            time.as_secs_f64(),
        );
        if !call.body.is_empty() {
            observe(&mut counts.sent, method, BYTES, bytes(call.body.len()));
        }
    }

    pub(crate) fn received(&self, call: &Call, size: usize) {
        observe(
            &mut self.lock().received,
            method(&call.method),
            BYTES,
            bytes(size),
        );
    }

    /// Records a retry after such a response.
    pub(crate) fn retried(&self, call: &Call, code: Option<u16>) {
        *self
            .lock()
            .retries
            .entry((method(&call.method), text(code)))
            .or_default() += 1;
    }

    pub(crate) fn connection(&self, reused: bool) {
        let mut counts = self.lock();
        *(if reused {
            &mut counts.reused
        } else {
            &mut counts.made
        }) += 1;
    }

    /// Counts a command as running until the returned guard is dropped.
    pub(crate) fn command(&self, name: &'static str) -> impl Drop + use<> {
        let mut counts = self.lock();
        let command = counts.commands.entry(name).or_default();
        *command = Command {
            begun: command.begun + 1,
            running: command.running + 1,
        };
        Running {
            traffic: self.clone(),
            name,
        }
    }
}

struct Running {
    traffic: Traffic,
    name: &'static str,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(command) = self.traffic.lock().commands.get_mut(self.name) {
            command.running -= 1;
        }
    }
}

fn observe(
    histograms: &mut BTreeMap<&'static str, Histogram>,
    key: &'static str,
    bounds: &'static [f64],
    value: f64,
) {
    histograms
        .entry(key)
        .or_insert_with(|| Histogram::new(bounds))
        .observe(value);
}

fn method(method: &Method) -> &'static str {
    match *method {
        Method::GET => "GET",
        Method::POST => "POST",
        Method::PUT => "PUT",
        Method::PATCH => "PATCH",
        Method::DELETE => "DELETE",
        _ => "",
    }
}

fn text(code: Option<u16>) -> String {
    code.map_or_else(|| "<error>".to_owned(), |code| code.to_string())
}

/// Sizes are far below the limit of exact representation.
#[expect(clippy::cast_precision_loss)]
fn bytes(size: usize) -> f64 {
    size as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_fall_between_bounds() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        [0.5, 1.0, 1.5, 2.5, 9.0]
            .into_iter()
            .for_each(|v| histogram.observe(v));
        assert_eq!(histogram.buckets(), [(1.0, 2), (2.0, 1), (f64::MAX, 2)]);
        let more = histogram.clone();
        histogram.add(&more);
        assert_eq!((histogram.count(), histogram.sum), (10, 29.0));
    }

    #[test]
    fn requests_are_counted_by_what_they_are() {
        let traffic = Traffic::of("https://user@one.example:6443/path");
        assert_eq!(traffic.host(), "one.example:6443");
        let (list, create) = (
            Call::get("/api/v1/pods"),
            Call::new(Method::POST, "/api/v1/namespaces").with_body("", "{}"),
        );
        traffic.answered(&list, Some(200), Duration::from_millis(1));
        traffic.answered(&create, None, Duration::from_secs(1));
        traffic.retried(&create, Some(429));
        traffic.received(&list, 1000);
        let running = traffic.command("apply");
        let mut counts = traffic.counts();
        assert_eq!(
            counts.commands["apply"],
            Command {
                begun: 1,
                running: 1
            }
        );
        drop(running);
        counts.add(&traffic.counts());
        assert_eq!(
            counts.commands["apply"],
            Command {
                begun: 2,
                running: 1
            }
        );
        assert_eq!(
            counts.answers,
            BTreeMap::from([
                (("GET", "200".to_owned()), 2),
                (("POST", "<error>".to_owned()), 2)
            ])
        );
        assert_eq!(
            counts.retries,
            BTreeMap::from([(("POST", "429".to_owned()), 2)])
        );
        assert_eq!(
            counts.seconds.keys().collect::<Vec<_>>(),
            [&"Create", &"List"]
        );
        assert_eq!((counts.sent.len(), counts.received["GET"].sum), (1, 2000.0));
    }
}
