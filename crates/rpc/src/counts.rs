//! Counts calls, for Prometheus, with the names that Go's gRPC servers have for them.
//!
//! Main type: [`CallCounts`]. Its labels come from the table of calls and the list of codes, so
//! clients cannot create new ones.

use crate::{Call, Role, kind::names};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{
        Arc, PoisonError, RwLock, RwLockReadGuard,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Counts by the values of labels.
pub type Counts<const N: usize> = BTreeMap<[String; N], u64>;

/// Go's names of gRPC's codes, by number.
const CODES: [&str; 17] = [
    "OK",
    "Canceled",
    "Unknown",
    "InvalidArgument",
    "DeadlineExceeded",
    "NotFound",
    "AlreadyExists",
    "PermissionDenied",
    "ResourceExhausted",
    "FailedPrecondition",
    "Aborted",
    "OutOfRange",
    "Unimplemented",
    "Internal",
    "Unavailable",
    "DataLoss",
    "Unauthenticated",
];

/// Seconds: the buckets that Prometheus' library has.
const BUCKETS: [f64; 11] = [
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];

const LABELS: [&str; 4] = ["grpc_code", "grpc_method", "grpc_service", "grpc_type"];

/// The name of a code. gRPC has no others than these.
pub(crate) fn code_name(code: i32) -> &'static str {
    let at = usize::try_from(code).unwrap_or(usize::MAX);
    CODES.get(at).copied().unwrap_or("Unknown")
}

/// Counts since the process started.
#[derive(Default)]
pub struct CallCounts {
    /// By RPC; of those that were called.
    calls: RwLock<BTreeMap<String, Arc<CallCount>>>,
    is_timing: bool,
}

impl CallCounts {
    /// `is_timing`: whether there is also a histogram of how long calls take.
    pub fn new(is_timing: bool) -> Self {
        Self {
            calls: RwLock::default(),
            is_timing,
        }
    }

    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<String, Arc<CallCount>>> {
        self.calls.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is counted of a call.
    pub(crate) fn of<S: Role>(&self, call: &Call<S>) -> Arc<CallCount> {
        let known = self.read().get(&call.rpc).cloned();
        known.unwrap_or_else(|| {
            let mut calls = self.calls.write().unwrap_or_else(PoisonError::into_inner);
            let count = calls.entry(call.rpc.clone()).or_insert_with(|| {
                Arc::new(CallCount {
                    labels: labels(call),
                    times: self.is_timing.then(Times::default),
                    ..CallCount::default()
                })
            });
            Arc::clone(count)
        })
    }

    /// Appends the metrics in Prometheus text format.
    pub fn write(&self, out: &mut String) {
        let calls = self.read();
        let counts = |count: fn(&CallCount) -> &AtomicU64| -> Counts<3> {
            let of = |call: &Arc<CallCount>| {
                let count = count(call).load(Ordering::Relaxed);
                (call.labels.clone(), count)
            };
            calls.values().map(of).collect()
        };
        family(
            out,
            ("grpc_server_started_total", "counter"),
            "Total number of RPCs started on the server.",
            &LABELS[1..],
            &counts(|call| &call.started),
        );
        family(
            out,
            ("grpc_server_msg_received_total", "counter"),
            "Total number of RPC stream messages received on the server.",
            &LABELS[1..],
            &counts(|call| &call.received),
        );
        family(
            out,
            ("grpc_server_msg_sent_total", "counter"),
            "Total number of gRPC stream messages sent by the server.",
            &LABELS[1..],
            &counts(|call| &call.sent),
        );
        let mut handled: Counts<4> = BTreeMap::new();
        for call in calls.values() {
            let [method, service, kind] = &call.labels;
            for (code, count) in CODES.iter().zip(&call.handled) {
                let count = count.load(Ordering::Relaxed);
                if count > 0 {
                    let labels = [*code, method.as_str(), service.as_str(), kind.as_str()];
                    handled.insert(labels.map(str::to_owned), count);
                }
            }
        }
        family(
            out,
            ("grpc_server_handled_total", "counter"),
            "Total number of RPCs completed on the server, regardless of success or failure.",
            &LABELS,
            &handled,
        );
        if self.is_timing {
            write_times(out, calls.values());
        }
    }
}

/// What is counted of one call of the table.
#[derive(Default)]
pub(crate) struct CallCount {
    labels: [String; 3],
    started: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
    /// By code.
    handled: [AtomicU64; CODES.len()],
    times: Option<Times>,
}

/// How long a call takes.
#[derive(Default)]
struct Times {
    /// Those of each bucket alone.
    within: [AtomicU64; BUCKETS.len()],
    count: AtomicU64,
    micros: AtomicU64,
}

fn add_one(count: &AtomicU64) {
    count.fetch_add(1, Ordering::Relaxed);
}

impl CallCount {
    pub fn started(&self) {
        add_one(&self.started);
    }

