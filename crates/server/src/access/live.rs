//! The cluster of an Application: what anyone who may see the Application can read there, and the
//! permissions needed to change something.
//!
//! Main type: [`LiveOf`].

use super::{Authorized, DeleteResource, OpenShell, Reach, ReadLogs, RunAction, UpdateResource};
use crate::{
    ApiError,
    audit::{self, Change},
    ports::{ClusterVersions, DiffPair, Live, LiveRef, LogOptions, Propagation, Shell},
};
use futures::stream::BoxStream;
use serde_json::Value;
use std::sync::Arc;
use tiphys_api::{
    Application,
    resource::{ApplicationTree, ResourceDiff},
    rpc::{application::LogEntry, events::EventList},
};
use tiphys_engine::{spec::Destination, types::Diff};

/// The port [`Live`] for one Application.
pub(crate) struct LiveOf<'a, A> {
    live: &'a dyn Live,
    app: &'a Authorized<Application, A>,
}

/// Notes a change of an object of a cluster; its values may be secret.
fn noted(done: &str, object: &LiveRef, patch: &Value) {
    audit::changed(|| Change {
        done: done.to_owned(),
        kind: match object.group.as_str() {
            "" => object.kind.clone(),
            group => format!("{group}/{}", object.kind),
        },
        namespace: object.namespace.clone(),
        name: object.name.clone(),
        diff: audit::names(patch),
    });
}

impl Reach {
    pub(crate) fn live<'a, A>(&'a self, app: &'a Authorized<Application, A>) -> LiveOf<'a, A> {
        LiveOf {
            live: self.live.as_ref(),
            app,
        }
    }
}

impl<A> LiveOf<'_, A> {
    pub async fn managed_resources(&self) -> Result<Option<Arc<Vec<ResourceDiff>>>, ApiError> {
        self.live.managed_resources(self.app).await
    }

    pub async fn tree(&self) -> Result<Option<Arc<ApplicationTree>>, ApiError> {
        self.live.tree(self.app).await
    }

    pub fn watch_tree(&self) -> BoxStream<'static, Result<Arc<ApplicationTree>, ApiError>> {
        self.live.watch_tree(self.app)
    }

    pub async fn get(&self, object: &LiveRef) -> Result<Value, ApiError> {
        self.live.get(self.app, object).await
    }

    pub async fn is_namespaced(&self, object: &LiveRef) -> Result<bool, ApiError> {
        self.live.is_namespaced(self.app, object).await
    }

    pub async fn server_side_diff(&self, pairs: Vec<DiffPair>) -> Result<Vec<Diff>, ApiError> {
        self.live.server_side_diff(self.app, pairs).await
    }

    pub async fn events(&self, namespace: &str, selector: &str) -> Result<EventList, ApiError> {
        self.live.events(self.app, namespace, selector).await
    }

    pub async fn facts(&self) -> Result<ClusterVersions, ApiError> {
        self.live.facts(self.app).await
    }

    pub fn destination(&self) -> Result<Destination, ApiError> {
        self.live.destination(self.app)
    }
}

impl LiveOf<'_, ReadLogs> {
    pub async fn logs(
        &self,
        pod: &LiveRef,
        options: &LogOptions,
    ) -> Result<BoxStream<'static, Result<LogEntry, ApiError>>, ApiError> {
        self.live.logs(self.app, pod, options).await
    }
}

impl LiveOf<'_, OpenShell> {
    pub async fn shell(
        &self,
        pod: &LiveRef,
        container: &str,
        command: &str,
    ) -> Result<Shell, ApiError> {
        self.live.shell(self.app, pod, container, command).await
    }
}

impl LiveOf<'_, DeleteResource> {
    pub async fn delete(&self, object: &LiveRef, how: Propagation) -> Result<(), ApiError> {
        self.live.delete(self.app, object, how).await?;
        noted("deleted", object, &Value::Null);
        Ok(())
    }
}

impl LiveOf<'_, UpdateResource> {
    pub async fn patch(&self, at: &LiveRef, patch: &str, kind: &str) -> Result<Value, ApiError> {
        let patched = self.live.patch(self.app, at, patch, kind).await?;
        noted(
            "updated",
            at,
            &serde_json::from_str(patch).unwrap_or_default(),
        );
        Ok(patched)
    }
}

impl LiveOf<'_, RunAction> {
    pub async fn apply(&self, at: &LiveRef, patch: &str, kind: &str) -> Result<Value, ApiError> {
        let patched = self.live.patch(self.app, at, patch, kind).await?;
        noted(
            "updated",
            at,
            &serde_json::from_str(patch).unwrap_or_default(),
        );
        Ok(patched)
    }

    pub async fn apply_status(&self, at: &LiveRef, patch: &Value) -> Result<bool, ApiError> {
        let has_status = self.live.patch_status(self.app, at, patch).await?;
        noted("updated", at, patch);
        Ok(has_status)
    }

    pub async fn create(&self, object: &Value, dry_run: bool) -> Result<(), ApiError> {
        self.live.create(self.app, object, dry_run).await?;
        if !dry_run {
            let text = |pointer: &str| {
                let value = object.pointer(pointer).and_then(Value::as_str);
                value.unwrap_or_default().to_owned()
            };
            let at = LiveRef {
                kind: text("/kind"),
                namespace: text("/metadata/namespace"),
                name: text("/metadata/name"),
                ..LiveRef::default()
            };
            noted("created", &at, &Value::Null);
        }
        Ok(())
    }
}
