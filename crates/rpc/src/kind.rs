//! The kinds of calls, and the parts of their names.

/// Whether a call's request and reply are single messages or streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Unary,
    ServerStream,
    ClientStream,
}

impl Kind {
    /// Its name in Go's logs and metrics.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Unary => "unary",
            Self::ServerStream => "server_stream",
            Self::ClientStream => "client_stream",
        }
    }
}

/// The service and the method of an RPC.
pub(crate) fn names(rpc: &str) -> (&str, &str) {
    let name = rpc.trim_start_matches('/');
    name.split_once('/').unwrap_or((name, ""))
}
