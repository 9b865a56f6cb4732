//! `kubectl apply` for one object at a time: three-way patches, server-side apply, force, field
//! manager migration, pruning.
//!
//! Main type: [`Applier`]. Its decisions and messages are kubectl's, so that both can be used on
//! the same objects. It knows nothing of files, flags or output. The sync of an Application has its
//! own rules; see [`crate::execute`].

mod client_side;
mod explain;
mod failure;
pub(crate) mod patch;
mod prune;
mod server_side;
pub mod set;

pub use explain::{Explanation, FieldChange, OwnershipChange};
pub use failure::Failure;
pub use prune::Scope;

use crate::{
    discovery::{Discovery, Kind},
    error::Error,
    request::{Call, Http, JSON, OnWarning},
};
use http::Method;
use std::{sync::Arc, time::Duration};
use tiphys_apimachinery::{Object, patch::last_applied};

/// kubectl's field manager for client-side apply.
pub const CLIENT_SIDE_MANAGER: &str = "kubectl-client-side-apply";
/// kubectl's field manager for server-side apply.
pub const SERVER_SIDE_MANAGER: &str = "kubectl";

/// Whether and how an apply is a dry run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DryRun {
    None,
    /// Nothing is sent.
    Client,
    /// The server does everything except store the object.
    Server,
}

/// Options of an apply, as set by kubectl's flags.
pub struct Settings {
    pub manager: String,
    pub server_side: bool,
    pub force_conflicts: bool,
    pub subresource: String,
    pub dry_run: DryRun,
    /// `Strict`, `Warn` or `Ignore`.
    pub field_validation: &'static str,
    /// False: a value that someone else changed too is a conflict.
    pub overwrite: bool,
    /// False: use only built-in merge rules, not the types that the cluster publishes.
    pub published_types: bool,
    /// Delete and recreate objects that cannot be patched.
    pub force: bool,
    pub grace_period: Option<i64>,
    /// How long to wait for a deleted object to disappear.
    pub timeout: Duration,
    /// `Background`, `Foreground` or `Orphan`.
    pub propagation: &'static str,
    /// Explain every patch.
    pub explain: bool,
    /// Only compare, as `kubectl diff` does: the last-applied annotation and the ownership of
    /// fields from earlier applies are no part of it.
    pub compare: bool,
    /// Called with warnings: the server's and our own.
    pub on_warning: OnWarning,
}

impl Settings {
    /// kubectl's defaults, with another field manager.
    pub fn new(manager: impl Into<String>, on_warning: OnWarning) -> Self {
        Self {
            manager: manager.into(),
            server_side: false,
            force_conflicts: false,
            subresource: String::new(),
            dry_run: DryRun::None,
            field_validation: "Strict",
            overwrite: true,
            published_types: true,
            force: false,
            grace_period: None,
            timeout: Duration::ZERO,
            propagation: "Background",
            explain: false,
            compare: false,
            on_warning,
        }
    }
}

/// An object to apply.
#[derive(Clone, Debug)]
pub struct Item {
    pub kind: Arc<Kind>,
    pub object: Object,
    /// The file that it comes from, for messages.
    pub source: String,
}

impl Item {
    fn namespace(&self) -> &str {
        if self.kind.namespaced {
            self.object.namespace()
        } else {
            ""
        }
    }

    /// How kubectl describes the object in messages.
    fn describe(&self) -> String {
        let gvk = &self.kind.gvk;
        format!(
            "Resource: \"{}, Resource={}\", GroupVersionKind: \"{}\"\nName: {:?}, Namespace: {:?}",
            group_version(&gvk.group, &gvk.version),
            self.kind.resource,
            gvk_text(&self.kind),
            self.object.name(),
            self.namespace()
        )
    }
}

fn group_version(group: &str, version: &str) -> String {
    format!("{group}/{version}")
}

/// `apps/v1, Kind=Deployment`, and `/v1, Kind=Pod` for the core group.
pub(crate) fn gvk_text(kind: &Kind) -> String {
    format!(
        "{}, Kind={}",
        group_version(&kind.gvk.group, &kind.gvk.version),
        kind.gvk.kind
    )
}

