//! Prometheus metrics of the API, with the names used by Argo CD's API server. Main type:
//! [`ApiMetrics`].

use crate::{ApiError, server::State};
use std::{
    collections::BTreeMap,
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tiphys_rpc::{Call, table::Kind};

/// Counts by label values. Label values come from the table of calls and the list of codes, so
/// clients cannot create new ones.
type Counts<const N: usize> = BTreeMap<[String; N], u64>;

#[derive(Default)]
struct Counted {
    started: Counts<3>,
    handled: Counts<4>,
    logins: Counts<1>,
}

/// Counts since the process started.
#[derive(Default)]
pub struct ApiMetrics(Mutex<Counted>);

impl ApiMetrics {
    fn lock(&self) -> MutexGuard<'_, Counted> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn started(&self, call: &Call<State>) {
        *self.lock().started.entry(labels(call)).or_default() += 1;
    }

    /// Counts a call that was answered, or whose stream was opened; `None` means success.
    pub(crate) fn handled(&self, call: &Call<State>, error: Option<&ApiError>) {
        let code = error.map_or_else(|| "OK".to_owned(), |e| format!("{:?}", e.code));
        let [method, service, kind] = labels(call);
        *self
            .lock()
            .handled
            .entry([code, method, service, kind])
            .or_default() += 1;
    }

    pub(crate) fn login(&self, succeeded: bool) {
        let status = if succeeded { "success" } else { "failure" };
        *self.lock().logins.entry([status.to_owned()]).or_default() += 1;
    }

    /// The metrics in Prometheus text format; `open` is the number of open connections.
    pub fn text(&self, open: usize) -> String {
        let counted = self.lock();
        let mut out = String::new();
        let names = ["grpc_code", "grpc_method", "grpc_service", "grpc_type"];
        family(
            &mut out,
            "grpc_server_started_total",
            "Total number of RPCs started on the server.",
            &names[1..],
            &counted.started,
        );
        // A request is one message: none of the RPCs takes a stream.
        let help = "Total number of RPC stream messages received on the server.";
        family(
            &mut out,
            "grpc_server_msg_received_total",
            help,
            &names[1..],
            &counted.started,
        );
        let help =
            "Total number of RPCs completed on the server, regardless of success or failure.";
        family(
            &mut out,
            "grpc_server_handled_total",
            help,
            &names,
            &counted.handled,
        );
        family(
            &mut out,
            "argocd_login_request_total",
            "Number of login requests.",
            &["status"],
            &counted.logins,
        );
        let _ = writeln!(
            out,
            "# HELP tiphys_server_connections Open connections of clients.\n# TYPE tiphys_server_connections gauge\ntiphys_server_connections {open}"
        );
        out
    }
}

fn labels(call: &Call<State>) -> [String; 3] {
    let name = call.rpc.trim_start_matches('/');
    let (service, method) = name.split_once('/').unwrap_or((name, ""));
    let kind = match call.kind {
        Kind::Unary => "unary",
        Kind::ServerStream => "server_stream",
        Kind::ClientStream => "client_stream",
    };
    [method, service, kind].map(str::to_owned)
}

fn family<const N: usize>(
    out: &mut String,
    name: &str,
    help: &str,
    labels: &[&str],
    counts: &Counts<N>,
) {
    let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} counter");
    for (values, count) in counts {
        let pairs: Vec<String> = labels
            .iter()
            .zip(values)
            .map(|(label, value)| format!("{label}=\"{value}\""))
            .collect();
        let _ = writeln!(out, "{name}{{{}}} {count}", pairs.join(","));
    }
}
