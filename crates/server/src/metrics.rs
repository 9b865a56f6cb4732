//! Prometheus metrics of the API, with the names used by Argo CD's API server. Main type:
//! [`ApiMetrics`].

use std::{
    fmt::Write as _,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tiphys_rpc::{
    CallCounts,
    counts::{Counts, family},
};

/// Counts since the process started.
pub struct ApiMetrics {
    calls: CallCounts,
    logins: Mutex<Counts<1>>,
}

impl ApiMetrics {
    /// `is_timing`: whether there is also a histogram of how long calls take.
    pub(crate) fn new(is_timing: bool) -> Self {
        Self {
            calls: CallCounts::new(is_timing),
            logins: Mutex::default(),
        }
    }

    pub(crate) fn calls(&self) -> &CallCounts {
        &self.calls
    }

    fn logins(&self) -> MutexGuard<'_, Counts<1>> {
        self.logins.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn login(&self, succeeded: bool) {
        let status = if succeeded { "success" } else { "failure" };
        *self.logins().entry([status.to_owned()]).or_default() += 1;
    }

    /// The metrics in Prometheus text format; `open` is the number of open connections.
    pub fn text(&self, open: usize) -> String {
        let mut out = String::new();
        self.calls.write(&mut out);
        family(
            &mut out,
            ("argocd_login_request_total", "counter"),
            "Number of login requests.",
            &["status"],
            &self.logins(),
        );
        let _ = writeln!(
            out,
            "# HELP tiphys_server_connections Open connections of clients.\n# TYPE tiphys_server_connections gauge\ntiphys_server_connections {open}"
        );
        out
    }
}
