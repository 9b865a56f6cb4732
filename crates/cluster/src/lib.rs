//! One live Kubernetes cluster: connect, discover, watch, cache, write.
//!
//! Main types: [`Cluster`] (a checked connection), [`Discovery`] (its kinds), [`LiveCache`] (its
//! objects), [`Executor`] (the only code that writes for a sync), [`apply`] (`kubectl apply`),
//! [`records`] (our own records in it), [`AppStates`] (what the controller publishes for readers in
//! this process) and [`leases`] (which replica may write). It knows nothing of Git, rendering or
//! its callers.

pub mod app_state;
pub mod apply;
pub mod cache;
mod call;
mod client;
pub mod clusters;
pub mod connect;
pub mod discovery;
pub mod error;
pub mod execute;
mod fence;
pub mod leases;
pub mod manager;
pub mod records;
pub mod request;
pub mod scripts;
pub mod streams;
pub mod taps;
pub mod traffic;
pub mod watch;

/// How many changes a slow receiver may fall behind before it gets `Lagged`. The buffer is
/// allocated in advance.
const FEED_LENGTH: usize = 2048;

pub use app_state::{AppKey, AppState, AppStates};
pub use cache::{CacheOptions, Change, ChangeType, Known, Live, LiveCache, Unreadable};
pub use connect::{
    Cluster, ClusterIdentity, ClusterSecret, ConnectOptions, Overrides, Source, Version,
};
pub use discovery::{Discovery, Kind, Kinds};
pub use error::{About, ApiError, Error, ErrorKind};
pub use execute::{Executor, RequestObserver};
pub use records::{Records, RecordsOptions, Settings};
