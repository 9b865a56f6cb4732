//! Suites of the API server: `authz` (who may call what), `session` (logins and tokens) and `api`
//! (requests and answers). Each runs our API on an embedded API server with the fixtures of the
//! cases, in this process.

mod answer;
mod api;
mod authz;
mod client;
pub mod intended;
mod live;
mod messages;
mod normalise;
mod provider;
mod session;
mod world;

pub use api::runner as api;
pub use authz::runner as authz;
pub use live::has_status;
pub use session::runner as session;
pub use world::path;
