//! Serves one table of calls over gRPC, gRPC-web and REST, for every role that answers calls.
//!
//! Main types: [`Table`] (the rows: RPC name, REST bindings, who may call, handler), [`Role`] (what
//! the transports need from a role: its table, its callers, its session) and [`serve`]. A role's
//! state is the type that implements [`Role`]; its handlers get that state, the caller and a
//! message. The crate knows no individual calls, and nothing about Argo CD.

pub mod counts;
mod error;
pub mod heavy;
mod kind;
mod parts;
mod role;
mod running;
pub mod table;
mod transport;
pub mod upload;

pub use counts::CallCounts;
pub use error::{ApiError, Code};
pub use parts::Parts;
pub use role::{CONTENT_SECURITY_POLICY, FRAME_OPTIONS, Role, StreamFile, Unhealthy};
pub use table::{Call, Reply, Table};
pub use transport::{
    compressed,
    listen::serve,
    redirect,
    source::{Network, NetworkError, Source},
    text,
    tls::{Tls, TlsError, TlsRules, TlsVersion, self_signed},
    token::{METADATA as TOKEN_METADATA, found as token, set_cookie, set_cookies},
    unix,
};
