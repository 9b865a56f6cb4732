//! One table of calls, served over gRPC, gRPC-web and REST, for every role that answers calls.
//!
//! Main types: [`Table`] (the rows: RPC name, REST bindings, who may call, handler), [`Role`] (what
//! a role tells the transports: its table, its callers, its session) and [`serve`]. A role's state
//! is the type that implements [`Role`]; its handlers get that state, the caller and a message. The
//! crate knows no call by name, and nothing of Argo CD.

mod error;
pub mod heavy;
mod role;
pub mod table;
mod transport;

pub use error::{ApiError, Code};
pub use role::Role;
pub use table::{Call, Table};
pub use transport::{
    listen::serve,
    source::{Network, NetworkError},
    text,
    tls::{Tls, TlsError},
    token::{found as token, set_cookie},
};