    /// Counts a message of the client.
    pub fn received(&self) {
        add_one(&self.received);
    }

    /// Counts a message of an answer.
    pub fn sent(&self) {
        add_one(&self.sent);
    }

    /// Counts a call that has ended.
    pub fn handled(&self, code: i32, took: Duration) {
        let at = usize::try_from(code).unwrap_or(usize::MAX);
        if let Some(count) = self.handled.get(at) {
            add_one(count);
        }
        let Some(times) = &self.times else {
            return;
        };
        let seconds = took.as_secs_f64();
        if let Some(at) = BUCKETS.iter().position(|bucket| seconds <= *bucket) {
            add_one(&times.within[at]);
        }
        add_one(&times.count);
        let micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        times.micros.fetch_add(micros, Ordering::Relaxed);
    }
}

/// The histogram of how long calls take.
fn write_times<'a>(out: &mut String, calls: impl Iterator<Item = &'a Arc<CallCount>>) {
    let name = "grpc_server_handling_seconds";
    let _ = writeln!(
        out,
        "# HELP {name} Histogram of response latency (seconds) of gRPC that had been \
         application-level handled by the server.\n# TYPE {name} histogram"
    );
    for call in calls {
        let Some(times) = &call.times else {
            continue;
        };
        let labels = pairs(&LABELS[1..], &call.labels);
        let mut below = 0;
        for (bucket, count) in BUCKETS.iter().zip(&times.within) {
            below += count.load(Ordering::Relaxed);
            let _ = writeln!(out, "{name}_bucket{{{labels},le=\"{bucket}\"}} {below}");
        }
        let count = times.count.load(Ordering::Relaxed);
        let sum = Duration::from_micros(times.micros.load(Ordering::Relaxed)).as_secs_f64();
        let _ = writeln!(out, "{name}_bucket{{{labels},le=\"+Inf\"}} {count}");
        let _ = writeln!(out, "{name}_sum{{{labels}}} {sum}");
        let _ = writeln!(out, "{name}_count{{{labels}}} {count}");
    }
}

fn labels<S: Role>(call: &Call<S>) -> [String; 3] {
    let (service, method) = names(&call.rpc);
    [method, service, call.kind.name()].map(str::to_owned)
}

/// Appends a family of metrics with its name and its type.
pub fn family<const N: usize>(
    out: &mut String,
    (name, kind): (&str, &str),
    help: &str,
    labels: &[&str],
    counts: &Counts<N>,
) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}");
    for (values, count) in counts {
        let _ = writeln!(out, "{name}{{{}}} {count}", pairs(labels, values));
    }
}

/// Labels with their values.
fn pairs(labels: &[&str], values: &[String]) -> String {
    let pair = |(label, value): (&&str, &String)| format!("{label}=\"{}\"", escaped(value));
    let pairs: Vec<String> = labels.iter().zip(values).map(pair).collect();
    pairs.join(",")
}

/// A value of a label, as Prometheus wants it.
pub fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