/// The result of applying an object.
#[derive(Clone, Debug)]
pub struct Applied {
    /// `created`, `configured`, `unchanged`, `serverside-applied`.
    pub verb: &'static str,
    /// The object as stored by the server; in a client-side dry run, as it would be sent.
    pub live: Object,
    /// The object before, if it was read.
    pub before: Option<Object>,
    pub explanation: Option<Explanation>,
}

/// Applies objects to one cluster.
pub struct Applier {
    discovery: Discovery,
    http: Http,
    settings: Settings,
    types: patch::Types,
}

impl Applier {
    pub fn new(discovery: Discovery, settings: Settings) -> Self {
        let http = discovery
            .cluster()
            .http()
            .with_warnings(settings.on_warning.clone());
        Self {
            discovery,
            http,
            settings,
            types: patch::Types::default(),
        }
    }

    pub fn discovery(&self) -> &Discovery {
        &self.discovery
    }

    /// Applies one object.
    pub async fn apply(&self, item: &Item) -> Result<Applied, Failure> {
        let object = &item.object;
        if object.name().is_empty() && !object.generate_name().is_empty() {
            return Err(Failure::text(format!(
                "from {}: cannot use generate name with apply",
                object.generate_name()
            )));
        }
        let applied = if self.settings.server_side {
            self.server_side(item).await?
        } else {
            self.client_side(item).await?
        };
        if applied.verb != "created" && applied.live.deletion_timestamp().is_some() {
            let name = applied.live.name();
            self.warn(&format!(
                "Detected changes to resource {name} which is currently being deleted."
            ));
        }
        Ok(applied)
    }

    fn warn(&self, text: &str) {
        (self.settings.on_warning)(text);
    }

    fn path(&self, item: &Item) -> Result<String, Failure> {
        if item.object.name().is_empty() {
            return Err(Failure::text("resource name may not be empty"));
        }
        let path = item.kind.object_path(item.namespace(), item.object.name());
        Ok(if self.settings.subresource.is_empty() {
            path
        } else {
            format!("{path}/{}", self.settings.subresource)
        })
    }

    async fn get(&self, item: &Item) -> Result<Object, Failure> {
        Ok(self.http.json(&Call::get(self.path(item)?)).await?)
    }

    /// The query parameters of every write: field manager, validation and dry run.
    fn write(&self, method: Method, path: String, manager: &str) -> Call {
        let call = Call::new(method, path)
            .query("fieldManager", manager)
            .query("fieldValidation", self.settings.field_validation);
        if self.settings.dry_run == DryRun::Server {
            call.query("dryRun", "All")
        } else {
            call
        }
    }

    async fn post(&self, item: &Item, object: &Object) -> Result<Object, Failure> {
        let mut object = object.clone();
        if !object.resource_version().is_empty() {
            object.metadata_mut().remove("resourceVersion");
        }
        let call = self.write(
            Method::POST,
            item.kind.collection_path(item.namespace()),
            &self.settings.manager,
        );
        Ok(self
            .http
            .json(&call.with_body(JSON, bytes(&object)?))
            .await?)
    }

    async fn delete(&self, kind: &Kind, namespace: &str, name: &str) -> Result<(), Failure> {
        let mut options = serde_json::json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": self.settings.propagation});
        if let Some(seconds) = self.settings.grace_period {
            options["gracePeriodSeconds"] = seconds.into();
        }
        if self.settings.dry_run == DryRun::Server {
            options["dryRun"] = serde_json::json!(["All"]);
        }
        let call = Call::new(Method::DELETE, kind.object_path(namespace, name));
        self.http
            .send(&call.with_body(JSON, options.to_string()))
            .await?;
        Ok(())
    }
}

fn bytes(object: &Object) -> Result<Vec<u8>, Failure> {
    serde_json::to_vec(object).map_err(|e| Failure::text(e.to_string()))
}

/// The last-applied annotation, if `kubectl apply` wrote one.
pub fn last_applied_text(object: &Object) -> Option<&str> {
    object.annotation(last_applied::ANNOTATION)
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        match error {
            Error::Api(e) => Self::Api(e),
            other => Self::text(other.to_string()),
        }
    }
}
