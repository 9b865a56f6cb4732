//! What the handlers share. Main type: [`State`], which [`Server`](crate::Server) makes.
//!
//! The files here have what some of them remember between calls; they know nothing of the handlers.

mod connections;
mod probes;
mod webhooks;

pub(crate) use connections::Connections;
pub(crate) use probes::Probes;
pub(crate) use webhooks::Webhooks;

use crate::{
    Assets,
    access::{Access, Enforcer, Guard, Reach},
    audit::Audit,
    auth::Caller,
    metrics::ApiMetrics,
    options::Options,
    sessions::Auth,
    settings::SettingsCache,
    sso::Sso,
    told::Told,
};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};
use tiphys_api::Application;
use tiphys_cluster::AppKey;
use tiphys_rpc::Table;
use tokio_util::sync::CancellationToken;

/// The description of the API, made when it is first asked for.
pub(crate) struct Swagger {
    pub document: Bytes,
    pub page: Bytes,
}

/// The state shared by handlers.
pub struct State {
    /// Everything that requires a permission.
    pub reach: Arc<Reach>,
    pub enforcer: Arc<dyn Enforcer>,
    pub settings: Arc<SettingsCache>,
    pub auth: Arc<Auth>,
    pub(crate) sso: Arc<Sso>,
    /// Held while the record of an account is read and written.
    pub(crate) account_changes: tokio::sync::Mutex<()>,
    pub(crate) connections: Connections,
    pub(crate) probes: Probes,
    pub options: Options,
    pub(crate) table: Table<Self>,
    pub assets: Assets,
    pub(crate) webhooks: Webhooks,
    pub(crate) connections_open: tiphys_listen::Connections,
    pub(crate) metrics: ApiMetrics,
    /// Cancelled when the server ends; not there before it serves.
    pub(crate) stop: OnceLock<CancellationToken>,
    pub(crate) told: Told,
    pub(crate) audit: Arc<Audit>,
    pub(crate) swagger: OnceLock<Swagger>,
}

impl State {
    /// The guard that checks permissions for the caller of a row.
    pub(crate) fn guard(&self, caller: Caller, access: Access) -> Guard {
        let namespace = self.options.namespace.as_str().into();
        Guard::new(caller, access, self.enforcer.clone(), namespace)
    }

    /// The requested namespace, or the control plane's.
    pub(crate) fn namespace_or_ours<'a>(&'a self, namespace: &'a str) -> &'a str {
        self.reach.namespace_or_ours(namespace)
    }

    /// The instance name in the tracking mark of the Application's objects: `<namespace>_<name>`
    /// outside the control plane's namespace.
    pub(crate) fn instance(&self, app: &Application) -> String {
        AppKey::new(
            self.namespace_or_ours(&app.metadata.namespace),
            &app.metadata.name,
        )
        .instance(&self.options.namespace)
    }
}
