//! Counts calls, for Prometheus, with the names that Go's gRPC servers have for them.
//!
//! Main type: [`CallCounts`]. Its labels come from the table of calls and the list of codes, so
//! clients cannot create new ones.

use crate::{ApiError, Call, Role, table::Kind};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};

/// Counts by the values of labels.
pub type Counts<const N: usize> = BTreeMap<[String; N], u64>;

#[derive(Default)]
struct Counted {
    started: Counts<3>,
    handled: Counts<4>,
}

/// Counts since the process started.
#[derive(Default)]
pub struct CallCounts(Mutex<Counted>);

impl CallCounts {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn started<S: Role>(&self, call: &Call<S>) {
        *self.lock().started.entry(labels(call)).or_default() += 1;
    }

    /// Counts a call that was answered, or whose stream was opened; `None` means success.
    pub fn handled<S: Role>(&self, call: &Call<S>, error: Option<&ApiError>) {
        let code = error.map_or_else(|| "OK".to_owned(), |e| format!("{:?}", e.code));
        let [method, service, kind] = labels(call);
        *self
            .lock()
            .handled
            .entry([code, method, service, kind])
            .or_default() += 1;
    }

    /// Appends the metrics in Prometheus text format.
    pub fn write(&self, out: &mut String) {
        let counted = self.lock();
        let names = ["grpc_code", "grpc_method", "grpc_service", "grpc_type"];
        family(
            out,
            ("grpc_server_started_total", "counter"),
            "Total number of RPCs started on the server.",
            &names[1..],
            &counted.started,
        );
        // Of a stream, too, only the request as a whole counts.
        family(
            out,
            ("grpc_server_msg_received_total", "counter"),
            "Total number of RPC stream messages received on the server.",
            &names[1..],
            &counted.started,
        );
        family(
            out,
            ("grpc_server_handled_total", "counter"),
            "Total number of RPCs completed on the server, regardless of success or failure.",
            &names,
            &counted.handled,
        );
    }
}

fn labels<S: Role>(call: &Call<S>) -> [String; 3] {
    let name = call.rpc.trim_start_matches('/');
    let (service, method) = name.split_once('/').unwrap_or((name, ""));
    let kind = match call.kind {
        Kind::Unary => "unary",
        Kind::ServerStream => "server_stream",
        Kind::ClientStream => "client_stream",
    };
    [method, service, kind].map(str::to_owned)
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
        let pair = |(label, value): (&&str, &String)| format!("{label}=\"{}\"", escaped(value));
        let pairs: Vec<String> = labels.iter().zip(values).map(pair).collect();
        let _ = writeln!(out, "{name}{{{}}} {count}", pairs.join(","));
    }
}

/// A value of a label, as Prometheus wants it.
pub fn escaped(value: &str) -> String {
    value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
}
